//! What health and metrics say: how far the start has come, and how the sources are doing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ingest::{kube, manifests};
use model::{ClusterId, Kind, Source, Time};
use parking_lot::Mutex;
use serve::{Destination, LinkStatus, MemoryPart, SourceStatus};
use store::{ClusterSize, Reader, Stats};

use super::links::{self, LinkStatuses};
use super::sources::Sources;
use crate::{Budget, memory};

/// How the server is doing. What is not ready becomes ready, and never goes back: answers from disk stay
/// better than none.
#[derive(Default)]
pub(super) struct Situation {
    opened: Mutex<Option<Opened>>,
    ready: AtomicBool,
    draining: AtomicBool,
}

#[derive(Clone)]
struct Opened {
    reader: Reader,
    destination: Destination,
    watched: Watched,
    links: Arc<LinkStatuses>,
    kinds: Vec<Kind>,
    memory: Budget,
}

/// Who knows how the sources are doing.
#[derive(Clone, Debug)]
pub(super) enum Watched {
    /// The watches of an API server.
    Kubernetes(Arc<kube::Status>),
    /// The watch of a folder.
    Manifests(Arc<manifests::Status>),
    /// Nothing can go wrong with it.
    Inside,
}

impl Situation {
    /// The store is open, and its sources begin.
    pub(super) fn opened(
        &self,
        reader: Reader,
        destination: Destination,
        sources: &Sources,
        memory: Budget,
    ) {
        let (watched, kinds) = (sources.watched(), sources.needed().kinds);
        let links = sources.links();
        *self.opened.lock() = Some(Opened { reader, destination, watched, links, kinds, memory });
    }

    /// The server is ending: nobody is to come to it any more.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn now(&self) -> Option<Opened> {
        self.opened.lock().clone()
    }
}

impl serve::Situation for Situation {
    fn destination(&self) -> Option<Destination> {
        self.now().map(|opened| opened.destination)
    }

    fn store(&self) -> Stats {
        self.now().map(|opened| opened.reader.stats()).unwrap_or_default()
    }

    fn file_bytes(&self) -> u64 {
        self.now().map(|opened| opened.reader.file_bytes()).unwrap_or_default()
    }

    fn memory(&self) -> Vec<MemoryPart> {
        let Some(Opened { reader, destination, memory, .. }) = self.now() else {
            return Vec::new();
        };
        let (allocated, resident) = memory::allocated_and_resident();
        let part = |(name, budget): (&'static str, u64)| {
            let used = match name {
                "total" => Some(allocated),
                "store_cache" => Some(reader.cache_bytes()),
                "hot_set" => Some(reader.hot_bytes()),
                "answers" => Some(destination.hot_bytes()),
                "sending" => {
                    Some(destination.afloat_bytes().saturating_sub(destination.hot_bytes()))
                }
                _ => None,
            };
            MemoryPart { name, budget: Some(budget), used }
        };
        let resident = MemoryPart { name: "resident", budget: None, used: Some(resident) };
        memory.parts().into_iter().map(part).chain([resident]).collect()
    }

    fn rss_bytes(&self) -> Option<u64> {
        memory::rss_bytes()
    }

    fn disk_failing(&self) -> Option<String> {
        self.now()?.reader.disk().failing()
    }

    fn disk_quota_bytes(&self) -> Option<u64> {
        self.now()?.reader.disk().quota_bytes()
    }

    fn sources(&self) -> Vec<SourceStatus> {
        let Some(Opened { watched: Watched::Kubernetes(status), .. }) = self.now() else {
            return Vec::new();
        };
        let one = |(source, status): (Source, kube::SourceStatus)| SourceStatus {
            source,
            live: status.state == kube::State::Live,
            restarts: status.restarts,
            decode_failures: status.rejects,
            partial_objects: status.partial,
        };
        status.all().into_iter().map(one).collect()
    }

    fn links(&self) -> Vec<LinkStatus> {
        let Some(Opened { links, .. }) = self.now() else { return Vec::new() };
        let (synced, parts) = (self.synced(), self.parts());
        let known: BTreeSet<_> =
            synced.keys().filter_map(|source| parts.get(&source.cluster)).collect();
        let one = |(cluster, link): (String, links::LinkStatus)| {
            let watches = link.watches.all();
            let (state, reason) = link.condition(known.contains(&cluster));
            let count = |each: fn(&kube::SourceStatus) -> u64| watches.values().map(each).sum();
            LinkStatus {
                cluster,
                state: state.name(),
                reason,
                watches: watches.len() as u64,
                live: count(|watch| u64::from(watch.state == kube::State::Live)),
                restarts: count(|watch| watch.restarts),
                decode_failures: count(|watch| watch.rejects),
                partial_objects: count(|watch| watch.partial),
            }
        };
        links.all().into_iter().map(one).collect()
    }

    fn link_faults(&self) -> usize {
        self.now().map_or(0, |opened| opened.links.fault_count())
    }

    fn parts(&self) -> BTreeMap<ClusterId, String> {
        let parts = self.now().and_then(|opened| opened.reader.snapshot().ok()?.parts().ok());
        parts.into_iter().flatten().map(|it| (it.id, it.part.cluster)).collect()
    }

    fn synced(&self) -> BTreeMap<Source, Time> {
        let synced = self.now().and_then(|opened| opened.reader.snapshot().ok()?.synced().ok());
        synced.unwrap_or_default()
    }

    fn sizes(&self) -> Vec<ClusterSize> {
        let sizes =
            self.now().and_then(|opened| opened.reader.snapshot().ok()?.cluster_sizes().ok());
        sizes.unwrap_or_default()
    }

    fn waits_for(&self) -> Vec<String> {
        if self.draining.load(Ordering::Relaxed) {
            return vec!["the server is ending".to_owned()];
        }
        if self.ready.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let Some(opened) = self.now() else {
            return vec!["the store is being opened".to_owned()];
        };
        let missing = opened.missing().unwrap_or_else(|error| vec![error.to_string()]);
        self.ready.store(missing.is_empty(), Ordering::Relaxed);
        missing
    }
}

impl Opened {
    /// What has never been listed to its end, and why.
    fn missing(&self) -> Result<Vec<String>, store::Error> {
        let snapshot = self.reader.snapshot()?;
        let mut missing = Vec::new();
        for kind in &self.kinds {
            let source = Source { cluster: ClusterId::LOCAL, kind: *kind };
            // Without links a server does all it can for the local cluster.
            let dispensable = *kind == Kind::Secret && self.watched.is_refused(source);
            if snapshot.checkpoint(source)?.is_none() && !dispensable {
                missing.extend(self.watched.reason(source));
            }
        }
        Ok(missing)
    }
}

impl Watched {
    /// Does the API server refuse it, so that it isn't going to be known soon?
    pub(super) fn is_refused(&self, source: Source) -> bool {
        match self {
            Watched::Kubernetes(status) => {
                matches!(status.of(source).state, kube::State::Refused(_))
            }
            Watched::Manifests(_) | Watched::Inside => false,
        }
    }

    /// Why a source has not been listed yet; `None` if nothing depends on that.
    fn reason(&self, source: Source) -> Option<String> {
        let kind = source.kind;
        match self {
            Watched::Kubernetes(status) => {
                let status = status.of(source);
                let reason = match status.state {
                    kube::State::Absent => return None,
                    kube::State::Refused(reason) => reason,
                    kube::State::Listing | kube::State::Live => "being listed".to_owned(),
                    kube::State::Connecting => match status.last_error {
                        Some(error) => format!("not connected: {error}"),
                        None => "not connected yet".to_owned(),
                    },
                };
                Some(format!("{kind}: {reason}"))
            }
            Watched::Manifests(status) => Some(match status.summary().problems.first() {
                Some(problem) => format!("{kind}: the folder can't be read whole: {problem}"),
                None => format!("{kind}: the folder is being read"),
            }),
            Watched::Inside => Some(format!("{kind}: being listed")),
        }
    }
}
