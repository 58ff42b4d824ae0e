//! The engine: what is known of the clusters, on disk, at one revision after the other.
//!
//! [`open`] gives the only [`Writer`] and a [`Reader`] that can be cloned. A reader takes [`Snapshot`]s; a
//! snapshot sees one revision, and through the undo log the ones before it.
//!
//! *Invariant:* redb and bincode are named in this crate only. It has no tokio, spawns nothing, and never
//! asks what time it is.

mod birth;
mod disk;
mod error;
mod key;
mod record;
mod schema;
mod stats;
mod table;
mod wake;

mod addresses;
mod admission;
mod apply;
mod bulk;
mod compact;
mod dirty;
mod intern;
mod join;
mod linked;
mod listing;
mod reopen;
mod rows;
mod slices;
mod template;
mod trim;
mod undo;
mod workload;
mod write;

mod backup;
mod check;
mod digest;
mod hot;
mod mentions;
mod owner;
mod read;
mod service;

#[doc(hidden)]
pub mod fuzz;

pub use admission::{Admission, ClusterSize, Held, HeldBack, Limit, Surge};
pub use backup::{Backup, restore, restore_on};
pub use birth::{Birth, Config, Fsync, Undo, open, open_on};
pub use check::Fault;
pub use disk::{Disk, DiskHealth, Folder, Volume};
pub use error::Error;
pub use mentions::Mention;
pub use owner::{Backing, Claimants, Instance, Owned};
pub use read::{Lost, Reader, Snapshot};
pub use service::{Presence, Scope, ServiceRows};
pub use stats::{Stats, TableStats};
pub use wake::WakeKey;
pub use write::{Commit, Writer};

#[cfg(test)]
mod tests;
