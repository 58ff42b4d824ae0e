//! Between records and the model. The model may change its shape; records may not.

use std::net::IpAddr;

use model::{
    Class, ClusterId, ContainerPort, Credentials, Discovery, Link, MeshTls, Metadata, Operator,
    OwnerRef, Phase, PortSet, ProxyPorts, Requirement, ResourceVersion, Selector, Server,
    ServerPort, Service, ServicePort, SliceMeta, SlicePort, Template, WorkloadKind,
};

use super::v3;

impl From<IpAddr> for v3::Ip {
    fn from(ip: IpAddr) -> v3::Ip {
        match ip {
            IpAddr::V4(ip) => v3::Ip::V4(ip.octets()),
            IpAddr::V6(ip) => v3::Ip::V6(ip.octets()),
        }
    }
}

impl From<v3::Ip> for IpAddr {
    fn from(ip: v3::Ip) -> IpAddr {
        match ip {
            v3::Ip::V4(octets) => octets.into(),
            v3::Ip::V6(octets) => octets.into(),
        }
    }
}

fn ports(set: &PortSet) -> v3::Ports {
    set.ranges().to_vec()
}

fn owner(owner: &OwnerRef) -> v3::Owner {
    v3::Owner { kind: owner.kind.clone(), name: owner.name.clone() }
}

impl From<v3::Owner> for OwnerRef {
    fn from(owner: v3::Owner) -> OwnerRef {
        OwnerRef { kind: owner.kind, name: owner.name }
    }
}

/// The record of an owner that is perhaps there.
pub(crate) fn owned(found: Option<&OwnerRef>) -> v3::Body {
    v3::Body::Owned { owner: found.map(owner) }
}

impl From<&Service> for v3::Service {
    fn from(service: &Service) -> v3::Service {
        let port = |port: &ServicePort| v3::ServicePort {
            name: port.name.clone(),
            port: port.port,
            tcp: port.tcp,
        };
        let Discovery { cluster, service: name, members, local_member } = service.discovery.clone();
        v3::Service {
            ports: service.ports.iter().map(port).collect(),
            external_name: service.external_name,
            local_traffic: service.local_traffic,
            cluster_ips: service.cluster_ips.iter().map(|ip| (*ip).into()).collect(),
            opaque: service.opaque.as_ref().map(ports),
            discovery: [cluster, name, members, local_member],
        }
    }
}

pub(crate) fn discovery(
    [cluster, service, members, local_member]: [Option<String>; 4],
) -> Discovery {
    Discovery { cluster, service, members, local_member }
}

impl From<Link> for v3::Link {
    fn from(link: Link) -> v3::Link {
        let Link { cluster, trust_domain, cluster_domain, .. } = link;
        v3::Link { cluster, trust_domain, cluster_domain }
    }
}

impl From<v3::Link> for Link {
    fn from(record: v3::Link) -> Link {
        let v3::Link { cluster, trust_domain, cluster_domain } = record;
        Link { cluster, trust_domain, cluster_domain, credentials: Credentials::default() }
    }
}

impl From<v3::Service> for Service {
    fn from(record: v3::Service) -> Service {
        let port =
            |port: v3::ServicePort| ServicePort { name: port.name, port: port.port, tcp: port.tcp };
        Service {
            ports: record.ports.into_iter().map(port).collect(),
            external_name: record.external_name,
            local_traffic: record.local_traffic,
            cluster_ips: record.cluster_ips.into_iter().map(IpAddr::from).collect(),
            opaque: record.opaque.map(PortSet::from_ranges),
            discovery: discovery(record.discovery),
        }
    }
}

const OPERATORS: [Operator; 4] =
    [Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist];

fn selector(selector: &Selector) -> v3::Selector {
    let requirement = |requirement: &Requirement| {
        let operator = OPERATORS.iter().position(|known| *known == requirement.operator);
        (requirement.key.clone(), operator.unwrap_or(0) as u8, requirement.values.clone())
    };
    selector.requirements.iter().map(requirement).collect()
}

fn unselector(record: v3::Selector) -> Selector {
    let requirement = |(key, operator, values)| {
        let operator = OPERATORS[usize::from(operator) % OPERATORS.len()];
        Requirement { key, operator, values }
    };
    Selector { requirements: record.into_iter().map(requirement).collect() }
}

impl From<&Server> for v3::Server {
    fn from(server: &Server) -> v3::Server {
        v3::Server {
            opaque: server.opaque,
            pods: server.pods.as_ref().map(selector),
            workloads: server.workloads.as_ref().map(selector),
            port: match &server.port {
                ServerPort::Number(number) => v3::ServerPort::Number(*number),
                ServerPort::Name(name) => v3::ServerPort::Name(name.clone()),
            },
        }
    }
}

impl From<v3::Server> for Server {
    fn from(record: v3::Server) -> Server {
        Server {
            opaque: record.opaque,
            pods: record.pods.map(unselector),
            workloads: record.workloads.map(unselector),
            port: match record.port {
                v3::ServerPort::Number(number) => ServerPort::Number(number),
                v3::ServerPort::Name(name) => ServerPort::Name(name),
            },
        }
    }
}

/// The record of a phase.
pub(crate) fn phase(phase: Phase) -> u8 {
    match phase {
        Phase::Pending => v3::Workload::PENDING,
        Phase::Running => v3::Workload::RUNNING,
        Phase::Finished => v3::Workload::FINISHED,
    }
}

/// The phase of a record's number.
pub(crate) fn phase_of(number: u8) -> Phase {
    match number {
        v3::Workload::RUNNING => Phase::Running,
        v3::Workload::FINISHED => Phase::Finished,
        _ => Phase::Pending,
    }
}

fn proxy(ports: &ProxyPorts) -> [Option<u16>; 3] {
    [ports.inbound, ports.admin, ports.control]
}

fn unproxy([inbound, admin, control]: [Option<u16>; 3]) -> ProxyPorts {
    ProxyPorts { inbound, admin, control }
}

fn tls(tls: &MeshTls) -> (String, String) {
    (tls.identity.clone(), tls.server_name.clone())
}

fn untls((identity, server_name): (String, String)) -> MeshTls {
    MeshTls { identity, server_name }
}

fn kind(external: bool) -> WorkloadKind {
    if external { WorkloadKind::External } else { WorkloadKind::Pod }
}

/// The record of a cluster's template.
pub(crate) fn template(cluster: ClusterId, template: &Template) -> v3::Template {
    let port = |port: &ContainerPort| (port.name.clone(), port.port, port.host_port);
    v3::Template {
        cluster: cluster.0,
        external: template.kind == WorkloadKind::External,
        namespace: template.namespace.clone(),
        labels: template.labels.clone().into_iter().collect(),
        owner: template.owner.as_ref().map(owner),
        name_prefix: template.name_prefix.clone(),
        service_account: template.service_account.clone(),
        ports: template.ports.iter().map(port).collect(),
        opaque: template.opaque.as_ref().map(ports),
        skip_inbound: ports(&template.skip_inbound),
        proxy: template.proxy.as_ref().map(proxy),
        mesh_tls: template.mesh_tls.as_ref().map(tls),
    }
}

impl From<v3::Template> for Template {
    fn from(record: v3::Template) -> Template {
        let port = |(name, port, host_port)| ContainerPort { name, port, host_port };
        Template {
            kind: kind(record.external),
            namespace: record.namespace,
            labels: record.labels.into_iter().collect(),
            owner: record.owner.map(OwnerRef::from),
            name_prefix: record.name_prefix,
            service_account: record.service_account,
            ports: record.ports.into_iter().map(port).collect(),
            opaque: record.opaque.map(PortSet::from_ranges),
            skip_inbound: PortSet::from_ranges(record.skip_inbound),
            proxy: record.proxy.map(unproxy),
            mesh_tls: record.mesh_tls.map(untls),
        }
    }
}

impl From<&Metadata> for v3::Metadata {
    fn from(metadata: &Metadata) -> v3::Metadata {
        v3::Metadata {
            external: metadata.kind == WorkloadKind::External,
            namespace: metadata.namespace.clone(),
            control_plane_ns: metadata.control_plane_ns.clone(),
            owner: metadata.owner.as_ref().map(owner),
            service_account: metadata.service_account.clone(),
            pod_template_hash: metadata.pod_template_hash.clone(),
            name_prefix: metadata.name_prefix.clone(),
            opaque: metadata.opaque.as_ref().map(ports),
            opaque_by_server: ports(&metadata.opaque_by_server),
            skip_inbound: ports(&metadata.skip_inbound),
            proxy: metadata.proxy.as_ref().map(proxy),
            mesh_tls: metadata.mesh_tls.as_ref().map(tls),
        }
    }
}

impl From<v3::Metadata> for Metadata {
    fn from(record: v3::Metadata) -> Metadata {
        Metadata {
            kind: kind(record.external),
            namespace: record.namespace,
            control_plane_ns: record.control_plane_ns,
            owner: record.owner.map(OwnerRef::from),
            service_account: record.service_account,
            pod_template_hash: record.pod_template_hash,
            name_prefix: record.name_prefix,
            opaque: record.opaque.map(PortSet::from_ranges),
            opaque_by_server: PortSet::from_ranges(record.opaque_by_server),
            skip_inbound: PortSet::from_ranges(record.skip_inbound),
            proxy: record.proxy.map(unproxy),
            mesh_tls: record.mesh_tls.map(untls),
        }
    }
}

impl From<&SliceMeta> for v3::SliceMeta {
    fn from(meta: &SliceMeta) -> v3::SliceMeta {
        let port = |port: &SlicePort| (port.name.clone(), port.port);
        v3::SliceMeta {
            ports: meta.ports.as_ref().map(|ports| ports.iter().map(port).collect()),
            mirror_cluster: meta.mirror_cluster.clone(),
            remote_service: meta.remote_service.clone(),
            gateway_identity: meta.gateway_identity.clone(),
        }
    }
}

impl From<v3::SliceMeta> for SliceMeta {
    fn from(record: v3::SliceMeta) -> SliceMeta {
        let port = |(name, port)| SlicePort { name, port };
        SliceMeta {
            ports: record.ports.map(|ports| ports.into_iter().map(port).collect()),
            mirror_cluster: record.mirror_cluster,
            remote_service: record.remote_service,
            gateway_identity: record.gateway_identity,
        }
    }
}

impl From<&str> for v3::Version {
    fn from(version: &str) -> v3::Version {
        match version.parse::<u64>() {
            // Other spellings of a number are other versions.
            Ok(number) if number.to_string() == version => v3::Version::Number(number),
            _ => v3::Version::Text(version.to_owned()),
        }
    }
}

impl From<v3::Version> for ResourceVersion {
    fn from(version: v3::Version) -> ResourceVersion {
        ResourceVersion(match version {
            v3::Version::Number(number) => number.to_string(),
            v3::Version::Text(text) => text,
        })
    }
}

/// A workload's name within its row.
pub(crate) fn name(name: &str, prefix: &str) -> v3::Name {
    match name.strip_prefix(prefix) {
        Some(suffix) => v3::Name::Suffix(suffix.to_owned()),
        None => v3::Name::Whole(name.to_owned()),
    }
}

/// The name in a row, whole.
pub(crate) fn unname(name: v3::Name, prefix: &str) -> String {
    match name {
        v3::Name::Whole(name) => name,
        v3::Name::Suffix(suffix) => [prefix, &suffix].concat(),
    }
}

const CLASSES: [Class; 5] =
    [Class::Bare, Class::PodV4, Class::PodV6, Class::ExternalV4, Class::ExternalV6];

/// The class of a record's number.
pub(crate) fn class(number: u8) -> Class {
    CLASSES[usize::from(number) % CLASSES.len()]
}

/// The number of a target (0 bare, 1 pod, 2 external workload) in a family.
pub(crate) fn class_number(target: u8, v6: bool) -> u8 {
    match target {
        0 => 0,
        1 => 1 + u8::from(v6),
        _ => 3 + u8::from(v6),
    }
}
