//! The server, put together: sources, store, hub and listeners, as one thing that can be started and stopped.
//! The program is a thin layer around it; tests and benches start it the same way.
//!
//! *Invariant:* there is one `store::Writer`, and one thread that has it. If it fails or panics, so does the
//! server; the disk is how it comes back.

pub mod memory;
pub mod options;
pub mod server;

pub use memory::Budget;
pub use options::{Options, RemoteScope, SourceOptions};
pub use server::{Running, start};
