//! What a client holds, in a form that can be compared with what was written down: set labels are merged
//! under each address's own, as a proxy does (its address wins).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

mod profile;

use anyhow::{Context as _, Result, bail};
use linkerd2_proxy_api::destination::{
    self as pb, protocol_hint::Protocol, tls_identity::Strategy,
};
use linkerd2_proxy_api::net;
use serde_json::{Map, Value, json};

/// The addresses that a client holds, each with its metadata.
pub type Shown = BTreeMap<SocketAddr, Value>;

/// What one message said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// These addresses are in the view, as described.
    Add(Shown),
    /// These are not, any more.
    Remove(Vec<SocketAddr>),
    /// None are.
    NoEndpoints,
    /// The profile is this.
    Profile(Value),
}

/// Stands for the profile among what a client holds.
pub const PROFILE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl Said {
    /// Reads a message. Fails on what a proxy would drop or refuse.
    pub fn read(update: &pb::Update) -> Result<Said> {
        match update.update.as_ref().context("a message without content")? {
            pb::update::Update::Add(set) => {
                let labels = set.metric_labels.iter().collect();
                let addrs = set.addrs.iter().map(|addr| address(addr, &labels));
                let addrs: Vec<_> = addrs.collect::<Result<_>>()?;
                if addrs.is_empty() {
                    bail!("an Add without addresses");
                }
                let shown: Shown = addrs.iter().cloned().collect();
                if shown.len() != addrs.len() {
                    bail!("an Add that names an address twice");
                }
                Ok(Said::Add(shown))
            }
            pb::update::Update::Remove(set) => {
                let addrs: Vec<_> = set.addrs.iter().map(socket).collect::<Result<_>>()?;
                if addrs.is_empty() {
                    bail!("a Remove without addresses");
                }
                Ok(Said::Remove(addrs))
            }
            pb::update::Update::NoEndpoints(none) if none.exists => Ok(Said::NoEndpoints),
            pb::update::Update::NoEndpoints(_) => bail!("no_endpoints without exists"),
        }
    }

    /// Reads a profile.
    pub fn profile(profile: &pb::DestinationProfile) -> Result<Said> {
        Ok(Said::Profile(profile::shown(profile)?))
    }

    /// What a client holds after this message.
    pub fn apply(&self, held: &mut Shown) {
        match self {
            Said::Add(addrs) => held.extend(addrs.clone()),
            Said::Remove(addrs) => held.retain(|addr, _| !addrs.contains(addr)),
            Said::NoEndpoints => held.clear(),
            Said::Profile(profile) => *held = [(PROFILE, profile.clone())].into(),
        }
    }
}

/// Reads the `state` of a golden case.
pub fn written(state: &Value) -> Result<Shown> {
    let none = Map::new();
    let empty = Value::Object(Map::new());
    let set_labels = state.get("set_labels").and_then(Value::as_object).unwrap_or(&none);
    let addrs = state.get("addrs").unwrap_or(&empty).as_object().context("addrs is not a map")?;
    addrs
        .iter()
        .map(|(addr, said)| {
            let mut said = said.as_object().context("an address is not a map")?.clone();
            let mut labels = set_labels.clone();
            // Federated cases keep set labels per address.
            for part in ["set_labels", "labels"] {
                if let Some(Value::Object(own)) = said.remove(part) {
                    labels.extend(own);
                }
            }
            said.insert("labels".to_owned(), Value::Object(labels));
            let addr = addr.parse().with_context(|| format!("{addr} is not an address"))?;
            Ok((addr, Value::Object(said)))
        })
        .collect()
}

/// Reads the `state` of a profile.
pub fn written_profile(state: &Value) -> Shown {
    let mut state = state.clone();
    if let Some(fields) = state.as_object_mut() {
        // The original's says little, and not how ours does (Q23).
        fields.remove("profile_ref");
    }
    [(PROFILE, state)].into()
}

/// Where two holdings differ, a line for each address; empty if they are equal.
pub fn differences(expected: &Shown, found: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    for (addr, value) in expected {
        match found.get(addr) {
            None => lines.push(format!("{addr} is missing: {value}")),
            Some(other) if other != value => {
                lines.push(format!("{addr} differs:\n  expected {value}\n  found    {other}"));
            }
            Some(_) => {}
        }
    }
    let surplus = found.iter().filter(|(addr, _)| !expected.contains_key(addr));
    lines.extend(surplus.map(|(addr, value)| format!("{addr} should not be there: {value}")));
    lines
}

fn address(
    addr: &pb::WeightedAddr,
    set_labels: &BTreeMap<&String, &String>,
) -> Result<(SocketAddr, Value)> {
    let key = socket(addr.addr.as_ref().context("an address without address")?)?;
    let mut labels = set_labels.clone();
    labels.extend(&addr.metric_labels);
    let mut said = Map::new();
    said.insert("weight".to_owned(), json!(addr.weight));
    said.insert("labels".to_owned(), json!(labels));
    let parts = [
        ("tls_identity", addr.tls_identity.as_ref().map(identity)),
        ("protocol_hint", addr.protocol_hint.as_ref().map(hint)),
        (
            "authority_override",
            addr.authority_override.as_ref().map(|o| json!(o.authority_override)),
        ),
        ("http2", addr.http2.as_ref().map(http2)),
        ("resource_ref", addr.resource_ref.as_ref().map(|r| json!(format!("{r:?}")))),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            said.insert(name.to_owned(), value);
        }
    }
    Ok((key, Value::Object(said)))
}

fn socket(addr: &net::TcpAddress) -> Result<SocketAddr> {
    let ip = addr.ip.as_ref().and_then(|ip| ip.ip.as_ref()).context("an address without IP")?;
    let ip = match ip {
        net::ip_address::Ip::Ipv4(bits) => IpAddr::V4(Ipv4Addr::from_bits(*bits)),
        net::ip_address::Ip::Ipv6(ip) => {
            IpAddr::V6(Ipv6Addr::from_bits(u128::from(ip.first) << 64 | u128::from(ip.last)))
        }
    };
    let port = u16::try_from(addr.port).with_context(|| format!("port {}", addr.port))?;
    Ok(SocketAddr::new(ip, port))
}

fn identity(tls: &pb::TlsIdentity) -> Value {
    let mut said = Map::new();
    match &tls.strategy {
        Some(Strategy::DnsLikeIdentity(dns)) => {
            said.insert("dns_like_identity".to_owned(), field("name", &dns.name));
        }
        Some(Strategy::UriLikeIdentity(uri)) => {
            said.insert("uri_like_identity".to_owned(), field("uri", &uri.uri));
        }
        None => {}
    }
    if let Some(name) = &tls.server_name {
        said.insert("server_name".to_owned(), field("name", &name.name));
    }
    Value::Object(said)
}

/// A message with one field, which is left out if it is empty.
fn field(name: &str, text: &str) -> Value {
    if text.is_empty() { json!({}) } else { json!({name: text}) }
}

fn hint(hint: &pb::ProtocolHint) -> Value {
    let mut said = Map::new();
    match hint.protocol {
        Some(Protocol::H2(_)) => said.insert("h2".to_owned(), json!({})),
        Some(Protocol::Opaque(_)) => said.insert("opaque".to_owned(), json!({})),
        None => None,
    };
    if let Some(transport) = &hint.opaque_transport {
        said.insert("opaque_transport".to_owned(), json!({"inbound_port": transport.inbound_port}));
    }
    Value::Object(said)
}

/// As the cases have it: proto3's JSON with the names of the fields, so without zeros.
fn http2(params: &pb::Http2ClientParams) -> Value {
    let mut said = Map::new();
    if let Some(flow) = &params.flow_control {
        let fields = [
            ("initial_connection_window_size", json!(flow.initial_connection_window_size)),
            ("initial_stream_window_size", json!(flow.initial_stream_window_size)),
            ("adaptive_flow_control", json!(flow.adaptive_flow_control)),
        ];
        said.insert("flow_control".to_owned(), message(fields));
    }
    if let Some(alive) = &params.keep_alive {
        let fields = [
            ("interval", json!(alive.interval.as_ref().map(duration))),
            ("timeout", json!(alive.timeout.as_ref().map(duration))),
            ("while_idle", json!(alive.while_idle)),
        ];
        said.insert("keep_alive".to_owned(), message(fields));
    }
    if let Some(internals) = &params.internals {
        let fields = [
            ("max_concurrent_reset_streams", json!(internals.max_concurrent_reset_streams)),
            ("max_frame_size", json!(internals.max_frame_size)),
            ("max_send_buf_size", json!(internals.max_send_buf_size)),
        ];
        said.insert("internals".to_owned(), message(fields));
    }
    Value::Object(said)
}

/// The fields that are there: a message that is there and empty is, a zero or an empty list isn't.
fn message<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let zeros = [Value::Null, json!(0), json!(false), json!(""), json!([])];
    let kept = fields.into_iter().filter(|(_, value)| !zeros.contains(value));
    Value::Object(kept.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn duration(duration: &prost_types::Duration) -> String {
    match duration.nanos / 1_000_000 {
        0 => format!("{}s", duration.seconds),
        millis => format!("{}.{millis:03}s", duration.seconds),
    }
}
