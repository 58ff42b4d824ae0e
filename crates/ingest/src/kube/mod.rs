//! Kubernetes as a source: one watch per kind, which can go on from the version that was committed last.
//!
//! Why not kube's own watcher: it can't begin at a given version, and it decodes a whole page into objects. Here
//! each object is decoded alone, from its own text, into the few fields that are kept; one that can't be read
//! costs nothing but itself.
//!
//! *Invariant:* [`watch`] hands on nothing that isn't true: a listing is ended only if all of it was heard, a
//! checkpoint only covers what was handed on before it, and what can't be gone on from is listed again.

mod backoff;
mod connect;
mod driver;
mod event;
mod failure;
mod head;
mod limits;
mod lines;
mod noted;
mod resource;
mod session;
mod status;
mod transport;
mod turns;

#[cfg(test)]
mod tests;

pub use ::kube::Client;
pub use backoff::Backoff;
pub use connect::{
    ConnectError, check_credentials, cluster_uid, connect, connect_linked, linked_uid,
};
pub use driver::{Watch, watch};
pub use status::{SourceStatus, State, Status};
pub(crate) use turns::Place;
pub use turns::Turns;
