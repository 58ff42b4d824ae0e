//! What `spillway get` and `spillway profile` have in common: whom to ask, as whom, and how to print the answer.

use std::time::Duration;

use super::values;

/// Arguments of all who ask a server.
#[derive(Debug, clap::Args)]
pub(crate) struct AskArgs {
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
    /// What matters most: one line an endpoint, or one a property of a profile.
    Table,
    /// As `table`, with zone, identity, protocol hint, weight and labels; of a profile also its routes.
    Wide,
    /// One JSON object; with --watch one for each change.
    Json,
}
