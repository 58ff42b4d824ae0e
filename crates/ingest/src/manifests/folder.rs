//! What the files said when last looked at, and the changes from there to what they say now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::limits::{
    COMMIT_CHANGES_MAX, COMMIT_ENDPOINTS_MAX, PAGE_CHANGES_MAX, PAGE_ENDPOINTS_MAX,
};
use model::{Change, Key, ResourceVersion, Source};

use super::reading::{self, Problems, Reading};
use super::scan::{self, Stamp};
use super::{Kept, Summary};
use crate::Delivery;
use crate::batch::Packer;

/// A folder, as it was when last looked at.
#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    kept: Kept,
    files: BTreeMap<Arc<Path>, File>,
    /// Who says what of an object, in the order of the paths: the last one counts.
    said: BTreeMap<Key, Vec<Saying>>,
    /// Changes that were seen once; `None` where a file is gone. Writing a file takes time, so a change counts
    /// when it is seen twice.
    unsettled: BTreeMap<PathBuf, Option<Stamp>>,
    /// Why the folder itself can't be read.
    trouble: Option<String>,
    listed: bool,
    /// A listing could not end, since a file might say what it would have swept.
    sweep_due: bool,
}

#[derive(Debug)]
struct File {
    stamp: Stamp,
    fingerprint: u64,
    /// It can't be read at all: its last good state counts.
    broken: bool,
    problems: Problems,
    ignored: usize,
}

#[derive(Debug)]
struct Saying {
    path: Arc<Path>,
    /// Hash of what it says; `None` if that isn't what was handed on.
    hash: Option<u64>,
}

/// Where changes go. Remembers whether anybody still listens.
struct Out<'a> {
    listing: bool,
    packer: Packer,
    send: &'a mut dyn FnMut(Delivery) -> bool,
    heard: bool,
}

impl Out<'_> {
    fn push(&mut self, change: Change) {
        if let Some(delivery) = self.packer.push(change) {
            self.heard = self.heard && (self.send)(delivery);
        }
    }

    fn finish(mut self) -> bool {
        if let Some(delivery) = self.packer.flush() {
            self.heard = self.heard && (self.send)(delivery);
        }
        self.heard
    }
}

impl Folder {
    pub(super) fn new(dir: PathBuf, kept: Kept) -> Folder {
        Folder {
            dir,
            kept,
            files: BTreeMap::new(),
            said: BTreeMap::new(),
            unsettled: BTreeMap::new(),
            trouble: None,
            listed: false,
            sweep_due: true,
        }
    }

    /// Looks at the folder, and sends what has changed since the last look. False if nobody listens.
    pub(super) fn look(&mut self, send: &mut dyn FnMut(Delivery) -> bool) -> bool {
        let found = match scan::scan(&self.dir) {
            Ok(found) => found,
            Err(trouble) => {
                // A folder that can't be read is no empty folder.
                if self.trouble.as_ref() != Some(&trouble) {
                    tracing::error!("{trouble}");
                }
                self.trouble = Some(trouble);
                return true;
            }
        };
        self.trouble = None;
        if !self.listed {
            return self.list(&found, send);
        }
        let heard = self.update(&found, send);
        let whole = self.unsettled.is_empty() && !self.files.values().any(|file| file.broken);
        if heard && self.sweep_due && whole { self.list(&found, send) } else { heard }
    }

    pub(super) fn summary(&self) -> Summary {
        let mut problems = Problems::default();
        self.trouble.iter().for_each(|trouble| problems.add(trouble.clone()));
        for file in self.files.values() {
            file.problems.words.iter().for_each(|problem| problems.add(problem.clone()));
            problems.total += file.problems.total - file.problems.words.len();
        }
        Summary {
            listed: self.listed,
            files: self.files.len(),
            objects: self.said.len(),
            ignored: self.files.values().map(|file| file.ignored).sum(),
            problems: problems.words,
            problems_total: problems.total,
        }
    }

    /// Hands on all that the files say. It ends in a sweep unless a file can't be read: then the sources
    /// only count as known, and the sweep waits until all files can be.
    fn list(
        &mut self,
        found: &BTreeMap<PathBuf, Stamp>,
        send: &mut dyn FnMut(Delivery) -> bool,
    ) -> bool {
        self.files.clear();
        self.said.clear();
        self.unsettled.clear();
        let packer = Packer::new(PAGE_CHANGES_MAX, PAGE_ENDPOINTS_MAX);
        let mut out = Out { listing: true, packer, send, heard: true };
        let Kept { cluster, endpoints } = self.kept;
        let sources = || endpoints.kinds().map(move |kind| Source { cluster, kind });
        sources().for_each(|source| out.push(Change::Begin { source }));
        // From the last path to the first, so that of two that say the same object only the one that
        // counts is handed on.
        for (path, stamp) in found.iter().rev() {
            if !out.heard {
                return false;
            }
            self.read(path, *stamp, false, &mut out);
        }
        self.sweep_due = self.files.values().any(|file| file.broken);
        let newest = found.values().map(|stamp| stamp.modified_ns).max().unwrap_or(0);
        for source in sources() {
            let version = ResourceVersion(newest.to_string());
            out.push(match self.sweep_due {
                true => Change::Checkpoint { source, version },
                false => Change::End { source, version },
            });
        }
        self.listed = out.finish();
        self.listed
    }

    /// Hands on what changed: all that one look saw goes together, up to what one commit takes.
    fn update(
        &mut self,
        found: &BTreeMap<PathBuf, Stamp>,
        send: &mut dyn FnMut(Delivery) -> bool,
    ) -> bool {
        let packer = Packer::new(COMMIT_CHANGES_MAX, COMMIT_ENDPOINTS_MAX);
        let mut out = Out { listing: false, packer, send, heard: true };
        let mut lost = Lost::default();
        for (path, stamp) in self.settle(found).into_iter().rev() {
            lost.add(match stamp {
                Some(stamp) => self.read(&path, stamp, false, &mut out),
                None => {
                    let path: Arc<Path> = path.into();
                    self.files.remove(&path);
                    self.apply(&path, Reading::default(), &mut out)
                }
            });
        }
        while let Some(path) = lost.heirs.pop_first() {
            if let Some(stamp) = self.files.get(&path).map(|file| file.stamp) {
                lost.add(self.read(&path, stamp, true, &mut out));
            }
        }
        for key in lost.objects {
            if self.said.get(&key).is_some_and(Vec::is_empty) {
                self.said.remove(&key);
                out.push(Change::Delete { key });
            }
        }
        out.finish()
    }

    /// The changes that were seen before and still are the same. The others are noted for the next look.
    fn settle(&mut self, found: &BTreeMap<PathBuf, Stamp>) -> BTreeMap<PathBuf, Option<Stamp>> {
        let mut changed = BTreeMap::new();
        for (path, stamp) in found {
            if self.files.get(path.as_path()).is_none_or(|file| file.stamp != *stamp) {
                changed.insert(path.clone(), Some(*stamp));
            }
        }
        for path in self.files.keys().filter(|path| !found.contains_key(&***path)) {
            changed.insert(path.to_path_buf(), None);
        }
        let seen = std::mem::take(&mut self.unsettled);
        let (settled, unsettled) =
            changed.into_iter().partition(|(path, stamp)| seen.get(path) == Some(stamp));
        self.unsettled = unsettled;
        settled
    }

    /// Reads a file, and hands on what it says that it did not say before. Unless `again`, a text that is the
    /// same as before isn't looked at.
    fn read(&mut self, path: &Path, stamp: Stamp, again: bool, out: &mut Out<'_>) -> Lost {
        let path: Arc<Path> = path.into();
        let text = reading::text(&self.dir, &path, stamp);
        let fingerprint = text.as_ref().map_or(0, |text| reading::fingerprint(text.as_bytes()));
        if let Some(file) = self.files.get_mut(&path)
            && file.fingerprint == fingerprint
            && text.is_ok()
            && !again
        {
            file.stamp = stamp;
            return Lost::default();
        }
        let read = text.and_then(|text| reading::read(self.kept, &path, stamp, &text));
        let mut file = File {
            stamp,
            fingerprint,
            broken: read.is_err(),
            problems: Problems::default(),
            ignored: 0,
        };
        let lost = match read {
            Ok(mut reading) => {
                file.problems = std::mem::take(&mut reading.problems);
                file.ignored = reading.ignored;
                self.apply(&path, reading, out)
            }
            Err(problem) => {
                file.problems.add(problem);
                Lost::default()
            }
        };
        file.problems.words.iter().for_each(|problem| tracing::error!("{problem}"));
        self.files.insert(path, file);
        lost
    }

    /// From now on, the file says this.
    fn apply(&mut self, path: &Arc<Path>, reading: Reading, out: &mut Out<'_>) -> Lost {
        // At a listing nothing is known of before.
        let lost = if out.listing { Lost::default() } else { self.retract(path, &reading) };
        for key in reading.kept {
            let sayings = self.said.entry(key.clone()).or_default();
            if out.listing && sayings.is_empty() {
                out.push(Change::Keep { key });
            }
            if let Err(place) = sayings.binary_search_by(|saying| saying.path.cmp(path)) {
                sayings.insert(place, Saying { path: Arc::clone(path), hash: None });
            }
        }
        for (key, said) in reading.objects {
            let sayings = self.said.entry(key.clone()).or_default();
            let place = match sayings.binary_search_by(|saying| saying.path.cmp(path)) {
                Ok(place) => place,
                Err(place) => {
                    sayings.insert(place, Saying { path: Arc::clone(path), hash: None });
                    if let [.., other, last] = sayings.as_slice() {
                        let (other, last) = (other.path.display(), last.path.display());
                        tracing::warn!("{key} is in {other} and in {last}; the latter counts");
                    }
                    place
                }
            };
            let counts = place + 1 == sayings.len();
            if sayings[place].hash.replace(said.hash) != Some(said.hash) && counts {
                said.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                out.push(said.change);
            }
        }
        lost
    }

    /// Forgets what the file said of objects that it no longer names.
    fn retract(&mut self, path: &Arc<Path>, reading: &Reading) -> Lost {
        let mut lost = Lost::default();
        for (key, sayings) in &mut self.said {
            let named = reading.objects.contains_key(key) || reading.kept.contains(key);
            let place = sayings.iter().position(|saying| saying.path == *path);
            let Some(place) = place.filter(|_| !named) else { continue };
            sayings.remove(place);
            let counted = place == sayings.len();
            match sayings.last_mut() {
                None => {
                    lost.objects.insert(key.clone());
                }
                Some(heir) if counted => {
                    heir.hash = None;
                    lost.heirs.insert(Arc::clone(&heir.path));
                }
                Some(_) => {}
            }
        }
        lost
    }
}

/// What follows when a file no longer names an object.
#[derive(Debug, Default)]
struct Lost {
    /// Objects that perhaps no file names any more.
    objects: BTreeSet<Key>,
    /// Files that now say what counts, and must be read again for it.
    heirs: BTreeSet<Arc<Path>>,
}

impl Lost {
    fn add(&mut self, other: Lost) {
        self.objects.extend(other.objects);
        self.heirs.extend(other.heirs);
    }
}
