//! The vocabulary: plain values that the other crates exchange, in reading order.
//!
//! *Invariant:* nothing here does I/O, asks the time, or knows a wire format.

mod name;
mod port;
mod selector;

mod link;
mod owner;
mod profile;
mod server;
mod service;
mod slice;
mod workload;

mod claim;

mod change;
pub mod limits;

/// A text that many values share.
pub type Text = std::sync::Arc<str>;

pub use change::{
    Change, EndpointsFrom, Key, Kind, Object, ResourceVersion, Revision, Source, Time,
};
pub use claim::{Claim, Class, Peer, Signature, SignatureItem};
pub use link::{Credentials, Link, Origin, Part, Remote, StoredPart};
pub use name::{ClusterId, NameError, ObjectName, ServiceName};
pub use owner::OwnerRef;
pub use port::{PortSet, PortSetError};
pub use profile::{
    DstOverride, Ratio, RequestMatch, ResponseClass, ResponseMatch, RetryBudget, Route,
    ServiceProfile,
};
pub use selector::{Operator, Requirement, Selector};
pub use server::{Server, ServerPort};
pub use service::{Discovery, Flow, PortKey, Service, ServicePort};
pub use slice::{Family, Slice, SliceEndpoint, SliceMeta, SlicePort, Target};
pub use workload::{
    ContainerPort, Join, MeshTls, Metadata, Phase, ProxyPorts, Template, Workload, WorkloadKind,
};
