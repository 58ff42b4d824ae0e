//! Answers: Linkerd's Destination API over gRPC, probes and metrics over HTTP.
//!
//! *Invariant:* a stream holds a cursor, and neither a set of addresses nor a queue. Its next message is made
//! from the store when the client can take one.

mod hub;

mod destination;
mod grpc;

mod http;
mod metrics;

pub use destination::{
    Answer, Destination, ExplainedEndpoint, ExplainedLink, Explanation, Http2ClientParams,
    Http2ParamsError, Message, Needed, Oversize, ProfileAnswer, ProfileExplanation, ProfileReason,
    ProfileVerdict, READS_MAX, Setup, StreamLimits, Turn, parse_http2_params,
};
pub use grpc::{Door, DoorLimits, serve};
pub use http::admin;
pub use hub::{Hub, Subscription, Woken};
pub use metrics::{LinkStatus, MemoryPart, Metrics, Situation, SourceStatus};
