//! `spillway serve`: a server, until a signal ends it or its writer fails.

use std::time::Duration;

use anyhow::Context as _;
use spillway::Options;

use crate::args::{DestinationArgs, Meaning, ServeArgs};
use crate::process::{self, Signals};
use crate::{logs, print};

/// How long streams and sources may take to end, once a signal said so.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// How long the original takes to let its streams go, which is not at all.
const DRAIN_AS_LINKERD: Duration = Duration::ZERO;

/// Runs `spillway serve`.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    logs::install(args.log.log_level, args.log.log_format);
    let drain = args.drain;
    until_it_ends(args.meaning().unwrap_or_else(|error| error.exit()), drain)
}

/// Runs `spillway destination`.
pub(crate) fn run_as_linkerd(args: DestinationArgs) -> anyhow::Result<()> {
    if args.version {
        return print::line(env!("CARGO_PKG_VERSION"));
    }
    logs::install(args.log.log_level, args.log.log_format);
    let Meaning { mut options, warnings } = args.meaning().unwrap_or_else(|error| error.exit());
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    // A container without a volume starts from nothing each time, as the original does.
    let temporary = match options.data.as_os_str().is_empty() {
        true => {
            let folder = tempfile::Builder::new().prefix("spillway-").tempdir();
            Some(folder.context("no temporary folder can be made; set SPILLWAY_DATA")?)
        }
        false => None,
    };
    if let Some(folder) = &temporary {
        options.data = folder.path().to_owned();
    }
    until_it_ends(options, DRAIN_AS_LINKERD)
}

fn until_it_ends(options: Options, drain: Duration) -> anyhow::Result<()> {
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
        let end = async {
            if !drain.is_zero() {
                server.drain(drain).await;
            }
            match tokio::time::timeout(STOP_WAIT, server.stop()).await {
                Ok(outcome) => outcome,
                Err(_) => anyhow::bail!("not everything ended within {STOP_WAIT:?}"),
            }
        };
        tokio::select! {
            outcome = end => outcome,
            signal = signals.next() => anyhow::bail!("{signal} again, ending at once"),
        }
    })
}
