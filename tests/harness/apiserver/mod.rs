//! A real Kubernetes API server over a real etcd, for one test: started, restarted, compacted, cut off, and
//! gone when the test is over, however it ends.

mod build;
mod cut;
mod equal;
mod key;
mod link;
mod load;
mod objects;
mod process;
mod server;

pub use cut::{Cut, Line};
pub use equal::{equal, equal_part};
pub use link::{mirror, secret};
pub use load::{INJECTED_BYTES, Load};
pub use objects::Objects;
pub use server::{ApiServer, User};
