//! The driver against an API server that says what the test tells it to.

mod connect;
mod driver;
mod server;
mod session;

use model::{Change, ClusterId, Kind, Source};

fn source(kind: Kind) -> Source {
    Source { cluster: ClusterId::LOCAL, kind }
}

/// Changes as words: `begin`, `put n/a@7`, `keep n/a`, `delete n/a`, `end@9`, `checkpoint@9`.
fn words(changes: &[Change]) -> String {
    let word = |change: &Change| match change {
        Change::Begin { .. } => "begin".to_owned(),
        Change::Put { key, version, .. } => format!("put {}@{}", key.name, version.0),
        Change::Keep { key } => format!("keep {}", key.name),
        Change::Delete { key } => format!("delete {}", key.name),
        Change::Forget { .. } => "forget".to_owned(),
        Change::Join { part, .. } => format!("join {part}"),
        Change::Leave { id } => format!("leave {}", id.0),
        Change::End { version, .. } => format!("end@{}", version.0),
        Change::Checkpoint { version, .. } => format!("checkpoint@{}", version.0),
    };
    match changes {
        [first, .., last] if changes.len() > 20 => {
            format!("{}, …, {} ({} changes)", word(first), word(last), changes.len())
        }
        changes => changes.iter().map(word).collect::<Vec<_>>().join(", "),
    }
}
