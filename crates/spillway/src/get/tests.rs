//! Messages in, what is printed out.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use linkerd2_proxy_api::destination as pb;

use super::{Held, table, wire};

fn labels(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn pod(ip: std::net::IpAddr, name: &str) -> pb::WeightedAddr {
    let dns = pb::tls_identity::DnsLikeIdentity { name: "web.shop.id".to_owned() };
    pb::WeightedAddr {
        addr: Some(std::net::SocketAddr::new(ip, 8080).into()),
        weight: 10_000,
        metric_labels: labels(&[("pod", name), ("zone", "a")]).into_iter().collect(),
        tls_identity: Some(pb::TlsIdentity {
            strategy: Some(pb::tls_identity::Strategy::DnsLikeIdentity(dns.clone())),
            server_name: Some(dns),
        }),
        protocol_hint: Some(pb::ProtocolHint {
            protocol: Some(pb::protocol_hint::Protocol::H2(pb::protocol_hint::H2 {})),
            opaque_transport: Some(pb::protocol_hint::OpaqueTransport { inbound_port: 4143 }),
        }),
        ..Default::default()
    }
}

fn add(addrs: Vec<pb::WeightedAddr>) -> pb::Update {
    let set = labels(&[("service", "web"), ("namespace", "shop"), ("zone", "of the set")]);
    let set = pb::WeightedAddrSet { addrs, metric_labels: set.into_iter().collect() };
    pb::Update { update: Some(pb::update::Update::Add(set)) }
}

fn held(messages: Vec<pb::Update>) -> Held {
    let mut held = Held::default();
    for message in messages {
        held.apply(wire::update(message).unwrap().unwrap());
    }
    held
}

fn check(actual: &str, expected: Expect) {
    expected.assert_eq(actual);
}

fn two() -> Held {
    let v6 = pod("fd00::1".parse().unwrap(), "web-long-name-1");
    held(vec![add(vec![v6, pod("10.1.0.5".parse().unwrap(), "web-0")])])
}

#[test]
fn a_table_as_linkerd_prints_it() {
    check(
        &table::text(&two(), false),
        expect![[r#"
            NAMESPACE   IP         PORT   POD               SERVICE
            shop        10.1.0.5   8080   web-0             web.shop
            shop        fd00::1    8080   web-long-name-1   web.shop
        "#]],
    );
}

#[test]
fn wide_adds_columns_and_an_addresss_labels_win() {
    check(
        &table::text(&two(), true),
        expect![[r#"
            NAMESPACE   IP         PORT   POD               SERVICE    ZONE   IDENTITY      HINT      WEIGHT   LABELS
            shop        10.1.0.5   8080   web-0             web.shop   a      web.shop.id   h2:4143   10000
            shop        fd00::1    8080   web-long-name-1   web.shop   a      web.shop.id   h2:4143   10000
        "#]],
    );
}

#[test]
fn json_is_one_object_on_one_line() {
    let one = held(vec![add(vec![pod("10.1.0.5".parse().unwrap(), "web-0")])]);
    check(
        &table::json("web.shop.svc.k.test:80", &one).unwrap(),
        expect![[r#"
            {"authority":"web.shop.svc.k.test:80","exists":true,"endpoints":[{"namespace":"shop","ip":"10.1.0.5","port":8080,"pod":"web-0","service":"web","weight":10000,"identity":"web.shop.id","server_name":"web.shop.id","protocol_hint":"h2","inbound_port":4143,"authority_override":null,"http2":false,"labels":{"namespace":"shop","pod":"web-0","service":"web","zone":"a"}}]}
        "#]],
    );
}

#[test]
fn a_change_says_what_came_and_went() {
    let mut held = two();
    let again = wire::update(add(vec![pod("10.1.0.5".parse().unwrap(), "web-0")]));
    assert_eq!(held.apply(again.unwrap().unwrap()), Default::default(), "nothing differs");
    let none = pb::NoEndpoints { exists: true };
    let none = pb::Update { update: Some(pb::update::Update::NoEndpoints(none)) };
    let change = held.apply(wire::update(none).unwrap().unwrap());
    check(
        &table::change_text(&change, false),
        expect![[r#"
            - shop  10.1.0.5  8080  web-0  web.shop
            - shop  fd00::1  8080  web-long-name-1  web.shop
            no endpoints
        "#]],
    );
    assert_eq!(held.endpoints, BTreeMap::new());
    check(
        &table::text(&held, false),
        expect![[r#"
            No endpoints found.
        "#]],
    );
}
