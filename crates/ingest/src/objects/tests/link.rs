//! Secrets that declare links.

use expect_test::{Expect, expect};
use k8s_openapi::ByteString;
use model::Kind::Secret;
use serde_json::{Value, json};

use super::check;

const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: s3cret}}]
current-context: x
"#;

fn secret() -> Value {
    json!({
        "type": "mirror.linkerd.io/remote-kubeconfig",
        "metadata": {
            "name": "cluster-credentials-east", "namespace": "mesh", "resourceVersion": "7",
            "labels": {"multicluster.linkerd.io/cluster-name": "east"},
            "annotations": {
                "multicluster.linkerd.io/trust-domain": "east.org",
                "multicluster.linkerd.io/cluster-domain": "e.test",
            },
        },
        "data": {"kubeconfig": ByteString(KUBECONFIG.into())},
    })
}

/// The Secret without a part, or with another.
fn but(pointer: &str, value: Value, expected: Expect) {
    let mut secret = secret();
    *secret.pointer_mut(pointer).unwrap() = value;
    check(Secret, &secret.to_string(), expected);
}

#[test]
fn a_secret_declares_a_link_and_shows_no_credentials_m01() {
    check(
        Secret,
        &secret().to_string(),
        expect![[r#"
        Secret mesh/cluster-credentials-east @7
          link: Link { cluster: "east", trust_domain: "east.org", cluster_domain: "e.test", credentials: Credentials(..) }
    "#]],
    );
}

#[test]
fn a_secret_that_lacks_a_part_declares_none_m03_m04_m05_m06() {
    but(
        "/type",
        json!("kubernetes.io/tls"),
        expect![[r#"
        Secret mesh/cluster-credentials-east @7
          no link: "its type is \"kubernetes.io/tls\", not mirror.linkerd.io/remote-kubeconfig"
    "#]],
    );
    but(
        "/metadata/labels",
        json!({}),
        expect![[r#"
        Secret mesh/cluster-credentials-east @7
          no link: "it has no label multicluster.linkerd.io/cluster-name"
    "#]],
    );
    let only = |key: &str| json!({key: ""});
    but(
        "/metadata/annotations",
        only("multicluster.linkerd.io/trust-domain"),
        expect![[r#"
        Secret mesh/cluster-credentials-east @7
          no link: "it has no annotation multicluster.linkerd.io/cluster-domain"
    "#]],
    );
    but(
        "/metadata/annotations",
        only("multicluster.linkerd.io/cluster-domain"),
        expect![[r#"
        Secret mesh/cluster-credentials-east @7
          no link: "it has no annotation multicluster.linkerd.io/trust-domain"
    "#]],
    );
    but(
        "/data",
        json!({"config": "eA=="}),
        expect![[r#"
        Secret mesh/cluster-credentials-east @7
          no link: "it has no data.kubeconfig"
    "#]],
    );
    but(
        "/data/kubeconfig",
        json!("/w=="),
        expect![[r#"
        Secret mesh/cluster-credentials-east @7
          no link: "data.kubeconfig is no text"
    "#]],
    );
    but(
        "/data/kubeconfig",
        json!(ByteString("no: kubeconfig".into())),
        expect![[r#"
            Secret mesh/cluster-credentials-east @7
              no link: "data.kubeconfig can't be used: it has no current-context"
        "#]],
    );
    but(
        "/data/kubeconfig",
        json!("not base64"),
        expect![[r#"
        reject mesh/cluster-credentials-east: Invalid symbol 32, offset 3. at line 1 column 34
    "#]],
    );
}

#[test]
fn domains_that_are_there_and_empty_count() {
    let annotations = json!({
        "multicluster.linkerd.io/trust-domain": "", "multicluster.linkerd.io/cluster-domain": null,
    });
    but(
        "/metadata/annotations",
        annotations,
        expect![[r#"
        Secret mesh/cluster-credentials-east @7
          link: Link { cluster: "east", trust_domain: "", cluster_domain: "", credentials: Credentials(..) }
    "#]],
    );
}
