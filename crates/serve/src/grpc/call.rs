//! One call: the request, the answer, and how it ends.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use linkerd2_proxy_api::destination::GetDestination;
use linkerd2_proxy_api::destination::destination_server::SERVICE_NAME;
use prost::Message as _;
use tonic::{Code, Status};

use super::Open;
use super::connection::Caller;
use crate::destination::{FRAME_BYTES, StreamEnd};
use crate::{Answer, Message, ProfileAnswer};

/// Bytes of a request: a name, a port and a token of a few hundred bytes.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// How long a client may take to say what it wants.
const REQUEST_WAIT: Duration = Duration::from_secs(10);

/// As much of a message is offered to HTTP/2 at a time.
const OFFER_BYTES_MAX: usize = 64 << 10;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Why a stream can't be written to.
enum Blocked {
    /// The client has given it up, or is gone.
    Gone,
    /// The client doesn't take it.
    GivenUp(StreamEnd),
}

/// Answers a call to its end.
pub(super) async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    open: Arc<Open>,
    caller: Caller,
) {
    let begun = tokio::select! {
        biased;
        _ = poll_fn(|cx| respond.poll_reset(cx)) => return,
        // On the heap, so that a stream that waits is small.
        begun = Box::pin(begin(request, &open, caller)) => begun,
    };
    let (mut answer, _place) = match begun {
        Ok(begun) => begun,
        Err(refusal) => {
            // That the client is gone is none of ours.
            respond.send_response(refusal.response(), true).ok();
            return;
        }
    };
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    let Ok(mut stream) = respond.send_response(response, false) else { return };
    let status = loop {
        let message = tokio::select! {
            biased;
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return,
            message = answer.next() => message,
        };
        match message {
            Some(Ok(message)) => match write(&mut stream, message.frame, &open).await {
                Ok(()) => {}
                Err(Blocked::Gone) => return,
                Err(Blocked::GivenUp(end)) => {
                    answer.give_up(end);
                    // What HTTP/2 has of a message can't be taken back, and this code is gRPC's Unavailable.
                    stream.send_reset(Reason::REFUSED_STREAM);
                    return;
                }
            },
            Some(Err(status)) => break status,
            None => break Status::ok(""),
        }
    };
    stream.send_trailers(trailers(&status)).ok();
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        trailers.insert("grpc-status", HeaderValue::from_static("13"));
    }
    trailers
}

/// Hands a message to HTTP/2 as fast as the client takes it.
async fn write(
    stream: &mut SendStream<Bytes>,
    mut frame: Bytes,
    open: &Open,
) -> Result<(), Blocked> {
    let (stall, stop) = (open.door.limits.stall, &open.door.stop);
    while frame.has_remaining() {
        stream.reserve_capacity(frame.len().min(OFFER_BYTES_MAX));
        let mut capacity = stream.capacity();
        if capacity == 0 {
            let waiting = open.door.destination.afloat().wait(&frame);
            let waited = async {
                tokio::select! {
                    () = stop.cancelled() => Err(Blocked::Gone),
                    () = waiting.given_up() => Err(Blocked::GivenUp(StreamEnd::Evicted)),
                    capacity = poll_fn(|cx| stream.poll_capacity(cx)) => match capacity {
                        Some(Ok(capacity)) => Ok(capacity),
                        _ => Err(Blocked::Gone),
                    },
                }
            };
            // On the heap, so that a stream that waits for changes has no timer.
            let waited = Box::pin(tokio::time::timeout(stall, waited)).await;
            capacity = waited.unwrap_or(Err(Blocked::GivenUp(StreamEnd::Stalled)))?;
        }
        let portion = frame.split_to(capacity.min(frame.len()));
        stream.send_data(portion, false).map_err(|_| Blocked::Gone)?;
    }
    Ok(())
}

/// What a call is answered with, message by message.
enum Served {
    Get(Answer),
    Profile(ProfileAnswer),
}

impl Served {
    async fn next(&mut self) -> Option<Result<Message, Status>> {
        match self {
            Served::Get(answer) => answer.next().await,
            Served::Profile(answer) => answer.next().await,
        }
    }

    fn give_up(&mut self, end: StreamEnd) {
        match self {
            Served::Get(answer) => answer.give_up(end),
            Served::Profile(answer) => answer.give_up(end),
        }
    }
}

/// Why a call has no answer.
enum Refusal {
    /// It is not gRPC.
    Http(StatusCode),
    /// It is refused, as gRPC says it.
    Grpc(Status),
}

impl Refusal {
    fn response(self) -> Response<()> {
        match self {
            Refusal::Grpc(status) => status.into_http(),
            Refusal::Http(code) => {
                let mut response = Response::new(());
                *response.status_mut() = code;
                response
            }
        }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal::Grpc(status)
    }
}

/// The methods of the service.
#[derive(Clone, Copy)]
enum Method {
    Get,
    GetProfile,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Get => "Get",
            Method::GetProfile => "GetProfile",
        }
    }
}

/// A stream's place among those that may be open.
struct Place([Arc<AtomicUsize>; 2]);

impl Drop for Place {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Open {
    fn place(&self, method: Method, beside: Arc<AtomicUsize>) -> Result<Place, Status> {
        let limits = &self.door.limits;
        let all = self.streams.fetch_add(1, Ordering::Relaxed);
        let here = beside.fetch_add(1, Ordering::Relaxed);
        let place = Place([Arc::clone(&self.streams), beside]);
        let (limit, name) =
            match (all < limits.streams_max, here < limits.streams_per_connection_max) {
                (true, true) => return Ok(place),
                (false, _) => (limits.streams_max, "--max-streams"),
                (true, false) => {
                    (limits.streams_per_connection_max, "--max-streams-per-connection")
                }
            };
        self.door.metrics.answered(method.name(), Some(Code::ResourceExhausted));
        Err(Status::resource_exhausted(format!("there are {limit} streams already ({name})")))
    }
}

async fn begin(
    request: Request<RecvStream>,
    open: &Open,
    caller: Caller,
) -> Result<(Served, Place), Refusal> {
    let (head, body) = request.into_parts();
    if head.method != http::Method::POST {
        return Err(Refusal::Http(StatusCode::METHOD_NOT_ALLOWED));
    }
    let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !content_type.is_some_and(|it| it.starts_with(GRPC.as_bytes())) {
        return Err(Refusal::Http(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let path = head.uri.path().strip_prefix("/").and_then(|path| path.split_once('/'));
    let method = match path {
        Some((SERVICE_NAME, "Get")) => Method::Get,
        Some((SERVICE_NAME, "GetProfile")) => Method::GetProfile,
        _ => return Err(Status::unimplemented("no such method").into()),
    };
    let place = open.place(method, caller.streams)?;
    let GetDestination { path, context_token, .. } = read(body).await?;
    let (destination, turn) = (&open.door.destination, &caller.turn);
    let served = match method {
        Method::Get => Served::Get(destination.get(&path, &context_token, turn).await?),
        Method::GetProfile => {
            Served::Profile(destination.get_profile(&path, &context_token, turn).await?)
        }
    };
    Ok((served, place))
}

/// Reads the only message of a request.
async fn read(mut body: RecvStream) -> Result<GetDestination, Status> {
    let gone = || Status::cancelled("the client is gone");
    let mut bytes = BytesMut::new();
    let all = async {
        while let Some(part) = body.data().await {
            let part = part.map_err(|_| gone())?;
            body.flow_control().release_capacity(part.len()).map_err(|_| gone())?;
            bytes.extend_from_slice(&part);
            if bytes.len() > FRAME_BYTES + REQUEST_BYTES_MAX {
                let said = format!("a request of more than {REQUEST_BYTES_MAX} bytes");
                return Err(Status::resource_exhausted(said));
            }
        }
        Ok(())
    };
    let late = |_| Status::deadline_exceeded(format!("no request within {REQUEST_WAIT:?}"));
    tokio::time::timeout(REQUEST_WAIT, all).await.map_err(late)??;
    if bytes.len() < FRAME_BYTES {
        return Err(Status::internal("a request without a message"));
    }
    let (compressed, length) = (bytes.get_u8(), bytes.get_u32());
    if compressed != 0 {
        return Err(Status::unimplemented("compressed requests are not understood"));
    }
    if bytes.len() != usize::try_from(length).unwrap_or(usize::MAX) {
        let said = format!("a message of {length} bytes in a request of {}", bytes.len());
        return Err(Status::internal(said));
    }
    let malformed = |error: prost::DecodeError| Status::internal(error.to_string());
    GetDestination::decode(bytes.freeze()).map_err(malformed)
}
