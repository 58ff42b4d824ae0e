//! A store in one stream: taken while it is used, and taken back only when it is whole.
//!
//! The stream is described in docs/format.md. What it holds is one revision: it is read in one transaction, and as
//! long as that takes, redb uses no page of that time again.

use std::hash::Hasher as _;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use crate::birth::{self, OpenFile};
use crate::bulk::{self, Pending};
use crate::read::Reader;
use crate::schema::{FORMAT, NAMES};
use crate::{Config, Error, Volume};
use model::Revision;
use redb::{Durability, ReadTransaction, ReadableTable, TableDefinition};
use siphasher::sip::SipHasher13;

const MAGIC: &[u8; 16] = b"SPILLWAY BACKUP\n";

/// The number of the stream's own layout.
const LAYOUT: u32 = 1;

/// What comes next in the stream.
const TABLE: u8 = 1;
const ROW: u8 = 2;
const END: u8 = 3;

/// Longer than any key or value of ours.
const PART_BYTES_MAX: u32 = 16 << 20;

/// Rows that are written together when a backup is taken back, and their bytes, but for the last row's.
const CHUNK_ROWS_MAX: usize = 4_096;
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The revision that it is of.
    pub revision: Revision,
    /// Rows of all tables.
    pub rows: u64,
}

impl Reader {
    /// Writes all that the store holds at its newest revision. Commits go on meanwhile.
    pub fn backup(&self, to: &mut dyn Write) -> Result<Backup, Error> {
        let snapshot = self.snapshot()?;
        write_all(snapshot.tables.txn(), snapshot.revision(), to).map_err(|error| match error {
            Failure::Stream(error) => Error::Backup { reason: error.to_string() },
            Failure::Store(error) => error,
        })
    }
}

/// Makes a store of what [`Reader::backup`] has written, in a folder that has none. Nothing is there before all of
/// the backup has been read and found whole.
pub fn restore(folder: &Path, from: &mut dyn Read, config: &Config) -> Result<Backup, Error> {
    let (volume, _lock) = birth::take(folder)?;
    restore_on(volume, from, config)
}

/// As [`restore`], on a volume of the caller's, which nobody else has.
pub fn restore_on(
    volume: Arc<dyn Volume>,
    from: &mut dyn Read,
    config: &Config,
) -> Result<Backup, Error> {
    birth::expect_none(&*volume)?;
    let copy = birth::create_copy(&volume, config)?;
    let restored = read_all(&copy, from, config).and_then(|backup| {
        birth::replace_by_copy(&*volume, &copy.health)?;
        copy.health.vouch();
        Ok(backup)
    });
    drop(copy);
    restored.inspect_err(|_| birth::remove_copy(&*volume))
}

enum Failure {
    Stream(io::Error),
    Store(Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Stream(error)
    }
}

impl From<redb::StorageError> for Failure {
    fn from(error: redb::StorageError) -> Failure {
        Failure::Store(error.into())
    }
}

impl From<redb::TableError> for Failure {
    fn from(error: redb::TableError) -> Failure {
        Failure::Store(error.into())
    }
}

/// Writes, and keeps the sum of what was written.
struct Summed<S> {
    stream: S,
    sum: SipHasher13,
}

impl<S> Summed<S> {
    fn new(stream: S) -> Summed<S> {
        Summed { stream, sum: SipHasher13::new() }
    }
}

impl Summed<&mut dyn Write> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.write(bytes);
        self.stream.write_all(bytes)
    }

    fn put_part(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Nothing in a store is as long as u32 counts.
        self.put(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes())?;
        self.put(bytes)
    }
}

fn write_all(
    txn: &ReadTransaction,
    revision: Revision,
    to: &mut dyn Write,
) -> Result<Backup, Failure> {
    let mut to = Summed::new(to);
    to.put(MAGIC)?;
    to.put(&LAYOUT.to_be_bytes())?;
    to.put(&FORMAT.to_be_bytes())?;
    to.put(&revision.0.to_be_bytes())?;
    let mut rows = 0u64;
    for name in NAMES {
        to.put(&[TABLE])?;
        to.put_part(name.as_bytes())?;
        let table = txn.open_table(TableDefinition::<&[u8], &[u8]>::new(name))?;
        for row in table.iter()? {
            let (key, value) = row?;
            to.put(&[ROW])?;
            to.put_part(key.value())?;
            to.put_part(value.value())?;
            rows += 1;
        }
    }
    to.put(&[END])?;
    to.put(&rows.to_be_bytes())?;
    let sum = to.sum.finish();
    to.stream.write_all(&sum.to_be_bytes())?;
    to.stream.flush()?;
    Ok(Backup { revision, rows })
}

impl Summed<&mut dyn Read> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.stream.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => broken("it ends too early"),
            _ => broken(&error.to_string()),
        })?;
        self.sum.write(bytes);
        Ok(())
    }

    fn take_part(&mut self) -> Result<Vec<u8>, Error> {
        let len = u32::from_be_bytes(self.take()?);
        if len > PART_BYTES_MAX {
            return Err(broken("a row is longer than any can be"));
        }
        let mut bytes = vec![0; len as usize];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }
}

fn broken(reason: &str) -> Error {
    Error::Backup { reason: reason.to_owned() }
}

/// Reads a backup into an empty store, and makes that durable if the backup is whole.
fn read_all(copy: &OpenFile, from: &mut dyn Read, config: &Config) -> Result<Backup, Error> {
    let mut from = Summed::new(from);
    if from.take::<16>()? != *MAGIC {
        return Err(broken("it is no backup of a Spillway store"));
    }
    let (layout, format) = (u32::from_be_bytes(from.take()?), u32::from_be_bytes(from.take()?));
    if (layout, format) != (LAYOUT, FORMAT) {
        let known = format!("{LAYOUT} and {FORMAT}");
        return Err(broken(&format!("it has layout {layout} and format {format}, not {known}")));
    }
    let revision = Revision(u64::from_be_bytes(from.take()?));
    let mut rows = 0u64;
    let mut table: Option<&'static str> = None;
    let (mut chunk, mut chunk_bytes) = (Pending::new(), 0);
    loop {
        let [next] = from.take()?;
        if next != ROW || chunk.len() == CHUNK_ROWS_MAX || chunk_bytes >= CHUNK_BYTES_MAX {
            write_chunk(copy, table, std::mem::take(&mut chunk))?;
            chunk_bytes = 0;
        }
        match next {
            TABLE => table = Some(known_table(&from.take_part()?)?),
            ROW => {
                let (key, value) = (from.take_part()?, from.take_part()?);
                chunk_bytes += key.len() + value.len();
                rows += u64::from(chunk.insert(key, value).is_none());
            }
            END => break,
            _ => return Err(broken("it is damaged")),
        }
    }
    let told = u64::from_be_bytes(from.take()?);
    let sum = from.sum.finish();
    let mut told_sum = [0; 8];
    from.stream.read_exact(&mut told_sum).map_err(|_| broken("it ends too early"))?;
    if sum != u64::from_be_bytes(told_sum) || rows != told {
        return Err(broken("it is damaged: its sum is another one"));
    }
    birth::accept(&copy.database, config)?;
    copy.database.begin_write()?.commit()?;
    Ok(Backup { revision, rows })
}

fn known_table(name: &[u8]) -> Result<&'static str, Error> {
    let known = NAMES.iter().find(|known| known.as_bytes() == name);
    known.copied().ok_or_else(|| broken("it has a table that is not known here"))
}

fn write_chunk(copy: &OpenFile, table: Option<&str>, rows: Pending) -> Result<(), Error> {
    let Some(name) = table else {
        return if rows.is_empty() { Ok(()) } else { Err(broken("a row belongs to no table")) };
    };
    let mut txn = copy.database.begin_write()?;
    txn.set_durability(Durability::None).map_err(crate::write::unexpected)?;
    bulk::insert(&mut txn.open_table(TableDefinition::new(name))?, rows)?;
    txn.commit()?;
    match copy.health.failing() {
        Some(reason) => Err(Error::DiskFailing { reason }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
