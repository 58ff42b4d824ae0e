//! What sources say, as changes that may be written: Kubernetes, folders of manifests, synthetic clusters.
//!
//! *Invariant:* this crate doesn't know the store. What it must know of the past (where a watch goes on) it is
//! given as values at the start; what it learns it hands on as [`Delivery`]s.

mod delivery;

pub mod batch;
pub mod kube;
pub mod manifests;
pub mod objects;
pub mod synthetic;

pub use delivery::{Delivery, Receipt};
