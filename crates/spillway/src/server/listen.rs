//! Sockets to listen on.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use tokio::net::TcpListener;

/// Listens on an address. `[::]` takes IPv4 as well, and is `0.0.0.0` on a machine without IPv6.
pub(super) async fn listen(flag: &str, addr: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = match TcpListener::bind(addr).await {
        Err(error) if addr.is_ipv6() && addr.ip().is_unspecified() && no_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, addr.port())).await
        }
        listener => listener,
    };
    listener.with_context(|| format!("cannot listen on {addr} ({flag})"))
}

fn no_ipv6(error: &std::io::Error) -> bool {
    // EAFNOSUPPORT has no kind of its own in the standard library.
    const EAFNOSUPPORT: i32 = 97;
    error.kind() == ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(EAFNOSUPPORT)
}
