//! Linkerd's messages → plain values, for clients. Total but for an address that is none.

use std::collections::BTreeMap;

use linkerd2_proxy_api::destination as pb;
use linkerd2_proxy_api::net;

use super::held::{Address, Endpoint};
use crate::client;

/// One message.
#[derive(Debug)]
pub(crate) enum Update {
    /// These are there now; the labels are common to all of them.
    Add { labels: BTreeMap<String, String>, endpoints: Vec<Endpoint> },
    /// These are gone.
    Remove(Vec<Address>),
    /// There are none.
    NoEndpoints { exists: bool },
}

/// A message's meaning; `None` for an empty one, which only shows that the server is alive.
pub(super) fn update(message: pb::Update) -> anyhow::Result<Option<Update>> {
    Ok(match message.update {
        None => None,
        Some(pb::update::Update::Add(set)) => Some(Update::Add {
            labels: set.metric_labels.into_iter().collect(),
            endpoints: set.addrs.into_iter().map(endpoint).collect::<anyhow::Result<_>>()?,
        }),
        Some(pb::update::Update::Remove(set)) => {
            let addresses = set.addrs.into_iter().map(|addr| address(Some(addr)));
            Some(Update::Remove(addresses.collect::<anyhow::Result<_>>()?))
        }
        Some(pb::update::Update::NoEndpoints(none)) => {
            Some(Update::NoEndpoints { exists: none.exists })
        }
    })
}

fn address(addr: Option<net::TcpAddress>) -> anyhow::Result<Address> {
    let addr = client::address(addr)?;
    Ok(Address { ip: addr.ip(), port: addr.port() })
}

fn endpoint(addr: pb::WeightedAddr) -> anyhow::Result<Endpoint> {
    let (identity, server_name) = addr.tls_identity.map(identity).unwrap_or_default();
    let hint = addr.protocol_hint;
    Ok(Endpoint {
        address: address(addr.addr)?,
        weight: addr.weight,
        labels: addr.metric_labels.into_iter().collect(),
        identity,
        server_name,
        hint: hint.as_ref().map(|hint| match hint.protocol {
            None => "none",
            Some(pb::protocol_hint::Protocol::H2(_)) => "h2",
            Some(pb::protocol_hint::Protocol::Opaque(_)) => "opaque",
        }),
        inbound_port: hint.and_then(|hint| hint.opaque_transport).map(|to| to.inbound_port),
        authority_override: addr.authority_override.map(|over| over.authority_override),
        http2: addr.http2.is_some(),
    })
}

fn identity(identity: pb::TlsIdentity) -> (Option<String>, Option<String>) {
    let name = identity.strategy.map(|strategy| match strategy {
        pb::tls_identity::Strategy::DnsLikeIdentity(dns) => dns.name,
        pb::tls_identity::Strategy::UriLikeIdentity(uri) => uri.uri,
    });
    (name, identity.server_name.map(|server_name| server_name.name))
}
