//! What a client holds after the messages that it got, by the proxy's rules.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::wire::Update;

/// Where an endpoint is: what a client tells endpoints apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(crate) struct Address {
    /// The address.
    pub(crate) ip: IpAddr,
    /// The port.
    pub(crate) port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        SocketAddr::new(self.ip, self.port).fmt(f)
    }
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    pub(crate) weight: u32,
    /// The set's labels and its own; its own win.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) identity: Option<String>,
    pub(crate) server_name: Option<String>,
    /// `None` without a hint; a hint without a protocol is `none`.
    pub(crate) hint: Option<&'static str>,
    pub(crate) inbound_port: Option<u32>,
    pub(crate) authority_override: Option<String>,
    pub(crate) http2: bool,
}

/// What a client holds.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The server said that there is such a service.
    pub(crate) exists: bool,
    /// The endpoints, in the order of their addresses.
    pub(crate) endpoints: BTreeMap<Address, Endpoint>,
}

/// What a message changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// New endpoints, or ones that differ from before.
    pub(crate) added: Vec<Endpoint>,
    /// Endpoints that are no longer there.
    pub(crate) removed: Vec<Endpoint>,
    /// Set by a message that there are none.
    pub(crate) none: Option<bool>,
}

impl Held {
    /// Applies a message.
    pub(crate) fn apply(&mut self, update: Update) -> Change {
        let mut change = Change::default();
        match update {
            Update::Add { labels, endpoints } => {
                self.exists = true;
                for mut endpoint in endpoints {
                    for (name, value) in &labels {
                        endpoint.labels.entry(name.clone()).or_insert_with(|| value.clone());
                    }
                    let before = self.endpoints.insert(endpoint.address, endpoint.clone());
                    if before.as_ref() != Some(&endpoint) {
                        change.added.push(endpoint);
                    }
                }
            }
            Update::Remove(addresses) => {
                let removed = addresses.iter().filter_map(|at| self.endpoints.remove(at));
                change.removed.extend(removed);
            }
            Update::NoEndpoints { exists } => {
                self.exists = exists;
                change.removed.extend(std::mem::take(&mut self.endpoints).into_values());
                change.none = Some(exists);
            }
        }
        change
    }
}
