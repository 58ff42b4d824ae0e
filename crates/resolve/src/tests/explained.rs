//! Why a claim is or isn't in a view: each rule that keeps one out.

use expect_test::expect;

use super::fixture::check;

#[test]
fn ports_and_hostnames() {
    check(
        "
service db 5432 adm:9000
slice db-a v4 5432
  10.1.0.1 pod w1 host=db-0
  10.1.0.2 pod w2
slice db-b v4 no-ports
  10.1.0.3 pod w3
pod w1
pod w2
pod w3
why db:5432 host=db-0
why db:9000
why db:7
why gone:80
",
        expect![[r#"
            the port without a name, hostname db-0
            10.1.0.1 PodV4 w1 at port 5432
            10.1.0.2 PodV4 w2 not: its hostname is not db-0 (spec §2.5)
            10.1.0.3 PodV4 w3 not: its hostname is not db-0 (spec §2.5)
            port adm
            10.1.0.1 PodV4 w1 not: its slice has no port named "adm" (spec §2.3)
            10.1.0.2 PodV4 w2 not: its slice has no port named "adm" (spec §2.3)
            10.1.0.3 PodV4 w3 not: its slice has no port named "adm" (spec §2.3)
            port 7, which the Service doesn't have
            10.1.0.1 PodV4 w1 at port 7
            10.1.0.2 PodV4 w2 at port 7
            10.1.0.3 PodV4 w3 not: its slice has no ports (spec §2.3)
            nothing: there is no such Service
        "#]],
    );
}

#[test]
fn zones_and_nodes() {
    check(
        "
service web 80
slice web-a v4 8080
  10.1.0.1 pod w1 hint=z1
  10.1.0.2 pod w2 hint=z2
pod w1 node=n1
pod w2 node=n2
why web:80 zone=z1
why web:80 zone=z9
service web 80 local
why web:80 node=n1
why web:80
",
        expect![[r#"
            the port without a name, hinted to zone z1
            10.1.0.1 PodV4 w1 at port 8080
            10.1.0.2 PodV4 w2 not: its hints are not for zone z1 (spec §2.5)
            the port without a name
            10.1.0.1 PodV4 w1 at port 8080
            10.1.0.2 PodV4 w2 at port 8080
            the port without a name, pods on node n1
            10.1.0.1 PodV4 w1 at port 8080
            10.1.0.2 PodV4 w2 not: it is no pod on node n1 (spec §2.5)
            the port without a name, pods on the client's node, which is not known
            10.1.0.1 PodV4 w1 not: it has a node, and the client's is not known (spec §2.5)
            10.1.0.2 PodV4 w2 not: it has a node, and the client's is not known (spec §2.5)
        "#]],
    );
}

#[test]
fn slices_and_families() {
    check(
        "
service web 80
slice web-a v4 8080
  10.1.0.1 pod w1
slice web-b v4 8080
  10.1.0.1 pod w1
slice web-c v6 8080
  fd00::1 pod w1
pod w1
why web:80
with ipv6=off
why web:80
",
        expect![[r#"
            the port without a name
            10.1.0.1 PodV4 w1 not: its target is served at an address of the other family (spec §2.5)
            10.1.0.1 PodV4 w1 not: another EndpointSlice names the same target, and comes first (spec §2.4)
            fd00::1 PodV6 w1 at port 8080
            the port without a name
            10.1.0.1 PodV4 w1 at port 8080
            10.1.0.1 PodV4 w1 not: another EndpointSlice names the same target, and comes first (spec §2.4)
            fd00::1 PodV6 w1 not: it is the IPv6 address of a pod, and IPv6 is off (spec §2.5)
        "#]],
    );
}

#[test]
fn proxies_that_are_not_known_and_addresses_that_are_shared() {
    check(
        "
service web 80
slice web-a v4 8080
  10.1.0.1 pod w1
  10.1.0.1 pod w2
  10.1.0.3 pod w3
pod w1
pod w2
mpod w3 no-proxy
why web:80
",
        expect![[r#"
            the port without a name
            10.1.0.1 PodV4 w1 at port 8080
            10.1.0.1 PodV4 w2 not: another target has the same address and port, and is served (spec Q21)
            10.1.0.3 PodV4 w3 not: it is meshed, and the ports of its proxy are not known (spec §2.9.3)
        "#]],
    );
}
