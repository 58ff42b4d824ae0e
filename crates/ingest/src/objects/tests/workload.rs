//! Pods and ExternalWorkloads.

use expect_test::expect;
use model::Kind::{ExternalWorkload, Pod};

use super::check;

#[test]
fn a_meshed_pod() {
    check(
        Pod,
        r#"{"metadata": {"namespace": "shop", "name": "cart-1", "resourceVersion": "5",
              "labels": {"app": "cart", "linkerd.io/control-plane-ns": "linkerd", "pod-template-hash": "abc"},
              "annotations": {"config.linkerd.io/opaque-ports": "db, 4000-4002,",
                              "config.linkerd.io/skip-inbound-ports": "25,db"},
              "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart-abc"}]},
            "spec": {"nodeName": "n1", "serviceAccountName": "clerk",
              "initContainers": [{"name": "linkerd-proxy", "ports": [{"name": "proxy", "containerPort": 4143}],
                "env": [{"name": "LINKERD2_PROXY_INBOUND_LISTEN_ADDR", "value": "0.0.0.0:4143"},
                        {"name": "LINKERD2_PROXY_ADMIN_LISTEN_ADDR", "value": "[::]:4191"},
                        {"name": "LINKERD2_PROXY_CONTROL_LISTEN_ADDR", "value": "127.0.0.1:4190"}]}],
              "containers": [{"name": "web", "image": "x", "ports": [
                {"name": "db", "containerPort": 5432, "hostPort": 5433, "protocol": "TCP"},
                {"containerPort": 8080, "hostPort": 0}]}]},
            "status": {"phase": "Running", "podIP": "10.1.0.7", "podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd00::7"}],
              "hostIP": "192.0.2.1", "containerStatuses": [{"name": "web"}]}}"#,
        expect![[r#"
            Pod shop/cart-1 @5
              Pod in shop, Running
              node: "n1"
              ips: [10.1.0.7, fd00::7]
              host ips: [192.0.2.1]
              labels: {"app": "cart", "linkerd.io/control-plane-ns": "linkerd", "pod-template-hash": "abc"}
              owner: ("ReplicaSet", "cart-abc")
              account: "clerk"
              port "proxy" 4143
              port "db" 5432 on host 5433
              port "" 8080
              opaque: [(4000, 4002), (5432, 5432)]
              skip: [(25, 25)]
              proxy: (Some(4143), Some(4191), Some(4190))
            warning: skip-inbound-ports: "db" is neither a port, a range of ports, nor the name of a port here
        "#]],
    );
}

#[test]
fn a_later_container_wins_a_name() {
    check(
        Pod,
        r#"{"metadata": {"name": "p", "annotations": {"config.linkerd.io/opaque-ports": "a"}},
            "spec": {"containers": [{"name": "x", "ports": [{"name": "a", "containerPort": 2}]}],
              "initContainers": [{"name": "y", "ports": [{"name": "a", "containerPort": 1}]}]}}"#,
        expect![[r#"
            Pod default/p @
              Pod in default, Pending
              account: "default"
              port "a" 1
              port "a" 2
              opaque: [(2, 2)]
        "#]],
    );
}

#[test]
fn f11_an_init_proxy_goes_before_a_regular_one() {
    check(
        Pod,
        r#"{"metadata": {"name": "p"}, "spec": {
              "containers": [{"name": "linkerd-proxy", "env": [
                {"name": "LINKERD2_PROXY_INBOUND_LISTEN_ADDR", "value": "0.0.0.0:1"}]}],
              "initContainers": [{"name": "linkerd-proxy", "env": [
                {"name": "LINKERD2_PROXY_INBOUND_LISTEN_ADDR", "value": "0.0.0.0:0"},
                {"name": "LINKERD2_PROXY_ADMIN_LISTEN_ADDR", "value": "localhost:4191"},
                {"name": "LINKERD2_PROXY_CONTROL_LISTEN_ADDR", "valueFrom": {"fieldRef": {}}},
                {"name": "LINKERD2_PROXY_CONTROL_LISTEN_ADDR", "value": "0.0.0.0:4190"}]}]}}"#,
        expect![[r#"
            Pod default/p @
              Pod in default, Pending
              account: "default"
              proxy: (None, None, Some(4190))
        "#]],
    );
}

#[test]
fn phases_owners_and_addresses() {
    check(
        Pod,
        r#"{"metadata": {"namespace": "n", "name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z",
              "ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b"}],
              "annotations": {"config.linkerd.io/opaque-ports": ""}},
            "spec": {"hostNetwork": true},
            "status": {"phase": "Failed", "podIP": "192.0.2.1", "hostIPs": [{"ip": "192.0.2.1"}, {"ip": "x"}]}}"#,
        expect![[r#"
            Pod n/p @
              Pod in n, Finished
              deleting
              host network
              ips: [192.0.2.1]
              host ips: [192.0.2.1]
              account: "default"
              opaque: []
        "#]],
    );
    check(
        Pod,
        r#"{"metadata": {"name": "p", "deletionTimestamp": null, "labels": {"a": null}},
            "spec": {"nodeName": null, "containers": [{"name": null, "ports": null, "env": null}],
                     "initContainers": null},
            "status": {"phase": "Unknown", "podIP": "", "podIPs": null}}"#,
        expect![[r#"
            Pod default/p @
              Pod in default, Pending
              labels: {"a": ""}
              account: "default"
        "#]],
    );
}

#[test]
fn an_external_workload() {
    check(
        ExternalWorkload,
        r#"{"metadata": {"namespace": "shop", "name": "vm", "labels": {"app": "cart"},
              "annotations": {"config.linkerd.io/opaque-ports": "db,linkerd-proxy"},
              "ownerReferences": [{"kind": "Group", "name": "g"}]},
            "spec": {"meshTLS": {"identity": "spiffe://id.test/vm", "serverName": "vm.id.test"},
              "ports": [{"name": "db", "port": 5432}, {"port": 80, "protocol": "TCP"},
                        {"name": "linkerd-proxy", "port": 4144}],
              "workloadIPs": [{"ip": "192.0.2.9"}, {"ip": "fd00::9"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#,
        expect![[r#"
            ExternalWorkload shop/vm @
              External in shop, Running
              ips: [192.0.2.9, fd00::9]
              labels: {"app": "cart"}
              owner: ("Group", "g")
              port "db" 5432
              port "" 80
              port "linkerd-proxy" 4144
              opaque: [(4144, 4144), (5432, 5432)]
              proxy: (Some(4144), None, None)
              tls: ("spiffe://id.test/vm", "vm.id.test")
        "#]],
    );
    check(
        ExternalWorkload,
        r#"{"metadata": {"name": "vm"}, "spec": {"meshTLS": null, "ports": [{"name": "a"}], "workloadIPs": null}}"#,
        expect![[r#"
            ExternalWorkload default/vm @
              External in default, Running
            warning: port "a" has no number that a port can have
        "#]],
    );
}
