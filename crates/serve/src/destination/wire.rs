//! Values → Linkerd's messages: total, without decisions. The only place that knows how a message looks.

use std::net::IpAddr;

use linkerd2_proxy_api::destination as pb;
use linkerd2_proxy_api::destination::http2_client_params as params;
use linkerd2_proxy_api::net::TcpAddress;
use prost::Message as _;
use resolve::{Address, Hint, Identity, Labels, Protocol};
use serde::Deserialize;

pub use pb::Http2ClientParams;

/// One message of a Get stream.
pub(crate) type Update = pb::Update;

/// What the envelope around a set of addresses takes at most: a tag and a length of up to 4 bytes, twice.
const ENVELOPE_BYTES_MAX: usize = 10;

/// The three kinds of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    /// New and changed addresses.
    Add,
    /// Addresses that left.
    Remove,
    /// There are none.
    NoEndpoints,
}

impl UpdateKind {
    pub(crate) const ALL: [UpdateKind; 3] =
        [UpdateKind::Add, UpdateKind::Remove, UpdateKind::NoEndpoints];

    pub(crate) fn name(self) -> &'static str {
        match self {
            UpdateKind::Add => "add",
            UpdateKind::Remove => "remove",
            UpdateKind::NoEndpoints => "no_endpoints",
        }
    }
}

/// The kind of a message; `None` for an empty one, which is never sent.
pub(crate) fn kind(update: &Update) -> Option<UpdateKind> {
    Some(match update.update.as_ref()? {
        pb::update::Update::Add(_) => UpdateKind::Add,
        pb::update::Update::Remove(_) => UpdateKind::Remove,
        pb::update::Update::NoEndpoints(_) => UpdateKind::NoEndpoints,
    })
}

/// The Service exists and has no address for this client.
pub(crate) fn no_endpoints() -> Update {
    update(pb::update::Update::NoEndpoints(pb::NoEndpoints { exists: true }))
}

/// An `add` that is filled until its encoding would be larger than a limit.
pub(crate) struct Adds {
    set: pb::WeightedAddrSet,
    bytes: usize,
    bytes_max: usize,
}

impl Adds {
    /// Has no address yet; `labels` are those of the set.
    pub(crate) fn new(labels: &Labels, bytes_max: usize) -> Adds {
        let set = pb::WeightedAddrSet { addrs: Vec::new(), metric_labels: copied(labels) };
        Adds { bytes: ENVELOPE_BYTES_MAX + set.encoded_len(), set, bytes_max }
    }

    /// Takes all of the addresses, or none and says `false`: then the message is full. The first ones are taken
    /// whatever their size, so that there is always something to send.
    pub(crate) fn push(
        &mut self,
        addresses: Vec<Address>,
        http2: Option<Http2ClientParams>,
    ) -> bool {
        let addresses = addresses.into_iter().map(|address| weighted(address, http2));
        let addresses: Vec<pb::WeightedAddr> = addresses.collect();
        let more: usize =
            addresses.iter().map(|one| prost::encoding::message::encoded_len(1, one)).sum();
        if !self.set.addrs.is_empty() && self.bytes + more > self.bytes_max {
            return false;
        }
        self.bytes += more;
        self.set.addrs.extend(addresses);
        true
    }

    /// The message; `None` if it has no address.
    pub(crate) fn finish(self) -> Option<Update> {
        (!self.set.addrs.is_empty()).then(|| update(pb::update::Update::Add(self.set)))
    }
}

/// A `remove` that is filled until its encoding would be larger than a limit.
pub(crate) struct Removes {
    set: pb::AddrSet,
    bytes: usize,
    bytes_max: usize,
}

impl Removes {
    /// Has no address yet.
    pub(crate) fn new(bytes_max: usize) -> Removes {
        Removes { set: pb::AddrSet::default(), bytes: ENVELOPE_BYTES_MAX, bytes_max }
    }

    /// Is there room for these ports of an ip? The first ones always find some.
    pub(crate) fn fits(&self, ip: IpAddr, ports: &[u16]) -> bool {
        let more: usize = ports.iter().map(|port| remove_bytes(&tcp(ip, *port))).sum();
        self.set.addrs.is_empty() || self.bytes + more <= self.bytes_max
    }

    /// Takes these ports of an ip.
    pub(crate) fn push(&mut self, ip: IpAddr, ports: &[u16]) {
        for port in ports {
            let address = tcp(ip, *port);
            self.bytes += remove_bytes(&address);
            self.set.addrs.push(address);
        }
    }

    /// The message; `None` if it has no address.
    pub(crate) fn finish(self) -> Option<Update> {
        (!self.set.addrs.is_empty()).then(|| update(pb::update::Update::Remove(self.set)))
    }
}

fn remove_bytes(address: &TcpAddress) -> usize {
    prost::encoding::message::encoded_len(1, address)
}

fn update(update: pb::update::Update) -> Update {
    Update { update: Some(update) }
}

fn weighted(address: Address, http2: Option<Http2ClientParams>) -> pb::WeightedAddr {
    pb::WeightedAddr {
        addr: Some(tcp(address.ip, address.port)),
        weight: address.weight,
        metric_labels: address
            .labels
            .into_iter()
            .map(|(key, value)| (key.into_owned(), value))
            .collect(),
        tls_identity: address.identity.map(identity),
        protocol_hint: address.hint.map(hint),
        authority_override: address
            .authority_override
            .map(|authority_override| pb::AuthorityOverride { authority_override }),
        http2: http2.filter(|_| address.http2),
        resource_ref: None,
    }
}

fn tcp(ip: IpAddr, port: u16) -> TcpAddress {
    TcpAddress { ip: Some(ip.into()), port: port.into() }
}

fn identity(identity: Identity) -> pb::TlsIdentity {
    use pb::tls_identity::{DnsLikeIdentity, Strategy, UriLikeIdentity};
    let (strategy, server_name) = match identity {
        Identity::Dns { name, server_name } => {
            (Strategy::DnsLikeIdentity(DnsLikeIdentity { name }), server_name)
        }
        Identity::Uri { uri, server_name } => {
            (Strategy::UriLikeIdentity(UriLikeIdentity { uri }), Some(server_name))
        }
    };
    let server_name = server_name.map(|name| DnsLikeIdentity { name });
    pb::TlsIdentity { server_name, strategy: Some(strategy) }
}

fn hint(hint: Hint) -> pb::ProtocolHint {
    use pb::protocol_hint as wire;
    pb::ProtocolHint {
        opaque_transport: hint
            .inbound_port
            .map(|port| wire::OpaqueTransport { inbound_port: port.into() }),
        protocol: match hint.protocol {
            Protocol::Unset => None,
            Protocol::Opaque => Some(wire::Protocol::Opaque(wire::Opaque {})),
            Protocol::H2 => Some(wire::Protocol::H2(wire::H2 {})),
        },
    }
}

/// Linkerd's messages have maps without an order; a proxy sorts what it gets.
fn copied<M: FromIterator<(String, String)>>(labels: &Labels) -> M {
    labels.iter().map(|(key, value)| (key.clone().into_owned(), value.clone())).collect()
}

/// Why parameters for HTTP/2 were refused.
#[derive(Debug, thiserror::Error)]
#[error("these are no parameters for HTTP/2")]
pub struct Http2ParamsError(#[from] serde_json::Error);

/// Reads parameters for HTTP/2 to meshed endpoints: JSON with the message's own field names (spec §2.9.7).
/// Fields that the message doesn't have are ignored, as the original does.
pub fn parse_http2_params(json: &str) -> Result<Http2ClientParams, Http2ParamsError> {
    let read: ParamsJson = serde_json::from_str(json)?;
    Ok(Http2ClientParams {
        flow_control: read.flow_control.map(|flow| params::FlowControl {
            initial_connection_window_size: flow.initial_connection_window_size,
            initial_stream_window_size: flow.initial_stream_window_size,
            adaptive_flow_control: flow.adaptive_flow_control,
        }),
        keep_alive: read.keep_alive.map(|keep| params::KeepAlive {
            interval: keep.interval.map(DurationJson::message),
            timeout: keep.timeout.map(DurationJson::message),
            while_idle: keep.while_idle,
        }),
        internals: read.internals.map(|internals| params::Internals {
            max_concurrent_reset_streams: internals.max_concurrent_reset_streams,
            max_frame_size: internals.max_frame_size,
            max_send_buf_size: internals.max_send_buf_size,
        }),
    })
}

#[derive(Deserialize)]
struct ParamsJson {
    flow_control: Option<FlowControlJson>,
    keep_alive: Option<KeepAliveJson>,
    internals: Option<InternalsJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FlowControlJson {
    initial_connection_window_size: u32,
    initial_stream_window_size: u32,
    adaptive_flow_control: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeepAliveJson {
    interval: Option<DurationJson>,
    timeout: Option<DurationJson>,
    while_idle: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InternalsJson {
    max_concurrent_reset_streams: u32,
    max_frame_size: u32,
    max_send_buf_size: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DurationJson {
    seconds: i64,
    nanos: i32,
}

impl DurationJson {
    fn message(self) -> prost_types::Duration {
        prost_types::Duration { seconds: self.seconds, nanos: self.nanos }
    }
}

#[cfg(test)]
pub(crate) mod tests;
