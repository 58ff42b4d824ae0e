//! Services.

use expect_test::expect;
use model::Kind::Service;

use super::check;

#[test]
fn an_ordinary_service() {
    check(
        Service,
        r#"{"apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "shop", "name": "cart", "resourceVersion": "17",
              "annotations": {"config.linkerd.io/opaque-ports": "db,9000-9002",
                              "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {"type": "ClusterIP", "internalTrafficPolicy": "Local", "clusterIP": "10.96.0.1",
              "clusterIPs": ["10.96.0.1", "fd00::1"], "selector": {"app": "cart"},
              "ports": [{"name": "http", "port": 80, "targetPort": "web"},
                        {"name": "db", "port": 5432, "protocol": "TCP"},
                        {"name": "dns", "port": 53, "protocol": "UDP"}]},
            "status": {"loadBalancer": {}}}"#,
        expect![[r#"
            Service shop/cart @17
              port "http" 80/tcp
              port "db" 5432/tcp
              port "dns" 53/other
              local traffic
              cluster ips: [10.96.0.1, fd00::1]
              opaque: [(5432, 5432), (9000, 9002)]
        "#]],
    );
}

#[test]
fn an_external_name_has_neither_ports_nor_addresses() {
    check(
        Service,
        r#"{"metadata": {"namespace": "shop", "name": "out"},
            "spec": {"type": "ExternalName", "externalName": "example.org"}}"#,
        expect![[r#"
            Service shop/out @
              external name
        "#]],
    );
}

#[test]
fn the_same_name_is_a_label_and_an_annotation() {
    check(
        Service,
        r#"{"metadata": {"namespace": "shop", "name": "cart-east",
              "labels": {"multicluster.linkerd.io/remote-discovery": "east",
                         "multicluster.linkerd.io/remote-service": "cart"},
              "annotations": {"multicluster.linkerd.io/remote-discovery": "cart@west",
                              "multicluster.linkerd.io/local-discovery": ""}},
            "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}"#,
        expect![[r#"
            Service shop/cart-east @
              cluster: "east"
              service: "cart"
              members: "cart@west"
              local member: ""
        "#]],
    );
}

#[test]
fn nulls_are_absent_and_null_annotations_empty() {
    check(
        Service,
        r#"{"metadata": {"namespace": null, "name": "cart", "labels": null, "ownerReferences": null,
              "resourceVersion": null, "annotations": {"config.linkerd.io/opaque-ports": null}},
            "spec": {"type": null, "ports": null, "clusterIPs": null, "internalTrafficPolicy": null},
            "status": null}"#,
        expect![[r#"
            Service default/cart @
              opaque: []
        "#]],
    );
}

#[test]
fn a_port_without_a_number_is_skipped() {
    check(
        Service,
        r#"{"metadata": {"name": "cart"},
            "spec": {"ports": [{"name": "a"}, {"name": "b", "port": 65536}, {"name": null, "port": 65535}]}}"#,
        expect![[r#"
            Service default/cart @
              port "" 65535/tcp
            warning: port "a" has no number that a port can have
            warning: port "b" has no number that a port can have
        "#]],
    );
}

#[test]
fn bad_items_of_a_port_list_are_named_and_bounded() {
    let list = ["x"; 30_000].join(",");
    let json = format!(
        r#"{{"metadata": {{"name": "cart", "annotations": {{"config.linkerd.io/opaque-ports": "25,{list}"}}}}}}"#
    );
    check(
        Service,
        &json,
        expect![[r#"
        Service default/cart @
          opaque: [(25, 25)]
        warning: opaque-ports: "x" is neither a port, a range of ports, nor the name of a port here
        warning: opaque-ports: "x" is neither a port, a range of ports, nor the name of a port here
        warning: opaque-ports: "x" is neither a port, a range of ports, nor the name of a port here
        warning: opaque-ports: "x" is neither a port, a range of ports, nor the name of a port here
        warning: opaque-ports: "x" is neither a port, a range of ports, nor the name of a port here
        warning: opaque-ports: "x" is neither a port, a range of ports, nor the name of a port here
        warning: opaque-ports: "x" is neither a port, a range of ports, nor the name of a port here
        warning: opaque-ports: "x" is neither a port, a range of ports, nor the name of a port here
        warning: and 29992 more like these
    "#]],
    );
}

#[test]
fn a_long_bad_item_is_cut() {
    let item = "é".repeat(500_000);
    let json = format!(
        r#"{{"metadata": {{"name": "cart", "annotations": {{"config.linkerd.io/opaque-ports": "{item}"}}}}}}"#
    );
    check(
        Service,
        &json,
        expect![[r#"
        Service default/cart @
          opaque: []
        warning: opaque-ports: "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…
    "#]],
    );
}
