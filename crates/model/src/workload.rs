//! Pods and ExternalWorkloads: what stands behind an endpoint.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::{OwnerRef, PortSet, Server};

/// Which kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// A Pod.
    Pod,
    /// An ExternalWorkload.
    External,
}

/// A Pod or an ExternalWorkload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// What it shares with its siblings.
    pub template: Template,
    /// `spec.nodeName`.
    pub node: Option<String>,
    /// `status.phase`; an ExternalWorkload is always running.
    pub phase: Phase,
    /// It has a `deletionTimestamp`.
    pub deleting: bool,
    /// `spec.hostNetwork`.
    pub host_network: bool,
    /// `status.podIPs`, or `spec.workloadIPs`.
    pub ips: Vec<IpAddr>,
    /// `status.hostIPs`.
    pub host_ips: Vec<IpAddr>,
}

/// A pod's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Accepted, not running yet; also what is unknown.
    Pending,
    /// Running.
    Running,
    /// Succeeded or Failed: it will never run again.
    Finished,
}

/// What a workload object says that its siblings say as well; interned, so that 50,000 replicas store it once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    /// Pod or ExternalWorkload.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: String,
    /// All labels: any may be named by a Server that comes later.
    pub labels: BTreeMap<String, String>,
    /// The only owner; `None` if there is none, or more than one.
    pub owner: Option<OwnerRef>,
    /// What the names of its workloads begin with: `metadata.generateName`; empty if that isn't known. It is
    /// kept so that a name is stored as what comes after it, and says nothing about any one name.
    pub name_prefix: String,
    /// `spec.serviceAccountName`, `default` if it has none. Empty for an ExternalWorkload.
    pub service_account: String,
    /// Container ports (init containers first), or the ports of an ExternalWorkload.
    pub ports: Vec<ContainerPort>,
    /// Annotation `config.linkerd.io/opaque-ports`, names resolved; `None` if it has none: defaults apply.
    pub opaque: Option<PortSet>,
    /// Annotation `config.linkerd.io/skip-inbound-ports`.
    pub skip_inbound: PortSet,
    /// The ports of its proxy, if it has one.
    pub proxy: Option<ProxyPorts>,
    /// `spec.meshTLS` of an ExternalWorkload.
    pub mesh_tls: Option<MeshTls>,
}

/// A named port of a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContainerPort {
    /// Its name; empty if it has none.
    pub name: String,
    /// `containerPort`.
    pub port: u16,
    /// `hostPort`.
    pub host_port: Option<u16>,
}

/// The ports of a workload's proxy (spec §2.9.3). What is missing or unreadable is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProxyPorts {
    /// Where it takes inbound connections, usually 4143. For an ExternalWorkload the port `linkerd-proxy`.
    pub inbound: Option<u16>,
    /// Its admin port, usually 4191.
    pub admin: Option<u16>,
    /// Its control port, usually 4190.
    pub control: Option<u16>,
}

/// How to speak TLS with an ExternalWorkload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshTls {
    /// `identity`, a SPIFFE URI.
    pub identity: String,
    /// `serverName`.
    pub server_name: String,
}

/// What every address of a template's workloads shows to clients, joined from all objects that it depends
/// on: the template itself, the owner's owner, and the Servers of the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Pod or ExternalWorkload.
    pub kind: WorkloadKind,
    /// The namespace.
    pub namespace: String,
    /// Label `linkerd.io/control-plane-ns`, if not empty: the workload is meshed.
    pub control_plane_ns: Option<String>,
    /// The owner to show, resolved (spec §2.9.2); `None` if the workload stands for itself.
    pub owner: Option<OwnerRef>,
    /// The service account.
    pub service_account: String,
    /// Label `pod-template-hash`, if not empty.
    pub pod_template_hash: Option<String>,
    /// As in the template.
    pub name_prefix: String,
    /// Opaque ports by annotation; `None`: the defaults apply.
    pub opaque: Option<PortSet>,
    /// Ports that some Server makes opaque.
    pub opaque_by_server: PortSet,
    /// Ports that bypass the proxy.
    pub skip_inbound: PortSet,
    /// The proxy's ports.
    pub proxy: Option<ProxyPorts>,
    /// TLS of an ExternalWorkload.
    pub mesh_tls: Option<MeshTls>,
}

/// Joins a template with its owner's owners and the Servers of its namespace. `owner_known` is `None` if the
/// owner's object isn't known, else its only owner, if it has exactly one. The rule is `resolve`'s; the store
/// is given it and applies it whenever one of the three changes.
pub type Join =
    fn(template: &Template, owner_known: Option<Option<&OwnerRef>>, servers: &[Server]) -> Metadata;
