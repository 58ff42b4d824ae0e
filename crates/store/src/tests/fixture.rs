//! What the tests of the store are made of: keys, objects, and random ones.

use std::collections::BTreeMap;
use std::net::IpAddr;

use model::{
    Change, ClusterId, ContainerPort, Family, Key, Kind, Metadata, Object, ObjectName, OwnerRef,
    Phase, PortSet, ResourceVersion, Server, ServerPort, Service, ServiceProfile, Slice,
    SliceEndpoint, SliceMeta, SlicePort, Source, Target, Template, Time, Workload, WorkloadKind,
};

use crate::{Admission, Config, Fsync, Undo};

pub(crate) fn join(
    template: &Template,
    owner: Option<Option<&OwnerRef>>,
    servers: &[Server],
) -> Metadata {
    let port = |server: &Server| match server.port {
        ServerPort::Number(port) => (port, port),
        ServerPort::Name(_) => (0, 0),
    };
    Metadata {
        kind: template.kind,
        namespace: template.namespace.clone(),
        control_plane_ns: None,
        owner: owner.map_or_else(|| template.owner.clone(), |owner| owner.cloned()),
        service_account: template.service_account.clone(),
        pod_template_hash: None,
        name_prefix: template.name_prefix.clone(),
        opaque: template.opaque.clone(),
        opaque_by_server: PortSet::from_ranges(servers.iter().map(port)),
        skip_inbound: PortSet::default(),
        proxy: None,
        mesh_tls: None,
    }
}

pub(crate) fn config(undo_bytes_max: u64) -> Config {
    let undo = Undo { bytes_max: undo_bytes_max, age_max: 1_000 };
    Config {
        cache_bytes: 4 << 20,
        hot_bytes: 1 << 20,
        join,
        join_version: 1,
        undo,
        fsync: Fsync::Commit,
        disk_quota_bytes: None,
        admission: Admission::default(),
    }
}

pub(crate) const NOW: Time = Time(0);

pub(crate) fn workload_key(target: &Target) -> Key {
    match target {
        Target::Pod(name) => key(Kind::Pod, name.name()),
        Target::ExternalWorkload(name) => key(Kind::ExternalWorkload, name.name()),
        Target::Bare => unreachable!("a bare address stands for nothing"),
    }
}

pub(crate) fn source(kind: Kind) -> Source {
    Source { cluster: ClusterId::LOCAL, kind }
}

pub(crate) fn key(kind: Kind, name: &str) -> Key {
    Key { source: source(kind), name: ObjectName::new("shop", name).unwrap() }
}

pub(crate) fn put(kind: Kind, name: &str, version: u64, object: Object) -> Change {
    Change::Put { key: key(kind, name), version: ResourceVersion(version.to_string()), object }
}

/// A small generator of numbers: the same seed, the same history.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub(crate) fn ip(v6: bool, n: u64) -> IpAddr {
    let text = if v6 { format!("fd00::{n}") } else { format!("10.0.0.{n}") };
    text.parse().unwrap()
}

/// A pod of a ServiceAccount.
pub(crate) fn pod(service_account: &str) -> Object {
    Object::Workload(Workload {
        template: Template {
            kind: WorkloadKind::Pod,
            namespace: "shop".to_owned(),
            labels: BTreeMap::new(),
            owner: None,
            name_prefix: String::new(),
            service_account: service_account.to_owned(),
            ports: Vec::new(),
            opaque: None,
            skip_inbound: PortSet::default(),
            proxy: None,
            mesh_tls: None,
        },
        node: None,
        phase: Phase::Running,
        deleting: false,
        host_network: false,
        ips: Vec::new(),
        host_ips: Vec::new(),
    })
}

pub(crate) fn random_object(random: &mut Random, kind: Kind) -> Object {
    match kind {
        Kind::Service => {
            let ips = 0..random.below(3);
            Object::Service(Service {
                local_traffic: random.chance(50),
                cluster_ips: ips.map(|_| random_owned_ip(random)).collect(),
                ..Service::default()
            })
        }
        Kind::ServiceProfile => Object::Profile(random.chance(70).then(ServiceProfile::default)),
        Kind::Pod | Kind::ExternalWorkload => {
            let Object::Workload(mut workload) = pod(&format!("sa-{}", random.below(2))) else {
                unreachable!("a pod is a workload")
            };
            workload.template.owner = random.chance(60).then(|| OwnerRef {
                kind: "ReplicaSet".to_owned(),
                name: format!("rs-{}", random.below(2)),
            });
            let prefix = ["", "pod-", "other-"][random.below(3) as usize];
            prefix.clone_into(&mut workload.template.name_prefix);
            workload.node = Some(format!("node-{}", random.below(2)));
            if kind == Kind::ExternalWorkload {
                workload.template.kind = WorkloadKind::External;
            }
            let port =
                |port: u16, host_port| ContainerPort { name: String::new(), port, host_port };
            let ports = (0..random.below(3) as u16)
                .map(|n| port(80 + n, random.chance(50).then_some(90 + n)));
            workload.template.ports = ports.collect();
            workload.ips = (0..random.below(3)).map(|_| random_owned_ip(random)).collect();
            workload.host_ips = (0..random.below(3)).map(|_| random_owned_ip(random)).collect();
            workload.host_network = random.chance(20);
            workload.deleting = random.chance(20);
            let phases = [Phase::Running, Phase::Running, Phase::Pending, Phase::Finished];
            workload.phase = phases[random.below(4) as usize];
            Object::Workload(workload)
        }
        Kind::ReplicaSet => Object::Owned {
            owner: Some(OwnerRef {
                kind: "Deployment".to_owned(),
                name: format!("d-{}", random.below(2)),
            }),
        },
        Kind::Server => Object::Server(Server {
            opaque: true,
            pods: None,
            workloads: None,
            port: ServerPort::Number(80 + random.below(3) as u16),
        }),
        Kind::Endpoints => {
            Object::Subsets((0..random.below(4)).map(|_| random_slice(random)).collect())
        }
        _ => Object::Slice(random_slice(random)),
    }
}

/// One of a few, so that it is often somebody's already.
pub(crate) fn random_owned_ip(random: &mut Random) -> IpAddr {
    let IpAddr::V4(v4) = ip(false, random.below(4)) else { unreachable!("it is IPv4") };
    if random.chance(20) { IpAddr::V6(v4.to_ipv6_mapped()) } else { v4.into() }
}

fn random_slice(random: &mut Random) -> Slice {
    let v6 = random.chance(30);
    let mut endpoints: BTreeMap<_, SliceEndpoint> = BTreeMap::new();
    for _ in 0..random.below(6) {
        let target = match random.below(5) {
            0 => Target::Bare,
            1 => {
                let name = format!("vm-{}", random.below(3));
                Target::ExternalWorkload(key(Kind::ExternalWorkload, &name).name)
            }
            _ => Target::Pod(key(Kind::Pod, &format!("pod-{}", random.below(5))).name),
        };
        let endpoint = SliceEndpoint {
            ip: ip(v6, random.below(6)),
            ready: random.chance(75),
            target: target.clone(),
            hostname: random.chance(30).then(|| format!("h-{}", random.below(2))),
            zone: random.chance(60).then(|| format!("z{}", random.below(3))),
            hints: if random.chance(40) { vec!["z1".to_owned()] } else { Vec::new() },
        };
        let ip = (target == Target::Bare).then_some(endpoint.ip);
        endpoints.entry((target, ip)).or_insert(endpoint);
    }
    Slice {
        service: random
            .chance(90)
            .then(|| key(Kind::Service, &format!("svc-{}", random.below(2))).name),
        family: if v6 { Family::V6 } else { Family::V4 },
        meta: SliceMeta {
            ports: Some(vec![SlicePort {
                name: String::new(),
                port: Some(8000 + random.below(2) as u16),
            }]),
            ..SliceMeta::default()
        },
        endpoints: endpoints.into_values().collect(),
    }
}
