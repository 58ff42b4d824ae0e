//! The real program, killed at any moment: the process, the folder of manifests that it serves, and what it left
//! behind.

mod process;
mod remains;
mod world;

pub use process::{Program, Sample, Server, now};
pub use remains::{Remains, copy_data};
pub use world::{Random, World};
