//! What a source hands on at once.

use model::{Change, Revision};
use tokio::sync::oneshot;

/// Changes that belong together: they become one commit, seen by clients all at once or not at all.
#[derive(Debug)]
pub struct Delivery {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Told the revision once the changes are committed. Dropped unsent if they could not be.
    pub done: Option<oneshot::Sender<Revision>>,
}

impl Delivery {
    /// Changes whose commit nobody waits for.
    pub fn new(changes: Vec<Change>) -> Delivery {
        Delivery { changes, done: None }
    }
}
