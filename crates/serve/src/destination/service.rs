//! The gRPC service. It is not the generated one, whose messages would be encoded for each stream.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use linkerd2_proxy_api::destination::GetDestination;
use linkerd2_proxy_api::destination::destination_server::SERVICE_NAME;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{Service, StdError, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::{Request, Response, Status};

use super::Destination;
use super::wire::Message;

/// Bytes of a request: a name, a port and a token of a few hundred bytes.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

impl NamedService for Destination {
    const NAME: &'static str = SERVICE_NAME;
}

impl<B> Service<http::Request<B>> for Destination
where
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let method = request.uri().path().strip_prefix("/").and_then(|path| path.split_once('/'));
        let destination = self.clone();
        match method {
            Some((SERVICE_NAME, "Get")) => answer(Get(destination), request),
            Some((SERVICE_NAME, "GetProfile")) => answer(GetProfile(destination), request),
            _ => async { Ok(Status::unimplemented("no such method").into_http()) }.boxed(),
        }
    }
}

fn answer<M, B>(
    method: M,
    request: http::Request<B>,
) -> BoxFuture<'static, Result<http::Response<Body>, Infallible>>
where
    M: ServerStreamingService<GetDestination, Response = Message> + Send + 'static,
    M::ResponseStream: Send + 'static,
    M::Future: Send,
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    let mut grpc = Grpc::new(Encoded).max_decoding_message_size(REQUEST_BYTES_MAX);
    async move { Ok(grpc.server_streaming(method, request).await) }.boxed()
}

type Messages = BoxStream<'static, Result<Message, Status>>;

struct Get(Destination);

impl ServerStreamingService<GetDestination> for Get {
    type Response = Message;
    type ResponseStream = Messages;
    type Future = BoxFuture<'static, Result<Response<Messages>, Status>>;

    fn call(&mut self, request: Request<GetDestination>) -> Self::Future {
        let destination = self.0.clone();
        let GetDestination { path, context_token, .. } = request.into_inner();
        async move { destination.get(&path, &context_token).await.map(Response::new) }.boxed()
    }
}

struct GetProfile(Destination);

impl ServerStreamingService<GetDestination> for GetProfile {
    type Response = Message;
    type ResponseStream = Messages;
    type Future = BoxFuture<'static, Result<Response<Messages>, Status>>;

    fn call(&mut self, _: Request<GetDestination>) -> Self::Future {
        let metrics = &self.0.shared.metrics;
        metrics.answered("GetProfile", Some(tonic::Code::Unimplemented));
        let refusal = Status::unimplemented("GetProfile is not served yet; Get is");
        async { Err(refusal) }.boxed()
    }
}

/// Messages are bytes already; requests are decoded.
struct Encoded;

impl Codec for Encoded {
    type Encode = Message;
    type Decode = GetDestination;
    type Encoder = Encoded;
    type Decoder = Encoded;

    fn encoder(&mut self) -> Encoded {
        Encoded
    }

    fn decoder(&mut self) -> Encoded {
        Encoded
    }
}

impl Encoder for Encoded {
    type Item = Message;
    type Error = Status;

    fn encode(&mut self, message: Message, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put(to, message.bytes);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = GetDestination;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<GetDestination>, Status> {
        let malformed = |error: prost::DecodeError| Status::internal(error.to_string());
        prost::Message::decode(from).map(Some).map_err(malformed)
    }
}
