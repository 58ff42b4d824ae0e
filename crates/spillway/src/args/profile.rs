//! `spillway profile`: what was typed.

use super::AskArgs;

/// Arguments of `spillway profile`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered (also with an empty profile), 1 refused, unreachable or too late, 2 usage."
)]
pub(crate) struct ProfileArgs {
    /// What is dialled: web.shop.svc.cluster.local:8080, db-0.db.shop.svc.cluster.local:5432, or 10.1.0.4:8080
    /// (without a port: 80).
    #[arg(value_name = "AUTHORITY|IP:PORT")]
    pub(crate) authority: String,
    /// Say why the profile is what it is, and stop. Asks the server's admin address.
    #[arg(long, conflicts_with = "watch")]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) ask: AskArgs,
}
