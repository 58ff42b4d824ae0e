//! An API server that doesn't let us.

use anyhow::{Result, ensure};
use harness::apiserver::User;
use serde_json::json;

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_list_says_so_and_goes_on_when_it_may() -> Result<()> {
    let mut rig = Rig::new(&["Server"]).await?;
    rig.start(User::Nobody).await?;
    rig.until_ready_says(|status, body| status == 503 && body.contains("(403) to watch pods"))
        .await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "nobody-reads"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    });
    rig.objects.apply(&[binding]).await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    rig.equal().await?;
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_known_says_so() -> Result<()> {
    let mut rig = Rig::new(&[]).await?;
    rig.start(User::Stranger).await?;
    rig.until_ready_says(|status, body| status == 503 && body.contains("401")).await?;
    ensure!(rig.admin("/live").await?.0 == 200, "it lives");
    rig.stop().await
}
