//! The door for proxies: gRPC over HTTP/2, as much of it as the Destination API needs.
//!
//! It is not tonic's server, which copies each message into a buffer of each stream, and which cannot end a stream whose
//! client takes nothing. Here a message is one piece of memory for all streams that are told it, and leaves it in the
//! portions that HTTP/2 asks for.

mod call;
mod connection;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Destination, Metrics};

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub struct DoorLimits {
    /// Connections that are open at the same time; one more is closed at once.
    pub connections_max: usize,
    /// Streams that are open at the same time.
    pub streams_max: usize,
    /// Of these, on one connection. All proxies of a node may come through one sidecar, on one connection.
    pub streams_per_connection_max: usize,
    /// A stream whose client takes nothing for so long is ended.
    pub stall: Duration,
}

/// The door.
pub struct Door {
    /// What answers.
    pub destination: Destination,
    /// What clients may take.
    pub limits: DoorLimits,
    /// Where it is counted.
    pub metrics: Arc<Metrics>,
    /// From when on nobody is let in: a child of `stop`.
    pub closing: CancellationToken,
    /// From when on nothing is waited for. With the token that the destination has, its streams end then.
    pub stop: CancellationToken,
}

/// A door that is open.
struct Open {
    door: Door,
    streams: Arc<AtomicUsize>,
}

/// After an accept that failed, for want of file descriptors mostly.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Serves on a socket, until the door is closed and all connections are done.
pub async fn serve(listener: TcpListener, door: Door) {
    let closing = door.closing.clone();
    let open = Arc::new(Open { door, streams: Arc::default() });
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = closing.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(_) if connections.len() >= open.door.limits.connections_max => {
                open.door.metrics.connection_refused();
            }
            Ok((socket, _)) => {
                connections.spawn(connection::serve(socket, Arc::clone(&open)));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// The client was gone before it was let in.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
