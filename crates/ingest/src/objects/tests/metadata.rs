//! Kinds of which only the metadata is read, and the table of kinds.

use expect_test::expect;
use model::Kind;

use super::check;
use crate::objects::kind_of;

#[test]
fn nodes_have_a_zone_and_no_namespace() {
    check(
        Kind::Node,
        r#"{"kind": "PartialObjectMetadata", "metadata": {"name": "n1", "namespace": "ignored",
              "resourceVersion": "4", "labels": {"topology.kubernetes.io/zone": "a", "other": "b"}}}"#,
        expect![[r#"
            Node n1 @4
              zone: "a"
        "#]],
    );
    check(
        Kind::Node,
        r#"{"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": ""}}}"#,
        expect![[r#"
            Node n1 @
        "#]],
    );
}

#[test]
fn only_an_only_owner_counts() {
    check(
        Kind::ReplicaSet,
        r#"{"metadata": {"namespace": "n", "name": "r", "ownerReferences": [{"kind": "Deployment", "name": "d"}]}}"#,
        expect![[r#"
            ReplicaSet n/r @
              owner: ("Deployment", "d")
        "#]],
    );
    check(
        Kind::Job,
        r#"{"metadata": {"namespace": "n", "name": "j",
              "ownerReferences": [{"kind": "CronJob", "name": "a"}, {"kind": "CronJob", "name": "b"}]}}"#,
        expect![[r#"
            Job n/j @
        "#]],
    );
}

#[test]
fn kinds_are_known_by_group_and_version() {
    let kinds = [
        ("v1", "Service"),
        ("v1", "Pod"),
        ("v1", "Node"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
        ("v1", "Endpoints"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
        ("workload.linkerd.io/v1beta1", "ExternalWorkload"),
        ("policy.linkerd.io/v1beta3", "Server"),
    ];
    for (api_version, kind) in kinds {
        assert_eq!(kind_of(api_version, kind).map(Kind::name), Some(kind));
    }
    assert_eq!(kind_of("serving.knative.dev/v1", "Service"), None);
    assert_eq!(kind_of("v1", "ConfigMap"), None);
    assert_eq!(kind_of("", ""), None);
}
