//! Reading: snapshots of one revision each, short-lived, as many at a time as are wanted.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ClusterId, ObjectName, ResourceVersion, Revision, ServiceName, Source, Time};
use parking_lot::{ArcRwLockReadGuard, ArcRwLockWriteGuard, Mutex, MutexGuard, RawRwLock, RwLock};
use redb::{Database, ReadableDatabase};

use crate::birth::OpenFile;
use crate::disk::DiskHealth;
use crate::hot::Hot;
use crate::record::{self, v3};
use crate::schema::ReadTables;
use crate::service::ServiceRows;
use crate::{Error, Stats, TableStats, key};

/// Takes snapshots. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

/// Asks how long the file is.
type FileBytes = Box<dyn Fn() -> u64 + Send + Sync>;

/// What all readers, and the writer, share.
pub(crate) struct Shared {
    /// `None` once the writer is gone, or while the file is opened again.
    database: Mutex<Option<Arc<Database>>>,
    health: Mutex<Arc<DiskHealth>>,
    /// Each snapshot holds it, so that closing waits for them.
    open: Arc<RwLock<()>>,
    file_bytes: FileBytes,
    stats: Mutex<Stats>,
    hot: Mutex<Hot>,
    /// What was visible, and is not in the file; in order.
    lost: Mutex<Arc<[Lost]>>,
}

/// Losses that are told apart: with one more, the two oldest become one, and so does what is between them.
const LOST_MAX: usize = 16;

/// Revisions that readers have seen and that a failed commit has taken back. None of them is given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The last one before them.
    pub after: Revision,
    /// The last of them.
    pub upto: Revision,
}

impl Lost {
    fn has(self, revision: Revision) -> bool {
        self.after < revision && revision <= self.upto
    }
}

impl Shared {
    pub(crate) fn stats(&self) -> Stats {
        self.stats.lock().clone()
    }

    pub(crate) fn set_stats(&self, stats: Stats) {
        *self.stats.lock() = stats;
    }

    pub(crate) fn disk(&self) -> Arc<DiskHealth> {
        Arc::clone(&self.health.lock())
    }

    /// Bytes that the file takes on the disk; 0 if it can't be asked.
    pub(crate) fn file_bytes(&self) -> u64 {
        (self.file_bytes)()
    }

    /// Closes the file for readers, once the snapshots that there are have been dropped.
    pub(crate) fn close(&self) {
        drop(self.database.lock().take());
        drop(self.open.write());
    }

    /// Later snapshots are of this file; those that there are finish with the one before.
    pub(crate) fn replace(&self, file: OpenFile) {
        *self.database.lock() = Some(file.database);
        *self.health.lock() = file.health;
    }

    /// Keeps readers waiting for as long as the guard lives, and closes the file; there are no snapshots then.
    pub(crate) fn pause(&self) -> ArcRwLockWriteGuard<RawRwLock, ()> {
        let paused = self.open.write_arc();
        drop(self.database.lock().take());
        paused
    }

    /// After a pause: readers go on with this file, and without these revisions. What was decoded from the one before
    /// may have numbers that are given anew.
    pub(crate) fn resume(&self, file: OpenFile, lost: Lost) {
        self.hot.lock().clear();
        let mut known = self.lost.lock();
        let mut all = known.to_vec();
        // With what was given since a loss, that loss may be lost again.
        all.retain(|earlier| earlier.after < lost.after);
        all.push(lost);
        if all.len() > LOST_MAX {
            let oldest = all.remove(0);
            all[0].after = oldest.after;
        }
        *known = all.into();
        drop(known);
        self.replace(file);
    }

    pub(crate) fn database(&self) -> Result<Arc<Database>, Error> {
        self.database.lock().clone().ok_or(Error::Closed)
    }
}

impl Reader {
    pub(crate) fn new(file: OpenFile, file_bytes: FileBytes, hot_bytes: usize) -> Reader {
        let shared = Shared {
            database: Mutex::new(Some(file.database)),
            health: Mutex::new(file.health),
            open: Arc::default(),
            file_bytes,
            stats: Mutex::default(),
            hot: Mutex::new(Hot::new(hot_bytes)),
            lost: Mutex::new(Arc::new([])),
        };
        Reader { shared: Arc::new(shared) }
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The newest revision. To be dropped soon: as long as it lives, pages of its time aren't used again.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.snapshot_of(self.shared.open.read_arc())
    }

    /// The newest revision, for who must not wait; `None` while the file is being closed or opened again.
    pub fn snapshot_now(&self) -> Result<Option<Snapshot>, Error> {
        self.shared.open.try_read_arc().map(|open| self.snapshot_of(open)).transpose()
    }

    fn snapshot_of(&self, open: ArcRwLockReadGuard<RawRwLock, ()>) -> Result<Snapshot, Error> {
        let database = self.shared.database()?;
        let txn = database.begin_read()?;
        let tables = ReadTables::new(txn);
        let meta: v3::Meta = match tables.meta()?.get(crate::birth::META_KEY)? {
            Some(bytes) => record::decode(bytes.value())?,
            None => v3::Meta::default(),
        };
        let (revision, trimmed) = (Revision(meta.revision), Revision(meta.trimmed));
        let shared = self.shared.clone();
        let lost = shared.lost.lock().clone();
        Ok(Snapshot { shared, tables, revision, trimmed, lost, _database: database, _open: open })
    }

    /// The writer's counts after its last commit.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Bytes that the file takes on the disk; 0 if it can't be asked.
    pub fn file_bytes(&self) -> u64 {
        self.shared.file_bytes()
    }

    /// Bytes of the file that are cached by this process.
    pub fn cache_bytes(&self) -> u64 {
        let database = self.shared.database();
        database.map_or(0, |database| database.cache_stats().used_bytes() as u64)
    }

    /// Bytes that the hot set takes, about.
    pub fn hot_bytes(&self) -> u64 {
        self.shared.hot.lock().bytes() as u64
    }

    /// How the disk is doing.
    pub fn disk(&self) -> Arc<DiskHealth> {
        self.shared.disk()
    }

    /// A number that is equal for equal stores: it is made of every key and value of every table. Two replicas that
    /// wrote the same commits can compare it, and so can a copy and its original. Reads the whole file.
    pub fn digest(&self) -> Result<u64, Error> {
        crate::digest::digest(self.snapshot()?.tables.txn())
    }

    /// Rows and bytes of each table. Reads the whole file.
    pub fn table_stats(&self) -> Result<Vec<TableStats>, Error> {
        self.snapshot()?.tables.measured()
    }
}

/// The store at one revision.
pub struct Snapshot {
    shared: Arc<Shared>,
    pub(crate) tables: ReadTables,
    revision: Revision,
    trimmed: Revision,
    lost: Arc<[Lost]>,
    /// Declared last, so that they are released when nothing of the transaction is left.
    _database: Arc<Database>,
    _open: ArcRwLockReadGuard<RawRwLock, ()>,
}

impl Snapshot {
    /// Which revision it is.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The oldest revision that can be compared with.
    pub fn trimmed(&self) -> Revision {
        self.trimmed
    }

    /// Can it be compared with this revision? If not, the error is [`Error::Trimmed`].
    pub(crate) fn reaches(&self, since: Revision) -> Result<(), Error> {
        match self.lost.iter().find(|lost| lost.has(since)) {
            Some(lost) => Err(Error::Trimmed { since, oldest: lost.upto }),
            None if since < self.trimmed => Err(Error::Trimmed { since, oldest: self.trimmed }),
            None => Ok(()),
        }
    }

    /// Where the source's watch goes on. `None`: it has never been listed to its end, or was forgotten.
    pub fn checkpoint(&self, source: Source) -> Result<Option<ResourceVersion>, Error> {
        let Some(bytes) = self.tables.checkpoints()?.get(key::source(source).as_slice())? else {
            return Ok(None);
        };
        let checkpoint: v3::Checkpoint = record::decode(bytes.value())?;
        Ok(Some(ResourceVersion(checkpoint.version)))
    }

    /// When all that a source had said was last stored, of each that has been listed. As many as there are parts, times kinds.
    pub fn synced(&self) -> Result<BTreeMap<Source, Time>, Error> {
        let mut synced = BTreeMap::new();
        for entry in self.tables.checkpoints()?.range::<&[u8]>(..)? {
            let (key, value) = entry?;
            let checkpoint: v3::Checkpoint = record::decode(value.value())?;
            synced.extend(key::read_source(key.value()).map(|it| (it, Time(checkpoint.at))));
        }
        Ok(synced)
    }

    /// The zone of a Node. `None`: it is unknown, or has none.
    pub fn zone(&self, cluster: ClusterId, node: &str) -> Result<Option<String>, Error> {
        let prefix = key::object_namespace(cluster, model::Kind::Node, "");
        match self.object(&[prefix.as_slice(), node.as_bytes()].concat())?.and_then(|o| o.body) {
            Some(v3::Body::Node { zone }) => Ok(zone),
            _ => Ok(None),
        }
    }

    /// The rows of a Service. One that nobody has heard of has no object and no rows.
    pub fn service(&self, name: &ServiceName) -> Result<ServiceRows<'_>, Error> {
        let source = Source { cluster: name.cluster, kind: model::Kind::Service };
        let object = self.object(&key::object(source, &name.object))?;
        Ok(ServiceRows::new(self, object))
    }

    /// Visits the objects of a source, in the order of their names.
    pub fn objects(
        &self,
        source: Source,
        visit: &mut dyn FnMut(ObjectName, ResourceVersion),
    ) -> Result<(), Error> {
        let prefix = key::source(source);
        let end = key::prefix_end(&prefix);
        for entry in self.tables.objects()?.range(prefix.as_slice()..end.as_slice())? {
            let (key, value) = entry?;
            let object: v3::Object = record::decode(value.value())?;
            if object.body.is_some()
                && let Some(name) = key::object_name(key.value())
            {
                visit(name, object.version.into());
            }
        }
        Ok(())
    }

    pub(crate) fn object(&self, key: &[u8]) -> Result<Option<v3::Object>, Error> {
        self.tables.objects()?.get(key)?.map(|bytes| record::decode(bytes.value())).transpose()
    }

    /// What a number stands for, and how long its record is.
    pub(crate) fn interned<T: bincode::Decode<()>>(&self, id: u32) -> Result<(T, usize), Error> {
        let found = self.tables.interned()?.get(key::id(id).as_slice())?;
        let missing = || Error::Damaged { what: "interned", reason: format!("{id} is missing") };
        let entry: v3::Interned = record::decode(found.ok_or_else(missing)?.value())?;
        Ok((record::decode(&entry.bytes)?, entry.bytes.len()))
    }

    /// The hot set, locked.
    pub(crate) fn hot(&self) -> MutexGuard<'_, Hot> {
        self.shared.hot.lock()
    }
}
