//! How the watches are doing, for metrics and readiness.

use std::collections::BTreeMap;

use model::{ClusterId, Source};
use parking_lot::Mutex;

/// What a watch is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// No connection: not yet, or not any more.
    #[default]
    Connecting,
    /// A listing is under way.
    Listing,
    /// Listed, and every change is heard.
    Live,
    /// The API server refuses: what to do, on what, and why. It is asked again and again.
    Refused(String),
    /// The API server doesn't have this kind. It is looked for again and again.
    Absent,
}

/// How one source is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStatus {
    /// What its watch is about.
    pub state: State,
    /// Listings that were begun.
    pub listings: u64,
    /// Watches that ended and were begun again, for whatever reason.
    pub restarts: u64,
    /// Objects that could not be read.
    pub rejects: u64,
    /// Objects of which a part was skipped, or makes no sense.
    pub partial: u64,
    /// The last error, as one line.
    pub last_error: Option<String>,
}

/// How all sources are doing. The watches write, anybody reads.
#[derive(Debug, Default)]
pub struct Status {
    sources: Mutex<BTreeMap<Source, SourceStatus>>,
}

impl Status {
    /// One source; as if it had just begun if it has not.
    pub fn of(&self, source: Source) -> SourceStatus {
        self.sources.lock().get(&source).cloned().unwrap_or_default()
    }

    /// All sources that have begun.
    pub fn all(&self) -> BTreeMap<Source, SourceStatus> {
        self.sources.lock().clone()
    }

    /// Forgets the sources of a cluster, or of a part of one, that isn't watched any more.
    pub fn forget(&self, cluster: ClusterId) {
        self.sources.lock().retain(|source, _| source.cluster != cluster);
    }

    /// Says how a source is doing.
    pub fn set(&self, source: Source, status: SourceStatus) {
        self.sources.lock().insert(source, status);
    }

    /// Changes what is known of a source.
    pub(super) fn update(&self, source: Source, change: impl FnOnce(&mut SourceStatus)) {
        change(self.sources.lock().entry(source).or_default());
    }
}
