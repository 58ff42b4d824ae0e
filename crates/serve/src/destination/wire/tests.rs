//! Messages as text, since their maps have no order of their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use expect_test::{Expect, expect};
use linkerd2_proxy_api::destination as pb;
use linkerd2_proxy_api::net::TcpAddress;
use proptest::prelude::*;
use prost::Message as _;
use resolve::{Hint, Identity, Protocol, ServiceAccount};

use super::*;

/// What a client decodes.
pub(crate) fn decoded(message: &Message) -> pb::Update {
    pb::Update::decode(message.bytes()).unwrap()
}

/// A message, line by line: addresses in their order, labels sorted, what is absent left out.
pub(crate) fn text(message: &Message) -> String {
    let update = decoded(message);
    let mut text = String::new();
    match update.update.as_ref() {
        None => text.push_str("nothing\n"),
        Some(pb::update::Update::NoEndpoints(none)) => {
            writeln!(text, "no endpoints, exists: {}", none.exists).unwrap();
        }
        Some(pb::update::Update::Remove(set)) => {
            for address in &set.addrs {
                writeln!(text, "- {}", socket(address)).unwrap();
            }
        }
        Some(pb::update::Update::Add(set)) => {
            writeln!(text, "add {}", label_text(&set.metric_labels)).unwrap();
            for address in &set.addrs {
                writeln!(text, "+ {}", address_text(address)).unwrap();
            }
        }
    }
    text
}

fn address_text(address: &pb::WeightedAddr) -> String {
    let pb::WeightedAddr { addr, weight, metric_labels, tls_identity, protocol_hint, .. } = address;
    let mut text = format!("{} {weight}", socket(addr.as_ref().unwrap()));
    write!(text, " {}", label_text(metric_labels)).unwrap();
    if let Some(identity) = tls_identity {
        let name = |name: &pb::tls_identity::DnsLikeIdentity| name.name.clone();
        let sni = identity.server_name.as_ref().map_or("-".to_owned(), name);
        match identity.strategy.as_ref().unwrap() {
            pb::tls_identity::Strategy::DnsLikeIdentity(dns) => {
                write!(text, " tls dns {} sni {sni}", dns.name).unwrap();
            }
            pb::tls_identity::Strategy::UriLikeIdentity(uri) => {
                write!(text, " tls uri {} sni {sni}", uri.uri).unwrap();
            }
        }
    }
    if let Some(hint) = protocol_hint {
        let protocol = match hint.protocol {
            None => "unset",
            Some(pb::protocol_hint::Protocol::H2(_)) => "h2",
            Some(pb::protocol_hint::Protocol::Opaque(_)) => "opaque",
        };
        write!(text, " hint {protocol}").unwrap();
        if let Some(transport) = hint.opaque_transport {
            write!(text, " transport {}", transport.inbound_port).unwrap();
        }
    }
    if let Some(authority) = &address.authority_override {
        write!(text, " authority {}", authority.authority_override).unwrap();
    }
    if let Some(params) = &address.http2 {
        write!(text, " http2 {}", params.encoded_len()).unwrap();
    }
    assert!(address.resource_ref.is_none());
    text
}

fn socket(address: &TcpAddress) -> String {
    let ip = IpAddr::try_from(address.ip.unwrap()).unwrap();
    std::net::SocketAddr::new(ip, u16::try_from(address.port).unwrap()).to_string()
}

fn label_text<'l>(labels: impl IntoIterator<Item = (&'l String, &'l String)>) -> String {
    let labels: BTreeMap<_, _> = labels.into_iter().collect();
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", labels.join(" "))
}

fn labels(pairs: &[(&'static str, &'static str)]) -> Labels<'static> {
    let mut labels = Labels::default();
    pairs.iter().for_each(|(key, value)| labels.set(*key, *value));
    labels
}

fn address(last: u8) -> Address<'static> {
    Address {
        ip: Ipv4Addr::new(10, 1, 0, last).into(),
        port: 1,
        weight: 10_000,
        labels: labels(&[("pod", "w1"), ("zone", ""), ("zone_locality", "unknown")]),
        identity: None,
        hint: None,
        authority_override: None,
        http2: false,
    }
}

fn uri(uri: &str) -> Option<Identity<'_>> {
    Some(Identity::Uri { uri, server_name: uri })
}

fn hint(protocol: Protocol, inbound_port: Option<u16>) -> Option<Hint> {
    Some(Hint { protocol, inbound_port })
}

fn check(addresses: Vec<Address<'_>>, http2: Option<Http2ClientParams>, expect: Expect) {
    let set_labels = labels(&[("service", "web"), ("namespace", "shop")]);
    let mut adds = Adds::new(&set_labels, usize::MAX);
    assert!(adds.push(&addresses, http2.map(Http2::from).as_ref()));
    expect.assert_eq(&text(&adds.finish().unwrap()));
}

#[test]
fn a_meshed_pod_of_f01_to_f06() {
    let labels = labels(&[
        ("pod", "w1"),
        ("replicationcontroller", "rc-1"),
        ("serviceaccount", "cart-sa"),
        ("control_plane_ns", "mesh-sys"),
        ("zone", ""),
        ("zone_locality", "unknown"),
    ]);
    let identity = Some(Identity::ServiceAccount(ServiceAccount {
        name: "cart-sa",
        namespace: "shop",
        control_plane: "mesh-sys",
        trust_domain: "id.test",
    }));
    let h2 = Address { labels, identity, hint: hint(Protocol::H2, None), ..address(1) };
    let transport = Address { hint: hint(Protocol::H2, Some(4143)), ..address(2) };
    let opaque = Address { port: 4, hint: hint(Protocol::Opaque, Some(4143)), ..address(3) };
    let unset = Address { hint: hint(Protocol::Unset, None), ..address(4) };
    check(
        vec![h2, transport, opaque, unset],
        None,
        expect![[r#"
            add {namespace=shop service=web}
            + 10.1.0.1:1 10000 {control_plane_ns=mesh-sys pod=w1 replicationcontroller=rc-1 serviceaccount=cart-sa zone= zone_locality=unknown} tls dns cart-sa.shop.serviceaccount.identity.mesh-sys.id.test sni cart-sa.shop.serviceaccount.identity.mesh-sys.id.test hint h2
            + 10.1.0.2:1 10000 {pod=w1 zone= zone_locality=unknown} hint h2 transport 4143
            + 10.1.0.3:4 10000 {pod=w1 zone= zone_locality=unknown} hint opaque transport 4143
            + 10.1.0.4:1 10000 {pod=w1 zone= zone_locality=unknown} hint unset
        "#]],
    );
}

#[test]
fn http2_params_of_f07_to_f09_reach_those_that_speak_it() {
    let params = parse_http2_params(r#"{"keep_alive":{"interval":{"seconds":10}}}"#).unwrap();
    let meshed = Address { http2: true, ..address(1) };
    let expect = expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:1 10000 {pod=w1 zone= zone_locality=unknown} http2 6
        + 10.1.0.2:1 10000 {pod=w1 zone= zone_locality=unknown}
    "#]];
    check(vec![meshed, address(2)], Some(params), expect);
}

#[test]
fn a_gateway_and_a_workload() {
    let gateway = Address {
        identity: Some(Identity::Gateway("gateway.id")),
        hint: hint(Protocol::H2, None),
        authority_override: Some("web.shop.svc.east:80".to_owned()),
        ..address(1)
    };
    let server_name = "v1.corp";
    let workload = Address {
        identity: Some(Identity::Uri { uri: "spiffe://corp/v1", server_name }),
        hint: hint(Protocol::H2, Some(1111)),
        weight: 100_000,
        ..address(2)
    };
    let expect = expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:1 10000 {pod=w1 zone= zone_locality=unknown} tls dns gateway.id sni - hint h2 authority web.shop.svc.east:80
        + 10.1.0.2:1 100000 {pod=w1 zone= zone_locality=unknown} tls uri spiffe://corp/v1 sni v1.corp hint h2 transport 1111
    "#]];
    check(vec![gateway, workload], None, expect);
}

/// An address as it is sent to be removed.
fn removed(ip: IpAddr, port: u16) -> TcpAddress {
    let mut removes = Removes::new(usize::MAX);
    assert!(removes.push(ip, &[port]));
    match decoded(&removes.finish().unwrap()).update {
        Some(pb::update::Update::Remove(set)) => set.addrs[0],
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_addresses_of_e14() {
    use linkerd2_proxy_api::net::ip_address::Ip;
    let ip = |ip: IpAddr| removed(ip, 80).ip.and_then(|ip| ip.ip).unwrap();
    assert!(matches!(ip(Ipv4Addr::new(192, 0, 2, 1).into()), Ip::Ipv4(3_221_225_985)));
    let v6: Ipv6Addr = "fd00:1:2:3::4:5".parse().unwrap();
    let Ip::Ipv6(v6) = ip(v6.into()) else { panic!("not IPv6") };
    assert_eq!((v6.first, v6.last), (18_230_571_295_890_866_179, 262_149));
    let mapped = Ipv4Addr::new(1, 2, 3, 4).to_ipv6_mapped();
    assert!(matches!(ip(mapped.into()), Ip::Ipv6(_)), "mapped addresses stay what they are");
}

#[test]
fn what_is_encoded_is_what_prost_would_encode() {
    let long = "n".repeat(70_000);
    let mut labels = Labels::default();
    labels.set("pod", long.as_str());
    labels.set("zone", "");
    let ips = ["0.0.0.0", "255.1.2.3", "::", "::1", "fd00::", "1:2:3:4:5:6:7:8"];
    for (index, ip) in ips.into_iter().enumerate() {
        for port in [0, 1, 127, 128, 65_535] {
            let address = Address {
                ip: ip.parse().unwrap(),
                port,
                labels: if index % 2 == 0 { labels.clone() } else { Labels::default() },
                identity: uri(&long[..index * 60]),
                hint: hint(Protocol::Opaque, Some(port)),
                authority_override: (index % 3 == 0).then(String::new),
                ..address(1)
            };
            let mut adds = Adds::new(&Labels::default(), usize::MAX);
            assert!(adds.push(&[address.clone(), address], None));
            let message = adds.finish().unwrap();
            let update = decoded(&message);
            assert_eq!(update.encoded_len(), message.bytes().len());
            assert_eq!(pb::Update::decode(&*update.encode_to_vec()).unwrap(), update);
            assert_eq!(removed(ip.parse().unwrap(), port).port, u32::from(port));
        }
    }
}

#[test]
fn an_add_is_filled_to_the_last_byte_that_fits() {
    let set_labels = labels(&[("service", "web"), ("namespace", "shop")]);
    for bytes_max in [300, 301, 1_000, 5_000, 70_000] {
        let mut adds = Adds::new(&set_labels, bytes_max);
        let one_more = |adds: &mut Adds, last| adds.push(&[address(last)], None);
        let before = adds.bytes();
        assert!(one_more(&mut adds, 0));
        let one = adds.bytes() - before;
        let fits = (1..2_000).take_while(|last| one_more(&mut adds, *last as u8)).count();
        let bytes = adds.finish().unwrap().bytes().len();
        // The length before an address may take a byte more with its labels.
        let rest = one + fits + ENVELOPE_BYTES_MAX;
        assert!(bytes <= bytes_max && bytes + rest > bytes_max, "{fits} of {one}: {bytes}");
    }
}

#[test]
fn an_address_larger_than_the_limit_is_sent_alone() {
    let mut adds = Adds::new(&Labels::default(), 10);
    assert!(adds.push(&[address(1)], None));
    assert!(!adds.push(&[address(2)], None));
    assert!(adds.finish().is_some());
}

#[test]
fn a_remove_is_filled_to_the_last_byte_that_fits() {
    let ip = |last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
    let mut removes = Removes::new(200);
    let fits = (0..100).take_while(|last| removes.push(ip(*last), &[80])).count();
    let mark = removes.mark();
    assert!(!removes.push(ip(200), &[80]) && removes.mark().bytes == mark.bytes);
    let message = removes.finish().unwrap();
    let bytes = message.bytes().len();
    assert!(bytes <= 200 && bytes + 12 + ENVELOPE_BYTES_MAX > 200, "{bytes}");
    assert_eq!(text(&message).lines().count(), fits);
    let mut tiny = Removes::new(1);
    assert!(tiny.push(ip(0), &[80]), "one is always sent");
    assert!(!tiny.push(ip(1), &[80]));
    assert!(Removes::new(200).finish().is_none());
}

#[test]
fn what_was_pushed_can_be_taken_back() {
    let ip = |last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
    let mut removes = Removes::new(200);
    let nothing = removes.mark();
    assert!(removes.push(ip(1), &[80, 81]));
    removes.back_to(nothing);
    assert!(removes.finish().is_none());
}

#[test]
fn http2_params_are_read() {
    let chart =
        r#"{"keep_alive":{"interval":{"seconds":10},"timeout":{"seconds":3},"while_idle":true}}"#;
    let read = parse_http2_params(chart).unwrap();
    let keep_alive = read.keep_alive.unwrap();
    let seconds = |duration: Option<prost_types::Duration>| duration.unwrap().seconds;
    assert_eq!((seconds(keep_alive.interval), seconds(keep_alive.timeout)), (10, 3));
    assert!(keep_alive.while_idle && read.flow_control.is_none() && read.internals.is_none());

    let all = r#"{"flow_control":{"initial_stream_window_size":65535,"adaptive_flow_control":true},
        "internals":{"max_frame_size":16384,"max_send_buf_size":1,"max_concurrent_reset_streams":2},
        "keep_alive":null,"unknown":[]}"#;
    let read = parse_http2_params(all).unwrap();
    let flow = read.flow_control.unwrap();
    assert_eq!((flow.initial_stream_window_size, flow.adaptive_flow_control), (65_535, true));
    assert_eq!(flow.initial_connection_window_size, 0);
    assert_eq!(read.internals.unwrap().max_frame_size, 16_384);

    for bad in ["", "10s", "[", r#"{"keep_alive":{"interval":"10s"}}"#, r#"{"internals":7}"#] {
        assert!(parse_http2_params(bad).is_err(), "{bad}");
    }
}

/// So many addresses, of two workloads in three zones.
fn of_one_service(count: u16, bytes_max: usize) -> (Message, usize) {
    let mut adds = Adds::new(&labels(&[("service", "web"), ("namespace", "shop")]), bytes_max);
    let taken = (0..count).take_while(|number| {
        let mut own = Labels::default();
        own.set("pod", format!("web-{number}"));
        own.set("deployment", "web");
        own.set("serviceaccount", "default");
        own.set("zone", format!("zone-{}", number % 3));
        own.set("zone_locality", "unknown");
        let ip = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + u32::from(*number)));
        adds.push(&[Address { ip, labels: own, ..address(1) }], None)
    });
    let taken = taken.count();
    (adds.finish().unwrap(), taken)
}

#[test]
fn labels_that_all_addresses_of_a_large_message_have_are_said_once() {
    let (message, _) = of_one_service(99, usize::MAX);
    let Some(pb::update::Update::Add(few)) = decoded(&message).update else { panic!("no add") };
    assert_eq!((few.metric_labels.len(), few.addrs[0].metric_labels.len()), (2, 5));
    let (message, _) = of_one_service(300, usize::MAX);
    assert_eq!(decoded(&message).encoded_len(), message.bytes().len());
    let Some(pb::update::Update::Add(many)) = decoded(&message).update else { panic!("no add") };
    assert_eq!(many.addrs.len(), 300);
    assert_eq!((many.metric_labels.len(), many.addrs[0].metric_labels.len()), (4, 3));
    for (number, addr) in many.addrs.iter().enumerate() {
        // A client puts those of the set under each address's own.
        let mut held = many.metric_labels.clone();
        held.extend(addr.metric_labels.clone());
        let (pod, zone) = (format!("web-{number}"), format!("zone-{}", number % 3));
        assert_eq!((&held["pod"], &held["zone"]), (&pod, &zone));
        assert_eq!(
            (&*held["deployment"], &*held["serviceaccount"], held.len()),
            ("web", "default", 7)
        );
        assert_eq!(addr.metric_labels["zone_locality"], "unknown", "it must stay");
        assert_eq!((addr.weight, &addr.addr), (few.addrs[0].weight, &addr.addr));
    }
}

#[test]
fn what_is_saved_leaves_room_for_more() {
    let bytes_max = 40_000;
    let (message, taken) = of_one_service(u16::MAX, bytes_max);
    let bytes = message.bytes().len();
    assert!(bytes <= bytes_max && bytes > bytes_max * 99 / 100, "{bytes}");
    let unsaved = of_one_service(99, usize::MAX).0.bytes().len() / 99;
    assert!(taken > bytes_max / unsaved * 5 / 4, "{taken} addresses of {unsaved} bytes");
}

/// An address has each of these labels with one of two values, or not at all; the first may be long.
type Choice = (usize, [Option<bool>; 4]);

const KEYS: [&str; 4] = ["deployment", "serviceaccount", "zone", "zone_locality"];

fn chosen(number: usize, (long, choice): &Choice) -> Address<'static> {
    let mut own = Labels::default();
    own.set("pod", format!("web-{number}"));
    for (key, choice) in KEYS.into_iter().zip(choice) {
        if let Some(choice) = choice {
            own.set(key, choice.to_string().repeat(*long));
        }
    }
    let ip = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number as u32));
    Address { ip, labels: own, ..address(1) }
}

fn choice() -> impl Strategy<Value = Choice> {
    let seldom = prop::option::weighted(0.99, prop::bool::weighted(0.01));
    (prop_oneof![500 => Just(1_usize), 1 => 1..60_usize], prop::array::uniform4(seldom))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However they are said: a client holds the labels of each address, and the message is no larger than it may be.
    #[test]
    fn a_client_holds_the_labels_of_each_address(
        choices in prop::collection::vec(choice(), 1..400),
        batch in 1..4_usize,
        bytes_max in prop_oneof![Just(usize::MAX), 200..40_000_usize],
    ) {
        let mut adds = Adds::new(&labels(&[("service", "web")]), bytes_max);
        let addresses: Vec<_> = choices.iter().enumerate().map(|(number, it)| chosen(number, it)).collect();
        let mut taken: Vec<&Address<'_>> = Vec::new();
        for batch in addresses.chunks(batch) {
            let (bytes, count) = (adds.bytes(), adds.addresses());
            if adds.push(batch, None) {
                taken.extend(batch);
                continue;
            }
            prop_assert_eq!(adds.addresses(), count);
            // What was put back takes its room either way.
            prop_assert!(adds.bytes() <= bytes_max.max(bytes));
        }
        let announced = adds.bytes();
        let message = adds.finish().unwrap();
        let bytes = message.bytes().len();
        prop_assert!(taken.len() <= batch || bytes <= bytes_max, "{} of {}", bytes, bytes_max);
        prop_assert!(bytes <= announced + ENVELOPE_BYTES_MAX && bytes + 3 * taken.len() + ENVELOPE_BYTES_MAX >= announced);
        prop_assert_eq!(decoded(&message).encoded_len(), bytes);
        let Some(pb::update::Update::Add(set)) = decoded(&message).update else { panic!("no add") };
        prop_assert_eq!(set.addrs.len(), taken.len());
        prop_assert!(taken.len() >= 100 || set.metric_labels.len() == 1);
        for (addr, address) in set.addrs.iter().zip(taken) {
            let mut held = set.metric_labels.clone();
            held.extend(addr.metric_labels.clone());
            let service = held.remove("service");
            prop_assert_eq!(service.as_deref(), Some("web"));
            let own: BTreeMap<String, String> =
                address.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(&BTreeMap::from_iter(held), &own);
            prop_assert_eq!(addr.metric_labels.get("zone_locality"), own.get("zone_locality"));
        }
    }
}
