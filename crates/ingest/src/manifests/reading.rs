//! One file → what it says of each object, with the version that an object has by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use model::limits::{MANIFEST_BYTES_MAX, MANIFEST_PROBLEMS_MAX};
use model::{Change, Key, ResourceVersion, Source};

use super::Kept;
use super::document::{self, Document};
use super::scan::Stamp;
use crate::objects::{self, Observed};

/// The low bits of a version, which tell apart what an object's text may be.
const CONTENT_BITS: u32 = 20;

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) objects: BTreeMap<Key, Said>,
    /// Objects that it names but that can't be read: what is known of them stays.
    pub(super) kept: BTreeSet<Key>,
    pub(super) problems: Problems,
    pub(super) ignored: usize,
}

/// What a file says of an object.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) hash: u64,
    pub(super) change: Change,
    pub(super) warnings: Vec<String>,
}

/// Problems: the first few in words.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) words: Vec<String>,
    pub(super) total: usize,
}

impl Problems {
    pub(super) fn add(&mut self, problem: String) {
        self.total += 1;
        if self.words.len() < MANIFEST_PROBLEMS_MAX {
            self.words.push(problem);
        }
    }
}

/// The text of a file, or why it can't be had.
pub(super) fn text(dir: &Path, path: &Path, stamp: Stamp) -> Result<String, String> {
    let file = path.display();
    if stamp.bytes > MANIFEST_BYTES_MAX {
        return Err(format!(
            "{file}: of its {} bytes at most {MANIFEST_BYTES_MAX} could be read",
            stamp.bytes
        ));
    }
    fs::read_to_string(dir.join(path)).map_err(|error| format!("{file}: cannot be read: {error}"))
}

/// Reads a text. An object that can't be read is one problem; a text that doesn't parse says nothing.
pub(super) fn read(kept: Kept, path: &Path, stamp: Stamp, text: &str) -> Result<Reading, String> {
    let mut reading = Reading::default();
    let file = path.display().to_string();
    document::each(text, &file, &mut |document| reading.add(kept, &file, stamp, &document))
        .map_err(|error| error.to_string())?;
    Ok(reading)
}

impl Reading {
    fn add(&mut self, kept: Kept, file: &str, stamp: Stamp, document: &Document) {
        let Document { number, line, value } = document;
        let place = format!("{file}, line {line}, document {number}");
        let Some(kind) = kept.kind(value) else {
            self.ignored += 1;
            return;
        };
        match objects::decode(kept.cluster, kind, &value.to_string()) {
            Ok(Observed { key, version, object, mut warnings }) => {
                let hash = fingerprint(value.to_string().as_bytes());
                let change = Change::Put {
                    key: key.clone(),
                    version: numbered(&version, stamp, hash),
                    object,
                };
                for warning in &mut warnings {
                    *warning = format!("{place}: {key}: {warning}");
                }
                if self.objects.contains_key(&key) {
                    warnings
                        .push(format!("{place}: {key}: is in this file before; the last counts"));
                }
                self.kept.remove(&key);
                self.objects.insert(key, Said { hash, change, warnings });
            }
            Err(reject) => {
                if let Some(name) = &reject.name {
                    let source = Source { cluster: kept.cluster, kind };
                    let key = Key { source, name: name.clone() };
                    if !self.objects.contains_key(&key) {
                        self.kept.insert(key);
                    }
                }
                self.problems.add(format!("{place}: {kind} {reject}"));
            }
        }
    }
}

/// The version of an object in a file.
///
/// It must differ whenever the object does, also after a restart that remembers nothing, since the store skips
/// what it has; and its order must say which of two slices is newer. So it is the version that the object has
/// by itself, or else the file's time of modification in milliseconds, followed by some bits of the text's
/// hash: a copy from an API server that was edited keeps its `resourceVersion`, and a file may keep its time.
fn numbered(own: &ResourceVersion, stamp: Stamp, hash: u64) -> ResourceVersion {
    let own = own.0.parse::<u64>().ok().filter(|own| own.leading_zeros() >= CONTENT_BITS);
    let base = own.unwrap_or(stamp.modified_ns / 1_000_000);
    ResourceVersion(((base << CONTENT_BITS) | (hash >> (u64::BITS - CONTENT_BITS))).to_string())
}

/// FNV-1a with a last mix: the same in every build, which the standard library's hash doesn't promise.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
