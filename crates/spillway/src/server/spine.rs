//! The spine: what sources deliver becomes a commit, and a commit wakes the streams. It runs on a thread of
//! its own, the only one that has the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use ingest::Delivery;
use ingest::batch::Batch;
use serve::Hub;
use store::Writer;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Who takes part.
pub(super) struct Spine {
    pub(super) writer: Writer,
    pub(super) hub: Arc<Hub>,
    pub(super) deliveries: mpsc::Receiver<Delivery>,
    pub(super) stop: CancellationToken,
}

/// What there is to do.
enum Next {
    Commit(Delivery),
    /// Nothing was delivered, so there is time for pending work.
    Idle,
    Stop,
}

/// Gives the spine its thread. If it fails or panics, `failure` says so.
pub(super) fn spawn(
    spine: Spine,
    failure: watch::Sender<Option<String>>,
) -> anyhow::Result<JoinHandle<()>> {
    let runtime = Handle::current();
    let run = move || {
        // Nothing of the spine is used after a panic, so nothing half-done can be seen.
        let reason = match catch_unwind(AssertUnwindSafe(|| spine.run(&runtime))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("the writer failed: {error}"),
            Err(_) => "the writer panicked".to_owned(),
        };
        tracing::error!("{reason}");
        failure.send_replace(Some(reason));
    };
    let thread = std::thread::Builder::new().name("writer".to_owned());
    thread.spawn(run).context("cannot start the writer's thread")
}

impl Spine {
    /// Runs until the server ends, or the writer fails.
    fn run(mut self, runtime: &Handle) -> Result<(), store::Error> {
        // A trim may have been cut off by the end of the process before.
        let mut pending = true;
        let mut too_much = None;
        loop {
            let next = match too_much.take() {
                Some(delivery) => Next::Commit(delivery),
                None => runtime.block_on(self.next(pending)),
            };
            match next {
                Next::Commit(first) => {
                    let next = || self.deliveries.try_recv().ok();
                    let (batch, rest) = Batch::collect(first, next);
                    too_much = rest;
                    self.commit(batch)?;
                    // One piece after each commit: a busy source must not put off sweeps and trims for ever.
                    pending = self.tick()?;
                }
                Next::Idle => pending = self.tick()?,
                Next::Stop => return Ok(()),
            }
        }
    }

    async fn next(&mut self, pending: bool) -> Next {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Next::Stop,
            delivery = self.deliveries.recv() => delivery.map_or(Next::Stop, Next::Commit),
            () = std::future::ready(()), if pending => Next::Idle,
        }
    }

    fn commit(&mut self, batch: Batch) -> Result<(), store::Error> {
        let (changes, done) = batch.into_parts();
        let commit = self.writer.commit(changes)?;
        self.hub.advance(&commit);
        for waiting in done {
            // Whoever asked may have gone meanwhile; the commit stands.
            waiting.send(commit.revision).ok();
        }
        Ok(())
    }

    /// Does a piece of pending work. May there be more?
    fn tick(&mut self) -> Result<bool, store::Error> {
        let commit = self.writer.tick()?;
        if let Some(commit) = &commit {
            self.hub.advance(commit);
        }
        Ok(commit.is_some())
    }
}
