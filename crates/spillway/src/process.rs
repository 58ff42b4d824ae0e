//! The process: its runtime, its signals.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

/// Runs a future to its end on a runtime of its own.
pub(crate) fn block_on(run: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().build().context("cannot start threads")?;
    let outcome = runtime.block_on(run);
    // A blocking read of the store may be under way; nobody needs its result any more.
    runtime.shutdown_background();
    outcome
}

/// Waits for the first SIGINT or SIGTERM from here on, and names it.
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// From here on these signals don't end the process.
    pub(crate) fn take() -> anyhow::Result<Signals> {
        let failed = "cannot handle signals";
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt()).context(failed)?,
            terminate: signal(SignalKind::terminate()).context(failed)?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
