//! Spec 7.D: hints and traffic policy.

use expect_test::expect;

use super::fixture::check;

#[test]
fn d01_a_zone_is_served_by_its_own() {
    check(
        "
service web 8000
slice web-a v4 8000
  10.1.0.1 hint=z1
  10.1.0.2 hint=z2
  10.1.0.3 hint=z2,z3
get web:8000 zone=z1
get web:8000 zone=z2
get web:8000 zone=z3
",
        expect![[r#"
            10.1.0.1:8000
            10.1.0.2:8000 10.1.0.3:8000
            10.1.0.3:8000
        "#]],
    );
}

#[test]
fn d02_d03_local_policy() {
    check(
        "
service web 8000 local
slice web-a v4 8000
  10.1.0.1 pod w1 hint=z2
  10.1.0.2 pod w2 hint=z1
pod w1 node=n1
pod w2 node=n2
get web:8000 node=n1 zone=z1
get web:8000 node=n3 zone=z1
service web 8000
get web:8000 node=n1
",
        expect![[r#"
            10.1.0.1:8000

            10.1.0.1:8000 10.1.0.2:8000
        "#]],
    );
}

#[test]
fn d08_of_a_linked_cluster_all_is_served() {
    check(
        "
service web 8000 local
slice web-a v4 8000
  10.1.0.1 pod w1 hint=z2
  10.1.0.2 pod w2 hint=z1
pod w1 node=n1
pod w2 node=n2
get web:8000 node=n1 zone=z1
get web:8000 node=n1 zone=z1 linked=east.org
service web 8000
get web:8000 node=n1 zone=z1
get web:8000 node=n1 zone=z1 linked=east.org
",
        expect![[r#"
            10.1.0.1:8000
            10.1.0.1:8000 10.1.0.2:8000
            10.1.0.2:8000
            10.1.0.1:8000 10.1.0.2:8000
        "#]],
    );
}

#[test]
fn d05_one_without_hints_frees_all() {
    check(
        "
service web 8000 adm:9000
slice web-a v4 8000
  10.1.0.1 hint=z1
  10.1.0.2 hint=z2
  10.1.0.3
slice web-b v4 adm:9001
  10.1.0.4 hint=z1
  10.1.0.5 hint=z2
get web:8000 zone=z1
get web:9000 zone=z1
",
        expect![[r#"
            10.1.0.1:8000 10.1.0.2:8000 10.1.0.3:8000
            10.1.0.4:9001
        "#]],
    );
}

#[test]
fn d05_only_what_competes_is_weighed() {
    // Ready in the older slice without a hint, but the newer one decides.
    check(
        "
service web 8000
pod w1
slice web-a v4 8000
  10.1.0.1 pod w1
  10.1.0.2
slice web-b v4 8000
  10.1.0.1 pod w1 hint=z2
  10.1.0.2 hint=z1
  10.1.0.3 hint=z2
  10.1.0.4 !ready
get web:8000 zone=z1
get web:8000 zone=z2
",
        expect![[r#"
            10.1.0.2:8000
            10.1.0.1:8000 10.1.0.3:8000
        "#]],
    );
}

#[test]
fn d06_d07_nobody_for_the_zone() {
    check(
        "
service web 8000
slice web-a v4 8000
  10.1.0.1 hint=z2
  10.1.0.2 hint=z2
get web:8000 zone=z1
get web:8000
get web:8000 zone=
",
        expect![[r#"
            10.1.0.1:8000 10.1.0.2:8000
            10.1.0.1:8000 10.1.0.2:8000
            10.1.0.1:8000 10.1.0.2:8000
        "#]],
    );
}

#[test]
fn d09_d10_local_policy_is_for_pods() {
    check(
        "
service web 8000 local
ew v1
slice web-a v4 8000
  10.1.0.1
  192.0.2.1 ew v1
get web:8000 node=n1
get web:8000
service odd 8000 local
pod w1
pod w2 node=n2
slice odd-a v4 8000
  10.1.0.1 pod w1
  10.1.0.2 pod w2
get odd:8000
",
        expect![[r#"


            10.1.0.1:8000
        "#]],
    );
}

#[test]
fn d11_hostname_first_then_hints() {
    check(
        "
service db 8000
pod a
pod b
pod c
slice db-a v4 8000
  10.1.0.1 pod a host=a hint=z2
  10.1.0.2 pod b host=b hint=z1
  10.1.0.3 pod c host=c hint=z1
  10.1.0.4 host=c hint=z2
  10.1.0.5
get db:8000 zone=z1 host=a
get db:8000 zone=z1 host=c
get db:8000 zone=z2 host=c
get db:8000 zone=z1
",
        expect![[r#"
            10.1.0.1:8000
            10.1.0.3:8000
            10.1.0.4:8000
            10.1.0.1:8000 10.1.0.2:8000 10.1.0.3:8000 10.1.0.4:8000 10.1.0.5:8000
        "#]],
    );
}

#[test]
fn d11_a_target_on_several_addresses_counts_once_and_under_its_hostname() {
    // In the newest slice the pod has another hostname: that claim is not asked about.
    check(
        "
service db 8000
pod a
slice db-a v4 8000
  10.1.0.1 pod a host=a hint=z1
slice db-b v6 8000
  fd00::1 pod a host=a hint=z2
slice db-c v4 8000
  10.1.0.2 pod a host=other
get db:8000 zone=z1 host=a
get db:8000 zone=z2 host=a
get db:8000 zone=z3 host=a
",
        expect![[r#"
            10.1.0.1:8000
            [fd00::1]:8000
            [fd00::1]:8000
        "#]],
    );
}
