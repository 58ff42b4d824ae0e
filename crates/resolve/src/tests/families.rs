//! Spec 7.E: IPv4 and IPv6.

use expect_test::expect;

use super::fixture::check;

#[test]
fn e01_e02_e03_one_address_of_a_pod() {
    check(
        "
mpod a1
mpod b1
mpod d1
service a 8000
slice a-v4 v4 8000
  10.1.0.1 pod a1
service b 8000
slice b-v6 v6 8000
  fd00:5::1 pod b1
service d 8000
slice d-v4 v4 8000
  10.1.0.9 pod d1
slice d-v6 v6 8000
  fd00:5::9 pod d1
get a:8000
get b:8000
get d:8000
",
        expect![[r#"
            10.1.0.1:8000
            [fd00:5::1]:8000
            [fd00:5::9]:8000
        "#]],
    );
}

#[test]
fn e04_e06_another_address_of_either_family() {
    check(
        "
mpod d1
service d 8000 adm:90
slice d-v4 v4 8000
  10.1.0.9 pod d1
get d:8000
slice d-v6 v6 8000
  fd00:5::9 pod d1
slice d-v4b v4 8000 adm:91
  10.1.0.10 pod d1
get d:8000
get d:90
",
        expect![[r#"
            10.1.0.9:8000
            [fd00:5::9]:8000
            10.1.0.10:91
        "#]],
    );
}

#[test]
fn e09_e10_zones_come_before_families() {
    check(
        "
pod p
pod q
service web 8000
slice web-a v4 8000
  10.1.0.1 pod p hint=z1
slice web-b v6 8000
  fd00::1 pod p hint=z1
get web:8000 zone=z1
service two 8000
slice two-a v4 8000
  10.1.0.1 pod p hint=z1
slice two-b v6 8000
  fd00::1 pod p hint=z2
get two:8000 zone=z1
get two:8000 zone=z2
get two:8000 zone=z3
",
        expect![[r#"
            [fd00::1]:8000
            10.1.0.1:8000
            [fd00::1]:8000
            [fd00::1]:8000
        "#]],
    );
}

#[test]
fn local_policy_comes_before_families() {
    check(
        "
pod p node=n1
service web 8000 local
slice web-a v4 8000
  10.1.0.1 pod p
slice web-b v6 8000
  fd00::1 pod p
get web:8000 node=n1
get web:8000 node=n2
",
        expect![[r#"
            [fd00::1]:8000

        "#]],
    );
}

#[test]
fn e11_e12_e13_ipv6_off() {
    check(
        "
with ipv6=off
mpod d1
mpod b1
ew v1
service d 8000
slice d-v4 v4 8000
  10.1.0.9 pod d1
slice d-v6 v6 8000
  fd00:5::9 pod d1
get d:8000
service b 8000
slice b-v6 v6 8000
  fd00:5::1 pod b1
  fd00:5::7
  fd00:7::1 ew v1
get b:8000
",
        expect![[r#"
            10.1.0.9:8000
            [fd00:5::7]:8000 [fd00:7::1]:8000
        "#]],
    );
}

#[test]
fn q43_with_ipv6_off_only_ipv4_pods_are_weighed_of_q_19() {
    check(
        "
with ipv6=off
pod p
pod q
service web 8000
slice web-a v4 8000
  10.1.0.1 pod p hint=z1
  10.1.0.2 pod q hint=z2
slice web-b v6 8000
  fd00::1 pod p
  fd00::2 pod q hint=z3
get web:8000 zone=z1
get web:8000 zone=z3
",
        expect![[r#"
            10.1.0.1:8000
            10.1.0.1:8000 10.1.0.2:8000
        "#]],
    );
}

#[test]
fn q20_a_workload_of_both_families() {
    let cluster = "
ew v1
service web 8000
slice web-a v6 8000
  fd00:7::1 ew v1 hint=z1
slice web-b v4 8000
  192.0.2.1 ew v1 hint=z2
get web:8000
get web:8000 zone=z1
get web:8000 zone=z2
";
    check(
        cluster,
        expect![[r#"
            [fd00:7::1]:8000
            [fd00:7::1]:8000
            192.0.2.1:8000
        "#]],
    );
    check(
        &format!("with ipv6=off\n{cluster}"),
        expect![[r#"
            192.0.2.1:8000
            [fd00:7::1]:8000
            192.0.2.1:8000
        "#]],
    );
}

#[test]
fn pods_of_one_name_in_two_namespaces_are_two() {
    check(
        "
pod shop/p
pod other/p
service web 8000
slice web-a v4 8000
  10.1.0.1 pod shop/p
slice web-b v6 8000
  fd00::1 pod other/p
get web:8000
",
        expect![[r#"
            10.1.0.1:8000 [fd00::1]:8000
        "#]],
    );
}
