//! The objects of a small cluster, and random changes of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::{
    Change, ClusterId, ContainerPort, DstOverride, EndpointsFrom, Family, Key, Kind, MeshTls,
    Object, ObjectName, Operator, OwnerRef, Phase, PortSet, ProxyPorts, Ratio, RequestMatch,
    Requirement, ResourceVersion, ResponseClass, ResponseMatch, RetryBudget, Route, Selector,
    Server, ServerPort, Service, ServicePort, ServiceProfile, Slice, SliceEndpoint, SliceMeta,
    SlicePort, Source, Target, Template, Workload, WorkloadKind,
};

/// Where everything is.
pub(crate) const NAMESPACE: &str = "shop";

/// What Services are called.
pub(crate) const SERVICES: [&str; 2] = ["web", "api"];

/// Where the Secrets are that declare links.
pub(crate) const CONTROLLERS: &str = "mesh-sys";

/// Another namespace, with ServiceProfiles of its own.
pub(crate) const TEAM: &str = "team";

/// A generator of our own, so that a seed is the same history on every machine.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }

    pub(crate) fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize].clone()
    }

    pub(crate) fn maybe<T>(
        &mut self,
        percent: u64,
        make: impl FnOnce(&mut Dice) -> T,
    ) -> Option<T> {
        self.percent(percent).then(|| make(self))
    }
}

/// What an API server would hold.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) objects: BTreeMap<Key, (u64, Object)>,
    version: u64,
}

pub(crate) fn source(kind: Kind) -> Source {
    Source { cluster: ClusterId::LOCAL, kind }
}

pub(crate) fn key(kind: Kind, name: &str) -> Key {
    let namespace = match kind {
        Kind::Node => "",
        Kind::Secret => CONTROLLERS,
        _ => NAMESPACE,
    };
    Key { source: source(kind), name: ObjectName::new(namespace, name).expect("a name") }
}

/// The ServiceProfile of a Service in a namespace.
pub(crate) fn profile_key(namespace: &str, service: &str) -> Key {
    let name = format!("{service}.{NAMESPACE}.svc.k.test");
    let name = ObjectName::new(namespace, name).expect("a name");
    Key { source: source(Kind::ServiceProfile), name }
}

impl World {
    /// One without objects, whose first is of the version after this one.
    pub(crate) fn after(version: u64) -> World {
        World { version, ..World::default() }
    }

    pub(crate) fn service(&self, name: &str) -> Option<&Service> {
        match self.get(Kind::Service, name) {
            Some(Object::Service(service)) => Some(service),
            _ => None,
        }
    }

    pub(crate) fn profile(&self, namespace: &str, service: &str) -> Option<&Object> {
        self.objects.get(&profile_key(namespace, service)).map(|(_, object)| object)
    }

    pub(crate) fn get(&self, kind: Kind, name: &str) -> Option<&Object> {
        self.objects.get(&key(kind, name)).map(|(_, object)| object)
    }

    /// All objects of a kind, with their names and versions.
    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = (&str, u64, &Object)> {
        let of_kind = self.objects.iter().filter(move |(key, _)| key.source.kind == kind);
        of_kind.map(|(key, (version, object))| (key.name.name(), *version, object))
    }

    /// A change of one object.
    pub(crate) fn change(&mut self, dice: &mut Dice) -> Change {
        let (kind, name) = match dice.roll(22) {
            20..=21 => (Kind::ServiceProfile, dice.of(&SERVICES).to_owned()),
            0 => (Kind::Service, dice.of(&SERVICES).to_owned()),
            1 => (Kind::Node, format!("n{}", dice.roll(3))),
            2 => (Kind::Server, format!("s{}", dice.roll(3))),
            3 => (dice.of(&[Kind::ReplicaSet, Kind::Job]), format!("o{}", dice.roll(2))),
            4 => (Kind::ExternalWorkload, format!("v{}", dice.roll(3))),
            5..=10 => (Kind::Pod, format!("p{}", dice.roll(8))),
            _ => (Kind::EndpointSlice, format!("sl{}", dice.roll(4))),
        };
        let gone = if kind == Kind::EndpointSlice { 10 } else { 20 };
        let key = match kind {
            Kind::ServiceProfile => profile_key(dice.of(&[NAMESPACE, TEAM]), &name),
            _ => key(kind, &name),
        };
        match dice.percent(gone) {
            true => self.delete(key),
            false => self.put(key, object(kind, dice)),
        }
    }

    pub(crate) fn put(&mut self, key: Key, object: Object) -> Change {
        self.version += 1;
        self.objects.insert(key.clone(), (self.version, object.clone()));
        Change::Put { key, version: ResourceVersion(self.version.to_string()), object }
    }

    pub(crate) fn delete(&mut self, key: Key) -> Change {
        self.objects.remove(&key);
        Change::Delete { key }
    }

    /// The listing of a kind, some of whose objects are gone by now; perhaps it is cut off.
    pub(crate) fn relist(&mut self, kind: Kind, dice: &mut Dice) -> Vec<Change> {
        let cut_off = dice.percent(30);
        if !cut_off {
            self.objects.retain(|key, _| key.source.kind != kind || dice.percent(80));
        }
        let source = source(kind);
        let mut changes = vec![Change::Begin { source }];
        for (key, (version, object)) in &self.objects {
            if key.source.kind == kind && !(cut_off && dice.percent(50)) {
                let version = ResourceVersion(version.to_string());
                changes.push(Change::Put { key: key.clone(), version, object: object.clone() });
            }
        }
        if !cut_off {
            let version = ResourceVersion(self.version.to_string());
            changes.push(Change::End { source, version });
        }
        changes
    }

    /// The first listing of everything.
    pub(crate) fn list_all(&self) -> Vec<Change> {
        let version = ResourceVersion(self.version.to_string());
        let list = |kind| {
            let source = source(kind);
            [Change::Begin { source }, Change::End { source, version: version.clone() }]
        };
        EndpointsFrom::Slices.kinds().flat_map(list).collect()
    }
}

fn object(kind: Kind, dice: &mut Dice) -> Object {
    match kind {
        Kind::Service => Object::Service(service(dice)),
        Kind::Node => {
            Object::Node { zone: dice.maybe(80, |dice| dice.of(&["za", "zb", ""]).to_owned()) }
        }
        Kind::Server => Object::Server(server(dice)),
        Kind::ServiceProfile => Object::Profile(dice.maybe(85, profile)),
        Kind::ReplicaSet | Kind::Job => Object::Owned {
            owner: dice.maybe(70, |dice| OwnerRef {
                kind: dice.of(&["Deployment", "CronJob", "Rollout", "DaemonSet"]).to_owned(),
                name: format!("top{}", dice.roll(2)),
            }),
        },
        Kind::ExternalWorkload => Object::Workload(external(dice)),
        Kind::Pod => Object::Workload(pod(dice)),
        _ => Object::Slice(slice(dice)),
    }
}

pub(crate) fn service(dice: &mut Dice) -> Service {
    let port = |name: &str, port, tcp| ServicePort { name: name.to_owned(), port, tcp };
    let ports = match dice.roll(4) {
        0 => vec![port("http", 80, true)],
        1 => vec![port("http", 80, true), port("admin", 81, true)],
        2 => vec![port("dns", 80, false), port("http", 80, true)],
        _ => vec![port("", 80, true)],
    };
    let opaque =
        dice.maybe(40, |dice| dice.of(&[PortSet::default(), PortSet::from_ranges([(80, 80)])]));
    let cluster_ips = (0..dice.roll(3)).map(|_| cluster_ip(dice)).collect();
    let local_traffic = dice.percent(15);
    Service { ports, local_traffic, cluster_ips, opaque, ..Service::default() }
}

/// Few enough that two Services have the same now and then.
fn cluster_ip(dice: &mut Dice) -> IpAddr {
    Ipv4Addr::new(10, 9, 0, dice.roll(3) as u8).into()
}

/// One of few addresses, so that they are used again.
fn owned_ip(net: u8, dice: &mut Dice) -> IpAddr {
    let v4 = Ipv4Addr::new(10, net, 0, dice.roll(4) as u8);
    if dice.percent(10) { v4.to_ipv6_mapped().into() } else { v4.into() }
}

fn profile(dice: &mut Dice) -> ServiceProfile {
    let route = |number: u64, dice: &mut Dice| Route {
        name: format!("r{number}"),
        condition: match dice.roll(4) {
            0 => RequestMatch::Method(dice.of(&["GET", "BREW"]).to_owned()),
            1 => RequestMatch::Not(Box::new(RequestMatch::Path("/a".to_owned()))),
            2 => RequestMatch::All(vec![
                RequestMatch::Path("/b".to_owned()),
                RequestMatch::Any(Vec::new()),
            ]),
            _ => RequestMatch::Path(format!("/{}", dice.roll(3))),
        },
        responses: match dice.roll(3) {
            0 => Vec::new(),
            _ => vec![ResponseClass {
                condition: ResponseMatch::Any(vec![
                    ResponseMatch::Status { min: 500, max: 599 },
                    ResponseMatch::Not(Box::new(ResponseMatch::Status { min: 0, max: 400 })),
                ]),
                failure: dice.percent(50),
            }],
        },
        retryable: dice.percent(50),
        timeout_ns: dice.of(&[0, 250_000_000, 90_000_000_000]),
    };
    let routes = (0..dice.roll(3)).map(|number| route(number, dice)).collect();
    let budget = |dice: &mut Dice| RetryBudget {
        ratio: Ratio(dice.of(&[0.0, 0.5])),
        min_retries_per_second: dice.roll(3) as u32,
        ttl_ns: 1_000_000_000 * dice.roll(3) as i64,
    };
    let to = |dice: &mut Dice| DstOverride {
        authority: dice.of(&["a.shop.svc.k.test", "b:99", "fd00::1"]).to_owned(),
        weight: 100 * dice.roll(3) as u32,
    };
    ServiceProfile {
        routes,
        retry_budget: dice.maybe(50, budget),
        dst_overrides: (0..dice.roll(3)).map(|_| to(dice)).collect(),
    }
}

fn selector(dice: &mut Dice) -> Selector {
    let operator =
        dice.of(&[Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist]);
    let values = match operator {
        Operator::In | Operator::NotIn => vec![dice.of(&["a", "b"]).to_owned()],
        Operator::Exists | Operator::DoesNotExist => Vec::new(),
    };
    let requirement = Requirement { key: "app".to_owned(), operator, values };
    Selector { requirements: if dice.percent(20) { Vec::new() } else { vec![requirement] } }
}

fn server(dice: &mut Dice) -> Server {
    Server {
        opaque: dice.percent(70),
        pods: dice.maybe(70, selector),
        workloads: dice.maybe(50, selector),
        port: match dice.percent(50) {
            true => ServerPort::Number(8_080 + dice.roll(3) as u16),
            false => ServerPort::Name(dice.of(&["http", "admin"]).to_owned()),
        },
    }
}

fn template(kind: WorkloadKind, dice: &mut Dice) -> Template {
    let mut labels = BTreeMap::new();
    if dice.percent(80) {
        labels.insert("app".to_owned(), dice.of(&["a", "b"]).to_owned());
    }
    if dice.percent(70) {
        let control_plane = dice.of(&["mesh-sys", "mesh-sys", "other-mesh", ""]);
        labels.insert("linkerd.io/control-plane-ns".to_owned(), control_plane.to_owned());
    }
    if dice.percent(30) {
        labels.insert("pod-template-hash".to_owned(), format!("h{}", dice.roll(2)));
    }
    let ports = [("http", 8_080, None), ("admin", 8_081, Some(8_082))];
    let port = |(name, port, host_port): (&str, _, _)| ContainerPort {
        name: name.to_owned(),
        port,
        host_port,
    };
    let number = |dice: &mut Dice, port| dice.maybe(90, |_| port);
    Template {
        kind,
        namespace: NAMESPACE.to_owned(),
        labels,
        owner: dice.maybe(70, |dice| OwnerRef {
            kind: dice.of(&["ReplicaSet", "Job", "StatefulSet", "Thing"]).to_owned(),
            name: format!("o{}", dice.roll(2)),
        }),
        name_prefix: dice.of(&["", "p", "p0-"]).to_owned(),
        service_account: dice.of(&["default", "cart"]).to_owned(),
        ports: ports.map(port).to_vec(),
        opaque: dice.maybe(40, |dice| {
            dice.of(&[PortSet::default(), PortSet::from_ranges([(8_080, 8_080)])])
        }),
        skip_inbound: dice.of(&[
            PortSet::default(),
            PortSet::default(),
            PortSet::from_ranges([(8_081, 8_081)]),
        ]),
        proxy: dice.maybe(90, |dice| ProxyPorts {
            inbound: number(dice, 4_143),
            admin: number(dice, 4_191),
            control: number(dice, 8_082),
        }),
        mesh_tls: None,
    }
}

fn workload(template: Template, dice: &mut Dice) -> Workload {
    Workload {
        template,
        node: dice.maybe(90, |dice| format!("n{}", dice.roll(3))),
        phase: dice.of(&[Phase::Running, Phase::Pending, Phase::Finished]),
        deleting: dice.percent(10),
        host_network: dice.percent(10),
        ips: Vec::new(),
        host_ips: Vec::new(),
    }
}

fn pod(dice: &mut Dice) -> Workload {
    let template = template(WorkloadKind::Pod, dice);
    let ips = (0..dice.roll(3)).map(|_| owned_ip(0, dice)).collect();
    let host_ips = (0..dice.roll(3)).map(|_| owned_ip(1, dice)).collect();
    Workload { ips, host_ips, ..workload(template, dice) }
}

fn external(dice: &mut Dice) -> Workload {
    let mesh_tls = dice.maybe(80, |dice| MeshTls {
        identity: format!("spiffe://corp/{}", dice.roll(2)),
        server_name: format!("v{}.corp", dice.roll(2)),
    });
    let template = Template {
        mesh_tls,
        service_account: String::new(),
        skip_inbound: PortSet::default(),
        ..template(WorkloadKind::External, dice)
    };
    let ips = (0..dice.roll(3)).map(|_| owned_ip(0, dice)).collect();
    // What is said of a pod's phase is not said of it.
    let (phase, deleting) = (Phase::Running, false);
    Workload { node: None, ips, phase, deleting, ..workload(template, dice) }
}

fn slice(dice: &mut Dice) -> Slice {
    let v6 = dice.percent(35);
    let hinted = dice.percent(50);
    let mut endpoints: BTreeMap<_, SliceEndpoint> = BTreeMap::new();
    for _ in 0..dice.roll(8) {
        let name = |name: String| key(Kind::Pod, &name).name;
        let target = match dice.roll(8) {
            0 => Target::Bare,
            1 => Target::ExternalWorkload(name(format!("v{}", dice.roll(3)))),
            _ => Target::Pod(name(format!("p{}", dice.roll(8)))),
        };
        let number = dice.roll(8) as u16;
        let ip = match v6 {
            true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)),
            false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, number as u8)),
        };
        let endpoint = SliceEndpoint {
            ip,
            ready: dice.percent(85),
            zone: match target {
                Target::Bare => None,
                _ => dice.maybe(80, |dice| dice.of(&["za", "zb", ""]).to_owned()),
            },
            hostname: dice.maybe(40, |dice| format!("h{}", dice.roll(2))),
            hints: match hinted && dice.percent(95) {
                true => dice
                    .of(&[vec!["za"], vec!["zb"], vec!["za", "zb"]])
                    .iter()
                    .map(|it| (*it).to_owned())
                    .collect(),
                false => Vec::new(),
            },
            target: target.clone(),
        };
        // As ingest has it: one endpoint for each target, one for each bare address.
        endpoints.insert((target.clone(), (target == Target::Bare).then_some(ip)), endpoint);
    }
    let port = |name: &str, port| SlicePort { name: name.to_owned(), port };
    let ports = match dice.roll(6) {
        0 => None,
        1 => Some(vec![port("", Some(8_080))]),
        2 => Some(vec![port("http", None), port("admin", Some(8_081))]),
        _ => {
            Some(vec![port("http", Some(8_080 + dice.roll(2) as u16)), port("admin", Some(8_081))])
        }
    };
    Slice {
        service: dice.maybe(95, |dice| key(Kind::Service, dice.of(&SERVICES)).name),
        family: if v6 { Family::V6 } else { Family::V4 },
        meta: SliceMeta {
            ports,
            mirror_cluster: dice.maybe(10, |dice| dice.of(&["east", "west"]).to_owned()),
            remote_service: dice.maybe(10, |_| "far.shop.svc.east".to_owned()),
            gateway_identity: dice.maybe(10, |_| "gateway.east".to_owned()),
        },
        endpoints: endpoints.into_values().collect(),
    }
}
