//! Conditions on requests and on responses: as they are written → as they are answered (spec §3.3.5).
//!
//! A written condition is several in one, all of which hold; an answered one is of one kind. Each level is read by
//! itself, on the way down, so nothing is built of a condition that is too deep.

use model::limits::CONDITION_DEPTH_MAX;
use model::{RequestMatch, ResponseMatch};
use serde::Deserialize;

use super::fault::Fault;
use super::written::{Written, fields, value};
use crate::objects::nullable;

/// What an HTTP status can be, as far as a condition may speak of it.
const STATUSES: std::ops::RangeInclusive<u32> = 100..=599;

/// A list that is there counts even if it is empty; a string doesn't.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    all: Option<Vec<Written<'a>>>,
    #[serde(borrow)]
    any: Option<Vec<Written<'a>>>,
    #[serde(deserialize_with = "nullable::default")]
    method: String,
    #[serde(borrow)]
    not: Written<'a>,
    #[serde(deserialize_with = "nullable::default")]
    path_regex: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    all: Option<Vec<Written<'a>>>,
    #[serde(borrow)]
    any: Option<Vec<Written<'a>>>,
    #[serde(borrow)]
    status: Written<'a>,
    #[serde(borrow)]
    not: Written<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Range {
    #[serde(deserialize_with = "nullable::default")]
    min: u32,
    #[serde(deserialize_with = "nullable::default")]
    max: u32,
}

/// Reads a condition on requests.
pub(super) fn request(written: Written<'_>) -> Result<RequestMatch, Fault> {
    request_at(1, written)
}

/// Reads a condition on responses.
pub(super) fn response(written: Written<'_>) -> Result<ResponseMatch, Fault> {
    response_at(1, written)
}

fn request_at(depth: usize, written: Written<'_>) -> Result<RequestMatch, Fault> {
    written.ok_or(Fault::NoCondition)?;
    let Request { all, any, method, not, path_regex } =
        fields(written).map_err(|fault| fault.at("condition"))?;
    let not = negated(not)?;
    let lists = usize::from(all.is_some()) + usize::from(any.is_some());
    let strings = usize::from(!method.is_empty()) + usize::from(!path_regex.is_empty());
    let below = below(depth, lists + strings + not.len())?;
    let each = |list: Vec<Written<'_>>| {
        list.into_iter().map(|it| request_at(below, it)).collect::<Result<Vec<_>, _>>()
    };
    let mut parts = Vec::new();
    if let Some(all) = all {
        parts.push(RequestMatch::All(each(all)?));
    }
    if let Some(any) = any {
        parts.push(RequestMatch::Any(each(any)?));
    }
    if !method.is_empty() {
        parts.push(RequestMatch::Method(method.to_uppercase()));
    }
    parts.extend(each(not)?.into_iter().map(|it| RequestMatch::Not(Box::new(it))));
    if !path_regex.is_empty() {
        parts.push(RequestMatch::Path(path_regex));
    }
    joined(parts, RequestMatch::All)
}

fn response_at(depth: usize, written: Written<'_>) -> Result<ResponseMatch, Fault> {
    written.ok_or(Fault::NoCondition)?;
    let Response { all, any, status, not } =
        fields(written).map_err(|fault| fault.at("condition"))?;
    let present = [all.is_some(), any.is_some(), status.is_some(), not.is_some()];
    let below = below(depth, present.into_iter().map(usize::from).sum())?;
    let each = |list: Vec<Written<'_>>| {
        list.into_iter().map(|it| response_at(below, it)).collect::<Result<Vec<_>, _>>()
    };
    let mut parts = Vec::new();
    if let Some(all) = all {
        parts.push(ResponseMatch::All(each(all)?));
    }
    if let Some(any) = any {
        parts.push(ResponseMatch::Any(each(any)?));
    }
    if status.is_some() {
        parts.push(range(status)?);
    }
    if not.is_some() {
        parts.push(ResponseMatch::Not(Box::new(response_at(below, not)?)));
    }
    joined(parts, ResponseMatch::All)
}

/// What must not hold. The CRD has a list of it, at least at the top; who reads ServiceProfiles elsewhere wants one.
/// An empty list says nothing.
fn negated(not: Written<'_>) -> Result<Vec<Written<'_>>, Fault> {
    match not {
        None => Ok(Vec::new()),
        Some(list) if list.get().starts_with('[') => value(list),
        one => Ok(vec![one]),
    }
}

/// How deep the conditions in the parts of a condition are. Several parts are joined by one that nobody wrote; a proxy
/// has to read it all the same.
fn below(depth: usize, parts: usize) -> Result<usize, Fault> {
    let depth = depth + usize::from(parts > 1);
    match depth > CONDITION_DEPTH_MAX {
        true => Err(Fault::Depth),
        false => Ok(depth + 1),
    }
}

fn joined<M>(mut parts: Vec<M>, all: fn(Vec<M>) -> M) -> Result<M, Fault> {
    match parts.len() {
        0 => Err(Fault::NoField),
        1 => Ok(parts.swap_remove(0)),
        _ => Ok(all(parts)),
    }
}

fn range(written: Written<'_>) -> Result<ResponseMatch, Fault> {
    let Range { min, max } = fields(written).map_err(|fault| fault.at("status"))?;
    if let Some(&status) = [min, max].iter().find(|it| **it != 0 && !STATUSES.contains(it)) {
        return Err(Fault::Status { status });
    }
    match min != 0 && max != 0 && max < min {
        true => Err(Fault::Range { min, max }),
        false => Ok(ResponseMatch::Status { min, max }),
    }
}
