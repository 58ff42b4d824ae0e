//! The writer: changes in, one transaction, one revision out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use model::limits::COMMIT_ENDPOINTS_MAX;
use model::{Change, ClusterId, Revision, Source, Template, Time};
use redb::{Durability, WriteTransaction};

use crate::admission::{Buckets, HeldBack, Limit, Round, Sizes};
use crate::birth::{META_KEY, trouble};
use crate::compact::Compaction;
use crate::dirty::Dirty;
use crate::disk::{DiskHealth, Volume};
use crate::key::{ServiceId, SliceId, WorkloadId};
use crate::listing::Listing;
use crate::read::Shared;
use crate::record::{self, v3};
use crate::schema::Tables;
use crate::template::Joined;
use crate::workload::Standing;
use crate::{Config, Error, Fsync, Stats, WakeKey};

/// Values that are interned often, with their numbers.
const INTERNED_KNOWN_MAX: NonZeroUsize = NonZeroUsize::new(128).unwrap();

/// Texts with their numbers: as many as a large cluster has nodes.
const TEXTS_KNOWN_MAX: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();

/// Workloads of which is known what their rows need: as many as the slices of one commit may name.
const WORKLOADS_KNOWN_MAX: NonZeroUsize = NonZeroUsize::new(COMMIT_ENDPOINTS_MAX).unwrap();

/// EndpointSlices kept decoded between changes, so that the pods of one don't decode it again and again.
const SLICES_DECODED_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// The only way to write. It isn't `Clone`, and one thread has it.
pub struct Writer {
    pub(crate) config: Config,
    pub(crate) volume: Arc<dyn Volume>,
    /// Has the database, for readers too.
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: State,
    /// The copy that is to take the file's place, while it is made.
    pub(crate) compaction: Option<Compaction>,
    /// It was tried, and is not tried again until the store is opened anew.
    pub(crate) compaction_failed: bool,
    /// There are commits that may not be on disk yet.
    pub(crate) unsynced: bool,
    pub(crate) poisoned: bool,
    /// Held for as long as the store is open.
    _lock: Option<File>,
}

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// The revision that readers see from now on.
    pub revision: Revision,
    /// The Services and Nodes on which answers depend that may be different now.
    pub touched: Vec<WakeKey>,
    /// Objects written.
    pub put: u64,
    /// Objects deleted.
    pub deleted: u64,
    /// Objects that were stored already in the version that came.
    pub unchanged: u64,
    /// Targets that have to wait from now on, by why.
    pub held: BTreeMap<Limit, HeldBack>,
    /// Objects of linked clusters that were refused, by the cluster's name.
    pub refused: BTreeMap<String, u64>,
}

/// What the writer knows besides the file. All of it can be lost.
pub(crate) struct State {
    /// Listings that have begun and are not swept yet.
    pub(crate) listings: BTreeMap<Source, Listing>,
    /// EndpointSlices, decoded, as the newest transaction has them.
    pub(crate) slices: LruCache<SliceId, Arc<v3::Slice>>,
    /// The numbers of interned values, by their bytes.
    pub(crate) interned: LruCache<Vec<u8>, u32>,
    /// The numbers of interned texts: the names of nodes and zones.
    pub(crate) texts: LruCache<String, u32>,
    /// Templates of a cluster, with their numbers.
    pub(crate) templates: LruCache<Template, (ClusterId, u32)>,
    /// What templates join to, by their numbers.
    pub(crate) joined: LruCache<u32, Joined>,
    /// What the rows of a workload need of it; `None` if it isn't there.
    pub(crate) workloads: LruCache<WorkloadId, Option<Standing>>,
    /// The last trim may have left something that the undo log no longer reaches.
    pub(crate) leftovers: bool,
    /// The numbers of the parts of linked clusters that are stored; `None`: not read yet.
    pub(crate) parts: Option<BTreeSet<u16>>,
    /// There may be parts that have left and still have their numbers.
    pub(crate) left: bool,
    /// Clusters that are known to have been listed.
    pub(crate) listed: BTreeSet<ClusterId>,
    /// What Services have gained of late.
    pub(crate) buckets: Buckets,
    /// Where looking through those who wait is.
    pub(crate) round: Round,
    /// Parts of clusters that have left may not have been swept when the process before ended.
    pub(crate) unswept: bool,
}

impl State {
    pub(crate) fn new() -> State {
        State {
            listings: BTreeMap::new(),
            slices: LruCache::new(SLICES_DECODED_MAX),
            interned: LruCache::new(INTERNED_KNOWN_MAX),
            texts: LruCache::new(TEXTS_KNOWN_MAX),
            templates: LruCache::new(INTERNED_KNOWN_MAX),
            joined: LruCache::new(INTERNED_KNOWN_MAX),
            workloads: LruCache::new(WORKLOADS_KNOWN_MAX),
            leftovers: true,
            parts: None,
            left: true,
            listed: BTreeSet::new(),
            buckets: Buckets::default(),
            round: Round::default(),
            unswept: true,
        }
    }
}

/// One transaction at work.
pub(crate) struct Work<'w> {
    pub(crate) tables: Tables<'w>,
    pub(crate) meta: v3::Meta,
    pub(crate) state: &'w mut State,
    pub(crate) config: &'w Config,
    /// The revision that this transaction makes, if it changes what any answer depends on.
    pub(crate) revision: Revision,
    pub(crate) now: Time,
    /// Undo entries written, by Service.
    pub(crate) undone: BTreeMap<ServiceId, u64>,
    /// Bytes of these entries.
    pub(crate) undone_bytes: u64,
    /// Addresses that have an undo entry of this revision already.
    pub(crate) undone_addresses: BTreeSet<(ServiceId, IpAddr)>,
    /// Interned entries whose counts have changed.
    pub(crate) counted: BTreeMap<u32, v3::Interned>,
    pub(crate) dirty: Dirty,
    pub(crate) sizes: Sizes,
    pub(crate) touched: BTreeSet<WakeKey>,
    pub(crate) done: Commit,
}

impl Writer {
    pub(crate) fn new(
        config: Config,
        volume: Arc<dyn Volume>,
        shared: Arc<Shared>,
        lock: Option<File>,
    ) -> Result<Writer, Error> {
        let mut writer = Writer {
            config,
            volume,
            shared,
            state: State::new(),
            compaction: None,
            compaction_failed: false,
            unsynced: false,
            poisoned: false,
            _lock: lock,
        };
        // Whatever the disk does: a store that is there can be read.
        writer.write(Time::default(), |_| Ok(()))?;
        Ok(writer)
    }

    /// Writes all changes, or none: one transaction, and one revision if any answer may differ. After an error
    /// nothing more can be written until the store is opened again; save for [`Error::DiskFailing`], after which
    /// all is as before. `now` is when the revision is made.
    ///
    /// If the disk stops taking writes meanwhile, readers see the commit all the same; it becomes durable when the
    /// disk is well again, and nothing is written before.
    pub fn commit(&mut self, now: Time, mut changes: Vec<Change>) -> Result<Commit, Error> {
        self.commit_from(now, &mut changes)
    }

    /// As [`Writer::commit`]; after [`Error::DiskFailing`] the changes are still in the list.
    pub fn commit_from(&mut self, now: Time, changes: &mut Vec<Change>) -> Result<Commit, Error> {
        self.transact(now, |work| {
            for change in changes.drain(..) {
                work.apply(change)?;
            }
            Ok(())
        })
    }

    /// One bounded piece of the work that waits: sweeping ended listings, trimming the undo log. `None` if
    /// there is none.
    pub fn tick(&mut self, now: Time) -> Result<Option<Commit>, Error> {
        self.ready()?;
        if std::mem::take(&mut self.state.unswept) {
            return self.transact(now, |work| work.forget_left_parts()).map(Some);
        }
        if self.state.listings.values().any(Listing::ended) {
            return self.transact(now, |work| work.sweep()).map(Some);
        }
        if self.state.round.is_due(now) {
            return self.transact(now, |work| work.let_in()).map(Some);
        }
        if self.state.leftovers || self.config.undo_is_due(&self.shared.stats(), now) {
            return self.transact(now, |work| work.trim()).map(Some);
        }
        Ok(None)
    }

    fn transact(
        &mut self,
        now: Time,
        write: impl FnOnce(&mut Work<'_>) -> Result<(), Error>,
    ) -> Result<Commit, Error> {
        self.ready()?;
        self.write(now, write)
    }

    /// Can a transaction begin? If the disk did not take the last one, it gets another chance here; while it
    /// doesn't the error is [`Error::DiskFailing`], and reading goes on.
    pub fn ready(&mut self) -> Result<(), Error> {
        if self.poisoned {
            return Err(Error::Poisoned);
        }
        let mut healed = self.shared.disk().heal().map_err(trouble);
        if let Err(error @ Error::DiskFailing { .. }) = &healed
            && self.compaction.is_some()
        {
            // It may be the copy that fills the disk.
            self.give_up_compaction(error);
            healed = self.shared.disk().heal().map_err(trouble);
        }
        self.poisoned = !matches!(healed, Ok(()) | Err(Error::DiskFailing { .. }));
        healed
    }

    /// How the disk is doing.
    pub fn disk(&self) -> Arc<DiskHealth> {
        self.shared.disk()
    }

    pub(crate) fn write(
        &mut self,
        now: Time,
        write: impl FnOnce(&mut Work<'_>) -> Result<(), Error>,
    ) -> Result<Commit, Error> {
        // A failure half-way leaves `state` ahead of the file, and after a failed fsync nothing is known.
        self.poisoned = true;
        let mut txn = self.shared.database()?.begin_write()?;
        if self.config.fsync == Fsync::Together {
            txn.set_durability(Durability::None).map_err(unexpected)?;
            self.unsynced = true;
        }
        let copy = self.begin_copy();
        let mut work = Work::begin(&txn, copy.as_ref(), now, &mut self.state, &self.config)?;
        write(&mut work)?;
        let (meta, commit, copy_failure) = work.finish()?;
        txn.commit()?;
        if let Some(copy) = copy {
            let repeated = match copy_failure {
                Some(error) => Err(error),
                None => self.commit_copy(copy),
            };
            if let Err(error) = repeated {
                self.give_up_compaction(&error);
            }
        }
        self.poisoned = false;
        self.shared.set_stats(Stats::of(&meta));
        Ok(commit)
    }

    /// Is anybody known to wait to be let in? Then there is something to do every second.
    pub fn has_waiting(&self) -> bool {
        !self.state.round.idle
    }

    /// Are there commits that may not be on disk yet?
    pub fn unsynced(&self) -> bool {
        self.unsynced
    }

    /// Makes all commits durable. After an error nothing more can be written until the store is opened again.
    /// While the disk does not take writes it is [`Error::DiskFailing`], and can be tried again.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.ready()?;
        if !self.unsynced {
            return Ok(());
        }
        self.poisoned = true;
        self.shared.database()?.begin_write()?.commit()?;
        self.poisoned = false;
        self.unsynced = false;
        Ok(())
    }

    /// The transaction of the copy that is being made, in which this one is repeated.
    fn begin_copy(&mut self) -> Option<WriteTransaction> {
        match self.compaction.as_ref()?.copy.database.begin_write() {
            Ok(txn) => Some(txn),
            Err(error) => {
                self.give_up_compaction(&error);
                None
            }
        }
    }

    /// Looks at the newest revision as a transaction does, and leaves everything as it is.
    pub(crate) fn look<T>(
        &mut self,
        now: Time,
        look: impl FnOnce(&mut Work<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.poisoned {
            return Err(Error::Poisoned);
        }
        let txn = self.shared.database()?.begin_write()?;
        let looked = look(&mut Work::begin(&txn, None, now, &mut self.state, &self.config)?)?;
        txn.abort()?;
        Ok(looked)
    }
}

pub(crate) fn unexpected(error: impl std::fmt::Display) -> Error {
    Error::Damaged { what: "transaction", reason: error.to_string() }
}

/// The store is closed with its writer: another process may open the file as soon as this returns.
impl Drop for Writer {
    fn drop(&mut self) {
        // The last chance for what the disk did not take. Without it, the file is as after a power cut.
        if let Err(error) = self.shared.disk().heal().map_err(trouble) {
            tracing::warn!(%error, "the last changes are not on disk");
        }
        self.shared.close();
    }
}

impl<'w> Work<'w> {
    fn begin(
        txn: &'w WriteTransaction,
        copy: Option<&'w WriteTransaction>,
        now: Time,
        state: &'w mut State,
        config: &'w Config,
    ) -> Result<Work<'w>, Error> {
        let tables = Tables::open(txn, copy)?;
        let meta: v3::Meta = match tables.meta.get(META_KEY)? {
            Some(bytes) => record::decode(bytes.value())?,
            None => v3::Meta::default(),
        };
        Ok(Work {
            tables,
            revision: Revision(meta.revision + 1),
            now,
            meta,
            state,
            config,
            undone: BTreeMap::new(),
            undone_bytes: 0,
            undone_addresses: BTreeSet::new(),
            counted: BTreeMap::new(),
            dirty: Dirty::default(),
            sizes: Sizes::default(),
            touched: BTreeSet::new(),
            done: Commit::default(),
        })
    }

    fn finish(mut self) -> Result<(v3::Meta, Commit, Option<Error>), Error> {
        self.rejoin()?;
        self.write_sizes()?;
        self.write_counted()?;
        if !self.undone.is_empty() {
            self.meta.revision = self.revision.0;
            self.write_revision()?;
        }
        self.tables.flush()?;
        let grown = self.tables.grown();
        self.meta.rows = self.meta.rows.saturating_add_signed(grown.rows);
        self.meta.bytes = self.meta.bytes.saturating_add_signed(grown.bytes);
        self.tables.meta.insert(META_KEY.to_vec(), record::encode(&self.meta)?)?;
        self.tables.meta.flush()?;
        self.done.revision = Revision(self.meta.revision);
        self.done.touched = self.touched.into_iter().collect();
        Ok((self.meta, self.done, self.tables.take_copy_failure()))
    }

    /// The next number of a kind, or for 0 of what is interned. No number is 0.
    pub(crate) fn next_id(&mut self, kind: usize) -> Result<u32, Error> {
        let last = &mut self.meta.ids[kind];
        *last = last.checked_add(1).ok_or(Error::NoNumberLeft)?;
        Ok(*last)
    }
}
