//! What the store gives for a question: the claims on an address, and what a Service's claims amount to.

use std::net::IpAddr;
use std::sync::Arc;

use crate::{Metadata, SliceMeta, Text};

/// A slice says that a Service has an endpoint at an address: ready, with its target known. The row that a
/// client sees, before the client's own view of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The address.
    pub ip: IpAddr,
    /// Bare, pod or workload, with the family.
    pub class: Class,
    /// Its name; empty for a bare address.
    pub name: String,
    /// What it shows to clients; `None` for a bare address.
    pub workload: Option<Arc<Metadata>>,
    /// The node of the pod.
    pub node: Option<Text>,
    /// What its slice says for all its endpoints.
    pub slice: Arc<SliceMeta>,
    /// The endpoint's hostname.
    pub hostname: Option<String>,
    /// The endpoint's zone.
    pub zone: Option<Text>,
    /// The zones that the endpoint is for; empty: no hints.
    pub hints: Vec<Text>,
    /// Its place among the claims that compete with it, 0 first: those of the same pod or workload in this
    /// Service, or for a bare address those on the same address. Higher resourceVersion of the slice first,
    /// then lower name.
    pub rank: u16,
    /// All claims of the same pod or workload in this Service, in order of rank, this one among them; empty
    /// if it is the only one, and always for a bare address.
    pub peers: Vec<Peer>,
}

/// Another claim of the same pod or workload, with what the choice among them may depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub ip: IpAddr,
    /// Its class; only the family differs among peers.
    pub class: Class,
    /// Its slice.
    pub slice: Arc<SliceMeta>,
    /// Its hostname.
    pub hostname: Option<String>,
    /// Its hints.
    pub hints: Vec<Text>,
}

/// What a claim's target is, and in which family its slice has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// No target.
    Bare,
    /// A pod in an IPv4 slice.
    PodV4,
    /// A pod in an IPv6 slice.
    PodV6,
    /// An ExternalWorkload in an IPv4 slice.
    ExternalV4,
    /// An ExternalWorkload in an IPv6 slice.
    ExternalV6,
}

/// The claims of one target, reduced to what a view's mode and set labels may depend on, in order of rank.
/// The store counts equal signatures of a Service, so that one un-hinted endpoint among 50,000 is noticed
/// without looking at the others (spec §2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(pub Vec<SignatureItem>);

/// One claim of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureItem {
    /// The claim's class.
    pub class: Class,
    /// Its slice.
    pub slice: Arc<SliceMeta>,
    /// Its hints.
    pub hints: Vec<Text>,
}
