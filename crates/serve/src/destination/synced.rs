//! Is enough known to say that something does not exist, or that there is no more of it?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{ClusterId, EndpointsFrom, Kind, Source};
use store::Snapshot;
use tokio::sync::Mutex;

/// What has to be known before an answer is right: without ExternalWorkloads an address may be missing, without Servers
/// it may look as if it were not opaque, without Nodes as if there were no zones.
#[derive(Clone)]
pub struct Needed {
    /// The kinds of the local cluster.
    pub kinds: Vec<Kind>,
    /// Those of them that are not going to be known soon, since the API server refuses them. Nobody waits for these.
    pub refused: Arc<dyn Fn(Source) -> bool + Send + Sync>,
}

impl std::fmt::Debug for Needed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Needed").field(&self.kinds).finish()
    }
}

/// Remembers that the local cluster's sources have been listed to their end once.
#[derive(Debug)]
pub(super) struct Synced {
    needed: Needed,
    known: AtomicBool,
    /// At how many commits the store was last asked.
    asked: Mutex<Option<u64>>,
}

impl Synced {
    pub(super) fn new(needed: Needed) -> Synced {
        Synced { needed, known: AtomicBool::new(false), asked: Mutex::default() }
    }

    /// Which objects say where endpoints are.
    pub(super) fn endpoints(&self) -> EndpointsFrom {
        match self.needed.kinds.contains(&Kind::Endpoints) {
            true => EndpointsFrom::Endpoints,
            false => EndpointsFrom::Slices,
        }
    }

    /// Asks the store by `read`, but at most once for each commit unless `anew`, and never again once it said yes.
    pub(super) async fn check<E>(
        &self,
        anew: bool,
        commits: impl Fn() -> u64,
        read: impl AsyncFnOnce(Needed) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.known.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let mut asked = self.asked.lock().await;
        let commits = commits();
        if self.known.load(Ordering::Relaxed) || !anew && *asked == Some(commits) {
            return Ok(self.known.load(Ordering::Relaxed));
        }
        let synced = read(self.needed.clone()).await?;
        *asked = Some(commits);
        self.known.store(synced, Ordering::Relaxed);
        Ok(synced)
    }
}

impl Needed {
    /// Has each source been listed to its end, save for those that are refused?
    pub(super) fn is_known(&self, snapshot: &Snapshot) -> Result<bool, store::Error> {
        for kind in &self.kinds {
            let source = Source { cluster: ClusterId::LOCAL, kind: *kind };
            if snapshot.checkpoint(source)?.is_none() && !(self.refused)(source) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
