//! `spillway demo`: what was typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::values;

/// Arguments of `spillway demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Where the demo's server listens [default: 127.0.0.1:8086, or a free port if that is taken].
    #[arg(long, value_name = "ADDR", value_parser = values::listen)]
    pub(crate) addr: Option<SocketAddr>,
    /// Keep the data here [default: a temporary folder, removed at the end].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// How many endpoints the cluster has.
    #[arg(long, value_name = "N", default_value_t = 250_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub(crate) endpoints: u32,
    /// How many junk pods the flood has.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub(crate) flood: u32,
    /// End after the summary, instead of serving on until Ctrl-C.
    #[arg(long)]
    pub(crate) exit: bool,
}
