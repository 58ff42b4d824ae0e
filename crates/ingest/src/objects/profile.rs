//! ServiceProfiles.
//!
//! *Invariant:* a `spec` that cannot be, whatever is wrong with it, is a profile that says nothing, and one warning; it
//! is never a [`Reject`](super::Reject), with which an older version of the object would go on to hold (spec Q24, Q25).

mod condition;
mod duration;
mod fault;
mod quantity;
mod written;

use model::{DstOverride, Object, Ratio, ResponseClass, RetryBudget, Route, ServiceProfile};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::warnings::Warnings;
use super::{Decoded, Document, nullable};
use fault::Fault;
use written::{Written, fields};

/// Bytes of a route's name up to which warnings call it by that. A longer one would be all that there is to read.
const ROUTE_NAME_BYTES_MAX: usize = 64;

/// Thousandths, in which Kubernetes counts weights, are ten of what proxies count in.
const WEIGHT_PER_THOUSANDTH: u32 = 10;

/// `opaquePorts` is none of these: its form differs between the CRD and who reads it, and nothing depends on it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow, deserialize_with = "nullable::default")]
    routes: Vec<Written<'a>>,
    #[serde(borrow)]
    retry_budget: Written<'a>,
    #[serde(borrow, deserialize_with = "nullable::default")]
    dst_overrides: Vec<Written<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RouteFields<'a> {
    #[serde(deserialize_with = "nullable::default")]
    name: String,
    #[serde(borrow)]
    condition: Written<'a>,
    #[serde(borrow, deserialize_with = "nullable::default")]
    response_classes: Vec<Written<'a>>,
    #[serde(deserialize_with = "nullable::default")]
    is_retryable: bool,
    #[serde(deserialize_with = "nullable::default")]
    timeout: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClassFields<'a> {
    #[serde(borrow)]
    condition: Written<'a>,
    #[serde(deserialize_with = "nullable::default")]
    is_failure: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BudgetFields<'a> {
    #[serde(borrow)]
    retry_ratio: Written<'a>,
    #[serde(deserialize_with = "nullable::default")]
    min_retries_per_second: u32,
    #[serde(deserialize_with = "nullable::default")]
    ttl: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OverrideFields<'a> {
    #[serde(deserialize_with = "nullable::default")]
    authority: String,
    #[serde(borrow)]
    weight: Written<'a>,
}

/// Reads a ServiceProfile.
pub(super) fn decode(json: &str, warnings: &mut Warnings) -> Result<Decoded, serde_json::Error> {
    let Document::<Written<'_>> { metadata, spec, .. } = serde_json::from_str(json)?;
    let mut skipped = Warnings::default();
    let profile = match spec.map(|spec| profile(spec, &mut skipped)).transpose() {
        Ok(profile) => {
            *warnings = skipped;
            Some(profile.unwrap_or_default())
        }
        // What was skipped before that is of no interest any more.
        Err(fault) => {
            warnings.push(format_args!("{fault}; the default profile stands for it"));
            None
        }
    };
    Ok(Decoded { meta: metadata, object: Object::Profile(profile) })
}

fn profile(spec: &RawValue, warnings: &mut Warnings) -> Result<ServiceProfile, Fault> {
    let Spec { routes, retry_budget, dst_overrides } =
        fields(Some(spec)).map_err(|fault| fault.at("spec"))?;
    let routes = (1..).zip(routes).map(|(number, it)| route(number, it, warnings));
    let routes = routes.collect::<Result<_, _>>()?;
    let retry_budget = retry_budget.map(budget).transpose();
    let retry_budget = retry_budget.map_err(|fault| fault.at("retryBudget"))?;
    let dst_overrides = (1..).zip(dst_overrides).map(|(number, it)| {
        dst_override(it).map_err(|fault| fault.at(format_args!("override {number}")))
    });
    Ok(ServiceProfile {
        routes,
        retry_budget,
        dst_overrides: dst_overrides.collect::<Result<_, _>>()?,
    })
}

fn route(number: usize, written: Written<'_>, warnings: &mut Warnings) -> Result<Route, Fault> {
    let RouteFields { name, condition, response_classes, is_retryable, timeout } =
        fields(written).map_err(|fault| fault.at(format_args!("route {number}")))?;
    let place = || match (1..=ROUTE_NAME_BYTES_MAX).contains(&name.len()) {
        true => format!("route {name:?}"),
        false => format!("route {number}"),
    };
    let condition = condition::request(condition).map_err(|fault| fault.at(place()))?;
    let responses = (1..).zip(response_classes).map(|(number, it)| {
        class(it).map_err(|fault| fault.at(format_args!("{}: response class {number}", place())))
    });
    let responses = responses.collect::<Result<_, _>>()?;
    let timeout_ns = match timeout.is_empty() {
        true => 0,
        false => duration::nanoseconds(&timeout).unwrap_or_else(|| {
            warnings.push(format_args!("{}: timeout {timeout:?} is no duration", place()));
            0
        }),
    };
    Ok(Route { name, condition, responses, retryable: is_retryable, timeout_ns })
}

fn class(written: Written<'_>) -> Result<ResponseClass, Fault> {
    let ClassFields { condition, is_failure } = fields(written)?;
    Ok(ResponseClass { condition: condition::response(condition)?, failure: is_failure })
}

fn budget(written: &RawValue) -> Result<RetryBudget, Fault> {
    let BudgetFields { retry_ratio, min_retries_per_second, ttl } = fields(Some(written))?;
    let ratio = retry_ratio.map_or(Ok(Ratio(0.0)), ratio)?;
    let ttl_ns = duration::nanoseconds(&ttl).ok_or(Fault::Ttl { ttl })?;
    Ok(RetryBudget { ratio, min_retries_per_second, ttl_ns })
}

/// From the digits as they are written: by way of 64 bits, it could be the second nearest.
fn ratio(written: &RawValue) -> Result<Ratio, Fault> {
    match written.get().parse::<f32>() {
        Ok(ratio) if ratio.is_finite() => Ok(Ratio(ratio)),
        _ => Err(Fault::Ratio { ratio: written.get().to_owned() }),
    }
}

fn dst_override(written: Written<'_>) -> Result<DstOverride, Fault> {
    let OverrideFields { authority, weight } = fields(written)?;
    Ok(DstOverride { authority, weight: weight.map_or(Ok(0), self::weight)? })
}

/// A quantity is a number or a string.
fn weight(written: &RawValue) -> Result<u32, Fault> {
    let text = match written.get().starts_with('"') {
        true => written::value(written)?,
        false => written.get().to_owned(),
    };
    match quantity::thousandths(text.trim()) {
        Some(thousandths) => Ok(thousandths.wrapping_mul(WEIGHT_PER_THOUSANDTH)),
        None => Err(Fault::Weight { weight: text }),
    }
}
