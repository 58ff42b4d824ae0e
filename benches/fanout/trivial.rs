//! A server of tonic's that knows two messages: all there is, and a change.

use bytes::Bytes;
use data::say;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use linkerd2_proxy_api::destination::GetDestination;
use linkerd2_proxy_api::destination::destination_server::SERVICE_NAME;
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{Service, StdError, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::ours::Ours;

#[derive(Clone)]
struct Trivial {
    message: watch::Sender<Bytes>,
}

impl NamedService for Trivial {
    const NAME: &'static str = SERVICE_NAME;
}

impl<B> Service<http::Request<B>> for Trivial
where
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (mut grpc, get) = (Grpc::new(Encoded), self.clone());
        async move { Ok(grpc.server_streaming(get, request).await) }.boxed()
    }
}

impl ServerStreamingService<GetDestination> for Trivial {
    type Response = Bytes;
    type ResponseStream = BoxStream<'static, Result<Bytes, Status>>;
    type Future =
        futures::future::BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _: Request<GetDestination>) -> Self::Future {
        let messages = WatchStream::new(self.message.subscribe()).map(Ok).boxed();
        async move { Ok(Response::new(messages)) }.boxed()
    }
}

struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
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
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put(to, message);
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

/// What our server says of a Service at first, and of a change.
async fn messages(spec: &str) -> anyhow::Result<(Bytes, Bytes)> {
    use linkerd2_proxy_api::destination::destination_client::DestinationClient;
    use prost::Message as _;
    let mut ours = Ours::start(spec).await?;
    let mut client =
        DestinationClient::connect(format!("http://{}", ours.fed.running.addr())).await?;
    let request = GetDestination { path: data::authority(0), ..GetDestination::default() };
    let mut stream = client.get(request).await?.into_inner();
    let mut next = async || {
        let update = stream.message().await?.unwrap_or_default();
        anyhow::Ok(Bytes::from(update.encode_to_vec()))
    };
    let first = next().await?;
    ours.flipped(0).await?;
    Ok((first, next().await?))
}

pub(crate) fn run(spec: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (first, change) = runtime.block_on(messages(spec))?;
    runtime.block_on(async {
        let message = watch::Sender::new(first);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let service = Trivial { message: message.clone() };
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(serving.serve_with_incoming(incoming));
        say(&format!("ready {addr}"));
        let mut lines = BufReader::new(stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            let word = line.split(' ').next().unwrap_or_default();
            let answer = match word {
                "rss" => crate::rss()?,
                "made" => 0,
                "flip" => {
                    let begun = data::wall_ns();
                    message.send_replace(change.clone());
                    begun
                }
                _ => anyhow::bail!("{line:?} is not understood"),
            };
            say(&format!("{word} {answer}"));
        }
        Ok(())
    })
}
