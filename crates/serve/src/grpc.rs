//! The gRPC server: how its connections behave.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::{Router, TcpIncoming};

use crate::Destination;

/// Proxies send no pings of their own, so it is for the server to notice that one is gone.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Streams of a connection that were reset before they were accepted. A sidecar carries the streams of many
/// proxies on one connection and may give up hundreds at once; with HTTP/2's usual 20 that connection would be
/// closed as an attack.
const RESET_STREAMS_MAX: usize = 1_024;

/// The gRPC services. Streams per connection are not limited: all proxies of a node or an account may come
/// through one sidecar, on one connection.
pub fn grpc(destination: Destination) -> Router {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .http2_max_pending_accept_reset_streams(Some(RESET_STREAMS_MAX))
        .add_service(destination)
}

/// Serves on a socket until `stop` is cancelled and all connections are done. With the token that the
/// destination has, that is soon: its streams end then.
pub async fn serve(
    listener: TcpListener,
    destination: Destination,
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    grpc(destination).serve_with_incoming_shutdown(incoming, stop.cancelled_owned()).await
}
