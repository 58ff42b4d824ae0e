//! Logs: to standard error, so that standard output is for what was asked for.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use crate::args::{LogFormat, LogLevel};

/// Our own crates; of others only warnings are of interest.
const OURS: [&str; 6] = ["spillway", "serve", "ingest", "resolve", "store", "model"];

/// From here on, what is logged is printed.
pub(crate) fn install(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let filter = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_targets(OURS.map(|target| (target, level)));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Plain => registry.with(layer.with_ansi(ansi())).init(),
        LogFormat::Json => registry.with(layer.json()).init(),
    }
}

fn ansi() -> bool {
    use std::io::IsTerminal as _;
    std::io::stderr().is_terminal()
}
