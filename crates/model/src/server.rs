//! A Server of `policy.linkerd.io`, reduced to what makes a port opaque (spec §2.7).

use crate::Selector;

/// A Server. It can make a port opaque, and nothing else here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `spec.proxyProtocol` is `opaque`.
    pub opaque: bool,
    /// `spec.podSelector`; `None` selects no pod. An invalid selector is `None` as well.
    pub pods: Option<Selector>,
    /// `spec.externalWorkloadSelector`; `None` selects no workload.
    pub workloads: Option<Selector>,
    /// `spec.port`.
    pub port: ServerPort,
}

/// The port of a Server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerPort {
    /// A number.
    Number(u16),
    /// The name of a port of the workload.
    Name(String),
}
