//! ServiceProfiles between records and the model.

use model::limits::CONDITION_DEPTH_MAX;
use model::{
    DstOverride, Ratio, RequestMatch, ResponseClass, ResponseMatch, RetryBudget, Route,
    ServiceProfile,
};

use super::v3::{self, RequestPart, ResponsePart};
use crate::Error;

impl From<ServiceProfile> for v3::Profile {
    fn from(profile: ServiceProfile) -> v3::Profile {
        v3::Profile {
            routes: profile.routes.into_iter().map(v3::Route::from).collect(),
            retry_budget: profile.retry_budget.map(|budget| v3::RetryBudget {
                ratio: budget.ratio.0.to_bits(),
                min_retries_per_second: budget.min_retries_per_second,
                ttl_ns: budget.ttl_ns,
            }),
            dst_overrides: profile
                .dst_overrides
                .into_iter()
                .map(|to| (to.authority, to.weight))
                .collect(),
        }
    }
}

impl TryFrom<v3::Profile> for ServiceProfile {
    type Error = Error;

    fn try_from(record: v3::Profile) -> Result<ServiceProfile, Error> {
        Ok(ServiceProfile {
            routes: record.routes.into_iter().map(Route::try_from).collect::<Result<_, _>>()?,
            retry_budget: record.retry_budget.map(|budget| RetryBudget {
                ratio: Ratio(f32::from_bits(budget.ratio)),
                min_retries_per_second: budget.min_retries_per_second,
                ttl_ns: budget.ttl_ns,
            }),
            dst_overrides: record
                .dst_overrides
                .into_iter()
                .map(|(authority, weight)| DstOverride { authority, weight })
                .collect(),
        })
    }
}

impl From<Route> for v3::Route {
    fn from(route: Route) -> v3::Route {
        let class = |class: ResponseClass| (parts(class.condition), class.failure);
        v3::Route {
            name: route.name,
            condition: parts(route.condition),
            responses: route.responses.into_iter().map(class).collect(),
            retryable: route.retryable,
            timeout_ns: route.timeout_ns,
        }
    }
}

impl TryFrom<v3::Route> for Route {
    type Error = Error;

    fn try_from(record: v3::Route) -> Result<Route, Error> {
        let class = |(parts, failure)| Ok(ResponseClass { condition: whole(parts)?, failure });
        Ok(Route {
            name: record.name,
            condition: whole(record.condition)?,
            responses: record.responses.into_iter().map(class).collect::<Result<_, Error>>()?,
            retryable: record.retryable,
            timeout_ns: record.timeout_ns,
        })
    }
}

/// A condition that is made of parts.
trait Condition: Sized {
    type Part;

    /// What it is, and what it is made of.
    fn into_part(self) -> (Self::Part, Vec<Self>);

    /// Of how many conditions a part is made.
    fn made_of(part: &Self::Part) -> u32;

    /// The condition again; there are as many as it is made of.
    fn of(part: Self::Part, made_of: Vec<Self>) -> Option<Self>;
}

impl Condition for RequestMatch {
    type Part = RequestPart;

    fn into_part(self) -> (RequestPart, Vec<RequestMatch>) {
        match self {
            RequestMatch::All(all) => (RequestPart::All(count(&all)), all),
            RequestMatch::Any(any) => (RequestPart::Any(count(&any)), any),
            RequestMatch::Not(not) => (RequestPart::Not, vec![*not]),
            RequestMatch::Path(regex) => (RequestPart::Path(regex), Vec::new()),
            RequestMatch::Method(method) => (RequestPart::Method(method), Vec::new()),
        }
    }

    fn made_of(part: &RequestPart) -> u32 {
        match part {
            RequestPart::All(count) | RequestPart::Any(count) => *count,
            RequestPart::Not => 1,
            RequestPart::Path(_) | RequestPart::Method(_) => 0,
        }
    }

    fn of(part: RequestPart, mut made_of: Vec<RequestMatch>) -> Option<RequestMatch> {
        Some(match part {
            RequestPart::All(_) => RequestMatch::All(made_of),
            RequestPart::Any(_) => RequestMatch::Any(made_of),
            RequestPart::Not => RequestMatch::Not(Box::new(made_of.pop()?)),
            RequestPart::Path(regex) => RequestMatch::Path(regex),
            RequestPart::Method(method) => RequestMatch::Method(method),
        })
    }
}

impl Condition for ResponseMatch {
    type Part = ResponsePart;

    fn into_part(self) -> (ResponsePart, Vec<ResponseMatch>) {
        match self {
            ResponseMatch::All(all) => (ResponsePart::All(count(&all)), all),
            ResponseMatch::Any(any) => (ResponsePart::Any(count(&any)), any),
            ResponseMatch::Not(not) => (ResponsePart::Not, vec![*not]),
            ResponseMatch::Status { min, max } => (ResponsePart::Status { min, max }, Vec::new()),
        }
    }

    fn made_of(part: &ResponsePart) -> u32 {
        match part {
            ResponsePart::All(count) | ResponsePart::Any(count) => *count,
            ResponsePart::Not => 1,
            ResponsePart::Status { .. } => 0,
        }
    }

    fn of(part: ResponsePart, mut made_of: Vec<ResponseMatch>) -> Option<ResponseMatch> {
        Some(match part {
            ResponsePart::All(_) => ResponseMatch::All(made_of),
            ResponsePart::Any(_) => ResponseMatch::Any(made_of),
            ResponsePart::Not => ResponseMatch::Not(Box::new(made_of.pop()?)),
            ResponsePart::Status { min, max } => ResponseMatch::Status { min, max },
        })
    }
}

fn count<T>(all: &[T]) -> u32 {
    u32::try_from(all.len()).unwrap_or(u32::MAX)
}

/// The parts of a condition, each before what it is made of.
fn parts<C: Condition>(condition: C) -> Vec<C::Part> {
    let (mut parts, mut left) = (Vec::new(), vec![condition]);
    while let Some(condition) = left.pop() {
        let (part, made_of) = condition.into_part();
        parts.push(part);
        left.extend(made_of.into_iter().rev());
    }
    parts
}

/// The condition that these are the parts of.
fn whole<C: Condition>(parts: Vec<C::Part>) -> Result<C, Error> {
    let mut parts = parts.into_iter();
    let condition = next(&mut parts, CONDITION_DEPTH_MAX).filter(|_| parts.next().is_none());
    let reason = || "a condition has too many parts, too few, or too many within each other";
    condition.ok_or_else(|| Error::Damaged { what: "ServiceProfile", reason: reason().to_owned() })
}

fn next<C: Condition>(parts: &mut impl Iterator<Item = C::Part>, depth: usize) -> Option<C> {
    let part = parts.next()?;
    let depth = depth.checked_sub(1)?;
    let made_of = (0..C::made_of(&part)).map(|_| next(parts, depth)).collect::<Option<_>>()?;
    C::of(part, made_of)
}
