//! What many records share is stored once, counted, under a number that is never used twice.
//!
//! An entry without references stays until the undo log no longer reaches back to when it had some: rows of
//! the past still name it.

use crate::record::{self, v3};
use crate::write::Work;
use crate::{Error, key, wake};

/// Entries whose counts are ahead of the table; more are written before the commit goes on.
const COUNTED_MAX: usize = 4_096;

impl Work<'_> {
    /// The number of these bytes, with one more reference.
    pub(crate) fn intern<T: bincode::Encode>(&mut self, value: &T) -> Result<u32, Error> {
        let bytes = record::encode(value)?;
        let known = self.state.interned.get(&bytes).copied();
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.find_or_make(&bytes)?;
                self.state.interned.put(bytes, id);
                id
            }
        };
        self.refer(id)?;
        Ok(id)
    }

    /// The number of a text, with one more reference.
    pub(crate) fn intern_text(&mut self, text: &str) -> Result<u32, Error> {
        let known = self.state.texts.get(text).copied();
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.find_or_make(&record::encode(&text)?)?;
                self.state.texts.put(text.to_owned(), id);
                id
            }
        };
        self.refer(id)?;
        Ok(id)
    }

    /// One reference more.
    pub(crate) fn refer(&mut self, id: u32) -> Result<(), Error> {
        self.counted(id)?.refs += 1;
        Ok(())
    }

    fn find_or_make(&mut self, bytes: &[u8]) -> Result<u32, Error> {
        let hash = wake::hash(bytes);
        let prefix = key::interned_hash(hash);
        for entry in self.tables.interned_ids.range(&prefix, &key::prefix_end(&prefix))? {
            let entry = entry?.0;
            let id = key::KeyReader(key::rest(entry.value(), 8)).u32().unwrap_or(0);
            if self.interned_entry(id)?.bytes == bytes {
                return Ok(id);
            }
        }
        let id = self.next_id(0)?;
        let made = v3::Interned { refs: 0, freed: self.revision.0, hash, bytes: bytes.to_vec() };
        self.counted.insert(id, made);
        self.tables.interned_ids.insert(key::interned_id(hash, id), Vec::new())?;
        Ok(id)
    }

    /// An entry whose count may be changed. It reaches the table once for all the changes of a commit.
    fn counted(&mut self, id: u32) -> Result<&mut v3::Interned, Error> {
        if self.counted.len() >= COUNTED_MAX && !self.counted.contains_key(&id) {
            self.write_counted()?;
        }
        if !self.counted.contains_key(&id) {
            let found = self.interned_entry(id)?;
            self.counted.insert(id, found);
        }
        self.counted.get_mut(&id).ok_or_else(|| missing(id))
    }

    /// Writes what has been counted.
    pub(crate) fn write_counted(&mut self) -> Result<(), Error> {
        for (id, entry) in std::mem::take(&mut self.counted) {
            self.tables.interned.insert(key::id(id), record::encode(&entry)?)?;
        }
        Ok(())
    }

    fn interned_entry(&self, id: u32) -> Result<v3::Interned, Error> {
        if let Some(counted) = self.counted.get(&id) {
            return Ok(counted.clone());
        }
        let found = self.tables.interned.get(key::id(id).as_slice())?;
        record::decode(found.ok_or_else(|| missing(id))?.value())
    }

    /// One reference less. Was it the last?
    pub(crate) fn release(&mut self, id: u32) -> Result<bool, Error> {
        let revision = self.revision;
        let entry = self.counted(id)?;
        entry.refs = entry.refs.saturating_sub(1);
        if entry.refs > 0 {
            return Ok(false);
        }
        entry.freed = revision.0;
        self.tables.freed.insert(key::freed(revision, id), Vec::new())?;
        Ok(true)
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
            self.counted.remove(&id);
            self.state.interned.pop(&found.bytes);
            if let Ok(text) = record::decode::<String>(&found.bytes) {
                self.state.texts.pop(&text);
            }
            self.tables.interned.remove(key::id(id).as_slice())?;
            self.tables.interned_ids.remove(key::interned_id(found.hash, id).as_slice())?;
        }
        Ok(())
    }
}

fn missing(id: u32) -> Error {
    Error::Damaged { what: "interned", reason: format!("{id} is missing") }
}
