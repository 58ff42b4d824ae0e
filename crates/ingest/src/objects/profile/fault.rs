//! What makes a ServiceProfile invalid, and where.

use model::limits::CONDITION_DEPTH_MAX;

/// The first thing that is wrong with a ServiceProfile.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("{place}: {fault}")]
    At { place: String, fault: Box<Fault> },
    #[error("{reason}")]
    Type { reason: String },
    #[error("null instead of an object")]
    Null,
    #[error("not an object")]
    NoObject,
    #[error("a condition is missing")]
    NoCondition,
    #[error("condition without a field")]
    NoField,
    #[error("more than {CONDITION_DEPTH_MAX} conditions within each other")]
    Depth,
    #[error("status {status} is not within 100 to 599")]
    Status { status: u32 },
    #[error("status {max}, the highest, is below {min}, the lowest")]
    Range { min: u32, max: u32 },
    #[error("ttl {ttl:?} is no duration")]
    Ttl { ttl: String },
    #[error("retryRatio {ratio} is no 32-bit number")]
    Ratio { ratio: String },
    #[error("weight {weight:?} is no quantity")]
    Weight { weight: String },
}

impl Fault {
    /// The same, in a part of the object.
    pub(super) fn at(self, place: impl std::fmt::Display) -> Fault {
        Fault::At { place: place.to_string(), fault: Box::new(self) }
    }
}
