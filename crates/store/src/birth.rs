//! The file: how it is born, locked, recognised, and moved aside when it is damaged.
//!
//! Making a redb file is not atomic, so it is made beside, synced, and renamed. A file that can't be read is
//! moved aside and rebuilt from its sources: it is a cache, and a crash loop is worse than a relist.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Join, Revision, Time};
use redb::{Database, DatabaseError, ReadableDatabase};

use crate::disk::{self, DiskHealth, Folder, Names, Trouble, Trust, Volume};
use crate::read::Reader;
use crate::record::{self, v3};
use crate::schema::{FORMAT, ReadTables, Tables};
use crate::write::Writer;
use crate::{Admission, Error, Stats};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of redb's page cache.
    pub cache_bytes: usize,
    /// Bytes of the hot set: what rows refer to, decoded.
    pub hot_bytes: usize,
    /// How a workload's template, owner and Servers become what clients see.
    pub join: Join,
    /// The number of `join`'s rule. A file that was written under another one is rebuilt.
    pub join_version: u32,
    /// How much of the past the undo log keeps: a cursor further behind has to begin anew.
    pub undo: Undo,
    /// When commits reach the disk.
    pub fsync: Fsync,
    /// How large the file may become. Where it would become larger, the disk counts as full.
    pub disk_quota_bytes: Option<u64>,
    /// What is let in of what there is.
    pub admission: Admission,
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

const FILE: &str = "spillway.redb";
const FILE_NEW: &str = "spillway.redb.new";
const FILE_ASIDE: &str = "spillway.redb.damaged";
const FILE_SUMS: &str = "spillway.sums";
const FILE_SUMS_NEW: &str = "spillway.sums.new";
const FILE_LOCK: &str = "spillway.lock";

/// Opens the store in a folder, which is made if it isn't there.
pub fn open(folder: &Path, config: Config) -> Result<(Writer, Reader, Birth), Error> {
    let (volume, lock) = take(folder)?;
    open_locked(volume, config, Some(lock))
}

/// Takes a folder for as long as the lock is held.
pub(crate) fn take(folder: &Path) -> Result<(Arc<dyn Volume>, File), Error> {
    let failed = |error: io::Error| folder_error(folder, &error);
    let volume = Folder::make(folder).map_err(failed)?;
    Ok((Arc::new(volume), lock(folder)?))
}

/// There must be no store yet.
pub(crate) fn expect_none(volume: &dyn Volume) -> Result<(), Error> {
    let path = volume.path(FILE);
    match volume.exists(FILE).map_err(|error| folder_error(&path, &error))? {
        true => Err(Error::Folder {
            path,
            reason: "there is a store already; move it away first".to_owned(),
        }),
        false => Ok(()),
    }
}

/// Is this a store that can be opened, by what it says of itself?
pub(crate) fn accept(database: &Database, config: &Config) -> Result<(), Error> {
    match recognise(read_birth(database)?, Path::new(FILE), config) {
        Ok(_) => Ok(()),
        Err(Refusal::Fatal(error)) => Err(error),
        Err(Refusal::Unusable(reason)) => Err(Error::Backup { reason }),
    }
}

/// Opens the store on a volume of the caller's, which nobody else has.
pub fn open_on(volume: Arc<dyn Volume>, config: Config) -> Result<(Writer, Reader, Birth), Error> {
    open_locked(volume, config, None)
}

fn open_locked(
    volume: Arc<dyn Volume>,
    config: Config,
    lock: Option<File>,
) -> Result<(Writer, Reader, Birth), Error> {
    let failed = |error: io::Error| folder_error(&volume.path(FILE), &error);
    // Whoever made a copy did not live to put it in its place.
    remove_copy(&*volume);
    let exists = volume.exists(FILE).map_err(failed)?;
    let (opened, birth) = match exists.then(|| open_existing(&volume, &config)) {
        None => (create(&volume, &config)?, Birth::Created),
        Some(Ok(opened)) => {
            let revision = opened.revision;
            (opened, Birth::Opened(revision))
        }
        Some(Err(Refusal::Fatal(error))) => return Err(error),
        Some(Err(Refusal::Unusable(reason))) => {
            // Only the newest damaged file is kept: a crash loop must not fill the disk.
            volume.rename(FILE, FILE_ASIDE).map_err(failed)?;
            (create(&volume, &config)?, Birth::Rebuilt { aside: volume.path(FILE_ASIDE), reason })
        }
    };
    let Opened { file, .. } = opened;
    let asked = Arc::clone(&volume);
    let file_bytes = Box::new(move || asked.allocated(FILE).unwrap_or(0));
    let reader = Reader::new(file.clone(), file_bytes, config.hot_bytes);
    let writer = Writer::new(config, volume, reader.shared(), lock)?;
    Ok((writer, reader, birth))
}

/// Opens a store that was open until now. Nothing is moved aside: whoever can't serve from it has to start anew.
pub(crate) fn open_again(
    volume: &Arc<dyn Volume>,
    config: &Config,
) -> Result<(OpenFile, Revision), Error> {
    remove_copy(&**volume);
    match open_existing(volume, config) {
        Ok(Opened { file, revision }) => Ok((file, revision)),
        Err(Refusal::Fatal(error)) => Err(error),
        Err(Refusal::Unusable(reason)) => Err(Error::Damaged { what: "the store", reason }),
    }
}

fn folder_error(path: &Path, error: &io::Error) -> Error {
    Error::Folder { path: path.to_owned(), reason: error.to_string() }
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

/// A file that is open: what reads and writes it, and how its disk is doing.
#[derive(Clone)]
pub(crate) struct OpenFile {
    pub(crate) database: Arc<Database>,
    pub(crate) health: Arc<DiskHealth>,
}

/// A file that can be served from.
struct Opened {
    file: OpenFile,
    revision: Revision,
}

/// Why an existing file isn't served from.
enum Refusal {
    /// It must not be touched.
    Fatal(Error),
    /// It is of no use; the sources can replace it.
    Unusable(String),
}

fn open_existing(volume: &Arc<dyn Volume>, config: &Config) -> Result<Opened, Refusal> {
    let path = volume.path(FILE);
    let failed = |error: io::Error| Refusal::Fatal(folder_error(&path, &error));
    if volume.len(FILE).map_err(failed)? == 0 {
        // redb would take it for a file that is yet to be made.
        return Err(Refusal::Unusable("it is empty".to_owned()));
    }
    let names = Names { main: FILE, sums: FILE_SUMS };
    let opened = disk::open(volume, names, config.disk_quota_bytes);
    let (disk, health, trust) = opened.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => Refusal::Fatal(in_use(&path)),
        _ => failed(error),
    })?;
    if let Trust::Condemned(reason) = trust {
        return Err(Refusal::Unusable(reason));
    }
    let mut builder = Database::builder();
    builder.set_cache_size(config.cache_bytes);
    // Without sums, nothing is known of the file but what redb finds when it looks at all of it.
    builder.set_check_integrity_on_open(trust == Trust::Unknown);
    // redb asserts what a damaged file may not keep. Nothing of it is used after a panic.
    let opening = catch_unwind(AssertUnwindSafe(|| {
        let database = builder.create_with_backend(disk).map_err(|e| refusal(e, &path))?;
        let birth = read_birth(&database).map_err(|error| Refusal::Unusable(error.to_string()))?;
        Ok((database, birth))
    }));
    let opening = opening
        .unwrap_or_else(|_| Err(Refusal::Unusable("redb panicked when it was opened".to_owned())));
    let (database, birth) = match (opening, health.lost()) {
        // redb names the first error once, and not always the caller's.
        (Err(Refusal::Unusable(_)), Some(reason)) => return Err(Refusal::Unusable(reason)),
        (opening, _) => opening?,
    };
    let revision = recognise(birth, &path, config)?;
    health.vouch();
    Ok(Opened { file: OpenFile { database: Arc::new(database), health }, revision })
}

fn in_use(path: &Path) -> Error {
    Error::InUse { path: path.to_owned(), pid: "(unknown)".to_owned() }
}

fn refusal(error: DatabaseError, path: &Path) -> Refusal {
    match error {
        DatabaseError::Storage(redb::StorageError::Io(error)) if !damaged(&error) => {
            Refusal::Fatal(folder_error(path, &error))
        }
        error => Refusal::Unusable(error.to_string()),
    }
}

/// Is it a store that can be used as it is? Gives its revision.
fn recognise(
    birth: Option<(u32, u32, Revision)>,
    path: &Path,
    config: &Config,
) -> Result<Revision, Refusal> {
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
    Ok(revision)
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
        Some(bytes) if format == FORMAT => record::decode::<v3::Meta>(bytes.value())?.revision,
        _ => 0,
    };
    Ok(Some((format, join, Revision(revision))))
}

/// Where the counters are in the meta table.
pub(crate) const META_KEY: &[u8] = b"meta";

fn create(volume: &Arc<dyn Volume>, config: &Config) -> Result<Opened, Error> {
    let OpenFile { database, health } = create_copy(volume, config)?;
    // Nobody else has it yet.
    let database = Arc::try_unwrap(database).map_err(|_| Error::Closed)?;
    database.close().map_err(unopened)?;
    replace_by_copy(&**volume, &health)?;
    open_existing(volume, config).map_err(|refusal| match refusal {
        Refusal::Fatal(error) => error,
        Refusal::Unusable(reason) => Error::Damaged { what: "a new file", reason },
    })
}

fn unopened(error: DatabaseError) -> Error {
    Error::Storage(Box::new(error.into()))
}

/// Makes an empty store beside the one that is there, or is to be.
pub(crate) fn create_copy(volume: &Arc<dyn Volume>, config: &Config) -> Result<OpenFile, Error> {
    let made = volume.path(FILE_NEW);
    let failed = |error: io::Error| folder_error(&made, &error);
    // Neither may be taken for what belongs to the new file.
    volume.remove(FILE_NEW).map_err(failed)?;
    volume.remove(FILE_SUMS_NEW).map_err(failed)?;
    let names = Names { main: FILE_NEW, sums: FILE_SUMS_NEW };
    let (disk, health, _) = disk::open(volume, names, config.disk_quota_bytes).map_err(failed)?;
    let mut builder = Database::builder();
    builder.set_cache_size(config.cache_bytes);
    let database = builder.create_with_backend(disk).map_err(unopened)?;
    let txn = database.begin_write()?;
    {
        let mut tables = Tables::open(&txn, None)?;
        tables.meta.insert(b"format".to_vec(), FORMAT.to_be_bytes().to_vec())?;
        tables.meta.insert(b"join".to_vec(), config.join_version.to_be_bytes().to_vec())?;
        tables.flush()?;
    }
    txn.commit()?;
    Ok(OpenFile { database: Arc::new(database), health })
}

/// Removes what [`create_copy`] has made; if that fails, the next one does.
pub(crate) fn remove_copy(volume: &dyn Volume) {
    volume.remove(FILE_NEW).ok();
    volume.remove(FILE_SUMS_NEW).ok();
}

/// Puts what [`create_copy`] has made in the place of the store. It may be open; all of it is synced.
pub(crate) fn replace_by_copy(volume: &dyn Volume, health: &DiskHealth) -> Result<(), Error> {
    if let Some(reason) = health.failing() {
        return Err(Error::DiskFailing { reason });
    }
    let failed = |error: io::Error| folder_error(&volume.path(FILE_NEW), &error);
    // Between the two, the file has sums that are not its own, and none that are sealed.
    volume.remove(FILE_SUMS).map_err(failed)?;
    volume.rename(FILE_NEW, FILE).map_err(failed)?;
    // Where they could not be written, the copy has none; they are learnt anew.
    match volume.exists(FILE_SUMS_NEW).map_err(failed)? {
        true => volume.rename(FILE_SUMS_NEW, FILE_SUMS).map_err(failed),
        false => Ok(()),
    }
}

/// Nothing can be written while the disk has trouble.
pub(crate) fn trouble(trouble: Trouble) -> Error {
    match trouble {
        Trouble::Failing(reason) => Error::DiskFailing { reason },
        Trouble::Lost(reason) => Error::Damaged { what: "the disk", reason },
    }
}
