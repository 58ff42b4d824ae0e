//! What the tests stand on: a client that behaves as a proxy does, the golden cases, and a real Kubernetes
//! API server.

pub mod apiserver;
pub mod client;
pub mod crash;
pub mod golden;
pub mod http;
pub mod kill;
pub mod shown;
