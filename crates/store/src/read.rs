//! Reading: snapshots of one revision each, short-lived, as many at a time as are wanted.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use lru::LruCache;
use model::{
    ClusterId, Metadata, ObjectName, ResourceVersion, Revision, ServiceName, SliceMeta, Source,
};
use parking_lot::{ArcRwLockReadGuard, Mutex, RawRwLock, RwLock};
use redb::{Database, ReadableDatabase};

use crate::record::{self, v1};
use crate::schema::ReadTables;
use crate::service::ServiceRows;
use crate::{Error, Stats, TableStats, key};

/// Interned values kept decoded, of each kind. Most rows share a few of them.
const DECODED_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Takes snapshots. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

/// What all readers, and the writer, share.
pub(crate) struct Shared {
    /// `None` once the writer is gone. Each snapshot holds the lock, so that closing waits for them.
    database: Arc<RwLock<Option<Arc<Database>>>>,
    path: PathBuf,
    stats: Mutex<Stats>,
    /// Numbers are never used twice, so what is cached is never out of date.
    metadata: Mutex<LruCache<u32, Arc<Metadata>>>,
    slices: Mutex<LruCache<u32, Arc<SliceMeta>>>,
}

impl Shared {
    pub(crate) fn stats(&self) -> Stats {
        self.stats.lock().clone()
    }

    pub(crate) fn set_stats(&self, stats: Stats) {
        *self.stats.lock() = stats;
    }

    /// Closes the file for readers, once the snapshots that there are have been dropped.
    pub(crate) fn close(&self) {
        *self.database.write() = None;
    }
}

impl Reader {
    pub(crate) fn new(database: Arc<Database>, path: PathBuf) -> Reader {
        let shared = Shared {
            database: Arc::new(RwLock::new(Some(database))),
            path,
            stats: Mutex::default(),
            metadata: Mutex::new(LruCache::new(DECODED_MAX)),
            slices: Mutex::new(LruCache::new(DECODED_MAX)),
        };
        Reader { shared: Arc::new(shared) }
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The newest revision. To be dropped soon: as long as it lives, pages of its time aren't used again.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let open = self.shared.database.read_arc();
        let txn = open.as_ref().ok_or(Error::Closed)?.begin_read()?;
        let tables = ReadTables::open(&txn)?;
        let meta: v1::Meta = match tables.meta.get(crate::disk::META_KEY)? {
            Some(bytes) => record::decode(bytes.value())?,
            None => v1::Meta::default(),
        };
        let (revision, trimmed) = (Revision(meta.revision), Revision(meta.trimmed));
        Ok(Snapshot { shared: self.shared.clone(), tables, revision, trimmed, _open: open })
    }

    /// The writer's counts after its last commit.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Bytes of the file on disk; 0 if it can't be asked.
    pub fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.shared.path).map_or(0, |metadata| metadata.len())
    }

    /// Rows and bytes of each table. Reads the whole file.
    pub fn table_stats(&self) -> Result<Vec<TableStats>, Error> {
        Ok(self.snapshot()?.tables.sizes()?)
    }
}

/// The store at one revision.
pub struct Snapshot {
    shared: Arc<Shared>,
    pub(crate) tables: ReadTables,
    revision: Revision,
    trimmed: Revision,
    /// Declared last, so that it is released when nothing of the transaction is left.
    _open: ArcRwLockReadGuard<RawRwLock, Option<Arc<Database>>>,
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

    /// Where the source's watch goes on. `None`: it has never been listed to its end.
    pub fn checkpoint(&self, source: Source) -> Result<Option<ResourceVersion>, Error> {
        let Some(bytes) = self.tables.checkpoints.get(key::source(source).as_slice())? else {
            return Ok(None);
        };
        let checkpoint: v1::Checkpoint = record::decode(bytes.value())?;
        Ok(Some(ResourceVersion(checkpoint.version)))
    }

    /// The zone of a Node. `None`: it is unknown, or has none.
    pub fn zone(&self, cluster: ClusterId, node: &str) -> Result<Option<String>, Error> {
        let prefix = key::object_namespace(cluster, model::Kind::Node, "");
        match self.object(&[prefix.as_slice(), node.as_bytes()].concat())?.and_then(|o| o.body) {
            Some(v1::Body::Node { zone }) => Ok(zone),
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
        for entry in self.tables.objects.range(prefix.as_slice()..end.as_slice())? {
            let (key, value) = entry?;
            let object: v1::Object = record::decode(value.value())?;
            if object.body.is_some()
                && let Some(name) = key::object_name(key.value())
            {
                visit(name, ResourceVersion(object.version));
            }
        }
        Ok(())
    }

    fn object(&self, key: &[u8]) -> Result<Option<v1::Object>, Error> {
        self.tables.objects.get(key)?.map(|bytes| record::decode(bytes.value())).transpose()
    }

    fn interned<T: bincode::Decode<()>>(&self, id: u32) -> Result<T, Error> {
        let found = self.tables.interned.get(key::id(id).as_slice())?;
        let missing = || Error::Damaged { what: "interned", reason: format!("{id} is missing") };
        let entry: v1::Interned = record::decode(found.ok_or_else(missing)?.value())?;
        record::decode(&entry.bytes)
    }

    /// What a workload shows to clients.
    pub(crate) fn metadata(&self, id: u32) -> Result<Arc<Metadata>, Error> {
        if let Some(found) = self.shared.metadata.lock().get(&id) {
            return Ok(found.clone());
        }
        let read = Arc::new(Metadata::from(self.interned::<v1::Metadata>(id)?));
        self.shared.metadata.lock().put(id, read.clone());
        Ok(read)
    }

    /// What the endpoints of a slice share.
    pub(crate) fn slice_meta(&self, id: u32) -> Result<Arc<SliceMeta>, Error> {
        if let Some(found) = self.shared.slices.lock().get(&id) {
            return Ok(found.clone());
        }
        let read = Arc::new(SliceMeta::from(self.interned::<v1::SliceMeta>(id)?));
        self.shared.slices.lock().put(id, read.clone());
        Ok(read)
    }
}
