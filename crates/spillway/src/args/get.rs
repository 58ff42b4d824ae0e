//! `spillway get`: what was typed.

use std::net::IpAddr;
use std::time::Duration;

use super::values;

/// Arguments of `spillway get`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered (also with no endpoints), 1 refused, unreachable or too late, 2 usage."
)]
pub(crate) struct GetArgs {
    /// What to look up, as a proxy would: web.shop.svc.cluster.local:8080 (without a port: 80).
    pub(crate) authority: String,
    /// The server to ask.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8086", value_parser = values::target)]
    pub(crate) addr: String,
    /// Who asks, as a proxy says it: {"ns":"shop","nodeName":"node-1","pod":"web-0"}.
    #[arg(long, default_value = "")]
    pub(crate) token: String,
    /// Stay, and print each change.
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// How to print.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Say why this address is or isn't in the answer, and stop. Asks the server's admin address.
    #[arg(long, value_name = "IP", conflicts_with = "watch")]
    pub(crate) explain: Option<IpAddr>,
    /// The server's admin address, for --explain.
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9996",
        requires = "explain",
        value_parser = values::target
    )]
    pub(crate) admin_addr: String,
    /// How long to wait for the first message; proxies give up after 3s.
    #[arg(long, default_value = "3s", value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Duration,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// One line an endpoint.
    Table,
    /// As `table`, with zone, identity, protocol hint, weight and labels.
    Wide,
    /// One JSON object; with --watch one for each change.
    Json,
}
