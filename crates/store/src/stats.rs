//! Counts: kept by the writer as it goes, so that asking costs nothing.

use std::collections::BTreeMap;

use model::{Kind, Revision, Time};
use redb::{ReadOnlyTable, ReadableTable, ReadableTableMetadata};

use crate::record::v3;

/// What the store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision that a cursor may have.
    pub trimmed: Revision,
    /// Objects of each kind.
    pub objects: BTreeMap<Kind, u64>,
    /// Rows that clients may see.
    pub endpoints: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Entries of the undo log.
    pub undo_entries: u64,
    /// Bytes of these entries.
    pub undo_bytes: u64,
    /// When the oldest of them was made; without entries it says nothing.
    pub undo_since: Time,
}

impl Stats {
    pub(crate) fn of(meta: &v3::Meta) -> Stats {
        let count = |kind: Kind| (kind, meta.objects[kind as usize]);
        Stats {
            revision: Revision(meta.revision),
            trimmed: Revision(meta.trimmed),
            objects: Kind::ALL.into_iter().map(count).collect(),
            endpoints: meta.endpoints,
            rows: meta.rows,
            bytes: meta.bytes,
            undo_entries: meta.undo_entries,
            undo_bytes: meta.undo_bytes,
            undo_since: Time(meta.undo_since),
        }
    }
}

/// Rows and bytes of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// Its name.
    pub name: &'static str,
    /// Its rows.
    pub rows: u64,
    /// Bytes of all its keys.
    pub key_bytes: u64,
    /// Bytes of all its values.
    pub value_bytes: u64,
}

pub(crate) fn table_stats(
    name: &'static str,
    table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
) -> Result<TableStats, redb::StorageError> {
    let mut stats = TableStats { name, rows: table.len()?, key_bytes: 0, value_bytes: 0 };
    for row in table.iter()? {
        let (key, value) = row?;
        stats.key_bytes += key.value().len() as u64;
        stats.value_bytes += value.value().len() as u64;
    }
    Ok(stats)
}
