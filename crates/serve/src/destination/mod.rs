//! Linkerd's Destination API, answered from the store.

mod afloat;

mod explain;
mod get;
mod look;

mod profile;

mod hot;
mod level;
mod members;

mod cursor;
mod delta;

mod reads;
mod shared;
mod synced;

pub(crate) mod wire;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use model::limits::MESSAGE_BYTES_MAX;
use resolve::Settings;
use store::Reader;
use tokio_util::sync::CancellationToken;
use tonic::Status;

pub use explain::{ExplainedEndpoint, ExplainedLink, Explanation};
pub use get::Answer;
pub use level::Oversize;
pub use profile::{ProfileAnswer, ProfileExplanation, ProfileReason, ProfileVerdict};
pub use reads::Turn;
pub(crate) use shared::StreamEnd;
pub use shared::{READS_MAX, StreamLimits};
pub use synced::Needed;
pub(crate) use wire::{FRAME_BYTES, UpdateKind};
pub use wire::{Http2ClientParams, Http2ParamsError, Message, parse_http2_params};

use crate::{Hub, Metrics};
use afloat::Afloat;
use shared::Shared;

/// The Destination service.
#[derive(Clone)]
pub struct Destination {
    shared: Arc<Shared>,
}

/// What the service is made of.
pub struct Setup {
    /// What it answers from.
    pub reader: Reader,
    /// Says when to look again.
    pub hub: Arc<Hub>,
    /// What all answers depend on.
    pub settings: Settings,
    /// What meshed endpoints get; decides `settings.http2`.
    pub http2: Option<Http2ClientParams>,
    /// Say that there is no endpoint to who asks when there is none; the original says nothing.
    pub no_endpoints: bool,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
    /// What streams may take of memory.
    pub limits: StreamLimits,
    /// What to do with a Service that is too large for a message, or a client.
    pub oversize: Oversize,
    /// What has to be known before the first answer.
    pub needed: Needed,
}

impl Destination {
    /// When `stop` is cancelled, all streams end with OK, and so does each that is opened later.
    pub fn new(setup: Setup, stop: CancellationToken) -> Destination {
        let Setup { reader, hub, settings, http2, no_endpoints, .. } = setup;
        let Setup { metrics, limits, oversize, needed, .. } = setup;
        let settings = Settings { http2: http2.is_some(), ..settings };
        let http2 = http2.map(wire::Http2::from);
        let message_bytes_max = MESSAGE_BYTES_MAX;
        let answers = delta::Answers { settings, http2, no_endpoints, message_bytes_max, oversize };
        let shared = Shared::new(reader, hub, answers, metrics, limits, needed, stop);
        Destination { shared: Arc::new(shared) }
    }

    /// The answer to a Get: the messages of its stream, or why there is none (spec §1.5). `turn` is that of the
    /// client's connection.
    pub async fn get(
        &self,
        path: &str,
        context_token: &str,
        turn: &Turn,
    ) -> Result<Answer, Status> {
        let answer = get::get(&self.shared, path, context_token, turn).await;
        self.shared.metrics.answered("Get", answer.as_ref().err().map(Status::code));
        answer
    }

    /// The answer to a GetProfile: the messages of its stream, or why there is none (spec §1.5).
    pub async fn get_profile(
        &self,
        path: &str,
        context_token: &str,
        turn: &Turn,
    ) -> Result<ProfileAnswer, Status> {
        let answer = profile::get_profile(&self.shared, path, context_token, turn).await;
        self.shared.metrics.answered("GetProfile", answer.as_ref().err().map(Status::code));
        answer
    }

    /// Why an address is or isn't in the answer to a Get.
    pub async fn explain(
        &self,
        path: &str,
        context_token: &str,
        address: IpAddr,
    ) -> Result<Explanation, Status> {
        explain::explain(&self.shared, path, context_token, address).await
    }

    /// Why the answer to a GetProfile is what it is.
    pub async fn explain_profile(
        &self,
        path: &str,
        context_token: &str,
    ) -> Result<ProfileExplanation, Status> {
        profile::explain(&self.shared, path, context_token).await
    }

    /// Bytes of answers that are in memory, kept or on their way.
    pub fn afloat_bytes(&self) -> u64 {
        self.shared.afloat.bytes() as u64
    }

    /// Counts them.
    pub(crate) fn afloat(&self) -> &Arc<Afloat> {
        &self.shared.afloat
    }

    /// Bytes of answers that are kept, about.
    pub fn hot_bytes(&self) -> u64 {
        self.shared.hot.bytes() as u64
    }
}
