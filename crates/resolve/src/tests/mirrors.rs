//! Spec 7.H: gateways of mirrored Services, and the labels of sets.

use expect_test::expect;

use super::fixture::check;

#[test]
fn h02_h04_the_requested_port_is_the_authoritys() {
    check(
        "
service m 8000
slice m-x v4 9900 gateway=gw-1 remote=m-far
  10.3.0.1
show m:8000
",
        expect![[r#"
            set namespace=shop service=m
            10.3.0.1:9900 x10000 zone_locality=unknown
              dns gw-1
              hint h2
              authority m-far:8000
        "#]],
    );
}

#[test]
fn h03_h05_h09_no_identity() {
    check(
        "
with http2 zone-weights transport-header
service m 8000
slice m-x v4 3306 remote=m-far
  10.3.0.1 zone=z1
slice m-y v4 3306
  10.3.0.2
show m:8000 zone=z1
",
        expect![[r#"
            set namespace=shop service=m
            10.3.0.1:3306 x10000 zone_locality=unknown
              authority m-far:8000
            10.3.0.2:3306 x10000 zone_locality=unknown
        "#]],
    );
}

#[test]
fn h08_parameters_of_http2_and_no_upgrade() {
    check(
        "
with h2=off http2
service m 8000
slice m-x v4 8000 gateway=gw-1
  10.3.0.1
show m:8000
",
        expect![[r#"
            set namespace=shop service=m
            10.3.0.1:8000 x10000 zone_locality=unknown
              dns gw-1
              http2
        "#]],
    );
}

#[test]
fn h11_labels_of_the_mirrored_service() {
    check(
        "
service m 8000
slice m-x v4 8000 mirror=far remote=m.ns2.svc.far.test
  10.3.0.1
slice m-y v4 other:8000
  10.3.0.2
show m:8000
",
        expect![[r#"
            set namespace=shop service=m target_cluster=far target_service=m target_service_namespace=ns2
            10.3.0.1:8000 x10000 zone_locality=unknown
              authority m.ns2.svc.far.test:8000
        "#]],
    );
}

#[test]
fn h11_two_parts_are_enough_h12_one_is_not() {
    check(
        "
service m 8000
slice m-x v4 8000 mirror=far remote=m.ns2
  10.3.0.1
show m:8000
service n 8000
slice n-x v4 8000 mirror= remote=
  10.3.0.1
show n:8000
service p 8000
slice p-x v4 8000 remote=m.ns2
  10.3.0.1
show p:8000
",
        expect![[r#"
            set namespace=shop service=m target_cluster=far target_service=m target_service_namespace=ns2
            10.3.0.1:8000 x10000 zone_locality=unknown
              authority m.ns2:8000
            set namespace=shop service=n target_cluster=
            10.3.0.1:8000 x10000 zone_locality=unknown
              authority :8000
            set namespace=shop service=p
            10.3.0.1:8000 x10000 zone_locality=unknown
              authority m.ns2:8000
        "#]],
    );
}

#[test]
fn q28_slices_that_disagree_label_their_own_addresses() {
    check(
        "
service m 8000
pod w1
slice m-x v4 8000 mirror=far remote=m.ns2
  10.3.0.1
slice m-y v4 8000 mirror=out
  10.3.0.9
slice m-z v4 8000
  10.1.0.1 pod w1
show m:8000
",
        expect![[r#"
            set namespace=shop service=m
            10.1.0.1:8000 x10000 pod=w1 serviceaccount=default zone= zone_locality=unknown
            10.3.0.1:8000 x10000 target_cluster=far target_service=m target_service_namespace=ns2 zone_locality=unknown
              authority m.ns2:8000
            10.3.0.9:8000 x10000 target_cluster=out zone_locality=unknown
        "#]],
    );
}
