//! Spec 7.G: ports that Servers make opaque.

use expect_test::expect;

use super::fixture::check;

#[test]
fn g01_g02_by_number_and_selector() {
    check(
        "
service pol 80 81
mpod pol label=app:pol
slice pol-a v4 80 81
  10.1.0.1 pod pol
server s pods=app:zzz port=80 opaque
show pol:80
server t pods=app:pol port=80 opaque
show pol:80
show pol:82
",
        expect![[r#"
            set namespace=shop service=pol
            10.1.0.1:80 x10000 control_plane_ns=mesh-sys pod=pol serviceaccount=default zone= zone_locality=unknown
              dns default.shop.serviceaccount.identity.mesh-sys.id.test sni default.shop.serviceaccount.identity.mesh-sys.id.test
              hint h2
            set namespace=shop service=pol
            10.1.0.1:80 x10000 control_plane_ns=mesh-sys pod=pol serviceaccount=default zone= zone_locality=unknown
              dns default.shop.serviceaccount.identity.mesh-sys.id.test sni default.shop.serviceaccount.identity.mesh-sys.id.test
              hint opaque via 4143
            set namespace=shop service=pol
            10.1.0.1:82 x10000 control_plane_ns=mesh-sys pod=pol serviceaccount=default zone= zone_locality=unknown
              dns default.shop.serviceaccount.identity.mesh-sys.id.test sni default.shop.serviceaccount.identity.mesh-sys.id.test
              hint h2
        "#]],
    );
}

/// The ports of a pod or workload that are opaque by Servers.
fn opaque(text: &str, expected: expect_test::Expect) {
    expected.assert_eq(&super::fixture::opaque_by_server(text));
}

#[test]
fn g04_by_name_on_the_container_and_on_the_host_q10() {
    opaque(
        "
mpod pol label=app:pol port=http:80 port=http:81:8081 port=other:90
server s pods=app:pol port=http opaque
",
        expect!["pod pol: 80-81 8081"],
    );
}

#[test]
fn g05_servers_of_another_namespace() {
    opaque(
        "
mpod app-ns/pol label=app:pol
server srv-ns/s pods=app:pol port=80 opaque
",
        expect!["pod pol:"],
    );
}

#[test]
fn g06_workloads() {
    opaque(
        "
ew e label=app:e port=http:80 port=linkerd-proxy:4143
pod e label=app:e
server s ews=app:e port=80 opaque
server t ews=app:e port=linkerd-proxy opaque
",
        expect![[r#"
            pod e:
            ew e: 80 4143"#]],
    );
}

#[test]
fn g07_other_protocols_undo_nothing() {
    check(
        "
service web 4
mpod w1 opaque=4
slice web-a v4 4
  10.1.0.1 pod w1
server s pods=all port=4
show web:4
",
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:4 x10000 control_plane_ns=mesh-sys pod=w1 serviceaccount=default zone= zone_locality=unknown
              dns default.shop.serviceaccount.identity.mesh-sys.id.test sni default.shop.serviceaccount.identity.mesh-sys.id.test
              hint opaque via 4143
        "#]],
    );
}

#[test]
fn g08_g09_absent_and_empty_selectors_and_several_servers() {
    opaque(
        "
pod p label=app:p
server absent port=1 opaque
server empty pods=all port=2 opaque
server other pods=app:q port=3 opaque
server again pods=app:p port=2 opaque
server beside pods=app:p port=2
server ews ews=all port=5 opaque
",
        expect!["pod p: 2"],
    );
}

#[test]
fn a_server_beats_an_empty_annotation_and_reaches_an_unmeshed_pod_in_vain() {
    check(
        "
service web 80
mpod w1 opaque=
pod w2
slice web-a v4 80
  10.1.0.1 pod w1
  10.1.0.2 pod w2
server s pods=all port=80 opaque
show web:80
",
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:80 x10000 control_plane_ns=mesh-sys pod=w1 serviceaccount=default zone= zone_locality=unknown
              dns default.shop.serviceaccount.identity.mesh-sys.id.test sni default.shop.serviceaccount.identity.mesh-sys.id.test
              hint opaque via 4143
            10.1.0.2:80 x10000 pod=w2 serviceaccount=default zone= zone_locality=unknown
        "#]],
    );
}
