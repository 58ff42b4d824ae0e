//! EndpointSlices.

use expect_test::expect;
use model::Kind::EndpointSlice;

use super::check;

#[test]
fn pods_workloads_and_bare_addresses() {
    check(
        EndpointSlice,
        r#"{"metadata": {"namespace": "shop", "name": "cart-x", "resourceVersion": "9",
              "labels": {"kubernetes.io/service-name": "cart"},
              "ownerReferences": [{"kind": "Service", "name": "other"}]},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "", "port": 9090}],
            "endpoints": [
              {"addresses": ["10.0.0.1", "10.0.0.2"], "conditions": {"ready": true, "serving": true},
               "targetRef": {"kind": "Pod", "name": "cart-1"}, "nodeName": "n1", "zone": "a",
               "hints": {"forZones": [{"name": "b"}, {"name": "a"}]}},
              {"addresses": ["10.0.0.3"], "conditions": {"ready": false},
               "targetRef": {"kind": "Pod", "name": "cart-2", "namespace": "elsewhere"}, "hostname": "h"},
              {"addresses": ["10.0.0.4"], "zone": "",
               "targetRef": {"kind": "ExternalWorkload", "name": "vm", "namespace": "elsewhere"}},
              {"addresses": ["10.0.0.5", "10.0.0.6"], "hostname": ""}]}"#,
        expect![[r#"
            EndpointSlice shop/cart-x @9
              V4 of shop/cart
              ports: [("http", Some(8080)), ("", Some(9090))]
              10.0.0.2 pod cart-1 zone "a" hints ["a", "b"]
              10.0.0.3 pod elsewhere/cart-2 unready hostname "h"
              10.0.0.4 workload shop/vm zone ""
              10.0.0.5 bare
              10.0.0.6 bare
            warning: the pod of an endpoint is in another namespace: ""
            warning: the pod of an endpoint is in another namespace: "elsewhere"
        "#]],
    );
}

#[test]
fn what_cannot_be_served_is_left_out() {
    check(
        EndpointSlice,
        r#"{"metadata": {"namespace": "shop", "name": "cart-x"},
            "addressType": "IPv4", "ports": [{"name": null, "port": null}, {"name": "big", "port": 70000}],
            "endpoints": [
              {"addresses": ["10.0.0.1", "not an address"], "targetRef": {"kind": "Pod", "name": "last-counts"}},
              {"addresses": ["10.0.0.2"], "targetRef": {"kind": "Node", "name": "n"}},
              {"addresses": ["10.0.0.2"], "targetRef": {}},
              {"addresses": ["10.0.0.2"], "targetRef": {"kind": "Pod", "name": "a\u0000b"}},
              {"addresses": [], "targetRef": {"kind": "Pod", "name": "nowhere"}},
              {"addresses": ["010.0.0.3", "10.0.0.3%eth0", "example.org", "", "10.0.0.3"]}]}"#,
        expect![[r#"
            EndpointSlice shop/cart-x @
              V4 of nobody
              ports: [("", None), ("big", None)]
              10.0.0.3 bare
            warning: it belongs to no Service, by label or by owner
            warning: port "big" has no number that a port can have
            warning: the pod of an endpoint is in another namespace: ""
            warning: "not an address" is no IP address
            warning: the pod of an endpoint is in another namespace: ""
            warning: an endpoint's target: name "a\0b" contains a NUL byte
            warning: the pod of an endpoint is in another namespace: ""
            warning: "010.0.0.3" is no IP address
            warning: and 3 more like these
        "#]],
    );
}

#[test]
fn addresses_of_ipv6_lose_their_zone() {
    check(
        EndpointSlice,
        r#"{"metadata": {"namespace": "shop", "name": "cart-6",
              "ownerReferences": [{"kind": "Deployment", "name": "d"}, {"kind": "Service", "name": "cart"}]},
            "addressType": "IPv6", "ports": [],
            "endpoints": [{"addresses": ["fe80::1%eth0", "FD00:0::0001", "::ffff:10.0.0.1"]}]}"#,
        expect![[r#"
            EndpointSlice shop/cart-6 @
              V6 of shop/cart
              fe80::1 bare
              fd00::1 bare
              ::ffff:10.0.0.1 bare
        "#]],
    );
}

#[test]
fn an_empty_label_is_no_service_whatever_the_owners() {
    check(
        EndpointSlice,
        r#"{"metadata": {"name": "x", "labels": {"kubernetes.io/service-name": ""},
              "ownerReferences": [{"kind": "Service", "name": "cart"}]}, "addressType": "FQDN"}"#,
        expect![[r#"
            EndpointSlice default/x @
              V4 of nobody
            warning: it belongs to no Service, by label or by owner
        "#]],
    );
}

#[test]
fn a_gateway_mirror() {
    check(
        EndpointSlice,
        r#"{"metadata": {"namespace": "shop", "name": "cart-east-1",
              "labels": {"kubernetes.io/service-name": "cart-east", "mirror.linkerd.io/cluster-name": "east"},
              "annotations": {"mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.east.test",
                              "mirror.linkerd.io/remote-gateway-identity": "gw.id"}},
            "ports": [{"port": 4143}], "endpoints": [{"addresses": ["192.0.2.1"]}]}"#,
        expect![[r#"
            EndpointSlice shop/cart-east-1 @
              V4 of shop/cart-east
              ports: [("", Some(4143))]
              mirror cluster: "east"
              remote service: "cart.shop.svc.east.test"
              gateway identity: "gw.id"
              192.0.2.1 bare
        "#]],
    );
    check(
        EndpointSlice,
        r#"{"metadata": {"name": "x", "annotations": {"mirror.linkerd.io/remote-svc-fq-name": "",
              "mirror.linkerd.io/remote-gateway-identity": ""}}}"#,
        expect![[r#"
            EndpointSlice default/x @
              V4 of nobody
              remote service: ""
            warning: it belongs to no Service, by label or by owner
        "#]],
    );
}

#[test]
fn nulls_everywhere() {
    check(
        EndpointSlice,
        r#"{"metadata": {"name": "x"}, "addressType": null, "ports": null, "endpoints": null}"#,
        expect![[r#"
            EndpointSlice default/x @
              V4 of nobody
            warning: it belongs to no Service, by label or by owner
        "#]],
    );
    check(
        EndpointSlice,
        r#"{"metadata": {"name": "x"}, "endpoints": [{"addresses": ["10.0.0.1"], "conditions": null,
             "hostname": null, "targetRef": null, "zone": null, "hints": {"forZones": null}},
             {"addresses": null, "hints": null}]}"#,
        expect![[r#"
            EndpointSlice default/x @
              V4 of nobody
              10.0.0.1 bare
            warning: it belongs to no Service, by label or by owner
        "#]],
    );
}

#[test]
fn more_endpoints_than_kubernetes_allows() {
    let endpoints = [r#"{"addresses":["10.0.0.1"]}"#; 1001].join(",");
    let json = format!(r#"{{"metadata": {{"name": "x"}}, "endpoints": [{endpoints}]}}"#);
    check(
        EndpointSlice,
        &json,
        expect![[r#"
        reject default/x: 1001 endpoints are more than the 1000 that Kubernetes allows
    "#]],
    );
}

#[test]
fn what_makes_no_sense_is_named() {
    check(
        EndpointSlice,
        r#"{"metadata": {"namespace": "shop", "name": "cart-x",
              "labels": {"kubernetes.io/service-name": "cart"}},
            "addressType": "IPv4", "ports": [{"name": "low", "port": -1}, {"name": "high", "port": 65536}],
            "endpoints": [
              {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "a", "namespace": "shop"}},
              {"addresses": ["10.0.0.2"], "targetRef": {"kind": "Pod", "name": "a", "namespace": "shop"}},
              {"addresses": ["10.0.0.3"], "targetRef": {"kind": "Pod", "name": "b", "namespace": "till"}},
              {"addresses": ["10.0.0.4", "10.0.0.4"]},
              {"addresses": ["10.0.0.4"], "hostname": "h"},
              {"addresses": ["cart.example.org"]}]}"#,
        expect![[r#"
            EndpointSlice shop/cart-x @
              V4 of shop/cart
              ports: [("low", None), ("high", None)]
              10.0.0.1 pod shop/a
              10.0.0.2 pod shop/a
              10.0.0.3 pod till/b
              10.0.0.4 bare
              10.0.0.4 bare
              10.0.0.4 bare hostname "h"
            warning: port "low" has no number that a port can have
            warning: port "high" has no number that a port can have
            warning: the pod of an endpoint is in another namespace: "till"
            warning: "cart.example.org" is no IP address
            warning: an endpoint at 10.0.0.2 is there twice
            warning: an endpoint at 10.0.0.4 is there twice
        "#]],
    );
}
