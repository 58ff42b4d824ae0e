//! A profile as the cases have it: proto3's JSON with the names of the fields, so without zeros.

use anyhow::{Context as _, Result};
use linkerd2_proxy_api::destination::{
    self as pb, request_match::Match as Request, response_match::Match as Response,
};
use linkerd2_proxy_api::http_types::http_method::{Registered, Type};
use linkerd2_proxy_api::meta::{Metadata, metadata::Kind};
use linkerd2_proxy_api::net;
use serde_json::{Map, Value, json};

use super::{duration, hint, http2, identity, message};

/// A profile, but for its `profile_ref`, which isn't compared.
pub(super) fn shown(profile: &pb::DestinationProfile) -> Result<Value> {
    let routes: Vec<_> = profile.routes.iter().map(route).collect::<Result<_>>()?;
    let overrides = profile
        .dst_overrides
        .iter()
        .map(|to| message([("authority", json!(to.authority)), ("weight", json!(to.weight))]));
    Ok(message([
        ("fully_qualified_name", json!(profile.fully_qualified_name)),
        ("opaque_protocol", json!(profile.opaque_protocol)),
        ("routes", json!(routes)),
        ("retry_budget", profile.retry_budget.as_ref().map_or(Value::Null, retry_budget)),
        ("dst_overrides", json!(overrides.collect::<Vec<_>>())),
        ("endpoint", profile.endpoint.as_ref().map(endpoint).transpose()?.unwrap_or(Value::Null)),
        ("parent_ref", profile.parent_ref.as_ref().map_or(Value::Null, reference)),
    ]))
}

/// A number as it is written in single precision.
fn float(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, |number| json!(number))
}

fn retry_budget(budget: &pb::RetryBudget) -> Value {
    let ratio = if budget.retry_ratio == 0.0 { Value::Null } else { float(budget.retry_ratio) };
    message([
        ("retry_ratio", ratio),
        ("min_retries_per_second", json!(budget.min_retries_per_second)),
        ("ttl", json!(budget.ttl.as_ref().map(duration))),
    ])
}

fn endpoint(endpoint: &pb::WeightedAddr) -> Result<Value> {
    let labels: Map<_, _> =
        endpoint.metric_labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let labels = if labels.is_empty() { Value::Null } else { Value::Object(labels) };
    let there = |value: Option<Value>| value.unwrap_or(Value::Null);
    Ok(message([
        ("addr", address(endpoint.addr.as_ref().context("an endpoint without address")?)?),
        ("weight", json!(endpoint.weight)),
        ("metric_labels", labels),
        ("tls_identity", there(endpoint.tls_identity.as_ref().map(identity))),
        ("protocol_hint", there(endpoint.protocol_hint.as_ref().map(hint))),
        ("http2", there(endpoint.http2.as_ref().map(http2))),
    ]))
}

fn address(addr: &net::TcpAddress) -> Result<Value> {
    let ip = match addr.ip.as_ref().and_then(|ip| ip.ip.as_ref()).context("no IP")? {
        net::ip_address::Ip::Ipv4(bits) => json!({"ipv4": bits}),
        net::ip_address::Ip::Ipv6(ip) => {
            // 64 bits are text in JSON.
            let [first, last] = [ip.first, ip.last]
                .map(|half| if half == 0 { Value::Null } else { json!(half.to_string()) });
            json!({"ipv6": message([("first", first), ("last", last)])})
        }
    };
    Ok(message([("ip", ip), ("port", json!(addr.port))]))
}

fn reference(reference: &Metadata) -> Value {
    match &reference.kind {
        Some(Kind::Resource(resource)) => {
            let resource = message([
                ("group", json!(resource.group)),
                ("kind", json!(resource.kind)),
                ("name", json!(resource.name)),
                ("namespace", json!(resource.namespace)),
                ("section", json!(resource.section)),
                ("port", json!(resource.port)),
            ]);
            json!({"resource": resource})
        }
        Some(Kind::Default(name)) => json!({"default": name}),
        None => json!({}),
    }
}

fn route(route: &pb::Route) -> Result<Value> {
    let classes = route.response_classes.iter().map(|class| {
        let condition = class.condition.as_ref().context("a class without condition")?;
        let condition = response(condition)?;
        Ok(message([("condition", condition), ("is_failure", json!(class.is_failure))]))
    });
    let classes: Vec<_> = classes.collect::<Result<_>>()?;
    let condition = route.condition.as_ref().context("a route without condition")?;
    Ok(message([
        ("condition", request(condition)?),
        ("response_classes", json!(classes)),
        ("metrics_labels", json!(route.metrics_labels)),
        ("is_retryable", json!(route.is_retryable)),
        ("timeout", json!(route.timeout.as_ref().map(duration))),
    ]))
}

fn sequence<C>(conditions: &[C], shown: fn(&C) -> Result<Value>) -> Result<Value> {
    let conditions: Vec<_> = conditions.iter().map(shown).collect::<Result<_>>()?;
    Ok(message([("matches", json!(conditions))]))
}

fn request(condition: &pb::RequestMatch) -> Result<Value> {
    Ok(match condition.r#match.as_ref().context("a condition without content")? {
        Request::All(all) => json!({"all": sequence(&all.matches, request)?}),
        Request::Any(any) => json!({"any": sequence(&any.matches, request)?}),
        Request::Not(not) => json!({"not": request(not)?}),
        Request::Path(path) => json!({"path": message([("regex", json!(path.regex))])}),
        Request::Method(method) => {
            json!({"method": match method.r#type.as_ref().context("no method")? {
                Type::Registered(number) => {
                    json!({"registered": Registered::try_from(*number)?.as_str_name()})
                }
                Type::Unregistered(name) => json!({"unregistered": name}),
            }})
        }
    })
}

fn response(condition: &pb::ResponseMatch) -> Result<Value> {
    Ok(match condition.r#match.as_ref().context("a condition without content")? {
        Response::All(all) => json!({"all": sequence(&all.matches, response)?}),
        Response::Any(any) => json!({"any": sequence(&any.matches, response)?}),
        Response::Not(not) => json!({"not": response(not)?}),
        Response::Status(range) => {
            json!({"status": message([("min", json!(range.min)), ("max", json!(range.max))])})
        }
    })
}
