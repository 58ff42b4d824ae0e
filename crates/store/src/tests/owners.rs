//! Whose an address is, after random histories, against an oracle that looks at all objects.

use std::collections::BTreeMap;
use std::net::IpAddr;

use model::{
    Change, ClusterId, Key, Kind, Object, ObjectName, Phase, Service, SliceEndpoint, Target,
    Workload, WorkloadKind,
};

use super::fixture::{NOW, Random, config, ip, key, pod, put, random_object, random_owned_ip};
use super::service;
use crate::{Claimants, Instance, Owned, WakeKey, open};

type Objects = BTreeMap<Key, Object>;

/// What a workload is asked for.
type Claims<'c> = &'c dyn Fn(&Workload) -> bool;

/// Spec §3.2 and §3.4.1, word by word.
fn expected(objects: &Objects, ip: IpAddr, port: u16) -> Owned {
    let among = |ips: &[IpAddr]| ips.iter().any(|it| it.to_canonical() == ip.to_canonical());
    let live = |it: &Workload| it.phase != Phase::Finished && !it.deleting;
    let ports = |it: &Workload| it.template.ports.clone();
    let on_host = |it: &Workload| ports(it).iter().any(|port_of| port_of.host_port == Some(port));
    let declared = |it: &Workload| ports(it).iter().any(|port_of| port_of.port == port);
    let services = |it: &Service| among(&it.cluster_ips);
    let found = objects.iter().filter_map(|(key, object)| match object {
        Object::Service(service) if services(service) => Some(Owned::Service(key.name.clone())),
        _ => None,
    });
    let mut tiers = vec![(Claimants::Services, found.collect::<Vec<_>>())];
    let tests: [(Claimants, WorkloadKind, Claims<'_>); 3] = [
        (Claimants::Pods, WorkloadKind::Pod, &|it| live(it) && !it.host_network && among(&it.ips)),
        (Claimants::HostPorts, WorkloadKind::Pod, &|it| {
            live(it) && on_host(it) && among(&it.host_ips)
        }),
        (Claimants::ExternalWorkloads, WorkloadKind::External, &|it| {
            live(it) && declared(it) && among(&it.ips)
        }),
    ];
    for (claimants, kind, claims) in tests {
        let found = objects.iter().filter_map(|(key, object)| match object {
            Object::Workload(it) if it.template.kind == kind && claims(it) => {
                Some(Owned::Workload(kind, key.name.clone()))
            }
            _ => None,
        });
        tiers.push((claimants, found.collect()));
    }
    match tiers.into_iter().find(|(_, found)| !found.is_empty()) {
        None => Owned::Nobody,
        Some((_, mut one)) if one.len() == 1 => one.remove(0),
        Some((claimants, several)) => Owned::Several(claimants, several.len() as u64),
    }
}

#[test]
fn an_address_is_whose_the_objects_say() {
    let mut seen = BTreeMap::new();
    for seed in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
        let mut objects = Objects::new();
        for step in 0..300 {
            let kinds = [
                (Kind::Service, "svc"),
                (Kind::Pod, "pod"),
                (Kind::Pod, "pod"),
                (Kind::ExternalWorkload, "vm"),
            ];
            let (kind, name) = kinds[random.below(4) as usize];
            let key = key(kind, &format!("{name}-{}", random.below(3)));
            let change = match random.chance(30) {
                true => {
                    objects.remove(&key);
                    Change::Delete { key }
                }
                false => {
                    let object = random_object(&mut random, kind);
                    objects.insert(key.clone(), object.clone());
                    put(kind, key.name.name(), step + 1, object)
                }
            };
            let before = reader.snapshot().unwrap();
            let commit = writer.commit(NOW, vec![change]).unwrap();
            assert_eq!(writer.check().unwrap(), [], "seed {seed}, step {step}");
            let now = reader.snapshot().unwrap();
            let ip = random_owned_ip(&mut random);
            for port in [80, 81, 90, 91, 92] {
                let owned = now.owner(ClusterId::LOCAL, ip, port).unwrap();
                assert_eq!(owned, expected(&objects, ip, port), "seed {seed}, step {step}");
                if before.owner(ClusterId::LOCAL, ip, port).unwrap() != owned {
                    let key = WakeKey::address(ClusterId::LOCAL, ip);
                    assert!(commit.touched.contains(&key), "nobody is told: seed {seed}");
                }
                let sort = match owned {
                    Owned::Nobody => "nobody".to_owned(),
                    Owned::Service(_) => "service".to_owned(),
                    Owned::Workload(kind, _) => format!("{kind:?}"),
                    Owned::Several(claimants, _) => format!("several {claimants:?}"),
                };
                *seen.entry(sort).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
}

#[test]
fn a_workload_has_the_addresses_that_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
    let Object::Workload(mut workload) = pod("carts") else { unreachable!("a pod is a workload") };
    (workload.ips, workload.deleting) = (vec![ip(false, 1)], true);
    writer.commit(NOW, vec![put(Kind::Pod, "cart", 1, Object::Workload(workload))]).unwrap();
    let snapshot = reader.snapshot().unwrap();
    let name = key(Kind::Pod, "cart").name;
    let find = |kind| snapshot.workload(ClusterId::LOCAL, kind, &name).unwrap();
    let standing = find(WorkloadKind::Pod).unwrap();
    assert!(standing.has(ip(false, 1), 1_234), "though it is about to be over");
    assert!(!standing.has(ip(false, 2), 1_234));
    assert_eq!(
        (standing.metadata.service_account.as_str(), standing.name),
        ("carts", name.clone())
    );
    assert!(find(WorkloadKind::External).is_none());
}

#[test]
fn a_hostname_is_that_of_a_pod_ready_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
    let mut of = |name: &str, version: u64, endpoints: &[(&str, Target)]| {
        let endpoint = |(hostname, target): &(&str, Target)| SliceEndpoint {
            ip: ip(false, 1),
            ready: false,
            target: target.clone(),
            hostname: Some((*hostname).to_owned()),
            zone: None,
            hints: Vec::new(),
        };
        let slice = model::Slice {
            service: Some(service(0).object),
            family: model::Family::V4,
            meta: model::SliceMeta::default(),
            endpoints: endpoints.iter().map(endpoint).collect(),
        };
        let slice = put(Kind::EndpointSlice, name, version, Object::Slice(slice));
        writer.commit(NOW, vec![slice]).unwrap();
        assert_eq!(writer.check().unwrap(), []);
    };
    let find = |hostname| reader.snapshot().unwrap().instance(&service(0), hostname).unwrap();
    let cart: ObjectName = key(Kind::Pod, "cart-0").name;
    of("a", 1, &[("cart-0", Target::Bare)]);
    assert_eq!((find("cart-0"), find("cart")), (Some(Instance::Other), None));
    of("b", 2, &[("cart-0", Target::Pod(cart.clone()))]);
    assert_eq!(find("cart-0"), Some(Instance::Pod(cart)));
    of("b", 3, &[("cart-1", Target::Bare)]);
    assert_eq!((find("cart-0"), find("cart-1")), (Some(Instance::Other), Some(Instance::Other)));
}
