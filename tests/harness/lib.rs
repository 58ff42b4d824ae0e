//! What the tests stand on: a client that behaves as a proxy does, the golden cases, a real Kubernetes
//! API server, and disks that fail.

pub mod apiserver;
pub mod cgroup;
pub mod client;
pub mod crash;
pub mod golden;
pub mod http;
pub mod kill;
pub mod program;
pub mod pulse;
pub mod shown;
pub mod small;
