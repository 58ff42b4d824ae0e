//! Linkerd's profiles → plain values. Total but for what says nothing where something must be said.

use linkerd2_proxy_api::destination::http2_client_params::{FlowControl, Internals, KeepAlive};
use linkerd2_proxy_api::destination::{self as pb, request_match, response_match};
use linkerd2_proxy_api::http_types::{self, http_method};
use linkerd2_proxy_api::meta;
use serde_json::{Value, json};

use super::held::{
    AuthorityOverride, Condition, DnsName, Endpoint, Method, OpaqueTransport, Override, Profile,
    Protocol, ProtocolHint, Reference, Request, Resource, Response, ResponseClass, RetryBudget,
    Route, Sequence, Strategy, TlsIdentity,
};
use crate::client;

/// A message's meaning.
pub(super) fn profile(message: pb::DestinationProfile) -> anyhow::Result<Profile> {
    Ok(Profile {
        fully_qualified_name: message.fully_qualified_name,
        opaque_protocol: message.opaque_protocol,
        routes: message.routes.into_iter().map(route).collect::<anyhow::Result<_>>()?,
        retry_budget: message.retry_budget.map(|budget| RetryBudget {
            retry_ratio: budget.retry_ratio,
            min_retries_per_second: budget.min_retries_per_second,
            ttl: budget.ttl.map(|ttl| duration(ttl.seconds, ttl.nanos)),
        }),
        dst_overrides: message.dst_overrides.into_iter().map(dst_override).collect(),
        endpoint: message.endpoint.map(endpoint).transpose()?,
        parent_ref: message.parent_ref.and_then(reference),
        profile_ref: message.profile_ref.and_then(reference),
    })
}

fn route(route: pb::Route) -> anyhow::Result<Route> {
    let classes = route.response_classes.into_iter().map(|class| {
        let condition = response(class.condition)?;
        anyhow::Ok(ResponseClass { condition, is_failure: class.is_failure })
    });
    Ok(Route {
        condition: request(route.condition)?,
        response_classes: classes.collect::<anyhow::Result<_>>()?,
        metrics_labels: route.metrics_labels.into_iter().collect(),
        is_retryable: route.is_retryable,
        timeout: route.timeout.map(|timeout| duration(timeout.seconds, timeout.nanos)),
    })
}

fn dst_override(to: pb::WeightedDst) -> Override {
    Override {
        authority: to.authority,
        weight: to.weight,
        backend_ref: to.backend_ref.and_then(reference),
    }
}

fn endpoint(addr: pb::WeightedAddr) -> anyhow::Result<Endpoint> {
    let to =
        |to: pb::AuthorityOverride| AuthorityOverride { authority_override: to.authority_override };
    Ok(Endpoint {
        addr: client::address(addr.addr)?,
        weight: addr.weight,
        metric_labels: addr.metric_labels.into_iter().collect(),
        tls_identity: addr.tls_identity.map(identity),
        protocol_hint: addr.protocol_hint.map(hint),
        authority_override: addr.authority_override.map(to),
        http2: addr.http2.map(http2),
        resource_ref: addr.resource_ref.and_then(reference),
    })
}

fn identity(identity: pb::TlsIdentity) -> TlsIdentity {
    use pb::tls_identity::Strategy as Of;
    let strategy = identity.strategy.map(|strategy| match strategy {
        Of::DnsLikeIdentity(dns) => Strategy::DnsLikeIdentity(DnsName { name: dns.name }),
        Of::UriLikeIdentity(uri) => Strategy::UriLikeIdentity { uri: uri.uri },
    });
    let server_name = identity.server_name.map(|dns| DnsName { name: dns.name });
    TlsIdentity { strategy, server_name }
}

fn hint(hint: pb::ProtocolHint) -> ProtocolHint {
    ProtocolHint {
        protocol: hint.protocol.map(|protocol| match protocol {
            pb::protocol_hint::Protocol::H2(_) => Protocol::H2 {},
            pb::protocol_hint::Protocol::Opaque(_) => Protocol::Opaque {},
        }),
        opaque_transport: hint
            .opaque_transport
            .map(|to| OpaqueTransport { inbound_port: to.inbound_port }),
    }
}

fn reference(reference: meta::Metadata) -> Option<Reference> {
    Some(match reference.kind? {
        meta::metadata::Kind::Default(name) => Reference::Default(name),
        meta::metadata::Kind::Resource(it) => {
            let meta::Resource { group, kind, name, namespace, section, port } = it;
            Reference::Resource(Resource { group, kind, name, namespace, section, port })
        }
    })
}

fn request(condition: Option<pb::RequestMatch>) -> anyhow::Result<Condition<Request>> {
    Ok(match condition.and_then(|it| it.r#match).ok_or_else(silent)? {
        request_match::Match::All(all) => Condition::All(sequence(all.matches, request)?),
        request_match::Match::Any(any) => Condition::Any(sequence(any.matches, request)?),
        request_match::Match::Not(not) => Condition::Not(Box::new(request(Some(*not))?)),
        request_match::Match::Path(path) => Condition::One(Request::Path { regex: path.regex }),
        request_match::Match::Method(it) => Condition::One(Request::Method(method(it)?)),
    })
}

fn method(method: http_types::HttpMethod) -> anyhow::Result<Method> {
    Ok(match method.r#type.ok_or_else(silent)? {
        http_method::Type::Registered(number) => {
            Method::Registered(match http_method::Registered::try_from(number) {
                Ok(known) => known.as_str_name().to_owned(),
                Err(_) => number.to_string(),
            })
        }
        http_method::Type::Unregistered(name) => Method::Unregistered(name),
    })
}

fn response(condition: Option<pb::ResponseMatch>) -> anyhow::Result<Condition<Response>> {
    Ok(match condition.and_then(|it| it.r#match).ok_or_else(silent)? {
        response_match::Match::All(all) => Condition::All(sequence(all.matches, response)?),
        response_match::Match::Any(any) => Condition::Any(sequence(any.matches, response)?),
        response_match::Match::Not(not) => Condition::Not(Box::new(response(Some(*not))?)),
        response_match::Match::Status(range) => {
            Condition::One(Response::Status { min: range.min, max: range.max })
        }
    })
}

fn sequence<M, C>(
    matches: Vec<M>,
    condition: fn(Option<M>) -> anyhow::Result<Condition<C>>,
) -> anyhow::Result<Sequence<C>> {
    let matches = matches.into_iter().map(|it| condition(Some(it)));
    Ok(Sequence { matches: matches.collect::<anyhow::Result<_>>()? })
}

fn silent() -> anyhow::Error {
    anyhow::anyhow!("the server sent a route with a condition that says nothing")
}

/// Seconds, and as many digits after them as are needed: none, three, six or nine.
fn duration(seconds: i64, nanos: i32) -> String {
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let (seconds, nanos) = (seconds.unsigned_abs(), nanos.unsigned_abs());
    match nanos {
        0 => format!("{sign}{seconds}s"),
        _ if nanos % 1_000_000 == 0 => format!("{sign}{seconds}.{:03}s", nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => format!("{sign}{seconds}.{:06}s", nanos / 1_000),
        _ => format!("{sign}{seconds}.{nanos:09}s"),
    }
}

fn http2(params: pb::Http2ClientParams) -> Value {
    let flow_control = |it: FlowControl| {
        message([
            ("initial_connection_window_size", json!(it.initial_connection_window_size)),
            ("initial_stream_window_size", json!(it.initial_stream_window_size)),
            ("adaptive_flow_control", json!(it.adaptive_flow_control)),
        ])
    };
    let keep_alive = |it: KeepAlive| {
        message([
            ("interval", json!(it.interval.map(|it| duration(it.seconds, it.nanos)))),
            ("timeout", json!(it.timeout.map(|it| duration(it.seconds, it.nanos)))),
            ("while_idle", json!(it.while_idle)),
        ])
    };
    let internals = |it: Internals| {
        message([
            ("max_concurrent_reset_streams", json!(it.max_concurrent_reset_streams)),
            ("max_frame_size", json!(it.max_frame_size)),
            ("max_send_buf_size", json!(it.max_send_buf_size)),
        ])
    };
    message([
        ("flow_control", json!(params.flow_control.map(flow_control))),
        ("keep_alive", json!(params.keep_alive.map(keep_alive))),
        ("internals", json!(params.internals.map(internals))),
    ])
}

/// The fields that aren't zero.
fn message<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let zeros = [Value::Null, json!(0), json!(false)];
    let fields = fields.into_iter().filter(|(_, value)| !zeros.contains(value));
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
}
