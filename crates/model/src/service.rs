//! A Service, reduced to what an answer may depend on (spec §4.3).

use std::net::IpAddr;

use crate::PortSet;

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// `spec.ports`, in their order: the first that matches decides.
    pub ports: Vec<ServicePort>,
    /// `spec.type` is `ExternalName`.
    pub external_name: bool,
    /// `spec.internalTrafficPolicy` is `Local`.
    pub local_traffic: bool,
    /// `spec.clusterIPs`, without `None`.
    pub cluster_ips: Vec<IpAddr>,
    /// Annotation `config.linkerd.io/opaque-ports`, its names resolved; `None` if it has none.
    pub opaque: Option<PortSet>,
    /// Where its endpoints are, if not (only) in its own cluster.
    pub discovery: Discovery,
}

/// One port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// The port's name; empty if it has none.
    pub name: String,
    /// The port that clients ask for.
    pub port: u16,
    /// Its protocol is TCP, the default.
    pub tcp: bool,
}

/// The labels and annotations that send a request to other clusters (spec §2.10, §2.11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Label `multicluster.linkerd.io/remote-discovery`: the cluster of a mirrored Service.
    pub cluster: Option<String>,
    /// Label `multicluster.linkerd.io/remote-service`: its name there.
    pub service: Option<String>,
    /// Annotation `multicluster.linkerd.io/remote-discovery`: the remote members of a federated Service.
    pub members: Option<String>,
    /// Annotation `multicluster.linkerd.io/local-discovery`: its local member.
    pub local_member: Option<String>,
}

/// What a requested port means for the EndpointSlices of a Service (spec §2.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKey {
    /// The slice port of this name.
    Named(String),
    /// No port of the Service: this number, on every endpoint.
    Numeric(u16),
}
