//! Is enough known to say that something does not exist, or that there is no more of it?

use std::sync::atomic::{AtomicBool, Ordering};

use model::{ClusterId, Kind, Source};
use store::Snapshot;
use tokio::sync::Mutex;

/// Kinds without which an answer would be wrong, not just less decorated.
const NEEDED: [Kind; 3] = [Kind::Service, Kind::EndpointSlice, Kind::Pod];

/// Remembers that the local cluster's sources have been listed to their end once.
#[derive(Debug, Default)]
pub(super) struct Synced {
    known: AtomicBool,
    /// At how many commits the store was last asked.
    asked: Mutex<Option<u64>>,
}

impl Synced {
    /// Asks the store by `read`, but at most once for each commit, and never again once it said yes.
    pub(super) async fn check<E>(
        &self,
        commits: impl Fn() -> u64,
        read: impl AsyncFnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.known.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let mut asked = self.asked.lock().await;
        let commits = commits();
        if self.known.load(Ordering::Relaxed) || *asked == Some(commits) {
            return Ok(self.known.load(Ordering::Relaxed));
        }
        let synced = read().await?;
        *asked = Some(commits);
        self.known.store(synced, Ordering::Relaxed);
        Ok(synced)
    }
}

/// Has each source that is needed been listed to its end?
pub(super) fn sources_synced(snapshot: &Snapshot) -> Result<bool, store::Error> {
    for kind in NEEDED {
        let source = Source { cluster: ClusterId::LOCAL, kind };
        if snapshot.checkpoint(source)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
