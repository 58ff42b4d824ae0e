//! Linkerd's Destination API: Get answers from the store; GetProfile is refused for now.

mod get;

mod cursor;
mod delta;

mod shared;
mod synced;

pub(crate) mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::stream::BoxStream;
use linkerd2_proxy_api::destination::destination_server::Destination as Api;
use linkerd2_proxy_api::destination::{DestinationProfile, GetDestination};
use model::limits::MESSAGE_BYTES_MAX;
use resolve::Settings;
use store::Reader;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

pub use shared::READS_MAX;
pub(crate) use shared::StreamEnd;
pub(crate) use wire::UpdateKind;
pub use wire::{Http2ClientParams, Http2ParamsError, parse_http2_params};

use crate::{Hub, Metrics};
use shared::Shared;
use wire::Update;

/// The Destination service.
#[derive(Clone)]
pub struct Destination {
    shared: Arc<Shared>,
}

impl Destination {
    /// Answers from `reader`, and again whenever `hub` says so. `http2` is what meshed endpoints get, and
    /// decides `settings.http2`. At most `reads_max` streams read the store at the same time. When `stop` is cancelled, all streams end with OK, and so does each that is
    /// opened later.
    pub fn new(
        reader: Reader,
        hub: Arc<Hub>,
        settings: Settings,
        http2: Option<Http2ClientParams>,
        metrics: Arc<Metrics>,
        reads_max: usize,
        stop: CancellationToken,
    ) -> Destination {
        let settings = Settings { http2: http2.is_some(), ..settings };
        let answers = delta::Answers { settings, http2, message_bytes_max: MESSAGE_BYTES_MAX };
        Destination {
            shared: Arc::new(Shared::new(reader, hub, answers, metrics, reads_max, stop)),
        }
    }
}

#[tonic::async_trait]
impl Api for Destination {
    type GetStream = BoxStream<'static, Result<Update, Status>>;
    type GetProfileStream = BoxStream<'static, Result<DestinationProfile, Status>>;

    async fn get(
        &self,
        request: Request<GetDestination>,
    ) -> Result<Response<Self::GetStream>, Status> {
        let GetDestination { path, context_token, .. } = request.into_inner();
        let answer = get::get(&self.shared, &path, &context_token).await;
        self.shared.metrics.answered("Get", answer.as_ref().err().map(Status::code));
        answer.map(Response::new)
    }

    async fn get_profile(
        &self,
        _: Request<GetDestination>,
    ) -> Result<Response<Self::GetProfileStream>, Status> {
        self.shared.metrics.answered("GetProfile", Some(tonic::Code::Unimplemented));
        Err(Status::unimplemented("GetProfile is not served yet; Get is"))
    }
}
