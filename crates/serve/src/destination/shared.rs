//! What all streams of a server share, and how they read the store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use model::EndpointsFrom;
use parking_lot::Mutex;
use store::Snapshot;
use tokio_util::sync::CancellationToken;

use super::afloat::Afloat;
use super::delta::Answers;
use super::hot::{Hot, Seen};
use super::level::Levels;
use super::reads::{Place, Reader, Reads};
use super::synced::{Needed, Synced};
use super::wire::Message;
use crate::{Hub, Metrics, Subscription};

/// Streams that may usefully read the store at the same time. Each holds one message while it reads, and reading is bound by
/// the processors; more would only take memory.
pub const READS_MAX: usize = 4;

/// After so long a stream that waits for the first listings looks whether one of them is refused.
const REFUSED_WAIT: Duration = Duration::from_millis(500);

/// What streams may take of memory.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// Streams that read the store at the same time.
    pub reads_max: usize,
    /// Bytes of answers that are kept, for those who ask the same.
    pub hot_bytes: usize,
    /// Bytes of answers besides these, on their way to clients that take them slowly.
    pub sending_bytes: usize,
}

/// What all streams share.
pub(super) struct Shared {
    pub(super) hub: Arc<Hub>,
    pub(super) answers: Answers,
    pub(super) metrics: Arc<Metrics>,
    pub(super) stop: CancellationToken,
    pub(super) hot: Arc<Hot>,
    pub(super) afloat: Arc<Afloat>,
    pub(super) levels: Levels,
    reader: store::Reader,
    pub(super) reads: Reads,
    /// Held by whoever reads on a thread that serves HTTP/2.
    reading_here: Mutex<()>,
    synced: Synced,
}

/// Why an answer can't be given, or not be continued. All of it may be over when the client asks again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The store says so.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// What the client was told is not known any more.
    #[error("the client is too slow for the changes of this Service")]
    TooSlow,
    /// There is nothing to be told of what the client asked for any more.
    #[error("{0}")]
    Gone(String),
    /// There is nothing more to say, and that is as it should be.
    #[error("there is nothing more to say")]
    Over,
    /// The server ends.
    #[error("the server is ending")]
    Ending,
    /// Reading panicked; what it was doing is lost, the store is not.
    #[error("reading the store panicked")]
    Panicked,
}

/// Why the server ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The server stopped at once.
    Stopped,
    /// The server was ending, and told its streams one after the other.
    Ending,
    /// What the client was told last is too old to go on from.
    Behind,
    /// What the client asked for is gone.
    Gone,
    /// Nothing is told of what the client asked for any more: its cluster is not linked, or it is federated no more.
    Over,
    /// The client took nothing for too long.
    Stalled,
    /// The client was slow, and the memory of what it was being told was needed.
    Evicted,
    /// The store could not be read.
    Failed,
}

impl StreamEnd {
    pub(crate) const ALL: [StreamEnd; 8] = [
        StreamEnd::Over,
        StreamEnd::Stopped,
        StreamEnd::Ending,
        StreamEnd::Behind,
        StreamEnd::Gone,
        StreamEnd::Stalled,
        StreamEnd::Evicted,
        StreamEnd::Failed,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            StreamEnd::Stopped => "stopped",
            StreamEnd::Ending => "ending",
            StreamEnd::Gone => "gone",
            StreamEnd::Over => "over",
            StreamEnd::Stalled => "stalled",
            StreamEnd::Evicted => "evicted",
            StreamEnd::Behind => "behind",
            StreamEnd::Failed => "failed",
        }
    }

    pub(super) fn of(failure: &Failure) -> StreamEnd {
        match failure {
            Failure::Store(store::Error::Trimmed { .. }) | Failure::TooSlow => StreamEnd::Behind,
            Failure::Gone(_) => StreamEnd::Gone,
            Failure::Over => StreamEnd::Over,
            Failure::Ending => StreamEnd::Ending,
            Failure::Store(_) | Failure::Panicked => StreamEnd::Failed,
        }
    }
}

impl Shared {
    pub(super) fn new(
        reader: store::Reader,
        hub: Arc<Hub>,
        answers: Answers,
        metrics: Arc<Metrics>,
        limits: StreamLimits,
        needed: Needed,
        stop: CancellationToken,
    ) -> Shared {
        let reads = Reads::new(limits.reads_max);
        let hot = Arc::new(Hot::new(limits.hot_bytes));
        let levels = Levels::new(answers.oversize, answers.message_bytes_max);
        let afloat = Afloat::new(limits.hot_bytes.saturating_add(limits.sending_bytes));
        Shared {
            hub,
            answers,
            metrics,
            stop,
            hot,
            afloat,
            levels,
            reader,
            reads,
            reading_here: Mutex::default(),
            synced: Synced::new(needed),
        }
    }

    /// Reads the newest revision on a thread that may block; so many at a time as memory allows. What is read is what
    /// there is after so many commits, or later.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Shared>,
        reader: &Reader,
        read: impl FnOnce(&Shared, &Snapshot, Seen) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let place = self.reads.place(reader).await;
        self.read_at(place, read).await
    }

    /// Reads as [`Shared::read`] does, at a place that there is.
    pub(super) async fn read_at<T: Send + 'static>(
        self: &Arc<Shared>,
        place: Place,
        read: impl FnOnce(&Shared, &Snapshot, Seen) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let shared = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            let seen = shared.hub.commit_count();
            let snapshot = shared.reader.snapshot()?;
            let result = read(&shared, &snapshot, seen);
            drop(place);
            result
        });
        reading.await.unwrap_or(Err(Failure::Panicked))
    }

    /// Reads on this very thread, which must read a few rows only: handing that to another takes several times as long. One
    /// at a time, so that a disk that hangs stops one thread. `None`: not now.
    pub(super) fn read_here<T>(
        &self,
        read: impl FnOnce(&Snapshot, Seen) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let Some(_alone) = self.reading_here.try_lock() else { return Ok(None) };
        let seen = self.hub.commit_count();
        let Some(snapshot) = self.reader.snapshot_now()? else { return Ok(None) };
        let read = AssertUnwindSafe(|| read(&snapshot, seen));
        catch_unwind(read).unwrap_or(Err(Failure::Panicked)).map(Some)
    }

    /// What a stream has to say next; `None` if the server stops before.
    pub(super) async fn next<T>(&self, message: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            message = message => Some(message),
        }
    }

    /// Counts what a stream says, or how it ends. Does it go on?
    pub(super) fn count(
        &self,
        said: Option<&Result<Message, Failure>>,
        subscription: &Subscription,
    ) -> bool {
        match said {
            Some(Ok(message)) => {
                let bytes = message.frame.len();
                self.metrics.sent(message.kind, bytes, subscription.woken_for());
                return true;
            }
            Some(Err(failure)) => self.metrics.ended(StreamEnd::of(failure)),
            None => self.metrics.ended(StreamEnd::Stopped),
        }
        false
    }

    /// The newest revision.
    #[cfg(test)]
    pub(super) fn snapshot_for_tests(&self) -> Snapshot {
        self.reader.snapshot().expect("the store is open")
    }

    /// Which objects say where endpoints are.
    pub(super) fn endpoints(&self) -> EndpointsFrom {
        self.synced.endpoints()
    }

    /// Have the sources been listed once?
    pub(super) async fn synced(self: &Arc<Shared>) -> Result<bool, Failure> {
        self.is_synced(false).await
    }

    async fn is_synced(self: &Arc<Shared>, anew: bool) -> Result<bool, Failure> {
        let read = async |needed: Needed| {
            self.read(&Reader::Server, move |_, snapshot, _| Ok(needed.is_known(snapshot)?)).await
        };
        self.synced.check(anew, || self.hub.commit_count(), read).await
    }

    /// Returns when the sources have been listed once.
    pub(super) async fn until_synced(self: &Arc<Shared>) -> Result<(), Failure> {
        let mut advances = self.hub.advances();
        let mut waited = false;
        while !self.is_synced(waited).await? {
            // That a source is refused comes with no commit.
            match tokio::time::timeout(REFUSED_WAIT, advances.changed()).await {
                Ok(Ok(())) => waited = false,
                Ok(Err(_)) => return Ok(()),
                Err(_) => waited = true,
            }
        }
        Ok(())
    }
}
