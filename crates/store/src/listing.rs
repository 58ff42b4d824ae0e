//! Listings: what was mentioned is marked, and at the end what was not is swept. A listing that is
//! interrupted sweeps nothing: the next one begins anew.

use std::collections::BTreeMap;

use model::limits::SWEEP_CHANGES_MAX;
use model::{ResourceVersion, Source};

use crate::record::{self, v3};
use crate::write::Work;
use crate::{Error, key};

/// Objects that one step of a sweep looks at.
const SWEEP_ROWS_MAX: usize = 16 * SWEEP_CHANGES_MAX;

/// A listing that has begun.
#[derive(Default)]
pub(crate) struct Listing {
    /// There was nothing of the kind when it began, so there will be nothing to sweep.
    first: bool,
    seen: Marks,
    /// Set when the listing is complete: where the sweep goes on, and the version to go on from after it.
    sweep: Option<Sweep>,
}

struct Sweep {
    from: Vec<u8>,
    /// `None`: the source is forgotten.
    version: Option<ResourceVersion>,
}

impl Listing {
    pub(crate) fn ended(&self) -> bool {
        self.sweep.is_some()
    }
}

/// A set of object numbers: a bit each, in pages that exist only where a number was seen. At ten million
/// objects this is 1.25 MiB, and only while a listing runs.
#[derive(Default)]
pub(crate) struct Marks {
    pages: BTreeMap<u32, Box<[u64; Marks::WORDS]>>,
}

impl Marks {
    const WORDS: usize = 128;
    const BITS: u32 = 64 * Marks::WORDS as u32;

    pub(crate) fn mark(&mut self, id: u32) {
        let page =
            self.pages.entry(id / Marks::BITS).or_insert_with(|| Box::new([0; Marks::WORDS]));
        let bit = id % Marks::BITS;
        page[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    pub(crate) fn marked(&self, id: u32) -> bool {
        let bit = id % Marks::BITS;
        let page = self.pages.get(&(id / Marks::BITS));
        page.is_some_and(|page| page[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }
}

impl Work<'_> {
    pub(crate) fn begin_listing(&mut self, source: Source) -> Result<(), Error> {
        let (from, end) = (key::source(source), key::prefix_end(&key::source(source)));
        if source.kind == model::Kind::Pod {
            self.forgive_refused(source.cluster)?;
        }
        let first = self.tables.objects.range(&from, &end)?.next().transpose()?.is_none();
        self.state.listings.insert(source, Listing { first, ..Listing::default() });
        Ok(())
    }

    /// The source has just mentioned this object.
    pub(crate) fn mark(&mut self, source: Source, id: u32) {
        let listing = self.state.listings.get_mut(&source);
        if let Some(listing) = listing.filter(|listing| !listing.first) {
            listing.seen.mark(id);
        }
    }

    /// The listing is complete. Its first step of sweeping is in this same transaction, so that a small
    /// cluster's listing is seen as a whole.
    pub(crate) fn end_listing(
        &mut self,
        source: Source,
        version: ResourceVersion,
    ) -> Result<(), Error> {
        // An end without a beginning says nothing of what there is.
        let Some(listing) = self.state.listings.get_mut(&source) else { return Ok(()) };
        if listing.first {
            self.state.listings.remove(&source);
            return self.write_checkpoint(source, version);
        }
        listing.sweep = Some(Sweep { from: key::source(source), version: Some(version) });
        self.sweep_source(source)
    }

    /// As the end of a listing that has mentioned nothing. The checkpoint goes first: what is not all there any more is
    /// not known.
    pub(crate) fn forget(&mut self, source: Source) -> Result<(), Error> {
        self.tables.checkpoints.remove(key::source(source).as_slice())?;
        self.state.listed.remove(&source.cluster);
        let sweep = Some(Sweep { from: key::source(source), version: None });
        self.state.listings.insert(source, Listing { sweep, ..Listing::default() });
        self.sweep_source(source)
    }

    /// The source is known up to a version. While its sweep is under way that isn't yet so on disk.
    pub(crate) fn checkpoint(
        &mut self,
        source: Source,
        version: ResourceVersion,
    ) -> Result<(), Error> {
        match self.state.listings.get_mut(&source) {
            Some(Listing { sweep: Some(sweep), .. }) => sweep.version = Some(version),
            Some(_) => {}
            None => self.write_checkpoint(source, version)?,
        }
        Ok(())
    }

    fn write_checkpoint(&mut self, source: Source, version: ResourceVersion) -> Result<(), Error> {
        let bytes = record::encode(&v3::Checkpoint { version: version.0, at: self.now.0 })?;
        let key = key::source(source);
        let first = self.tables.checkpoints.get(key.as_slice())?.is_none();
        self.tables.checkpoints.insert(key.clone(), bytes)?;
        if first {
            // Streams that wait for the first listing look again.
            self.touched.insert(crate::WakeKey::object(&key));
            self.part_listed(source)?;
        }
        Ok(())
    }

    /// One step of sweeping, for each listing that has ended.
    pub(crate) fn sweep(&mut self) -> Result<(), Error> {
        let ended = self.state.listings.iter().filter(|(_, listing)| listing.ended());
        for source in ended.map(|(source, _)| *source).collect::<Vec<_>>() {
            self.sweep_source(source)?;
        }
        Ok(())
    }

    fn sweep_source(&mut self, source: Source) -> Result<(), Error> {
        let Some(mut listing) = self.state.listings.remove(&source) else { return Ok(()) };
        let Some(sweep) = &mut listing.sweep else { return Ok(()) };
        let end = key::prefix_end(&key::source(source));
        let (mut unseen, mut next) = (Vec::new(), None);
        for (row, entry) in self.tables.objects.range(&sweep.from, &end)?.enumerate() {
            let (key, value) = entry?;
            if row == SWEEP_ROWS_MAX || unseen.len() == SWEEP_CHANGES_MAX {
                next = Some(key.value().to_vec());
                break;
            }
            let object: v3::Object = record::decode(value.value())?;
            if object.body.is_some() && !listing.seen.marked(object.id) {
                unseen.push(key.value().to_vec());
            }
        }
        for key in unseen {
            if let Some(name) = key::object_name(&key) {
                self.delete(source, &name)?;
            }
        }
        match next {
            Some(next) => {
                sweep.from = next;
                self.state.listings.insert(source, listing);
            }
            None => {
                if let Some(version) = sweep.version.take() {
                    self.write_checkpoint(source, version)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Marks;

    #[test]
    fn marks_are_exact() {
        let mut marks = Marks::default();
        for id in [0, 1, 63, 64, 8191, 8192, u32::MAX] {
            assert!(!marks.marked(id));
            marks.mark(id);
            assert!(marks.marked(id));
        }
        assert!(!marks.marked(2));
        assert!(!marks.marked(8193));
    }
}
