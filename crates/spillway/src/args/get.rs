//! `spillway get`: what was typed.

use std::net::IpAddr;

use super::AskArgs;

/// Arguments of `spillway get`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered (also with no endpoints), 1 refused, unreachable or too late, 2 usage."
)]
pub(crate) struct GetArgs {
    /// What to look up, as a proxy would: web.shop.svc.cluster.local:8080 (without a port: 80).
    pub(crate) authority: String,
    /// Say why this address is or isn't in the answer, and stop. Asks the server's admin address.
    #[arg(long, value_name = "IP", conflicts_with = "watch")]
    pub(crate) explain: Option<IpAddr>,
    #[command(flatten)]
    pub(crate) ask: AskArgs,
}
