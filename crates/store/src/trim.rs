//! What the past no longer needs: old revisions, and what only they referred to.

use model::Revision;

use crate::key::KeyReader;
use crate::table::Rows;
use crate::write::Work;
use crate::{Error, Stats, key};

/// Undo entries dropped, and leftovers forgotten, in one transaction.
const TRIM_ENTRIES_MAX: u64 = 8_192;

impl Work<'_> {
    /// One step of trimming the undo log down to its limit, then of forgetting what it no longer reaches.
    pub(crate) fn trim(&mut self) -> Result<(), Error> {
        let before = self.meta.undo_entries;
        while self.config.undo_is_due(&Stats::of(&self.meta), self.now)
            && before - self.meta.undo_entries < TRIM_ENTRIES_MAX
        {
            if self.drop_oldest_revision()?.is_none() {
                break;
            }
        }
        let trimmed = self.meta.trimmed;
        self.free_part_ids(trimmed)?;
        let freed = self.older(trimmed, |work| &work.tables.freed)?;
        let vacant = self.older(trimmed, |work| &work.tables.vacant)?;
        self.state.leftovers = freed.len().max(vacant.len()) == TRIM_ENTRIES_MAX as usize;
        for key in freed {
            let id = KeyReader(key::rest(&key, 8)).u32().unwrap_or(0);
            self.forget_interned(id, trimmed)?;
            self.tables.freed.remove(key.as_slice())?;
        }
        for key in vacant {
            self.forget_vacant(key::rest(&key, 8), trimmed)?;
            self.tables.vacant.remove(key.as_slice())?;
        }
        Ok(())
    }

    /// Keys that begin with a revision up to `trimmed`; a bounded number of them.
    fn older<'t>(
        &'t self,
        trimmed: u64,
        table: impl FnOnce(&'t Self) -> &'t Rows<'t>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let end = key::revision(Revision(trimmed + 1));
        let range = table(self).range(&[], &end)?;
        range.take(TRIM_ENTRIES_MAX as usize).map(|entry| Ok(entry?.0.value().to_vec())).collect()
    }

    /// Removes a Service's stub, if nothing has referred to it since `trimmed` or longer.
    fn forget_vacant(&mut self, object: &[u8], trimmed: u64) -> Result<(), Error> {
        let Some(found) = self.object(object)? else { return Ok(()) };
        if found.body.is_none() && found.slices == 0 && found.vacant <= trimmed {
            self.tables.objects.remove(object)?;
            self.tables.service_keys.remove(key::id(found.id).as_slice())?;
            self.forget_size(found.id)?;
        }
        Ok(())
    }
}
