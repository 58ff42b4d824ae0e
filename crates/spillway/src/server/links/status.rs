//! How linked clusters are doing, for metrics and those who look.

use std::collections::BTreeMap;
use std::sync::Arc;

use ingest::kube;
use parking_lot::Mutex;

/// What a link is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum State {
    /// Its API server is not reached: not yet, or not any more. What is stored is served, for as long as that takes.
    #[default]
    Connecting,
    /// It is reached, and its parts are listed and watched.
    Watching,
    /// It can't be used as it is: what is wrong, and where.
    Refused,
}

impl State {
    /// The state as metrics name it.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            State::Connecting => "connecting",
            State::Watching => "watching",
            State::Refused => "refused",
        }
    }
}

/// How one linked cluster is doing.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct LinkStatus {
    /// What the link is about.
    pub(in super::super) state: State,
    /// Why, if it doesn't do well.
    pub(in super::super) reason: Option<String>,
    /// How its watches are doing.
    pub(in super::super) watches: Arc<kube::Status>,
}

/// How all are doing, by name. The tasks of the clusters write, anybody reads.
#[derive(Debug, Default)]
pub(in super::super) struct LinkStatuses {
    links: Mutex<BTreeMap<String, LinkStatus>>,
    /// Secrets that are to declare a link and don't, with what is wrong.
    faults: Mutex<BTreeMap<String, String>>,
}

impl LinkStatuses {
    /// All links.
    pub(in super::super) fn all(&self) -> BTreeMap<String, LinkStatus> {
        self.links.lock().clone()
    }

    /// How many Secrets don't declare one.
    pub(in super::super) fn fault_count(&self) -> usize {
        self.faults.lock().len()
    }

    /// A cluster is linked, or linked anew.
    pub(super) fn begin(&self, cluster: &str) -> Arc<kube::Status> {
        let status = LinkStatus::default();
        let watches = Arc::clone(&status.watches);
        self.links.lock().insert(cluster.to_owned(), status);
        watches
    }

    /// Says what a link is about; loudly if that is new.
    pub(super) fn set(&self, cluster: &str, state: State, reason: Option<String>) {
        let mut links = self.links.lock();
        let Some(link) = links.get_mut(cluster) else { return };
        if (&link.state, &link.reason) == (&state, &reason) {
            return;
        }
        match &reason {
            Some(reason) => tracing::warn!(cluster, ?state, "{reason}"),
            None => tracing::info!(cluster, ?state, "linked cluster"),
        }
        (link.state, link.reason) = (state, reason);
    }

    /// Forgets clusters that are not linked any more, and says of Secrets what is wrong with them if that is new.
    pub(super) fn keep(&self, is_linked: impl Fn(&str) -> bool, faults: BTreeMap<String, String>) {
        self.links.lock().retain(|cluster, _| is_linked(cluster));
        let mut known = self.faults.lock();
        for (secret, reason) in &faults {
            if known.get(secret) != Some(reason) {
                tracing::warn!(secret, "this Secret declares no link: {reason}");
            }
        }
        *known = faults;
    }
}
