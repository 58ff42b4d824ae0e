//! Profiles as Linkerd's messages.

use bytes::{BufMut as _, Bytes};
use linkerd2_proxy_api::destination::{
    DestinationProfile, HttpStatusRange, PathMatch, RequestMatch, ResponseClass, ResponseMatch,
    RetryBudget, Route, WeightedDst, request_match, response_match,
};
use linkerd2_proxy_api::http_types::HttpMethod;
use linkerd2_proxy_api::http_types::http_method::{Registered, Type};
use linkerd2_proxy_api::meta::{Metadata, Resource, metadata};
use model::{ObjectName, ServiceProfile};
use prost::Message as _;
use prost_types::Duration;
use resolve::Endpoint;

use crate::destination::wire::{FRAME_BYTES, Http2, Message, UpdateKind, encode};

/// The number of the field of an endpoint.
const ENDPOINT: u32 = 6;

const NS_PER_S: i64 = 1_000_000_000;

/// What is said of a Service besides its ServiceProfile.
pub(super) struct OfService<'s> {
    pub(super) service: &'s ObjectName,
    /// The name that was asked for.
    pub(super) fqn: &'s str,
    pub(super) port: u16,
    pub(super) opaque: bool,
}

/// A profile that says nothing.
pub(super) fn empty() -> Message {
    message(&DestinationProfile::default(), |_| ())
}

/// The profile of a Service; without a ServiceProfile the default one (spec §3.3.5).
pub(super) fn service_profile(
    of: &OfService<'_>,
    profile: Option<(&ObjectName, &ServiceProfile)>,
) -> Message {
    let default = ServiceProfile::default();
    let said = profile.map_or(&default, |(_, profile)| profile);
    let overrides = said.dst_overrides.iter().map(|to| WeightedDst {
        authority: resolve::with_port(&to.authority, of.port),
        weight: to.weight,
        backend_ref: None,
    });
    let parent = Resource {
        group: "core".to_owned(),
        kind: "Service".to_owned(),
        port: of.port.into(),
        ..named(of.service)
    };
    let profile = profile.map(|(name, _)| Resource {
        group: "linkerd.io".to_owned(),
        kind: "ServiceProfile".to_owned(),
        ..named(name)
    });
    let profile = DestinationProfile {
        fully_qualified_name: of.fqn.to_owned(),
        opaque_protocol: of.opaque,
        routes: said.routes.iter().map(route).collect(),
        retry_budget: Some(retry_budget(said.retry_budget.as_ref())),
        dst_overrides: overrides.collect(),
        endpoint: None,
        parent_ref: Some(reference(parent)),
        profile_ref: profile.map(reference),
    };
    message(&profile, |_| ())
}

/// The profile of an address that is dialled itself (spec §3.4.4).
pub(super) fn endpoint_profile(endpoint: &Endpoint<'_>, http2: Option<&Http2>) -> Message {
    let profile = DestinationProfile {
        opaque_protocol: endpoint.opaque,
        retry_budget: Some(retry_budget(None)),
        ..DestinationProfile::default()
    };
    message(&profile, |to| {
        let labels = endpoint.address.labels.iter();
        encode::address(to, ENDPOINT, &endpoint.address, labels, http2.map(Http2::bytes));
    })
}

/// A message of a stream. Fields may come in any order, so that more can be appended.
fn message(profile: &DestinationProfile, append: impl FnOnce(&mut Vec<u8>)) -> Message {
    let mut bytes = vec![0; FRAME_BYTES];
    profile.encode_raw(&mut bytes);
    append(&mut bytes);
    let length = u32::try_from(bytes.len() - FRAME_BYTES).unwrap_or(u32::MAX);
    // The first byte says that it isn't compressed.
    (&mut bytes[1..FRAME_BYTES]).put_u32(length);
    bytes.shrink_to_fit();
    Message { kind: UpdateKind::Profile, frame: Bytes::from(bytes) }
}

fn named(object: &ObjectName) -> Resource {
    Resource {
        name: object.name().to_owned(),
        namespace: object.namespace().to_owned(),
        ..Resource::default()
    }
}

fn reference(resource: Resource) -> Metadata {
    Metadata { kind: Some(metadata::Kind::Resource(resource)) }
}

fn retry_budget(budget: Option<&model::RetryBudget>) -> RetryBudget {
    match budget {
        Some(budget) => RetryBudget {
            retry_ratio: budget.ratio.0,
            min_retries_per_second: budget.min_retries_per_second,
            ttl: duration(budget.ttl_ns),
        },
        None => RetryBudget {
            retry_ratio: 0.2,
            min_retries_per_second: 10,
            ttl: duration(10 * NS_PER_S),
        },
    }
}

/// None is said to be none.
fn duration(ns: i64) -> Option<Duration> {
    // The rest is less than a second.
    let nanos = (ns % NS_PER_S) as i32;
    (ns != 0).then_some(Duration { seconds: ns / NS_PER_S, nanos })
}

fn route(route: &model::Route) -> Route {
    let classes = route.responses.iter().map(|class| ResponseClass {
        condition: Some(response(&class.condition)),
        is_failure: class.failure,
    });
    Route {
        condition: Some(request(&route.condition)),
        response_classes: classes.collect(),
        metrics_labels: [("route".to_owned(), route.name.clone())].into(),
        is_retryable: route.retryable,
        timeout: duration(route.timeout_ns),
    }
}

fn request(condition: &model::RequestMatch) -> RequestMatch {
    use model::RequestMatch as Condition;
    let all = |all: &[Condition]| request_match::Seq { matches: all.iter().map(request).collect() };
    let of = match condition {
        Condition::All(conditions) => request_match::Match::All(all(conditions)),
        Condition::Any(conditions) => request_match::Match::Any(all(conditions)),
        Condition::Not(not) => request_match::Match::Not(Box::new(request(not))),
        Condition::Path(regex) => request_match::Match::Path(PathMatch { regex: regex.clone() }),
        Condition::Method(name) => {
            request_match::Match::Method(HttpMethod { r#type: Some(method(name)) })
        }
    };
    RequestMatch { r#match: Some(of) }
}

fn method(name: &str) -> Type {
    match name {
        "GET" => Type::Registered(Registered::Get.into()),
        "POST" => Type::Registered(Registered::Post.into()),
        "PUT" => Type::Registered(Registered::Put.into()),
        "DELETE" => Type::Registered(Registered::Delete.into()),
        "PATCH" => Type::Registered(Registered::Patch.into()),
        "OPTIONS" => Type::Registered(Registered::Options.into()),
        "CONNECT" => Type::Registered(Registered::Connect.into()),
        "HEAD" => Type::Registered(Registered::Head.into()),
        "TRACE" => Type::Registered(Registered::Trace.into()),
        other => Type::Unregistered(other.to_owned()),
    }
}

fn response(condition: &model::ResponseMatch) -> ResponseMatch {
    use model::ResponseMatch as Condition;
    let all =
        |all: &[Condition]| response_match::Seq { matches: all.iter().map(response).collect() };
    let of = match condition {
        Condition::All(conditions) => response_match::Match::All(all(conditions)),
        Condition::Any(conditions) => response_match::Match::Any(all(conditions)),
        Condition::Not(not) => response_match::Match::Not(Box::new(response(not))),
        Condition::Status { min, max } => {
            response_match::Match::Status(HttpStatusRange { min: *min, max: *max })
        }
    };
    ResponseMatch { r#match: Some(of) }
}
