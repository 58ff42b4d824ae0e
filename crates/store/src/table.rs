//! A table that is written: it counts what it holds, and repeats what is written to it in a copy, if one is being
//! made.

use std::borrow::Borrow;
use std::ops::Deref;

use redb::Table;

use crate::Error;
use crate::bulk::{self, Pending};

type Bytes = &'static [u8];

/// A table of one transaction. It is read as redb's own, and written through the methods here only.
pub(crate) struct Rows<'txn> {
    table: Table<'txn, Bytes, Bytes>,
    /// The same table in the copy. What is there already is kept equal; what isn't is copied later, as it is then.
    copy: Option<Table<'txn, Bytes, Bytes>>,
    /// Why there is no copy any more.
    copy_failed: Option<Error>,
    grown: Size,
}

/// Rows and bytes, or how many more there are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: i64,
    pub(crate) bytes: i64,
}

impl Size {
    pub(crate) fn row(key: &[u8], value: &[u8]) -> Size {
        Size { rows: 1, bytes: (key.len() + value.len()) as i64 }
    }
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Size) {
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}

impl std::ops::SubAssign for Size {
    fn sub_assign(&mut self, other: Size) {
        self.rows -= other.rows;
        self.bytes -= other.bytes;
    }
}

impl<'txn> Deref for Rows<'txn> {
    type Target = Table<'txn, Bytes, Bytes>;

    fn deref(&self) -> &Table<'txn, Bytes, Bytes> {
        &self.table
    }
}

impl<'txn> Rows<'txn> {
    pub(crate) fn new(
        table: Table<'txn, Bytes, Bytes>,
        copy: Option<Table<'txn, Bytes, Bytes>>,
    ) -> Rows<'txn> {
        Rows { table, copy, copy_failed: None, grown: Size::default() }
    }

    /// How much larger the table is than when the transaction began.
    pub(crate) fn grown(&self) -> Size {
        self.grown
    }

    /// Why the copy is of no use any more, if it isn't.
    pub(crate) fn take_copy_failure(&mut self) -> Option<Error> {
        self.copy_failed.take()
    }

    /// Writes to the copy. That it fails is no failure of the table.
    fn repeat(&mut self, write: impl FnOnce(&mut Table<'txn, Bytes, Bytes>) -> Result<(), Error>) {
        if let Some(Err(error)) = self.copy.as_mut().map(write) {
            self.copy = None;
            self.copy_failed = Some(error);
        }
    }

    /// Inserts or replaces a row.
    pub(crate) fn insert(&mut self, key: &[u8], value: impl Borrow<[u8]>) -> Result<(), Error> {
        let value = value.borrow();
        self.grown += Size::row(key, value);
        if let Some(old) = self.table.insert(key, value)? {
            self.grown -= Size::row(key, old.value());
        }
        self.repeat(|copy| copy.insert(key, value).map(drop).map_err(Error::from));
        Ok(())
    }

    /// Inserts or replaces many rows.
    pub(crate) fn insert_all(&mut self, rows: Pending) -> Result<(), Error> {
        self.repeat(|copy| bulk::insert(copy, rows.clone()).map(drop));
        self.grown += bulk::insert(&mut self.table, rows)?;
        Ok(())
    }

    /// Removes a row, if it is there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), Error> {
        if let Some(old) = self.table.remove(key)? {
            self.grown -= Size::row(key, old.value());
        }
        self.repeat(|copy| copy.remove(key).map(drop).map_err(Error::from));
        Ok(())
    }

    /// Removes all rows from `from` up to, and without, `end`.
    pub(crate) fn remove_range(&mut self, from: &[u8], end: &[u8]) -> Result<(), Error> {
        let mut removed = Size::default();
        self.table.retain_in(from..end, |key, value| {
            removed += Size::row(key, value);
            false
        })?;
        self.grown -= removed;
        self.repeat(|copy| copy.retain_in(from..end, |_, _| false).map_err(Error::from));
        Ok(())
    }
}
