//! The file: how it is born, locked, recognised, and moved aside when it is damaged.
//!
//! Making a redb file is not atomic, so it is made beside, synced, and renamed. A file that can't be read is
//! moved aside and rebuilt from its sources: it is a cache, and a crash loop is worse than a relist.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Join, Revision, Time};
use redb::{Database, DatabaseError, ReadableDatabase};

use crate::read::Reader;
use crate::record::{self, v2};
use crate::schema::{FORMAT, ReadTables, Tables};
use crate::write::Writer;
use crate::{Error, Stats};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of redb's page cache.
    pub cache_bytes: usize,
    /// How a workload's template, owner and Servers become what clients see.
    pub join: Join,
    /// The number of `join`'s rule. A file that was written under another one is rebuilt.
    pub join_version: u32,
    /// How much of the past the undo log keeps: a cursor further behind has to begin anew.
    pub undo: Undo,
    /// When commits reach the disk.
    pub fsync: Fsync,
}

/// When commits reach the disk. With either, a crash leaves exactly the state of some revision, with the
/// checkpoints that belong to it; the sources say again what came after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// Each before it is visible: no revision that anybody has seen is lost.
    Commit,
    /// Together, when [`Writer::sync`] is called: they are visible at once, and a crash may take back those
    /// since the last call.
    Together,
}

/// How much of the past the undo log keeps; the oldest revisions are trimmed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undo {
    /// Bytes of its entries.
    pub bytes_max: u64,
    /// Milliseconds.
    pub age_max: u64,
}

impl Config {
    /// Is there more of the past than is to be kept?
    pub(crate) fn undo_is_due(&self, stats: &Stats, now: Time) -> bool {
        stats.undo_entries > 0
            && (stats.undo_bytes > self.undo.bytes_max
                || stats.undo_since.0.saturating_add(self.undo.age_max) < now.0)
    }
}

/// What became of the file that was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Birth {
    /// There was none.
    Created,
    /// It was opened, at this revision.
    Opened(Revision),
    /// It could not be used and was moved aside; a new one was made.
    Rebuilt {
        /// Where the old one is now.
        aside: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
}

pub(crate) const FILE: &str = "spillway.redb";
const FILE_NEW: &str = "spillway.redb.new";
const FILE_ASIDE: &str = "spillway.redb.damaged";
const FILE_LOCK: &str = "spillway.lock";

/// Opens the store in a folder, which is made if it isn't there.
pub fn open(folder: &Path, config: Config) -> Result<(Writer, Reader, Birth), Error> {
    let failed = |path: &Path, error: io::Error| Error::Folder {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let lock = lock(folder)?;
    // Whoever made a copy did not live to put it in its place.
    remove_copy(folder);
    let path = folder.join(FILE);
    let exists = path.try_exists().map_err(|error| failed(&path, error))?;
    let (database, birth) = match exists.then(|| open_existing(&path, &config)) {
        None => (create(folder, &config)?, Birth::Created),
        Some(Ok((database, revision))) => (database, Birth::Opened(revision)),
        Some(Err(Refusal::Fatal(error))) => return Err(error),
        Some(Err(Refusal::Unusable(reason))) => {
            // Only the newest damaged file is kept: a crash loop must not fill the disk.
            let aside = folder.join(FILE_ASIDE);
            fs::rename(&path, &aside).map_err(|error| failed(&path, error))?;
            (create(folder, &config)?, Birth::Rebuilt { aside, reason })
        }
    };
    let database = Arc::new(database);
    let reader = Reader::new(database.clone(), path);
    let writer = Writer::new(database, config, folder.to_owned(), reader.shared(), lock)?;
    Ok((writer, reader, birth))
}

/// Takes the folder for this process, and writes down which one that is.
fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(FILE_LOCK);
    let failed = |error: io::Error| Error::Folder { path: path.clone(), reason: error.to_string() };
    let mut options = File::options();
    let mut file =
        options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Whoever holds the lock may be writing its number just now; then it is simply not known.
            if file.read_to_string(&mut pid).is_err() || pid.is_empty() {
                pid = "(unknown)".to_owned();
            }
            return Err(Error::InUse { path: folder.to_owned(), pid: pid.trim().to_owned() });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0).map_err(failed)?;
    file.rewind().map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

/// Why an existing file isn't served from.
enum Refusal {
    /// It must not be touched.
    Fatal(Error),
    /// It is of no use; the sources can replace it.
    Unusable(String),
}

fn open_existing(path: &Path, config: &Config) -> Result<(Database, Revision), Refusal> {
    let opened = Database::builder().set_cache_size(config.cache_bytes).open(path);
    let database = opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            Refusal::Fatal(Error::InUse { path: path.to_owned(), pid: "(unknown)".to_owned() })
        }
        DatabaseError::Storage(redb::StorageError::Io(error)) if !damaged(&error) => {
            Refusal::Fatal(Error::Folder { path: path.to_owned(), reason: error.to_string() })
        }
        error => Refusal::Unusable(error.to_string()),
    })?;
    let birth = read_birth(&database).map_err(|error| Refusal::Unusable(error.to_string()))?;
    let Some((format, join_version, revision)) = birth else {
        return Err(Refusal::Unusable("it is no Spillway store".to_owned()));
    };
    if format > FORMAT {
        return Err(Refusal::Fatal(Error::Newer {
            path: path.to_owned(),
            found: format,
            known: FORMAT,
        }));
    }
    if format < FORMAT {
        return Err(Refusal::Unusable(format!("its format is {format}, and now it is {FORMAT}")));
    }
    if join_version != config.join_version {
        let now = config.join_version;
        return Err(Refusal::Unusable(format!("its rows follow rule {join_version}, now {now}")));
    }
    Ok((database, revision))
}

/// Does the error speak of the file's content, rather than of the disk or of permissions?
fn damaged(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// The numbers that say what a file is. They are plain, so that any program can read them.
fn read_birth(database: &Database) -> Result<Option<(u32, u32, Revision)>, Error> {
    let txn = database.begin_read()?;
    let tables = ReadTables::new(txn);
    let meta = match tables.meta() {
        Ok(meta) => meta,
        Err(Error::Storage(error)) if matches!(*error, redb::Error::TableDoesNotExist(_)) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let number = |name: &str| -> Result<Option<u32>, Error> {
        let found = meta.get(name.as_bytes())?;
        Ok(found.and_then(|bytes| bytes.value().try_into().ok().map(u32::from_be_bytes)))
    };
    let (Some(format), Some(join)) = (number("format")?, number("join")?) else {
        return Ok(None);
    };
    let revision = match meta.get(META_KEY)? {
        Some(bytes) if format == FORMAT => record::decode::<v2::Meta>(bytes.value())?.revision,
        _ => 0,
    };
    Ok(Some((format, join, Revision(revision))))
}

/// Where the counters are in the meta table.
pub(crate) const META_KEY: &[u8] = b"meta";

/// Bytes that a file takes on the disk; 0 if it can't be asked. redb's files have holes.
pub(crate) fn file_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).map_or(0, |metadata| metadata.blocks() * 512)
}

fn create(folder: &Path, config: &Config) -> Result<Database, Error> {
    let database = create_copy(folder, config)?;
    database.close().map_err(opened)?;
    replace_by_copy(folder)?;
    builder(config).open(folder.join(FILE)).map_err(opened)
}

fn opened(error: DatabaseError) -> Error {
    Error::Storage(Box::new(error.into()))
}

fn builder(config: &Config) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(config.cache_bytes);
    builder
}

/// Makes an empty store beside the one that is there, or is to be.
pub(crate) fn create_copy(folder: &Path, config: &Config) -> Result<Database, Error> {
    let made = folder.join(FILE_NEW);
    match fs::remove_file(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::Folder { path: made, reason: error.to_string() });
        }
        _ => {}
    }
    let database = builder(config).create(&made).map_err(opened)?;
    let txn = database.begin_write()?;
    {
        let mut tables = Tables::open(&txn, None)?;
        tables.meta.insert(b"format", FORMAT.to_be_bytes().as_slice())?;
        tables.meta.insert(b"join", config.join_version.to_be_bytes().as_slice())?;
    }
    txn.commit()?;
    Ok(database)
}

/// Removes what [`create_copy`] has made; if that fails, the next one does.
pub(crate) fn remove_copy(folder: &Path) {
    fs::remove_file(folder.join(FILE_NEW)).ok();
}

/// Puts what [`create_copy`] has made in the place of the store. It may be open.
pub(crate) fn replace_by_copy(folder: &Path) -> Result<(), Error> {
    let made = folder.join(FILE_NEW);
    let replaced = File::open(&made)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&made, folder.join(FILE)))
        .and_then(|()| File::open(folder)?.sync_all());
    replaced.map_err(|error| Error::Folder { path: made, reason: error.to_string() })
}
