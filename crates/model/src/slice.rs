//! An EndpointSlice, reduced to what an answer may depend on (spec §4.3).

use std::net::IpAddr;

use crate::{ObjectName, PortKey};

/// An EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The Service that it belongs to, in its own namespace: label `kubernetes.io/service-name`, else the
    /// first owner of kind Service. `None` serves nobody.
    pub service: Option<ObjectName>,
    /// Its `addressType`.
    pub family: Family,
    /// What all its endpoints share.
    pub meta: SliceMeta,
    /// One for each address that a client could be given. Not ready ones are kept: they may become ready.
    pub endpoints: Vec<SliceEndpoint>,
}

/// The family of a slice's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `IPv4`, and slices that don't say.
    V4,
    /// `IPv6`.
    V6,
}

/// What the endpoints of a slice share; interned, since the slices of a Service are mostly alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceMeta {
    /// `ports`; `None` if there are none at all, and then the slice contributes nothing.
    pub ports: Option<Vec<SlicePort>>,
    /// Label `mirror.linkerd.io/cluster-name`.
    pub mirror_cluster: Option<String>,
    /// Annotation `mirror.linkerd.io/remote-svc-fq-name`.
    pub remote_service: Option<String>,
    /// Annotation `mirror.linkerd.io/remote-gateway-identity`, if not empty.
    pub gateway_identity: Option<String>,
}

impl SliceMeta {
    /// The port of this slice's endpoints under a key, if it has one (spec §2.3).
    pub fn port(&self, key: &PortKey) -> Option<u16> {
        let ports = self.ports.as_ref()?;
        match key {
            PortKey::Numeric(number) => Some(*number),
            PortKey::Named(name) => ports.iter().find(|port| port.name == *name)?.port,
        }
    }
}

/// One port of a slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlicePort {
    /// The Service port's name; empty if it has none.
    pub name: String,
    /// The port on the endpoint. `None` matches nothing (Q38).
    pub port: Option<u16>,
}

/// One address of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceEndpoint {
    /// The address.
    pub ip: IpAddr,
    /// `conditions.ready`, true if absent.
    pub ready: bool,
    /// `targetRef`. Endpoints with a target of another kind are not kept at all.
    pub target: Target,
    /// `hostname`, if not empty.
    pub hostname: Option<String>,
    /// `zone`; an empty one is a zone (that nobody is in).
    pub zone: Option<String>,
    /// `hints.forZones[].name`, sorted. Empty means that it has no hints.
    pub hints: Vec<String>,
}

/// What an endpoint stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Nothing: the address is all that is known.
    Bare,
    /// A Pod.
    Pod(ObjectName),
    /// An ExternalWorkload, always of the slice's own namespace.
    ExternalWorkload(ObjectName),
}
