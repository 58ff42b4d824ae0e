//! What many records share is stored once, counted, under a number that is never used twice.
//!
//! An entry without references stays until the undo log no longer reaches back to when it had some: rows of
//! the past still name it.

use redb::ReadableTable;

use crate::record::{self, v1};
use crate::write::Work;
use crate::{Error, key, wake};

impl Work<'_> {
    /// The number of these bytes, with one more reference.
    pub(crate) fn intern<T: bincode::Encode>(&mut self, value: &T) -> Result<u32, Error> {
        let bytes = record::encode(value)?;
        let hash = wake::hash(&bytes);
        if let Some((id, mut found)) = self.find_interned(hash, &bytes)? {
            found.refs += 1;
            self.tables.interned.insert(key::id(id).as_slice(), &*record::encode(&found)?)?;
            return Ok(id);
        }
        let id = self.next_id(0)?;
        let made = v1::Interned { refs: 1, freed: 0, hash, bytes };
        self.tables.interned.insert(key::id(id).as_slice(), &*record::encode(&made)?)?;
        self.tables.interned_ids.insert(key::interned_id(hash, id).as_slice(), [].as_slice())?;
        Ok(id)
    }

    fn find_interned(&self, hash: u64, bytes: &[u8]) -> Result<Option<(u32, v1::Interned)>, Error> {
        let (from, to) = (key::interned_id(hash, 0), key::interned_id(hash, u32::MAX));
        for entry in self.tables.interned_ids.range(from.as_slice()..=to.as_slice())? {
            let entry = entry?.0;
            let id = key::KeyReader(&entry.value()[8..]).u32().unwrap_or(0);
            let found = self.interned_entry(id)?;
            if found.bytes == bytes {
                return Ok(Some((id, found)));
            }
        }
        Ok(None)
    }

    fn interned_entry(&self, id: u32) -> Result<v1::Interned, Error> {
        let found = self.tables.interned.get(key::id(id).as_slice())?;
        let missing = || Error::Damaged { what: "interned", reason: format!("{id} is missing") };
        record::decode(found.ok_or_else(missing)?.value())
    }

    /// One reference less. Was it the last?
    pub(crate) fn release(&mut self, id: u32) -> Result<bool, Error> {
        let mut found = self.interned_entry(id)?;
        found.refs = found.refs.saturating_sub(1);
        if found.refs == 0 {
            found.freed = self.revision.0;
            self.tables.freed.insert(key::freed(self.revision, id).as_slice(), [].as_slice())?;
        }
        self.tables.interned.insert(key::id(id).as_slice(), &*record::encode(&found)?)?;
        Ok(found.refs == 0)
    }

    /// What a number stands for.
    pub(crate) fn interned<T: bincode::Decode<()>>(&self, id: u32) -> Result<T, Error> {
        record::decode(&self.interned_entry(id)?.bytes)
    }

    /// Forgets an entry that has had no reference since `trimmed` or longer.
    pub(crate) fn forget_interned(&mut self, id: u32, trimmed: u64) -> Result<(), Error> {
        if self.tables.interned.get(key::id(id).as_slice())?.is_none() {
            return Ok(());
        }
        let found = self.interned_entry(id)?;
        if found.refs == 0 && found.freed <= trimmed {
            self.tables.interned.remove(key::id(id).as_slice())?;
            self.tables.interned_ids.remove(key::interned_id(found.hash, id).as_slice())?;
        }
        Ok(())
    }
}
