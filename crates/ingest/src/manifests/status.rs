//! How the folder is doing, for `/ready` and metrics.

use parking_lot::Mutex;

/// Shared between the watch, which writes it, and whoever wants to know.
#[derive(Debug, Default)]
pub struct Status {
    now: Mutex<Summary>,
}

/// The folder as it was at the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its first listing has been handed on whole.
    pub listed: bool,
    /// Files of manifests.
    pub files: usize,
    /// Objects that they say, each counted once.
    pub objects: usize,
    /// Objects in them that are of kinds that aren't kept.
    pub ignored: usize,
    /// What can't be read, with file, line and document; the first few.
    pub problems: Vec<String>,
    /// How many problems there are.
    pub problems_total: usize,
}

impl Status {
    /// The folder as it was at the last look.
    pub fn summary(&self) -> Summary {
        self.now.lock().clone()
    }

    pub(super) fn set(&self, summary: Summary) {
        *self.now.lock() = summary;
    }
}
