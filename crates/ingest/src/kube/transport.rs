//! Requests out, bytes in, with a limit on how long and how much.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use futures::io::{AsyncBufRead, AsyncBufReadExt as _};
use futures::{FutureExt as _, TryStreamExt as _};
use http_body_util::{BodyExt as _, Limited};
use kube::Client;
use kube::core::Status;
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::{Failure, chain, one_line};
use super::limits::{
    ERROR_BYTES_MAX, LARGE_WAIT_MAX, LINE_BYTES_MAX, PAGE_BYTES_MAX, RESPONSE_WAIT_MAX,
    SILENCE_MAX, SMALL_BYTES_MAX,
};
use super::lines::Lines;
use super::resource::HttpRequest;
use super::turns::{Place, Turns};

/// The body of an answer, as it arrives.
type Body = Pin<Box<dyn AsyncBufRead + Send>>;

/// Why there is no body.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The API server says so.
    Status(Box<Status>),
    /// It doesn't even say that.
    Failed(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::Status(status) => {
                write!(to, "the API server says {}: {}", status.code, one_line(&status.message))
            }
            Unanswered::Failed(reason) => to.write_str(reason),
        }
    }
}

impl Unanswered {
    fn to(self, verb: &str, plural: &str) -> Failure {
        match self {
            Unanswered::Status(status) => Failure::of_status(&status, verb, plural),
            Unanswered::Failed(reason) => {
                Failure::Broken(format!("can't {verb} {plural}: {reason}"))
            }
        }
    }
}

/// Sends a request and waits for the head of its answer. (kube's own way to do so reads all of an answer that says why not,
/// however long.)
async fn open(client: &Client, request: HttpRequest) -> Result<Body, Unanswered> {
    let answer = async {
        let answer = client.send(request.map(kube::client::Body::from)).await;
        let answer = answer.map_err(|error| Unanswered::Failed(chain(&error)))?;
        if answer.status().is_success() {
            let body = answer.into_body().into_data_stream().map_err(io::Error::other);
            return Ok(Box::pin(body.into_async_read()) as Body);
        }
        let code = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ERROR_BYTES_MAX).collect().await;
        let body = body.map(|it| it.to_bytes()).unwrap_or_default();
        let status = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(&body), ""));
        Err(Unanswered::Status(status.with_code(code).boxed()))
    };
    let late = || Unanswered::Failed(format!("no answer for {} s", RESPONSE_WAIT_MAX.as_secs()));
    timeout(RESPONSE_WAIT_MAX, answer).await.unwrap_or_else(|_| Err(late()))
}

/// The whole of an answer that is one document, and the place that a large one takes.
pub(super) async fn document(
    client: &Client,
    request: HttpRequest,
    plural: &str,
    turns: &Turns,
) -> Result<(Vec<u8>, Option<Place>), Failure> {
    let body = open(client, request).await;
    let mut body = body.map_err(|unanswered| unanswered.to("list", plural))?;
    let (mut document, mut place) = (Vec::new(), None::<Place>);
    loop {
        let bytes = match &place {
            None => in_time(RESPONSE_WAIT_MAX, body.fill_buf()).await?,
            Some(place) => match timeout_at(place.until, body.fill_buf()).await {
                Ok(bytes) => bytes.map_err(|error| broken(&error))?,
                // A smaller one may be there in time.
                Err(_) => return Err(Failure::PageTooLong),
            },
        };
        if bytes.is_empty() {
            return Ok((document, place));
        }
        if document.len() + bytes.len() > PAGE_BYTES_MAX {
            return Err(Failure::PageTooLong);
        }
        if document.len() + bytes.len() > SMALL_BYTES_MAX && place.is_none() {
            place = Some(turns.to_hold().await);
            continue;
        }
        document.extend_from_slice(bytes);
        let read = bytes.len();
        body.consume_unpin(read);
    }
}

/// The whole of an answer that is a short document.
pub(super) async fn short(
    client: &Client,
    request: HttpRequest,
    bytes_max: usize,
) -> Result<Vec<u8>, Unanswered> {
    let mut body = open(client, request).await?;
    let mut document = Vec::new();
    loop {
        let bytes = in_time(RESPONSE_WAIT_MAX, body.fill_buf()).await;
        let bytes = bytes.map_err(|failure| Unanswered::Failed(failure.to_string()))?;
        if bytes.is_empty() {
            return Ok(document);
        }
        if document.len() + bytes.len() > bytes_max {
            return Err(Unanswered::Failed(format!("the answer is longer than {bytes_max} bytes")));
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
        let body = open(client, request).await;
        let body = body.map_err(|unanswered| unanswered.to("watch", plural))?;
        Ok(WatchStream { body, lines: Lines::new(LINE_BYTES_MAX) })
    }

    /// Waits for more, for something large only until then. `false` if the API server has ended the watch.
    pub(super) async fn more(&mut self, until: Option<Instant>) -> Result<bool, Failure> {
        let Some(until) = until else { return in_time(SILENCE_MAX, self.fill()).await };
        match timeout_at(until, self.fill()).await {
            Ok(more) => more.map_err(|error| broken(&error)),
            Err(_) => Err(Failure::Broken(format!(
                "an object took longer than {} s to arrive",
                LARGE_WAIT_MAX.as_secs()
            ))),
        }
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
