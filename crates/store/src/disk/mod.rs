//! The disk is the seam: where the files of a store are, and what stands between them and redb.
//!
//! From below: the [`Disk`] of a [`Volume`]; [`absorb`], for a disk that cannot take writes; [`sums`], so that a
//! page that isn't what was written is never served; redb.

mod absorb;
mod folder;
mod overlay;
mod sidecar;
mod sums;

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

/// A file, as redb sees it: the seam at which tests cut the power.
pub use redb::StorageBackend as Disk;

pub use absorb::DiskHealth;
pub(crate) use absorb::Trouble;
pub use folder::Folder;
pub(crate) use sidecar::Trust;
pub(crate) use sums::{Names, open};

/// Sums are kept, and writes are patched, for blocks of this size. It is redb's page, so that most of what is read and written is whole blocks;
/// and redb's header, with both of its commit slots, is in the first.
const BLOCK_BYTES: usize = 4096;

/// The same, for positions in a file.
const BLOCK: u64 = BLOCK_BYTES as u64;

/// Where the files of one store are: a folder, or what a test has in its place.
pub trait Volume: Debug + Send + Sync {
    /// Opens a file; makes an empty one if there is none and `create` says so.
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>>;
    /// Is there such a file?
    fn exists(&self, name: &str) -> io::Result<bool>;
    /// Its length.
    fn len(&self, name: &str) -> io::Result<u64>;
    /// Bytes that it takes where it is: a file may have holes.
    fn allocated(&self, name: &str) -> io::Result<u64> {
        self.len(name)
    }
    /// Gives a file another name, in the place of what had that name. When this returns it is durable.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; that there is none is no error. When this returns it is durable.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// What people call the file.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(name)
    }
}

#[cfg(test)]
mod tests;
