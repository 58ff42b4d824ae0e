//! Spec 7.F: what is said of an address.

use expect_test::expect;

use super::fixture::check;

#[test]
fn f01_f02_labels_and_identity_of_a_pod() {
    check(
        "
service web 1
mpod w1 sa=cart-sa owner=ReplicationController/rc-1
slice web-a v4 1
  10.1.0.1 pod w1
show web:1
",
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:1 x10000 control_plane_ns=mesh-sys pod=w1 replicationcontroller=rc-1 serviceaccount=cart-sa zone= zone_locality=unknown
              dns cart-sa.shop.serviceaccount.identity.mesh-sys.id.test sni cart-sa.shop.serviceaccount.identity.mesh-sys.id.test
              hint h2
        "#]],
    );
}

#[test]
fn f03_the_identity_is_of_the_pods_own_namespace() {
    check(
        "
service web 1
mpod back/w1
slice web-a v4 1
  10.1.0.1 pod back/w1
show web:1
",
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:1 x10000 control_plane_ns=mesh-sys pod=w1 serviceaccount=default zone= zone_locality=unknown
              dns default.back.serviceaccount.identity.mesh-sys.id.test sni default.back.serviceaccount.identity.mesh-sys.id.test
              hint h2
        "#]],
    );
}

/// Hints and what depends on them, without labels and names.
fn hints(text: &str, expected: expect_test::Expect) {
    let printed = super::fixture::printed(text);
    let lines = printed.lines().filter(|line| !line.starts_with("set ")).map(|line| {
        let line = if line.starts_with("  dns") { "  dns" } else { line };
        line.split(" x").next().unwrap()
    });
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn f04_f05_transport_header() {
    hints(
        "
with transport-header
service web 80
mpod w1
mpod w2
slice web-a v4 80
  10.1.0.1 pod w1
slice web-b v6 80
  fd00:1:2:3::4:5 pod w2
show web:80
show web:4190
show web:4191
",
        expect![[r#"
            10.1.0.1:80
              dns
              hint h2 via 4143
            [fd00:1:2:3::4:5]:80
              dns
              hint h2 via 4143
            10.1.0.1:4190
              dns
              hint h2
            [fd00:1:2:3::4:5]:4190
              dns
              hint h2
            10.1.0.1:4191
              dns
              hint h2
            [fd00:1:2:3::4:5]:4191
              dns
              hint h2"#]],
    );
}

#[test]
fn f06_f16_f17_f18_opaque_ports() {
    hints(
        "
service web 1
mpod default
mpod four opaque=4
mpod none opaque=
mpod many opaque=8081,80-82,
slice web-a v4 1
  10.1.0.1 pod default
  10.1.0.2 pod four
  10.1.0.3 pod none
  10.1.0.4 pod many
show web:3306
show web:4
show web:81
",
        expect![[r#"
            10.1.0.1:3306
              dns
              hint opaque via 4143
            10.1.0.2:3306
              dns
              hint h2
            10.1.0.3:3306
              dns
              hint h2
            10.1.0.4:3306
              dns
              hint h2
            10.1.0.1:4
              dns
              hint h2
            10.1.0.2:4
              dns
              hint opaque via 4143
            10.1.0.3:4
              dns
              hint h2
            10.1.0.4:4
              dns
              hint h2
            10.1.0.1:81
              dns
              hint h2
            10.1.0.2:81
              dns
              hint h2
            10.1.0.3:81
              dns
              hint h2
            10.1.0.4:81
              dns
              hint opaque via 4143"#]],
    );
}

#[test]
fn f05_f06_an_opaque_port_of_the_proxy_itself() {
    hints(
        "
service web 1
mpod w1 opaque=4190,4191,9191 admin=9191
slice web-a v4 1
  10.1.0.1 pod w1
show web:4190
show web:4191
show web:9191
",
        expect![[r#"
            10.1.0.1:4190
              dns
              hint opaque
            10.1.0.1:4191
              dns
              hint opaque via 4143
            10.1.0.1:9191
              dns
              hint opaque"#]],
    );
}

#[test]
fn f07_f08_f09_parameters_of_http2_are_for_meshed_ports() {
    hints(
        "
with http2 transport-header
service web 24300
mpod w1
pod w2
mpod w3 skip=24300 no-proxy
slice web-a v4 24300
  10.1.0.1 pod w1
  10.1.0.2 pod w2
  10.1.0.3 pod w3
show web:24300
",
        expect![[r#"
            10.1.0.1:24300
              dns
              hint h2 via 4143
              http2
            10.1.0.2:24300
            10.1.0.3:24300"#]],
    );
}

#[test]
fn f09_a_skipped_port_keeps_its_labels() {
    check(
        "
service web 3306
mpod w1 skip=3306
slice web-a v4 3306
  10.1.0.1 pod w1
show web:3306
",
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:3306 x10000 control_plane_ns=mesh-sys pod=w1 serviceaccount=default zone= zone_locality=unknown
        "#]],
    );
}

#[test]
fn f10_f13_the_ports_of_the_proxy() {
    hints(
        "
service web 80
mpod w1 inbound=9443
mpod w2 inbound=none
mpod w3 inbound=0
mpod w4 admin=none
mpod w5 control=none
mpod w6 no-proxy
slice web-a v4 80
  10.1.0.1 pod w1
  10.1.0.2 pod w2
  10.1.0.3 pod w3
  10.1.0.4 pod w4
  10.1.0.5 pod w5
  10.1.0.6 pod w6
show web:3306
show web:4191
",
        expect![[r#"
            10.1.0.1:3306
              dns
              hint opaque via 9443
            10.1.0.1:4191
              dns
              hint h2
            10.1.0.2:4191
              dns
              hint h2
            10.1.0.3:4191
              dns
              hint h2"#]],
    );
}

#[test]
fn f13_what_is_dropped_still_counts_among_the_hints() {
    check(
        "
service web 80
mpod w1 no-proxy
slice web-a v4 80
  10.1.0.1 pod w1 hint=z1
  10.1.0.2 hint=z2
get web:80 zone=z1
get web:80 zone=z2
",
        expect![[r#"

            10.1.0.2:80
        "#]],
    );
}

#[test]
fn f12_f15_other_control_planes_and_no_trust_domain() {
    let cluster = "
with http2
service web 80
mpod w1 cp=other-sys
mpod w2
slice web-a v4 80
  10.1.0.1 pod w1
  10.1.0.2 pod w2
show web:80
";
    check(
        cluster,
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:80 x10000 control_plane_ns=other-sys pod=w1 serviceaccount=default zone= zone_locality=unknown
              hint h2
              http2
            10.1.0.2:80 x10000 control_plane_ns=mesh-sys pod=w2 serviceaccount=default zone= zone_locality=unknown
              dns default.shop.serviceaccount.identity.mesh-sys.id.test sni default.shop.serviceaccount.identity.mesh-sys.id.test
              hint h2
              http2
        "#]],
    );
    hints(
        &format!("with trust=\n{cluster}"),
        expect![[r#"
            10.1.0.1:80
              hint h2
              http2
            10.1.0.2:80
              hint h2
              http2"#]],
    );
}

#[test]
fn f14_f33_no_upgrade() {
    hints(
        "
with h2=off
service web 80
mpod w1
ew v1
slice web-a v4 80
  10.1.0.1 pod w1
  192.0.2.1 ew v1
show web:80
",
        expect![[r#"
            10.1.0.1:80
              dns
              hint
            192.0.2.1:80
              uri  sni 
              hint h2"#]],
    );
}

#[test]
fn f21_f22_f23_f24_f25_owners_and_hashes() {
    check(
        "
service web 80
pod a owner=ReplicaSet/rs-1 above=Deployment/cart
pod b owner=ReplicaSet/rs-1 above=Rollout/r label=pod-template-hash:abc
pod c owner=ReplicaSet/rs-1
pod d owner=ReplicaSet/rs-1 above=none
pod e owner=Job/j1 above=CronJob/c1
pod f owner=Job/j1 above=none
pod g owner=Job/j1
pod h
pod i owner=Pod/node-1
pod j owner=StatefulSet/s above=Deployment/cart
pod k owner=ReplicaSet/rs-1 above=Job/j2
slice web-a v4 80
  10.1.0.1 pod a
  10.1.0.2 pod b
  10.1.0.3 pod c
  10.1.0.4 pod d
  10.1.0.5 pod e
  10.1.0.6 pod f
  10.1.0.7 pod g
  10.1.0.8 pod h
  10.1.0.9 pod i
  10.1.0.10 pod j
  10.1.0.11 pod k
show web:80
",
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:80 x10000 deployment=cart pod=a serviceaccount=default zone= zone_locality=unknown
            10.1.0.2:80 x10000 pod=b pod_template_hash=abc replicaset=rs-1 serviceaccount=default zone= zone_locality=unknown
            10.1.0.3:80 x10000 pod=c replicaset=rs-1 serviceaccount=default zone= zone_locality=unknown
            10.1.0.4:80 x10000 pod=d replicaset=rs-1 serviceaccount=default zone= zone_locality=unknown
            10.1.0.5:80 x10000 cronjob=c1 pod=e serviceaccount=default zone= zone_locality=unknown
            10.1.0.6:80 x10000 k8s_job=j1 pod=f serviceaccount=default zone= zone_locality=unknown
            10.1.0.7:80 x10000 k8s_job=j1 pod=g serviceaccount=default zone= zone_locality=unknown
            10.1.0.8:80 x10000 pod=h serviceaccount=default zone= zone_locality=unknown
            10.1.0.9:80 x10000 pod=node-1 serviceaccount=default zone= zone_locality=unknown
            10.1.0.10:80 x10000 pod=j serviceaccount=default statefulset=s zone= zone_locality=unknown
            10.1.0.11:80 x10000 k8s_job=j2 pod=k serviceaccount=default zone= zone_locality=unknown
        "#]],
    );
}

#[test]
fn f26_f27_zones() {
    let cluster = "
service web 80
pod w1
pod w2
pod w3
pod w4
ew v1
slice web-a v4 80
  10.1.0.1 pod w1 zone=z1
  10.1.0.2 pod w2 zone=z2
  10.1.0.3 pod w3
  10.1.0.4 pod w4 zone=
  192.0.2.1 ew v1 zone=z1
";
    check(
        &format!("with zone-weights\n{cluster}\nshow web:80 zone=z1"),
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:80 x100000 pod=w1 serviceaccount=default zone=z1 zone_locality=local
            10.1.0.2:80 x10000 pod=w2 serviceaccount=default zone=z2 zone_locality=remote
            10.1.0.3:80 x10000 pod=w3 serviceaccount=default zone= zone_locality=unknown
            10.1.0.4:80 x10000 pod=w4 serviceaccount=default zone= zone_locality=remote
            192.0.2.1:80 x100000 external_workload=v1 zone=z1 zone_locality=local
              uri  sni 
              hint h2
        "#]],
    );
    check(
        &format!("{cluster}\nshow web:80 zone=z1\nshow web:80 zone="),
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:80 x10000 pod=w1 serviceaccount=default zone=z1 zone_locality=local
            10.1.0.2:80 x10000 pod=w2 serviceaccount=default zone=z2 zone_locality=remote
            10.1.0.3:80 x10000 pod=w3 serviceaccount=default zone= zone_locality=unknown
            10.1.0.4:80 x10000 pod=w4 serviceaccount=default zone= zone_locality=remote
            192.0.2.1:80 x10000 external_workload=v1 zone=z1 zone_locality=local
              uri  sni 
              hint h2
            set namespace=shop service=web
            10.1.0.1:80 x10000 pod=w1 serviceaccount=default zone=z1 zone_locality=unknown
            10.1.0.2:80 x10000 pod=w2 serviceaccount=default zone=z2 zone_locality=unknown
            10.1.0.3:80 x10000 pod=w3 serviceaccount=default zone= zone_locality=unknown
            10.1.0.4:80 x10000 pod=w4 serviceaccount=default zone= zone_locality=unknown
            192.0.2.1:80 x10000 external_workload=v1 zone=z1 zone_locality=unknown
              uri  sni 
              hint h2
        "#]],
    );
}

#[test]
fn f28_f29_f30_workloads() {
    check(
        "
with http2
service web 1
ew v1 id=spiffe://corp/v1 sni=v1.corp owner=WorkloadGroup/wg proxy=4143 opaque=4 skip=1
ew v2 owner=Job/j1 above=CronJob/c label=pod-template-hash:abc
slice web-a v4 1
  192.0.2.1 ew v1
  192.0.2.2 ew v2
show web:1
show web:4
",
        expect![[r#"
            set namespace=shop service=web
            192.0.2.1:1 x10000 external_workload=v1 workloadgroup=wg zone= zone_locality=unknown
              uri spiffe://corp/v1 sni v1.corp
              hint h2
              http2
            192.0.2.2:1 x10000 external_workload=v2 job=j1 zone= zone_locality=unknown
              uri  sni 
              hint h2
              http2
            set namespace=shop service=web
            192.0.2.1:4 x10000 external_workload=v1 workloadgroup=wg zone= zone_locality=unknown
              uri spiffe://corp/v1 sni v1.corp
              hint opaque via 4143
              http2
            192.0.2.2:4 x10000 external_workload=v2 job=j1 zone= zone_locality=unknown
              uri  sni 
              hint h2
              http2
        "#]],
    );
}

#[test]
fn f31_f32_transport_header_of_workloads() {
    hints(
        "
with transport-header
service web 80
ew v1
ew v2 proxy=1111
slice web-a v4 80
  192.0.2.1 ew v1
  192.0.2.2 ew v2
show web:80
show web:4191
",
        expect![[r#"
            192.0.2.1:80
              uri  sni 
              hint h2 via 4143
            192.0.2.2:80
              uri  sni 
              hint h2 via 1111
            192.0.2.1:4191
              uri  sni 
              hint h2 via 4143
            192.0.2.2:4191
              uri  sni 
              hint h2 via 1111"#]],
    );
}
