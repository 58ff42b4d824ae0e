//! What holds for all claims.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use model::{
    Claim, Class, ClusterId, Metadata, ObjectName, PortSet, Service, ServiceName, ServicePort,
    SliceMeta, SlicePort, WorkloadKind,
};
use proptest::prelude::*;

use super::claims::{by_ip, lens, rank};
use super::fixture::settings;
use crate::{Lens, Settings, View};

/// One claim, before it is told of its competitors: a target (0 none, 1 and 2 pods, 3 a workload), whether in
/// IPv6, the last byte of its address, its slice, its hostname and its hints.
type Draft = (u8, bool, u8, u8, Option<u8>, Vec<u8>);

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let hints = proptest::collection::vec(0..3_u8, 0..3);
    let hostname = proptest::option::of(0..2_u8);
    let draft = (0..4_u8, any::<bool>(), 0..3_u8, 0..4_u8, hostname, hints);
    proptest::collection::vec(draft, 0..10)
}

fn cases() -> impl Strategy<Value = (Settings, View, Service, Vec<Claim>)> {
    let switches = (any::<bool>(), any::<bool>());
    let asked = (0..3_u8, proptest::option::of(0..2_u8), proptest::option::of(0..3_u8));
    (switches, asked, drafts()).prop_map(|((ipv6, local), (port, hostname, zone), drafts)| {
        let view = View {
            service: ServiceName {
                cluster: ClusterId::LOCAL,
                object: ObjectName::new("shop", "web").unwrap(),
            },
            port: 80 + u16::from(port),
            hostname: hostname.map(|hostname| hostname.to_string()),
            zone: zone.map(|zone| zone.to_string()),
            node: Some("1".to_owned()),
            bucket: None,
            linked: None,
            member: false,
        };
        let port = |port: u16| ServicePort { name: port.to_string(), port, tcp: true };
        let ports = vec![port(80), port(81)];
        let service = Service { ports, local_traffic: local, ..Service::default() };
        (Settings { ipv6, ..settings() }, view, service, claims(&drafts))
    })
}

fn claims(drafts: &[Draft]) -> Vec<Claim> {
    let mut targets: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
    for draft in drafts {
        let claim = claim(draft);
        let target =
            if claim.class == Class::Bare { claim.ip.to_string() } else { claim.name.clone() };
        targets.entry(target).or_default().push(claim);
    }
    targets.into_values().flat_map(rank).collect()
}

fn claim((target, v6, ip, slice, hostname, hints): &Draft) -> Claim {
    let class = match (target, v6) {
        (0, _) => Class::Bare,
        (3, false) => Class::ExternalV4,
        (3, true) => Class::ExternalV6,
        (_, false) => Class::PodV4,
        (_, true) => Class::PodV6,
    };
    // Two slices have both ports, with other numbers; one has one of them, one has none.
    let port = |name: &str, port| SlicePort { name: name.to_owned(), port: Some(port) };
    let ports = match slice {
        0 => Some(vec![port("80", 8080), port("81", 8081)]),
        1 => Some(vec![port("80", 8081), port("81", 8080)]),
        2 => Some(vec![port("81", 8080)]),
        _ => None,
    };
    let kind = if *target == 3 { WorkloadKind::External } else { WorkloadKind::Pod };
    Claim {
        ip: match v6 {
            false => IpAddr::from([10, 0, 0, *ip]),
            true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(*ip)]),
        },
        class,
        name: if *target == 0 { String::new() } else { target.to_string() },
        workload: (*target != 0).then(|| Arc::new(unmeshed(kind))),
        node: (*target != 0).then(|| target.to_string().into()),
        slice: Arc::new(SliceMeta { ports, ..SliceMeta::default() }),
        hostname: hostname.map(|hostname| hostname.to_string()),
        zone: None,
        hints: hints.iter().map(|hint| hint.to_string().into()).collect(),
        rank: 0,
        peers: Vec::new(),
    }
}

fn unmeshed(kind: WorkloadKind) -> Metadata {
    Metadata {
        kind,
        namespace: "shop".to_owned(),
        control_plane_ns: None,
        owner: None,
        service_account: "default".to_owned(),
        pod_template_hash: None,
        name_prefix: String::new(),
        opaque: None,
        opaque_by_server: PortSet::default(),
        skip_inbound: PortSet::default(),
        proxy: None,
        mesh_tls: None,
    }
}

/// The claims that a view is made of, by rule 2.5 read word by word over the whole Service.
fn expected(
    settings: &Settings,
    view: &View,
    service: &Service,
    claims: &[Claim],
) -> BTreeSet<(IpAddr, u16)> {
    let key = crate::port_key(service, view.port);
    let family = |class| matches!(class, Class::PodV6 | Class::ExternalV6);
    let mut ranked: Vec<&Claim> = claims.iter().collect();
    ranked.sort_by_key(|claim| claim.rank);
    // One for each identity key of 2.4: a target in a family, or a bare address and port.
    let mut set: BTreeMap<String, (&Claim, u16)> = BTreeMap::new();
    for claim in ranked {
        let hostname = view.hostname.is_none() || view.hostname == claim.hostname;
        let Some(port) = claim.slice.port(&key).filter(|_| hostname) else { continue };
        if claim.class == Class::PodV6 && !settings.ipv6 {
            continue;
        }
        let id = match claim.class {
            Class::Bare => format!("{} {port}", claim.ip),
            class => format!("{} {class:?}", claim.name),
        };
        set.entry(id).or_insert((claim, port));
    }
    let all: Vec<(&Claim, u16)> = set.into_values().collect();
    let passed = if service.local_traffic {
        let here = |claim: &Claim| {
            matches!(claim.class, Class::PodV4 | Class::PodV6)
                && claim.node.as_deref() == view.node.as_deref()
        };
        all.into_iter().filter(|(claim, _)| here(claim)).collect()
    } else {
        let for_zone = |claim: &Claim| {
            view.zone.iter().any(|zone| claim.hints.iter().any(|hint| **hint == **zone))
        };
        let mine: Vec<_> = all.iter().copied().filter(|(claim, _)| for_zone(claim)).collect();
        let unhinted = all.iter().any(|(claim, _)| claim.hints.is_empty());
        if unhinted || mine.is_empty() { all } else { mine }
    };
    let hidden = |claim: &Claim| {
        let other = |(it, _): &(&Claim, u16)| {
            it.name == claim.name
                && it.class != Class::Bare
                && family(it.class) != family(claim.class)
        };
        let worse = family(claim.class) != settings.ipv6;
        claim.class != Class::Bare && worse && passed.iter().any(other)
    };
    passed
        .iter()
        .filter(|(claim, _)| !hidden(claim))
        .map(|(claim, port)| (claim.ip, *port))
        .collect()
}

fn projected<'c>(
    lens: &'c Lens,
    claims: &'c BTreeMap<IpAddr, Vec<Claim>>,
) -> Vec<crate::Address<'c>> {
    claims.values().flat_map(|claims| lens.project(claims)).collect()
}

proptest! {
    /// What is found out address by address is what the rule says of the whole Service.
    #[test]
    fn addresses_alone_make_the_whole(
        (settings, view, service, claims) in cases(),
    ) {
        let lens = lens(&settings, &view, Some(&service), &claims);
        let by_ip = by_ip(&claims);
        let shown = projected(&lens, &by_ip);
        let shown: Vec<_> = shown.iter().map(|address| (address.ip, address.port)).collect();
        let expected = expected(&settings, &view, &service, &claims);
        prop_assert_eq!(shown, expected.into_iter().collect::<Vec<_>>());
    }

    /// The order of the claims on an address is nothing that they say.
    #[test]
    fn order_does_not_matter(
        ((settings, view, service, claims), shuffled) in cases().prop_flat_map(|case| {
            let shuffled = Just(case.3.clone()).prop_shuffle();
            (Just(case), shuffled)
        }),
    ) {
        let one = lens(&settings, &view, Some(&service), &claims);
        prop_assert_eq!(&one, &lens(&settings, &view, Some(&service), &shuffled));
        let (claims, shuffled) = (by_ip(&claims), by_ip(&shuffled));
        prop_assert_eq!(projected(&one, &claims), projected(&one, &shuffled));
    }

    /// What is said to be in a view is what is in it.
    #[test]
    fn explanations_are_true((settings, view, service, claims) in cases()) {
        let lens = lens(&settings, &view, Some(&service), &claims);
        for claims in by_ip(&claims).values() {
            let explained: Vec<_> = lens.explain(claims).into_iter().flatten().collect();
            let shown = lens.project(claims);
            prop_assert!(shown.iter().all(|address| explained.contains(address)));
            prop_assert!(explained.iter().all(|address| shown.contains(address)));
        }
    }

    /// Nobody sees a target twice, but for the addresses of several targets.
    #[test]
    fn one_family_of_each_target((settings, view, service, claims) in cases()) {
        let lens = lens(&settings, &view, Some(&service), &claims);
        let mut seen = BTreeSet::new();
        for address in projected(&lens, &by_ip(&claims)) {
            let target = ["pod", "external_workload"].iter().find_map(|key| {
                let name = address.labels.iter().find_map(|(it, name)| (it == *key).then_some(name));
                name.map(|name| (*key, name.to_owned()))
            });
            if let Some(target) = target {
                prop_assert!(seen.insert(target.clone()), "{target:?} twice");
            }
        }
    }

    /// Without the Service there is nothing, whatever its slices say.
    #[test]
    fn no_service_no_view((settings, view, _, claims) in cases()) {
        let lens = lens(&settings, &view, None, &claims);
        prop_assert!(projected(&lens, &by_ip(&claims)).is_empty());
    }
}
