//! Endpoints.

use expect_test::expect;
use model::Kind::Endpoints;

use super::check;

#[test]
fn each_subset_is_a_slice_of_b09() {
    check(
        Endpoints,
        r#"{"metadata": {"namespace": "shop", "name": "cart", "resourceVersion": "9",
              "labels": {"mirror.linkerd.io/cluster-name": "east", "kubernetes.io/service-name": "other"},
              "annotations": {"mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.east",
                "mirror.linkerd.io/remote-gateway-identity": "gw.id"}},
            "subsets": [
              {"addresses": [{"ip": "10.0.0.1", "targetRef": {"kind": "Pod", "name": "cart-1", "namespace": "shop"}},
                             {"ip": "10.0.0.2", "hostname": "h"}],
               "notReadyAddresses": [{"ip": "10.0.0.9"}],
               "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]},
              {"addresses": [{"ip": "FD00::0:1"}], "ports": null}]}"#,
        expect![[r#"
            Endpoints shop/cart @9
              V4 of shop/cart
              ports: [("http", Some(8080))]
              mirror cluster: "east"
              remote service: "cart.shop.svc.east"
              gateway identity: "gw.id"
              10.0.0.1 pod shop/cart-1
              10.0.0.2 bare hostname "h"
              V4 of shop/cart
              ports: []
              mirror cluster: "east"
              remote service: "cart.shop.svc.east"
              gateway identity: "gw.id"
              fd00::1 bare
        "#]],
    );
}

#[test]
fn what_nobody_serves_is_left_out() {
    check(
        Endpoints,
        r#"{"metadata": {"namespace": "shop", "name": "cart"},
            "subsets": [
              {"addresses": [{"ip": "10.0.0.1", "targetRef": {"kind": "ExternalWorkload", "name": "vm"}},
                             {"ip": "10.0.0.2", "targetRef": {"kind": "Node", "name": "n"}},
                             {"ip": "010.0.0.3"}, {"ip": null},
                             {"ip": "10.0.0.4", "targetRef": {"kind": "Pod", "name": "a\u0000b"}}],
               "ports": [{"port": 70000}]},
              {"addresses": null}]}"#,
        expect![[r#"
            Endpoints shop/cart @
              V4 of shop/cart
              ports: [("", None)]
              V4 of shop/cart
              ports: []
            warning: port "" has no number that a port can have
            warning: "010.0.0.3" is no IP address
            warning: "" is no IP address
            warning: the pod of an endpoint is in another namespace: ""
            warning: an address's target: name "a\0b" contains a NUL byte
        "#]],
    );
    check(
        Endpoints,
        r#"{"metadata": {"name": "cart"}, "subsets": null}"#,
        expect![[r#"
        Endpoints default/cart @
    "#]],
    );
}
