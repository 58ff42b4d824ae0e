//! The real program, killed at any moment: the folder of manifests that it serves, and what it left
//! behind.

mod remains;
mod world;

pub use remains::{Remains, copy_data};
pub use world::{Random, World};
