//! The first start, live changes, and a start on what is on disk.

use anyhow::{Result, ensure};
use harness::apiserver::User;
use serde_json::json;

use crate::rig::{Rig, pod, service, slice};

const CUSTOM: [&str; 2] = ["Server", "ExternalWorkload"];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_stored_and_changes_reach_open_streams() -> Result<()> {
    let mut rig = Rig::new(&CUSTOM).await?;
    let labels = json!({"topology.kubernetes.io/zone": "z1"});
    rig.objects
        .apply(&[
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}}),
            json!({
                "apiVersion": "workload.linkerd.io/v1beta1", "kind": "ExternalWorkload",
                "metadata": {"name": "v1", "namespace": "shop"},
                "spec": {
                    "meshTLS": {"identity": "spiffe://id/v1", "serverName": "v1.corp"},
                    "workloadIPs": [{"ip": "192.0.2.1"}],
                },
            }),
        ])
        .await?;
    rig.start(User::Admin).await?;
    rig.equal().await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    let synced = "spillway_source_synced_timestamp_seconds{cluster=\"local\",kind=\"Pod\"} ";
    ensure!(rig.admin("/metrics").await?.1.contains(synced), "it says since when it is known");
    let web = rig.open().await?;
    web.until_pods(&[1, 2]).await?;

    rig.objects.apply(&[pod("w3", 3), slice("web", &[1, 2, 3])]).await?;
    web.until_pods(&[1, 2, 3]).await?;
    rig.objects.apply(&[slice("web", &[2, 3])]).await?;
    web.until_pods(&[2, 3]).await?;
    rig.objects.delete(&["Pod/shop/w1".to_owned(), "Pod/shop/w2".to_owned()]).await?;
    web.until_pods(&[3]).await?;
    rig.objects.delete(&["Service/shop/web".to_owned()]).await?;
    web.until_pods(&[]).await?;
    rig.equal().await?;
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_serves_from_disk_and_lists_nothing_again() -> Result<()> {
    let mut rig = Rig::new(&CUSTOM).await?;
    rig.start(User::Admin).await?;
    rig.equal().await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    rig.stop().await?;
    let listings = (rig.api.listings("pods")?, rig.api.listings("endpointslices")?);
    ensure!(listings == (1, 1), "listed {listings:?} times at the first start");

    // While it is away, objects come, change and go.
    rig.objects.apply(&[pod("w3", 3), slice("web", &[1, 3]), service("api")]).await?;
    rig.objects.delete(&["Pod/shop/w2".to_owned()]).await?;
    rig.cut();
    rig.start(User::Admin).await?;
    let web = rig.open().await?;
    web.until_pods(&[1, 2]).await?;
    ensure!(rig.ready().await?.0 == 200, "ready with what is on disk");

    rig.mend();
    web.until_pods(&[1, 3]).await?;
    rig.equal().await?;
    let listings = (rig.api.listings("pods")?, rig.api.listings("endpointslices")?);
    ensure!(listings == (1, 1), "listed {listings:?} times in all: it should have gone on");
    rig.stop().await
}
