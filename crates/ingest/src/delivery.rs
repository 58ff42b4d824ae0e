//! What a source hands on at once.

use model::{Change, Revision};
use tokio::sync::oneshot;

use crate::kube::Place;

/// Changes that belong together: they become one commit, seen by clients all at once or not at all.
#[derive(Debug)]
pub struct Delivery {
    /// The changes, in order.
    pub changes: Vec<Change>,
    pub(crate) receipt: Receipt,
}

/// What becomes of a delivery matters to these. Dropped unsigned if its changes could not be committed.
#[derive(Debug, Default)]
pub struct Receipt {
    done: Vec<oneshot::Sender<Revision>>,
    /// Room that the changes take as long as they are not committed.
    places: Vec<Place>,
}

impl Delivery {
    /// Changes whose commit nobody waits for.
    pub fn new(changes: Vec<Change>) -> Delivery {
        Delivery { changes, receipt: Receipt::default() }
    }

    /// Changes, and who is told the revision once they are committed.
    pub fn told(changes: Vec<Change>, done: oneshot::Sender<Revision>) -> Delivery {
        Delivery { changes, receipt: Receipt { done: vec![done], places: Vec::new() } }
    }

    /// Changes that come from something large.
    pub(crate) fn held(changes: Vec<Change>, place: Option<Place>) -> Delivery {
        let places = place.into_iter().collect();
        Delivery { changes, receipt: Receipt { done: Vec::new(), places } }
    }
}

impl Receipt {
    /// Does nobody wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    pub(crate) fn add(&mut self, other: Receipt) {
        self.done.extend(other.done);
        self.places.extend(other.places);
    }

    /// The changes are committed.
    pub fn sign(self, revision: Revision) {
        for waiting in self.done {
            // Whoever asked may have gone meanwhile; the commit stands.
            waiting.send(revision).ok();
        }
    }
}
