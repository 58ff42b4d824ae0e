//! Requests out, bytes in, with a limit on how long and how much.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use futures::FutureExt as _;
use futures::io::{AsyncBufRead, AsyncBufReadExt as _};
use kube::Client;
use tokio::time::timeout;

use super::failure::{Failure, chain};
use super::limits::{LINE_BYTES_MAX, PAGE_BYTES_MAX, RESPONSE_WAIT_MAX, SILENCE_MAX};
use super::lines::Lines;
use super::resource::HttpRequest;

/// The body of an answer, as it arrives.
type Body = Pin<Box<dyn AsyncBufRead + Send>>;

/// Sends a request and waits for the head of its answer.
async fn open(
    client: &Client,
    request: HttpRequest,
    verb: &str,
    plural: &str,
) -> Result<Body, Failure> {
    match timeout(RESPONSE_WAIT_MAX, client.request_stream(request)).await {
        Ok(Ok(body)) => Ok(Box::pin(body)),
        Ok(Err(error)) => Err(Failure::of_error(&error, verb, plural)),
        Err(_) => Err(silent(RESPONSE_WAIT_MAX)),
    }
}

/// The whole of an answer that is one document.
pub(super) async fn document(
    client: &Client,
    request: HttpRequest,
    plural: &str,
) -> Result<Vec<u8>, Failure> {
    let mut body = open(client, request, "list", plural).await?;
    let mut document = Vec::new();
    loop {
        let bytes = in_time(RESPONSE_WAIT_MAX, body.fill_buf()).await?;
        if bytes.is_empty() {
            return Ok(document);
        }
        if document.len() + bytes.len() > PAGE_BYTES_MAX {
            return Err(Failure::PageTooLong);
        }
        document.extend_from_slice(bytes);
        let read = bytes.len();
        body.consume_unpin(read);
    }
}

/// A watch: an answer that goes on, in lines.
pub(super) struct WatchStream {
    body: Body,
    /// What has arrived.
    pub(super) lines: Lines,
}

impl WatchStream {
    /// Opens a watch.
    pub(super) async fn open(
        client: &Client,
        request: HttpRequest,
        plural: &str,
    ) -> Result<WatchStream, Failure> {
        let body = open(client, request, "watch", plural).await?;
        Ok(WatchStream { body, lines: Lines::new(LINE_BYTES_MAX) })
    }

    /// Waits for more. `false` if the API server has ended the watch.
    pub(super) async fn more(&mut self) -> Result<bool, Failure> {
        in_time(SILENCE_MAX, self.fill()).await
    }

    /// Takes what has arrived already, if anything has.
    pub(super) fn more_now(&mut self) -> Option<Result<bool, Failure>> {
        Some(self.fill().now_or_never()?.map_err(|error| broken(&error)))
    }

    /// Loses nothing if it is dropped before it is done: there is one await, and what it gives isn't taken yet.
    async fn fill(&mut self) -> io::Result<bool> {
        let bytes = self.body.fill_buf().await?;
        self.lines.push(bytes);
        let read = bytes.len();
        self.body.consume_unpin(read);
        Ok(read > 0)
    }
}

async fn in_time<T>(
    most: Duration,
    read: impl Future<Output = io::Result<T>>,
) -> Result<T, Failure> {
    match timeout(most, read).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(broken(&error)),
        Err(_) => Err(silent(most)),
    }
}

fn broken(error: &io::Error) -> Failure {
    Failure::Broken(format!("the connection broke: {}", chain(error)))
}

fn silent(most: Duration) -> Failure {
    Failure::Broken(format!("nothing was heard from the API server for {} s", most.as_secs()))
}
