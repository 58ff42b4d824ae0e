//! Who watches over the writer. If it fails, what it had not made durable may be lost, so the store is opened again,
//! from disk, and the sources begin again at the checkpoints that are there. Streams go on meanwhile, save for those
//! that were told of what is lost: they end, and are asked for again.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use ingest::Delivery;
use model::Revision;
use store::Reader;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::intake::Doors;
use super::sources::Sources;
use super::spine::Spine;

/// A writer that fails more often than this in so long fails for good: what is wrong is not over.
const REOPENED_MAX: usize = 3;
const REOPENED_WITHIN: Duration = Duration::from_secs(600);

/// The spine, and all that it takes to go on after a failure.
pub(super) struct Supervisor {
    pub(super) spine: Spine,
    pub(super) reader: Reader,
    pub(super) sources: Sources,
    /// Where the sources deliver to.
    pub(super) deliveries: mpsc::WeakSender<Delivery>,
    /// Where linked clusters get doors of their own.
    pub(super) doors: Doors,
    /// The sources at work. Aborted when dropped.
    pub(super) tasks: JoinSet<()>,
}

/// Gives the writer its thread. If it fails for good, `failure` says so.
pub(super) fn spawn(
    mut supervisor: Supervisor,
    failure: watch::Sender<Option<String>>,
) -> anyhow::Result<JoinHandle<()>> {
    let runtime = Handle::current();
    let run = move || {
        // Nobody knows what a panic has left behind, least of all in redb: the process has to begin anew.
        let reason = match catch_unwind(AssertUnwindSafe(|| supervisor.run(&runtime))) {
            Ok(Ok(())) => return,
            Ok(Err(reason)) => reason,
            Err(_) => "the writer panicked".to_owned(),
        };
        tracing::error!("{reason}");
        failure.send_replace(Some(reason));
    };
    let thread = std::thread::Builder::new().name("writer".to_owned());
    thread.spawn(run).context("cannot start the writer's thread")
}

impl Supervisor {
    /// Runs until the server ends, or the writer fails for good: then says why.
    fn run(&mut self, runtime: &Handle) -> Result<(), String> {
        let mut reopened = VecDeque::new();
        loop {
            let reason = match self.spine.run(runtime) {
                Ok(()) => return Ok(()),
                Err(error) => format!("the writer failed: {error}"),
            };
            if !self.sources.can_repeat() {
                return Err(reason);
            }
            reopened.retain(|at: &Instant| at.elapsed() < REOPENED_WITHIN);
            if reopened.len() == REOPENED_MAX {
                return Err(format!("{reason}; it has failed {REOPENED_MAX} times before"));
            }
            reopened.push_back(Instant::now());
            tracing::error!(
                "{reason}; the store is opened again, and its sources begin again from it"
            );
            self.reopen(runtime).map_err(|error| format!("{reason}; then: {error:#}"))?;
        }
    }

    fn reopen(&mut self, runtime: &Handle) -> anyhow::Result<()> {
        // What they have delivered goes on from what may be lost.
        runtime.block_on(self.tasks.shutdown());
        self.spine.forget();
        let lost = self.spine.writer.reopen()?;
        let now = self.reader.stats().revision;
        self.spine.hub.look_again(Revision(lost.after.0 + 1), now);
        self.spine.metrics.reopened();
        tracing::info!(revision = lost.after.0, "the store is open again");
        // Without a sender the server ends, and so will the spine.
        if let Some(deliveries) = self.deliveries.upgrade() {
            let _runtime = runtime.enter();
            self.tasks = self.sources.spawn(&deliveries, &self.doors, &self.reader)?;
        }
        Ok(())
    }
}
