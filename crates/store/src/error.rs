//! What can go wrong, and what an operator can do about it.

use std::path::PathBuf;

use model::Revision;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data folder can't be used.
    #[error("data folder {path}: {reason}")]
    Folder {
        /// The folder, or the file in it.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another process has the store open.
    #[error("data folder {path} is in use by process {pid}; stop it, or choose another --data")]
    InUse {
        /// The folder.
        path: PathBuf,
        /// The process, as it wrote itself down.
        pid: String,
    },
    /// The file was written by a newer program. It is left as it is.
    #[error(
        "{path} has format {found}, and this program knows formats up to {known}; run the newer program, or choose another --data"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The cursor is older than what the undo log still has: begin anew with a snapshot.
    #[error("revision {} has been trimmed; the oldest that can be asked for is {}", since.0, oldest.0)]
    Trimmed {
        /// What was asked for.
        since: Revision,
        /// The oldest that is there.
        oldest: Revision,
    },
    /// A record or key in the file makes no sense.
    #[error("the file is damaged: {what}: {reason}")]
    Damaged {
        /// The record.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A record could not be written.
    #[error("a record could not be encoded: {reason}")]
    Encode {
        /// Why.
        reason: String,
    },
    /// The disk does not take writes. Nothing was changed, and the same can be tried again.
    #[error("nothing can be written: {reason}")]
    DiskFailing {
        /// Why, in a sentence.
        reason: String,
    },
    /// A backup could not be written, or is not taken back.
    #[error("the backup: {reason}")]
    Backup {
        /// Why.
        reason: String,
    },
    /// All 2³² numbers of a kind have been given out; the file must be rebuilt.
    #[error(
        "no number is left for another object; remove the data folder, it is rebuilt from its sources"
    )]
    NoNumberLeft,
    /// The writer is gone, and with it the store is closed.
    #[error("the store is closed")]
    Closed,
    /// An earlier commit failed, so nothing is known of the file until it is opened again.
    #[error("an earlier commit failed; the store must be opened again")]
    Poisoned,
    /// The disk, or redb.
    #[error("storage: {0}")]
    Storage(#[source] Box<redb::Error>),
}

macro_rules! from_redb {
    ($($error:ident)*) => {
        $(impl From<redb::$error> for Error {
            fn from(error: redb::$error) -> Error {
                Error::Storage(Box::new(error.into()))
            }
        })*
    };
}

from_redb!(StorageError TableError TransactionError CommitError);
