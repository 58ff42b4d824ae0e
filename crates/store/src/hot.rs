//! The hot set: what rows refer to, decoded, as much of it as its budget allows. Most rows share a few of these.
//!
//! It is read under one lock, which is held while a value that is not there is read from disk: whoever else wants it
//! finds it then, and reads nothing. Numbers are never used twice, so what is here is never out of date, whatever
//! commits and however late a reader is.

use std::sync::Arc;

use lru::LruCache;
use model::{Metadata, SliceMeta, Template, Text};

use crate::record::v3;
use crate::{Error, Snapshot};

/// What a decoded value takes for each byte of its record, at most: texts have a header each, lists have room to grow.
const DECODED_PER_BYTE: usize = 4;

/// What any value takes besides, with its place in the list.
const ENTRY_BYTES: usize = 160;

/// Decoded values by their numbers.
pub(crate) struct Hot {
    values: LruCache<u32, Value>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Clone)]
enum Decoded {
    Template(Arc<Template>),
    Metadata(Arc<Metadata>),
    Slice(Arc<SliceMeta>),
    Text(Text),
}

struct Value {
    decoded: Decoded,
    bytes: usize,
}

impl Hot {
    pub(crate) fn new(bytes_max: usize) -> Hot {
        Hot { values: LruCache::unbounded(), bytes: 0, bytes_max }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.bytes = 0;
    }

    /// Bytes that the values take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What many workloads share.
    pub(crate) fn template(&mut self, at: &Snapshot, id: u32) -> Result<Arc<Template>, Error> {
        let load = || {
            let (template, bytes) = at.interned::<v3::Template>(id)?;
            Ok((Decoded::Template(Arc::new(template.into())), bytes))
        };
        match self.get(id, load)? {
            Decoded::Template(template) => Ok(template),
            _ => Err(mistaken(id)),
        }
    }

    /// What a workload shows to clients.
    pub(crate) fn metadata(&mut self, at: &Snapshot, id: u32) -> Result<Arc<Metadata>, Error> {
        let load = || {
            let (metadata, bytes) = at.interned::<v3::Metadata>(id)?;
            Ok((Decoded::Metadata(Arc::new(metadata.into())), bytes))
        };
        match self.get(id, load)? {
            Decoded::Metadata(metadata) => Ok(metadata),
            _ => Err(mistaken(id)),
        }
    }

    /// What the endpoints of a slice share.
    pub(crate) fn slice_meta(&mut self, at: &Snapshot, id: u32) -> Result<Arc<SliceMeta>, Error> {
        let load = || {
            let (slice, bytes) = at.interned::<v3::SliceMeta>(id)?;
            Ok((Decoded::Slice(Arc::new(slice.into())), bytes))
        };
        match self.get(id, load)? {
            Decoded::Slice(slice) => Ok(slice),
            _ => Err(mistaken(id)),
        }
    }

    /// A text; `None` for number 0.
    pub(crate) fn text(&mut self, at: &Snapshot, id: u32) -> Result<Option<Text>, Error> {
        if id == 0 {
            return Ok(None);
        }
        let load = || {
            let (text, bytes) = at.interned::<String>(id)?;
            Ok((Decoded::Text(text.into()), bytes))
        };
        match self.get(id, load)? {
            Decoded::Text(text) => Ok(Some(text)),
            _ => Err(mistaken(id)),
        }
    }

    /// Texts, in their order.
    pub(crate) fn texts(&mut self, at: &Snapshot, ids: &[u32]) -> Result<Vec<Text>, Error> {
        let mut texts = Vec::with_capacity(ids.len());
        for id in ids {
            texts.extend(self.text(at, *id)?);
        }
        Ok(texts)
    }

    fn get(
        &mut self,
        id: u32,
        load: impl FnOnce() -> Result<(Decoded, usize), Error>,
    ) -> Result<Decoded, Error> {
        if let Some(value) = self.values.get(&id) {
            return Ok(value.decoded.clone());
        }
        let (decoded, bytes) = load()?;
        let bytes = ENTRY_BYTES + bytes * DECODED_PER_BYTE;
        self.bytes += bytes;
        self.values.push(id, Value { decoded: decoded.clone(), bytes });
        while self.bytes > self.bytes_max {
            let Some((_, value)) = self.values.pop_lru() else { break };
            self.bytes -= value.bytes;
        }
        Ok(decoded)
    }
}

/// Equal bytes have one number, and only values of one sort are written as these bytes.
fn mistaken(id: u32) -> Error {
    Error::Damaged { what: "interned", reason: format!("{id} is of another sort") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_kept_and_what_was_asked_for_lately_stays() {
        let mut hot = Hot::new(10 * ENTRY_BYTES);
        let mut loads = 0;
        let mut ask = |hot: &mut Hot, id| {
            let text = |id: u32| (Decoded::Text(id.to_string().into()), 0);
            hot.get(id, || {
                loads += 1;
                Ok(text(id))
            })
            .unwrap();
            loads
        };
        for id in 1..=100 {
            ask(&mut hot, id);
            ask(&mut hot, 1);
            assert!(
                hot.bytes() <= 10 * ENTRY_BYTES && hot.bytes() == hot.values.len() * ENTRY_BYTES
            );
        }
        assert_eq!(ask(&mut hot, 1), 100, "what is asked for again and again is loaded once");
        assert_eq!(ask(&mut hot, 2), 101, "what was not is loaded again");
    }
}
