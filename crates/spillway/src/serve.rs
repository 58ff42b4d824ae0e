//! `spillway serve`: a server, until a signal ends it or its writer fails.

use std::time::Duration;

use crate::args::ServeArgs;
use crate::logs;
use crate::process::{self, Signals};

/// How long streams and sources may take to end, once a signal said so.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    logs::install(args.log.log_level, args.log.log_format);
    let options = args.meaning().unwrap_or_else(|error| error.exit());
    process::block_on(async {
        let mut signals = Signals::take()?;
        let server = tokio::select! {
            server = spillway::start(options) => server?,
            // There is nothing to end yet.
            _ = signals.next() => return Ok(()),
        };
        tokio::select! {
            signal = signals.next() => tracing::info!(signal, "ending"),
            error = server.failed() => anyhow::bail!(error),
        }
        tokio::select! {
            outcome = tokio::time::timeout(STOP_WAIT, server.stop()) => match outcome {
                Ok(outcome) => outcome,
                Err(_) => anyhow::bail!("not everything ended within {STOP_WAIT:?}"),
            },
            signal = signals.next() => anyhow::bail!("{signal} again, ending at once"),
        }
    })
}
