//! The golden cases: what the Go linkerd-destination was seen to do, run against ours. `tests/golden/README.md`
//! says what is in them and how to compare.

mod case;
mod cluster;
mod compare;
mod far;
mod history;
mod ledger;
mod linked;
mod run;
mod server;
mod setup;

pub use case::{Action, Case, Kept, Observed, Open, Step, folder};
pub use cluster::Cluster;
pub use far::{Far, FarClusters};
pub use history::{run_history, run_history_live};
pub use ledger::Ledger;
pub use linked::{Linked, of_cluster};
pub use run::{run_case, run_case_live};
pub use server::Server;
pub use setup::Setup;
