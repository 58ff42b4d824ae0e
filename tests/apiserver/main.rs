//! Our server on a real Kubernetes API server: whatever happens between them, the store ends exactly equal to
//! the API server's objects.

mod rig;

mod far;
mod faults;
mod flood;
mod golden;
mod kinds;
mod linked;
mod links;
mod load;
mod malice;
mod nonsense;
mod program;
mod rights;
mod start;
