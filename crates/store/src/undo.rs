//! The undo log: what was there before each revision (design: a stream is a cursor over it).
//!
//! The state at revision R of anything is its earliest entry after R, or what is there now if there is none.

use std::net::IpAddr;

use model::Revision;
use redb::ReadableTable;

use crate::Error;
use crate::key::{self, RowKey, ServiceId, SliceId, Undone, WorkloadId};
use crate::record::{self, v3};
use crate::write::Work;

/// Addresses of which is remembered that they have their entry of the current revision. One commit rarely
/// touches more; then the table is asked.
const UNDONE_KNOWN_MAX: usize = 65_536;

impl Work<'_> {
    /// Writes down the rows on an address, before the first of them changes in this commit.
    pub(crate) fn undo_address(
        &mut self,
        service: ServiceId,
        ip: IpAddr,
        rows: v3::UndoneRows,
    ) -> Result<(), Error> {
        let undo = key::undo(service, self.revision, &Undone::Address(ip));
        if self.undone_addresses.len() < UNDONE_KNOWN_MAX {
            if !self.undone_addresses.insert((service, ip)) {
                return Ok(());
            }
        } else if self.has_undo(&undo)? {
            return Ok(());
        }
        self.write_undo(service, undo, record::encode(&rows)?)
    }

    /// Writes down the Service object as it was, before it changes.
    pub(crate) fn undo_object(
        &mut self,
        service: ServiceId,
        before: &v3::Presence,
    ) -> Result<(), Error> {
        let undo = key::undo(service, self.revision, &Undone::Object);
        if self.has_undo(&undo)? {
            return Ok(());
        }
        self.write_undo(service, undo, record::encode(before)?)
    }

    /// Writes down how often a signature was there, before that changes.
    pub(crate) fn undo_signature(
        &mut self,
        service: ServiceId,
        signature: &[u8],
        before: u64,
    ) -> Result<(), Error> {
        let undo = key::undo(service, self.revision, &Undone::Signature(signature.to_vec()));
        if self.has_undo(&undo)? {
            return Ok(());
        }
        self.write_undo(service, undo, before.to_be_bytes().to_vec())
    }

    fn has_undo(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.tables.undo.get(key)?.is_some())
    }

    fn write_undo(
        &mut self,
        service: ServiceId,
        key: Vec<u8>,
        value: Vec<u8>,
    ) -> Result<(), Error> {
        self.undone_bytes += (key.len() + value.len()) as u64;
        *self.undone.entry(service).or_default() += 1;
        self.tables.undo.insert(key, value)
    }

    /// At the end of a commit: which services it touched, so that it can be trimmed.
    pub(crate) fn write_revision(&mut self) -> Result<(), Error> {
        let entries = self.undone.values().sum();
        let touched = v3::Touched {
            services: self.undone.keys().copied().collect(),
            entries,
            bytes: self.undone_bytes,
            at: self.now.0,
        };
        let bytes = record::encode(&touched)?;
        self.tables.revisions.insert(key::revision(self.revision), bytes)?;
        if self.meta.undo_entries == 0 {
            self.meta.undo_since = self.now.0;
        }
        self.meta.undo_entries += entries;
        self.meta.undo_bytes += self.undone_bytes;
        Ok(())
    }

    /// Drops the undo entries of the oldest revision. `None`: there is none.
    pub(crate) fn drop_oldest_revision(&mut self) -> Result<Option<Revision>, Error> {
        let Some((revision, touched)) = self.oldest_revision()? else { return Ok(None) };
        for service in &touched.services {
            let from = key::KeyBuf::new().u32(*service).u64(revision.0).done();
            let to = key::undo_after(*service, revision);
            self.tables.undo.remove_range(&from, &to)?;
        }
        self.tables.revisions.remove(key::revision(revision).as_slice())?;
        self.meta.undo_entries = self.meta.undo_entries.saturating_sub(touched.entries);
        self.meta.undo_bytes = self.meta.undo_bytes.saturating_sub(touched.bytes);
        self.meta.trimmed = self.meta.trimmed.max(revision.0);
        if let Some((_, next)) = self.oldest_revision()? {
            self.meta.undo_since = next.at;
        }
        Ok(Some(revision))
    }

    fn oldest_revision(&self) -> Result<Option<(Revision, v3::Touched)>, Error> {
        let Some(first) = self.tables.revisions.iter()?.next() else { return Ok(None) };
        let (key, touched) = first?;
        let revision = Revision(key::KeyReader(key.value()).u64().unwrap_or(0));
        Ok(Some((revision, record::decode(touched.value())?)))
    }
}

/// All claims on an address, as a reader sees them.
pub(crate) fn rows_on(
    endpoints: &impl ReadableTable<&'static [u8], &'static [u8]>,
    service: ServiceId,
    ip: IpAddr,
) -> Result<v3::UndoneRows, Error> {
    let prefix = key::row_ip(service, ip);
    let mut rows = Vec::new();
    for entry in endpoints.range(prefix.as_slice()..key::prefix_end(&prefix).as_slice())? {
        let (key, value) = entry?;
        rows.push(undone_row(key.value(), value.value())?);
    }
    Ok(rows)
}

/// A row of the endpoints table, as the undo log has it.
pub(crate) fn undone_row(
    key: &[u8],
    value: &[u8],
) -> Result<(SliceId, WorkloadId, v3::Row), Error> {
    let key = row_key(key)?;
    Ok((key.slice, key.workload, record::decode(value)?))
}

/// The row key in a key of the endpoints table.
pub(crate) fn row_key(bytes: &[u8]) -> Result<RowKey, Error> {
    RowKey::read(bytes)
        .ok_or_else(|| Error::Damaged { what: "endpoints key", reason: format!("{bytes:?}") })
}
