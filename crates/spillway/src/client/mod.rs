//! Asking a server: over gRPC, as a proxy does, or at its admin address.

mod admin;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use linkerd2_proxy_api::destination as pb;
use linkerd2_proxy_api::destination::destination_client::DestinationClient;
use linkerd2_proxy_api::net;
use tonic::transport::{Channel, Endpoint};

pub(crate) use admin::explanation;

/// A client of the Destination API with its connection.
pub(crate) type Client = DestinationClient<Channel>;

/// Connects to a server, given as `http://HOST:PORT`.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    let failed = || format!("cannot connect to {}", shown(url));
    let endpoint = Endpoint::from_shared(url.to_owned()).with_context(failed)?;
    let channel = endpoint.connect().await.map_err(innermost).with_context(failed)?;
    Ok(DestinationClient::new(channel))
}

/// The one request that there is.
pub(crate) fn request(authority: &str, token: &str) -> pb::GetDestination {
    pb::GetDestination {
        path: authority.to_owned(),
        context_token: token.to_owned(),
        ..Default::default()
    }
}

/// What a server says, unless that takes too long.
pub(crate) async fn in_time<T>(
    url: &str,
    timeout: Duration,
    answer: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let late = || format!("no answer from {} within {timeout:?}", shown(url));
    tokio::time::timeout(timeout, answer).await.with_context(late)?
}

/// A status as one line: its code as gRPC's documents name it, and the server's text.
pub(crate) fn refused(status: tonic::Status) -> anyhow::Error {
    match status.message() {
        "" => anyhow::anyhow!("{:?}", status.code()),
        message => anyhow::anyhow!("{:?}: {message}", status.code()),
    }
}

/// Where an endpoint is, which a message must say.
pub(crate) fn address(addr: Option<net::TcpAddress>) -> anyhow::Result<SocketAddr> {
    let missing = || anyhow::anyhow!("the server sent an endpoint without an address");
    let addr = addr.ok_or_else(missing)?;
    let ip: IpAddr = addr.ip.ok_or_else(missing)?.try_into()?;
    let port = u16::try_from(addr.port)
        .map_err(|_| anyhow::anyhow!("the server sent port {} of {ip}", addr.port))?;
    Ok(SocketAddr::new(ip, port))
}

/// A server as it was typed.
fn shown(url: &str) -> &str {
    url.trim_start_matches("http://")
}

/// tonic's connection errors say "transport error"; their root says what happened.
fn innermost(error: tonic::transport::Error) -> anyhow::Error {
    let mut root: &dyn std::error::Error = &error;
    while let Some(source) = root.source() {
        root = source;
    }
    anyhow::anyhow!("{root}")
}
