//! Spec 7.C: ports, slices and targets, without filtering.

use expect_test::expect;

use super::fixture::check;

#[test]
fn c01_all_kinds_of_targets_and_c09() {
    check(
        "
service web 8000
slice web-a v4 8000
  10.1.0.1 pod w1
  10.1.0.2 pod w2
  10.1.0.4
  192.0.2.1 ew v1
pod w1
pod w2
ew v1
get web:8000
",
        expect![[r#"
            10.1.0.1:8000 10.1.0.2:8000 10.1.0.4:8000 192.0.2.1:8000
        "#]],
    );
}

#[test]
fn c02_c10_targets_that_are_not_there() {
    check(
        "
service web 8000
slice web-a v4 8000
  10.1.0.1 pod w1
  10.1.0.3 pod w3
  192.0.2.1 ew w3
  192.0.2.2 ew v2
pod w3
ew v2
get web:8000
",
        expect![[r#"
            10.1.0.3:8000 192.0.2.2:8000
        "#]],
    );
}

#[test]
fn c03_c05_nothing_to_show() {
    check(
        "
service web 8000
get web:8000
slice gone-a v4 8000
  10.1.0.1
show gone:8000
",
        expect![[r#"

            set namespace=shop service=gone
        "#]],
    );
}

#[test]
fn c06_an_instance_at_an_undefined_port() {
    check(
        "
service db 8000
slice db-a v4 8000
  10.1.0.1 pod db-1 host=db-1
  10.1.0.3 pod db-3 host=db-3
  10.1.0.4 pod db-4
pod db-1
pod db-3
pod db-4
get db:6100 host=db-3
get db:8000 host=db-1
get db:8000 host=db-9
",
        expect![[r#"
            10.1.0.3:6100
            10.1.0.1:8000

        "#]],
    );
}

#[test]
fn c18_c21_readiness() {
    check(
        "
service web 8000
slice web-a v4 8000
  10.1.0.1 pod w1
  10.1.0.2 pod w2 !ready
  192.0.2.1 ew v1
  192.0.2.2 ew v2 !ready
pod w1
pod w2
ew v1
ew v2
get web:8000
",
        expect![[r#"
            10.1.0.1:8000 192.0.2.1:8000
        "#]],
    );
}

#[test]
fn c22_one_pod_in_two_slices() {
    check(
        "
service web 8000
pod w1
slice web-a v4 8000
  10.1.0.1 pod w1 zone=old
slice web-b v4 8000
  10.1.0.1 pod w1 zone=new
show web:8000
",
        expect![[r#"
            set namespace=shop service=web
            10.1.0.1:8000 x10000 pod=w1 serviceaccount=default zone=new zone_locality=unknown
        "#]],
    );
}

#[test]
fn the_newer_slice_decides_among_those_that_have_the_port() {
    check(
        "
service web a:80 b:90
pod w1
slice web-a v4 a:8001 b:9001
  10.1.0.1 pod w1
slice web-b v4 a:8002
  10.1.0.2 pod w1
get web:80
get web:90
get web:70
",
        expect![[r#"
            10.1.0.2:8002
            10.1.0.1:9001
            10.1.0.2:70
        "#]],
    );
}

#[test]
fn c23_no_ports_and_q38_no_number() {
    check(
        "
service web 80
slice web-a v4 no-ports
  10.1.0.1
slice web-b v4 -
  10.1.0.2
get web:80
get web:81
",
        expect![[r#"

            10.1.0.2:81
        "#]],
    );
}

#[test]
fn c24_unnamed_and_several_ports() {
    check(
        "
service web 8000 adm:9000
slice web-a v4 8001 adm:9001
  10.1.0.1
slice web-b v4 other:1
  10.1.0.2
get web:8000
get web:9000
",
        expect![[r#"
            10.1.0.1:8001
            10.1.0.1:9001
        "#]],
    );
}

#[test]
fn c25_tcp_is_preferred_then_the_first() {
    check(
        "
service dns d:53/udp dt:53 e:54/udp f:54/sctp
slice dns-a v4 d:5300 dt:5301 e:5400 f:5401
  10.1.0.1
get dns:53
get dns:54
",
        expect![[r#"
            10.1.0.1:5301
            10.1.0.1:5400
        "#]],
    );
}

#[test]
fn c28_an_undefined_port_is_taken_literally() {
    check(
        "
service web 80
slice web-a v4 8080
  10.1.0.1
get web:9999
",
        expect![[r#"
            10.1.0.1:9999
        "#]],
    );
}

#[test]
fn q04_a_bare_address_in_two_slices() {
    check(
        "
service m 80
slice m-x v4 8000 gateway=old
  10.3.0.1
slice m-y v4 8000 gateway=new
  10.3.0.1
slice m-z v4 9000
  10.3.0.1
show m:80
",
        expect![[r#"
            set namespace=shop service=m
            10.3.0.1:8000 x10000 zone_locality=unknown
              dns new
              hint h2
            10.3.0.1:9000 x10000 zone_locality=unknown
        "#]],
    );
}

#[test]
fn q21_several_targets_on_one_address_are_shown_once() {
    check(
        "
service web 80
mpod w2
mpod w1 no-proxy
mpod w3
ew v1
slice web-a v4 80
  10.9.0.1
  10.9.0.1 ew v1
  10.9.0.1 pod w3
  10.9.0.1 pod w2
  10.9.0.1 pod w1
show web:80
",
        expect![[r#"
            set namespace=shop service=web
            10.9.0.1:80 x10000 control_plane_ns=mesh-sys pod=w2 serviceaccount=default zone= zone_locality=unknown
              dns default.shop.serviceaccount.identity.mesh-sys.id.test sni default.shop.serviceaccount.identity.mesh-sys.id.test
              hint h2
        "#]],
    );
}
