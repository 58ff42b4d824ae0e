//! Interned values: each has as many references as there are records that refer to it.

use super::Faults;
use crate::key::{self, KeyReader};
use crate::record::{self, v3};
use crate::slices::texts;
use crate::write::Work;
use crate::{Error, wake};

/// Interned values whose references are counted in one pass over the records: 8 MiB of counts.
const WINDOW: u32 = 1 << 20;

/// References counted for the numbers from `first` on.
struct Counts {
    first: u32,
    counts: Vec<u64>,
}

impl Counts {
    fn add(&mut self, id: u32) {
        let place = id.checked_sub(self.first).map(|place| place as usize);
        if let Some(count) = place.and_then(|place| self.counts.get_mut(place)) {
            *count += 1;
        }
    }
}

impl Work<'_> {
    pub(super) fn check_references(&self, faults: &mut Faults) -> Result<(), Error> {
        let (mut interned, mut unused) = (0, 0);
        let mut first = 0u32;
        loop {
            let last = self.meta.ids[0].min(first.saturating_add(WINDOW - 1));
            let counts = self.references(first, last)?;
            let (from, to) = (key::id(first), key::prefix_end(&key::id(last)));
            for entry in self.tables.interned.range(&from, &to)? {
                let (key, value) = entry?;
                let id = KeyReader(key.value()).u32().unwrap_or(0);
                let value: v3::Interned = record::decode(value.value())?;
                interned += 1;
                unused += u64::from(value.refs == 0);
                let should = counts.counts[(id - first) as usize];
                faults.equal("interned", &format!("references of {id}"), value.refs, should);
                self.check_interned(id, &value, faults)?;
            }
            if last == self.meta.ids[0] {
                break;
            }
            first = last + 1;
        }
        let by_hash = self.tables.interned_ids.len()?;
        faults.equal("interned_ids", "rows", by_hash, interned);
        let freed = self.tables.freed.len()?;
        if freed < unused {
            faults.add("freed", format_args!("{freed} rows, but {unused} values are unused"));
        }
        Ok(())
    }

    fn check_interned(
        &self,
        id: u32,
        value: &v3::Interned,
        faults: &mut Faults,
    ) -> Result<(), Error> {
        let by_hash = key::interned_id(value.hash, id);
        if value.hash != wake::hash(&value.bytes)
            || self.tables.interned_ids.get(by_hash.as_slice())?.is_none()
        {
            faults.add("interned_ids", format_args!("{id} is not found by its content"));
        }
        let freed = key::freed(model::Revision(value.freed), id);
        if value.refs == 0 && self.tables.freed.get(freed.as_slice())?.is_none() {
            faults.add("freed", format_args!("{id} is unused, and would never be forgotten"));
        }
        Ok(())
    }

    /// Counts the references to the numbers from `first` to `last`.
    fn references(&self, first: u32, last: u32) -> Result<Counts, Error> {
        let mut counts = Counts { first, counts: vec![0; (last - first) as usize + 1] };
        for entry in self.tables.objects.iter()? {
            let object: v3::Object = record::decode(entry?.1.value())?;
            if let Some(v3::Body::Workload(workload)) = object.body {
                counts.add(workload.template);
                if workload.node != 0 {
                    counts.add(workload.node);
                }
            }
        }
        for entry in self.tables.slices.iter()? {
            let slice: v3::Slice = record::decode(entry?.1.value())?;
            counts.add(slice.meta);
            texts(&slice).into_iter().for_each(|text| counts.add(text));
        }
        for entry in self.tables.templates.iter()? {
            counts.add(KeyReader(entry?.1.value()).u32().unwrap_or(0));
        }
        Ok(counts)
    }
}
