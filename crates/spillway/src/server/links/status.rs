//! How linked clusters are doing, for metrics and those who look.

use std::collections::BTreeMap;
use std::sync::Arc;

use ingest::kube;
use model::Kind;
use parking_lot::Mutex;

/// What a cluster's task is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Its API server is not reached: not yet, or not any more. What is stored is served, for as long as that takes.
    #[default]
    Connecting,
    /// It is reached, and its parts are listed and watched.
    Watching,
    /// It can't be used as it is: what is wrong, and where.
    Refused,
}

/// How a link is, all in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Condition {
    /// Not reached yet, and nothing of it is stored.
    Connecting,
    /// Some of it has not been listed to its end.
    Listing,
    /// All changes of what is used of it are heard.
    Live,
    /// Not heard any more, at least in part. What is stored is served.
    Stale,
    /// It doesn't let us, or the link can't be used as it is.
    Refused,
}

impl Condition {
    /// As metrics name it.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            Condition::Connecting => "connecting",
            Condition::Listing => "listing",
            Condition::Live => "live",
            Condition::Stale => "stale",
            Condition::Refused => "refused",
        }
    }
}

/// How one linked cluster is doing.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct LinkStatus {
    /// What its task is about.
    state: State,
    /// Why, if that doesn't do well.
    reason: Option<String>,
    /// How its watches are doing.
    pub(in super::super) watches: Arc<kube::Status>,
}

impl LinkStatus {
    /// How it is, and why if it isn't live. `stored`: some of it is, from now or from before.
    pub(in super::super) fn condition(&self, stored: bool) -> (Condition, Option<String>) {
        let watches = self.watches.all();
        let refused = watches.iter().find_map(|(source, watch)| match &watch.state {
            kube::State::Refused(why) if !is_dispensable(source.kind) => Some(why.clone()),
            _ => None,
        });
        if self.state == State::Refused || refused.is_some() {
            return (Condition::Refused, self.reason.clone().or(refused));
        }
        let unheard = watches.iter().find_map(|(source, watch)| match &watch.last_error {
            Some(error) if watch.state == kube::State::Connecting => {
                Some(format!("{}: {error}", source.kind))
            }
            _ => None,
        });
        if self.state == State::Connecting || unheard.is_some() {
            let condition = if stored { Condition::Stale } else { Condition::Connecting };
            return (condition, self.reason.clone().or(unheard));
        }
        let is_listed = |watch: &kube::SourceStatus| {
            !matches!(watch.state, kube::State::Connecting | kube::State::Listing)
        };
        match watches.values().all(is_listed) {
            true => (Condition::Live, None),
            false => (Condition::Listing, None),
        }
    }
}

/// Kinds without which a linked cluster has endpoints all the same.
pub(super) fn is_dispensable(kind: Kind) -> bool {
    matches!(kind, Kind::ReplicaSet | Kind::Server)
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

#[cfg(test)]
mod tests {
    use model::{ClusterId, Source};

    use super::*;

    /// How a link is with watches in these states, as `word: reason`.
    fn condition(state: State, watches: &[(Kind, kube::State)], stored: bool) -> String {
        let status = kube::Status::default();
        for (kind, state) in watches {
            let last_error = Some("no route".to_owned());
            let now = kube::SourceStatus { state: state.clone(), last_error, ..Default::default() };
            status.set(Source { cluster: ClusterId(1), kind: *kind }, now);
        }
        let reason = (state != State::Watching).then(|| "its own reason".to_owned());
        let link = LinkStatus { state, reason, watches: Arc::new(status) };
        let (condition, reason) = link.condition(stored);
        format!("{}: {}", condition.name(), reason.unwrap_or_default())
    }

    #[test]
    fn a_link_is_as_well_as_the_least_of_its_watches() {
        use kube::State::{Absent, Connecting, Listing, Live, Refused};
        let refused = || Refused("not allowed".to_owned());
        let of = |watches: &[(Kind, kube::State)]| condition(State::Watching, watches, true);
        assert_eq!(of(&[]), "live: ");
        assert_eq!(of(&[(Kind::Pod, Live), (Kind::Server, Absent)]), "live: ");
        assert_eq!(of(&[(Kind::Pod, Live), (Kind::ReplicaSet, refused())]), "live: ");
        assert_eq!(of(&[(Kind::Pod, Live), (Kind::Service, Listing)]), "listing: ");
        assert_eq!(
            of(&[(Kind::Pod, Connecting), (Kind::Service, Listing)]),
            "stale: Pod: no route"
        );
        assert_eq!(
            of(&[(Kind::Pod, refused()), (Kind::Service, Connecting)]),
            "refused: not allowed"
        );
        assert_eq!(
            condition(State::Connecting, &[(Kind::Pod, Live)], true),
            "stale: its own reason"
        );
        assert_eq!(condition(State::Connecting, &[], false), "connecting: its own reason");
        assert_eq!(condition(State::Refused, &[], true), "refused: its own reason");
    }
}
