//! One connection: its streams, its pings, its end.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use h2::{Ping, PingPong};
use tokio::net::TcpStream;

use super::{Open, call};
use crate::Turn;

/// How long a client may take to begin.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Proxies send no pings of their own, so it is for the server to notice that one is gone.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PONG_MAX: Duration = Duration::from_secs(10);

/// Once everything is to end, a client has so long to take what is on its way.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// Streams of a connection that were reset before they were accepted. A sidecar carries the streams of many
/// proxies on one connection and may give up hundreds at once; with HTTP/2's usual 20 that connection would be
/// closed as an attack.
const RESET_STREAMS_MAX: usize = 1_024;

/// Bytes of a request's headers, and of a stream's messages that are handed to the connection before it takes them.
const HEADER_BYTES_MAX: u32 = 16 << 10;
const SEND_BUFFER_BYTES_MAX: usize = 64 << 10;

/// What the streams of a connection share.
#[derive(Clone, Default)]
pub(super) struct Caller {
    /// How many there are.
    pub(super) streams: Arc<AtomicUsize>,
    pub(super) turn: Turn,
}

/// Serves a connection to its end.
pub(super) async fn serve(socket: TcpStream, open: Arc<Open>) {
    // It fails on a socket that is closed already, which is found out soon enough.
    socket.set_nodelay(true).ok();
    let mut builder = h2::server::Builder::new();
    builder
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_send_buffer_size(SEND_BUFFER_BYTES_MAX)
        .max_pending_accept_reset_streams(RESET_STREAMS_MAX);
    let handshake = builder.handshake::<_, Bytes>(socket);
    let Ok(Ok(mut connection)) = tokio::time::timeout(HANDSHAKE_MAX, handshake).await else {
        tracing::debug!("a client does not speak HTTP/2");
        return;
    };
    let mut pings = connection.ping_pong();
    let gone = async {
        match &mut pings {
            Some(pings) => unanswered(pings).await,
            None => std::future::pending().await,
        }
    };
    let (closing, stop) = (open.door.closing.clone(), open.door.stop.clone());
    let stopped = async {
        stop.cancelled().await;
        tokio::time::sleep(CLOSE_MAX).await;
    };
    tokio::pin!(gone, stopped);
    let (mut going_away, caller) = (false, Caller::default());
    loop {
        tokio::select! {
            accepted = together(poll_fn(|cx| connection.poll_accept(cx))) => match accepted {
                Some(Ok((request, respond))) => {
                    tokio::spawn(call::answer(request, respond, Arc::clone(&open), caller.clone()));
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "a connection failed");
                    return;
                }
                None => return,
            },
            () = closing.cancelled(), if !going_away => {
                connection.graceful_shutdown();
                going_away = true;
            }
            () = &mut gone => {
                tracing::debug!("a client does not answer pings");
                return;
            }
            () = &mut stopped => return,
        }
    }
}

/// What it is woken for by one stream is mostly said by others as well: they go first, and all that they hand in leaves
/// in one piece. A change to a thousand streams would otherwise be a thousand writes.
async fn together<T>(mut connection: impl Future<Output = T> + Unpin) -> T {
    let mut woken = false;
    poll_fn(|cx| {
        if std::mem::take(&mut woken) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        woken = true;
        connection.poll_unpin(cx)
    })
    .await
}

/// Returns when a ping is not answered.
async fn unanswered(pings: &mut PingPong) {
    loop {
        tokio::time::sleep(PING_INTERVAL).await;
        if pings.send_ping(Ping::opaque()).is_err() {
            return;
        }
        let pong = tokio::time::timeout(PONG_MAX, poll_fn(|cx| pings.poll_pong(cx))).await;
        if !matches!(pong, Ok(Ok(_))) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::{Notify, mpsc};

    /// One thread, so that they run one after the other.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_many_hand_in_at_once_is_taken_at_once() {
        const MANY: usize = 100;
        let (change, (send, mut handed_in)) = (Arc::new(Notify::new()), mpsc::channel(MANY));
        let taking = tokio::spawn(async move {
            let (mut polls, mut taken) = (0, 0);
            let connection = poll_fn(|cx| {
                polls += 1;
                while handed_in.poll_recv(cx).is_ready() {
                    taken += 1;
                }
                if taken < MANY { Poll::Pending } else { Poll::Ready(()) }
            });
            together(connection).await;
            polls
        });
        let (waits, mut waiting) = mpsc::channel(MANY);
        for _ in 0..MANY {
            let (change, send, waits) = (Arc::clone(&change), send.clone(), waits.clone());
            tokio::spawn(async move {
                let changed = change.notified();
                waits.send(()).await.unwrap();
                changed.await;
                send.send(()).await.unwrap();
            });
        }
        for _ in 0..MANY {
            waiting.recv().await.unwrap();
        }
        // On the same thread as they are, so that it tells all before any of them goes on.
        tokio::spawn(async move { change.notify_waiters() });
        let polls = tokio::time::timeout(Duration::from_secs(10), taking).await.unwrap().unwrap();
        assert!(polls < MANY / 10, "{polls} times");
    }
}
