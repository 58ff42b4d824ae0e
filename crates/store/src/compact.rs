//! Gives space back to the file system: the rows are copied, in their order, to a new file that takes the old
//! one's place. redb keeps the pages that become free, and after a flood that is most of the file.
//!
//! It is done in bounded steps, and between them commits go on: what they write is repeated in the copy
//! ([`crate::table`]). Readers never wait: they read the old file until the new one is whole. Whatever goes wrong with
//! the copy, it is given up, and nothing is lost but time. The disk holds both files only while the copy is made.

use redb::{Durability, ReadableDatabase, TableDefinition, WriteTransaction};
use std::ops::Bound;

use crate::birth::{self, OpenFile};
use crate::bulk::{self, Pending};
use crate::schema::NAMES;
use crate::write::Writer;
use crate::{Error, Stats};

/// Rows copied in one step, and their bytes, but for the last row's.
const STEP_ROWS_MAX: usize = 4_096;
const STEP_BYTES_MAX: usize = 256 << 10;

/// After so many bytes the copy is made durable: until then redb remembers each page of it in memory.
const UNSYNCED_BYTES_MAX: usize = 16 << 20;

/// A file is left alone until it could give back this much.
const WASTE_BYTES_MIN: u64 = 64 << 20;

/// A copy that is being made.
pub(crate) struct Compaction {
    pub(crate) copy: OpenFile,
    /// The table that is being copied, as an index of [`NAMES`].
    table: usize,
    /// Its last key that has been copied.
    after: Option<Vec<u8>>,
    /// Bytes that were copied since the copy was last durable.
    unsynced_bytes: usize,
}

/// How large a file of these rows is if its pages are full: each row has two offsets, and branches take 3 %.
fn packed_bytes(stats: &Stats) -> u64 {
    let leaves = stats.bytes + 8 * stats.rows;
    leaves + leaves / 32
}

/// Is half of a file of this size wasted?
fn is_wasteful(file_bytes: u64, stats: &Stats) -> bool {
    let packed = packed_bytes(stats);
    file_bytes > 2 * packed && file_bytes - packed > WASTE_BYTES_MIN
}

impl Writer {
    /// Does a bounded piece of compaction, if one is under way, or the file has become twice as large as it needs
    /// to be. May there be more?
    pub fn compact(&mut self) -> Result<bool, Error> {
        self.ready()?;
        if self.compaction.is_none() {
            let wasteful = is_wasteful(self.shared.file_bytes(), &self.shared.stats());
            if !wasteful || self.compaction_failed {
                return Ok(false);
            }
            if let Err(error) = self.begin_compaction() {
                self.give_up_compaction(&error);
            }
            return Ok(self.compaction.is_some());
        }
        match self.compact_some() {
            Ok(more) => Ok(more),
            Err(error) if self.poisoned => Err(error),
            Err(error) => {
                self.give_up_compaction(&error);
                Ok(false)
            }
        }
    }

    /// Begins a compaction, whatever it may save. Calls of [`Writer::compact`] carry it on.
    pub fn begin_compaction(&mut self) -> Result<(), Error> {
        let copy = birth::create_copy(&self.volume, &self.config)?;
        tracing::info!(bytes = self.shared.file_bytes(), "compacting the store");
        self.compaction = Some(Compaction { copy, table: 0, after: None, unsynced_bytes: 0 });
        Ok(())
    }

    pub(crate) fn give_up_compaction(&mut self, error: &dyn std::fmt::Display) {
        tracing::warn!(%error, "the store could not be compacted; it goes on as it is");
        self.compaction = None;
        self.compaction_failed = true;
        birth::remove_copy(&*self.volume);
    }

    /// Copies some rows; after the last ones the copy takes the file's place.
    fn compact_some(&mut self) -> Result<bool, Error> {
        let Some(compaction) = &mut self.compaction else { return Ok(false) };
        let Some(name) = NAMES.get(compaction.table) else {
            return self.replace_file().map(|()| false);
        };
        let definition = TableDefinition::<&[u8], &[u8]>::new(name);
        let from = self.shared.database()?.begin_read()?.open_table(definition)?;
        let after = match &compaction.after {
            Some(key) => Bound::Excluded(key.as_slice()),
            None => Bound::Unbounded,
        };
        let (mut rows, mut bytes) = (Pending::new(), 0);
        let mut whole = true;
        for row in from.range::<&[u8]>((after, Bound::Unbounded))? {
            if rows.len() == STEP_ROWS_MAX || bytes >= STEP_BYTES_MAX {
                whole = false;
                break;
            }
            let (key, value) = row?;
            bytes += key.value().len() + value.value().len();
            rows.insert(key.value().to_vec(), value.value().to_vec());
        }
        let last = rows.last_key_value().map(|(key, _)| key.clone());
        let txn = compaction.copy.database.begin_write()?;
        bulk::insert(&mut txn.open_table(definition)?, rows)?;
        match whole {
            true => (compaction.table, compaction.after) = (compaction.table + 1, None),
            false => compaction.after = last,
        }
        compaction.unsynced_bytes += bytes;
        self.commit_copy(txn)?;
        Ok(true)
    }

    /// The copy need not be durable before it takes the file's place, but for what redb has to remember of it. If
    /// the disk doesn't take it, it is given up before much of it is held in memory.
    pub(crate) fn commit_copy(&mut self, mut copy: WriteTransaction) -> Result<(), Error> {
        let Some(compaction) = &mut self.compaction else { return Ok(()) };
        match compaction.unsynced_bytes > UNSYNCED_BYTES_MAX {
            true => compaction.unsynced_bytes = 0,
            false => copy.set_durability(Durability::None).map_err(crate::write::unexpected)?,
        }
        copy.commit()?;
        match compaction.copy.health.failing() {
            Some(reason) => Err(Error::DiskFailing { reason }),
            None => Ok(()),
        }
    }

    /// The copy is whole: it becomes the store. From here on an old file is read by those only who began earlier.
    fn replace_file(&mut self) -> Result<(), Error> {
        let Some(Compaction { copy, .. }) = self.compaction.take() else { return Ok(()) };
        let before = self.shared.file_bytes();
        copy.database.begin_write()?.commit()?;
        if let Err(error) = birth::replace_by_copy(&*self.volume, &copy.health) {
            // Which file has the name isn't known then, so nothing more may be written to either; save where the disk
            // failed before, and nothing was renamed.
            self.poisoned = !matches!(error, Error::DiskFailing { .. });
            return Err(error);
        }
        // It was written by this process from its first byte.
        copy.health.vouch();
        self.shared.replace(copy);
        self.unsynced = false;
        tracing::info!(before, bytes = self.shared.file_bytes(), "the store is compacted");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
