//! Linkerd's semantics as pure functions: what is asked, and how claims become the addresses that a client sees.
//!
//! *Invariant:* nothing here does I/O, asks the time, or knows where its claims come from. Equal arguments
//! give equal answers, so an answer can be computed again at any revision.

mod settings;

mod authority;
mod bucket;
mod caller;
mod endpoint;

mod explain;
mod hints;
mod lens;
mod mirror;
mod port;
mod project;
mod render;

mod identity;
mod protocol;

mod join;

pub use authority::{
    Authority, AuthorityError, Dialed, DialedError, authority, dialed, fqn, with_port,
};
pub use bucket::{Bucket, client_number};
pub use caller::{Caller, caller};
pub use endpoint::{Endpoint, endpoint};
pub use explain::Exclusion;
pub use hints::hostname_signatures;
pub use identity::{Identity, ServiceAccount};
pub use join::{JOIN_VERSION, join};
pub use lens::{Lens, View};
pub use port::port_key;
pub use protocol::{Hint, Protocol};
pub use render::{Address, Labels};
pub use settings::Settings;

#[cfg(test)]
mod tests;
