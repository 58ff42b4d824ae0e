//! What a client holds: a profile, as plain values. As JSON they are what proto3 makes of the message, with the names
//! of its fields: what is zero or empty is left out.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// A profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Profile {
    #[serde(skip_serializing_if = "zero")]
    pub(super) fully_qualified_name: String,
    #[serde(skip_serializing_if = "zero")]
    pub(super) opaque_protocol: bool,
    #[serde(skip_serializing_if = "zero")]
    pub(super) routes: Vec<Route>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) retry_budget: Option<RetryBudget>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) dst_overrides: Vec<Override>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) endpoint: Option<Endpoint>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) parent_ref: Option<Reference>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) profile_ref: Option<Reference>,
}

/// Requests that are treated alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Route {
    pub(super) condition: Condition<Request>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) response_classes: Vec<ResponseClass>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) metrics_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) is_retryable: bool,
    #[serde(skip_serializing_if = "zero")]
    pub(super) timeout: Option<String>,
}

/// Responses that are failures, or aren't.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ResponseClass {
    pub(super) condition: Condition<Response>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) is_failure: bool,
}

/// A condition on requests, or on responses.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Condition<C> {
    All(Sequence<C>),
    Any(Sequence<C>),
    Not(Box<Condition<C>>),
    #[serde(untagged)]
    One(C),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Sequence<C> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) matches: Vec<Condition<C>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    Path {
        #[serde(skip_serializing_if = "zero")]
        regex: String,
    },
    Method(Method),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Method {
    Registered(String),
    Unregistered(String),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Response {
    Status {
        #[serde(skip_serializing_if = "zero")]
        min: u32,
        #[serde(skip_serializing_if = "zero")]
        max: u32,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct RetryBudget {
    #[serde(skip_serializing_if = "zero", serialize_with = "float")]
    pub(super) retry_ratio: f32,
    #[serde(skip_serializing_if = "zero")]
    pub(super) min_retries_per_second: u32,
    #[serde(skip_serializing_if = "zero")]
    pub(super) ttl: Option<String>,
}

/// A part of the requests goes there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Override {
    #[serde(skip_serializing_if = "zero")]
    pub(super) authority: String,
    #[serde(skip_serializing_if = "zero")]
    pub(super) weight: u32,
    #[serde(skip_serializing_if = "zero")]
    pub(super) backend_ref: Option<Reference>,
}

/// What a profile is of or from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reference {
    Default(String),
    Resource(Resource),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Resource {
    #[serde(skip_serializing_if = "zero")]
    pub(super) group: String,
    #[serde(skip_serializing_if = "zero")]
    pub(super) kind: String,
    #[serde(skip_serializing_if = "zero")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "zero")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "zero")]
    pub(super) section: String,
    #[serde(skip_serializing_if = "zero")]
    pub(super) port: u32,
}

/// An address that is dialled itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Endpoint {
    #[serde(serialize_with = "address")]
    pub(super) addr: SocketAddr,
    #[serde(skip_serializing_if = "zero")]
    pub(super) weight: u32,
    #[serde(skip_serializing_if = "zero")]
    pub(super) metric_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) tls_identity: Option<TlsIdentity>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) protocol_hint: Option<ProtocolHint>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) authority_override: Option<AuthorityOverride>,
    /// Parameters that are passed on as they are.
    #[serde(skip_serializing_if = "zero")]
    pub(super) http2: Option<Value>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) resource_ref: Option<Reference>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TlsIdentity {
    #[serde(flatten)]
    pub(super) strategy: Option<Strategy>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) server_name: Option<DnsName>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Strategy {
    DnsLikeIdentity(DnsName),
    UriLikeIdentity {
        #[serde(skip_serializing_if = "zero")]
        uri: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct DnsName {
    #[serde(skip_serializing_if = "zero")]
    pub(super) name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ProtocolHint {
    #[serde(flatten)]
    pub(super) protocol: Option<Protocol>,
    #[serde(skip_serializing_if = "zero")]
    pub(super) opaque_transport: Option<OpaqueTransport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Protocol {
    H2 {},
    Opaque {},
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct OpaqueTransport {
    #[serde(skip_serializing_if = "zero")]
    pub(super) inbound_port: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct AuthorityOverride {
    #[serde(skip_serializing_if = "zero")]
    pub(super) authority_override: String,
}

impl Profile {
    /// It says nothing: a proxy asks for its policy, which knows how to refuse a port that isn't there.
    pub(super) fn is_empty(&self) -> bool {
        zero(self)
    }

    /// It as one JSON object on one line.
    pub(super) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

fn zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// JSON has no numbers for these three.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn float<S: Serializer>(number: &f32, to: S) -> Result<S::Ok, S::Error> {
    match number {
        number if number.is_finite() => to.serialize_f32(*number),
        number if number.is_nan() => to.serialize_str("NaN"),
        number if *number > 0.0 => to.serialize_str("Infinity"),
        _ => to.serialize_str("-Infinity"),
    }
}

/// Numbers of 64 bits are texts.
fn address<S: Serializer>(addr: &SocketAddr, to: S) -> Result<S::Ok, S::Error> {
    let ip = match addr.ip() {
        IpAddr::V4(ip) => json!({"ipv4": u32::from(ip)}),
        IpAddr::V6(ip) => {
            let bits = u128::from(ip);
            let halves = [("first", (bits >> 64) as u64), ("last", bits as u64)];
            let halves = halves.into_iter().filter(|(_, half)| *half != 0);
            let halves = halves.map(|(name, half)| (name.to_owned(), json!(half.to_string())));
            json!({"ipv6": halves.collect::<serde_json::Map<_, _>>()})
        }
    };
    match addr.port() {
        0 => json!({"ip": ip}),
        port => json!({"ip": ip, "port": port}),
    }
    .serialize(to)
}
