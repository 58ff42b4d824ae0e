//! The spine: what sources deliver becomes a commit, and a commit wakes the streams. It runs on a thread of
//! its own, the only one that has the writer, under the eyes of [`super::supervisor`].

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ingest::Delivery;
use model::Time;
use serve::{Hub, Metrics};
use store::{Commit, Writer};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::flood::Flood;
use super::intake::Intake;
use super::links::{Known, News};

/// Who takes part.
pub(super) struct Spine {
    pub(super) writer: Writer,
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) intake: Intake,
    /// Told of what is committed of links.
    pub(super) links: Arc<Known>,
    /// Tells of what is not let in.
    pub(super) flood: Flood,
    /// How long commits may wait until they are durable, if they aren't at once.
    pub(super) fsync_interval: Duration,
    /// When those that wait are made durable.
    pub(super) sync_at: Option<Instant>,
    pub(super) stop: CancellationToken,
}

/// What there is to do.
enum Next {
    Commit(Delivery),
    /// Commits have waited long enough to be made durable.
    Sync,
    /// Nothing was delivered, so there is time for pending work.
    Idle,
    Stop,
}

/// At least this often, the undo log is looked at: it grows old while nothing happens, too.
const TICK_INTERVAL: Duration = Duration::from_secs(30);

/// And so often while anybody waits to be let in.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// A disk that doesn't take writes is tried again after this long, then after twice as long, and so on.
const DISK_RETRY_MIN: Duration = Duration::from_millis(250);
const DISK_RETRY_MAX: Duration = Duration::from_secs(5);

impl Spine {
    /// Runs until the server ends, or the writer fails.
    pub(super) fn run(&mut self, runtime: &Handle) -> Result<(), store::Error> {
        // A trim may have been cut off by the end of the process before.
        let mut pending = true;
        loop {
            match runtime.block_on(self.next(pending)) {
                Next::Commit(first) => {
                    self.commit(runtime, first)?;
                    // One piece after each commit: a busy source must not put off sweeps and trims for ever.
                    pending = self.tick(runtime)?;
                }
                Next::Sync => self.sync(runtime)?,
                Next::Idle => pending = self.tick(runtime)?,
                Next::Stop => return self.sync(runtime),
            }
        }
    }

    /// Writes, and if the disk doesn't take writes, again and again until it does. What waits is kept meanwhile, and
    /// sources wait as the queue fills. `None`: the server ends before.
    fn write<T>(
        &mut self,
        runtime: &Handle,
        mut write: impl FnMut(&mut Writer) -> Result<T, store::Error>,
    ) -> Result<Option<T>, store::Error> {
        let (mut wait, mut told) = (DISK_RETRY_MIN, false);
        loop {
            match write(&mut self.writer) {
                Err(store::Error::DiskFailing { reason }) if !told => {
                    tracing::error!(%reason, "nothing can be written; answers go on");
                    told = true;
                }
                Err(store::Error::DiskFailing { .. }) => {}
                written => {
                    if told && written.is_ok() {
                        tracing::info!("the disk takes writes again");
                    }
                    return written.map(Some);
                }
            }
            let waited = async { self.stop.run_until_cancelled(sleep(wait)).await };
            if runtime.block_on(waited).is_none() {
                return Ok(None);
            }
            wait = (wait * 2).min(DISK_RETRY_MAX);
        }
    }

    /// Drops what was delivered and is not committed. Whoever waits for it is told that it won't be.
    pub(super) fn forget(&mut self) {
        self.sync_at = None;
        self.intake.clear();
    }

    async fn next(&mut self, pending: bool) -> Next {
        let idle = match pending {
            true => Duration::ZERO,
            false if self.writer.has_waiting() => ROUND_INTERVAL,
            false => TICK_INTERVAL,
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Next::Stop,
            () = until(self.sync_at) => Next::Sync,
            delivery = self.intake.next() => delivery.map_or(Next::Stop, Next::Commit),
            () = sleep(idle) => Next::Idle,
        }
    }

    fn commit(&mut self, runtime: &Handle, first: Delivery) -> Result<(), store::Error> {
        let (mut changes, receipt) = self.intake.batch(first).into_parts();
        let news = News::of(&changes);
        let count = changes.len();
        let commit = self.write(runtime, |writer| {
            let begun = Instant::now();
            Ok((writer.commit_from(now(), &mut changes)?, begun.elapsed()))
        })?;
        let Some((commit, took)) = commit else { return Ok(()) };
        self.visible(&commit);
        self.links.committed(&commit, news);
        self.metrics.committed(count, took);
        receipt.sign(commit.revision);
        Ok(())
    }

    /// Does a piece of pending work. May there be more?
    fn tick(&mut self, runtime: &Handle) -> Result<bool, store::Error> {
        let commit = self.write(runtime, |writer| writer.tick(now()))?.flatten();
        if let Some(commit) = &commit {
            self.visible(commit);
            self.links.committed(commit, News::default());
        }
        // Both go on together, or a cluster that is never quiet would never be compacted.
        let compacting = self.write(runtime, Writer::compact)?;
        Ok(commit.is_some() || compacting == Some(true))
    }

    fn visible(&mut self, commit: &Commit) {
        self.hub.advance(commit);
        self.flood.tell(commit, &self.metrics);
        if self.writer.unsynced() {
            self.sync_at.get_or_insert_with(|| Instant::now() + self.fsync_interval);
        }
    }

    fn sync(&mut self, runtime: &Handle) -> Result<(), store::Error> {
        self.sync_at = None;
        let took = self.write(runtime, |writer| {
            let begun = Instant::now();
            writer.sync().map(|()| begun.elapsed())
        })?;
        if let Some(took) = took {
            self.metrics.synced(took);
        }
        Ok(())
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the edge that gives the time to the store")]
fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
