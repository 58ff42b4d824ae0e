//! A table that is written. It counts what it holds, gathers what is written to it so that neighbours reach the tree
//! together, knows where the tree has nothing, and repeats everything in a copy, if one is being made.

mod range;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Bound;

use redb::{AccessGuard, ReadableTable, ReadableTableMetadata, Table};

use crate::Error;
use crate::bulk::{self, Pending};

pub(crate) use range::Range;

type Bytes = &'static [u8];

/// Rows that wait to be written together, and bytes of them: enough that most have a neighbour among them.
const PENDING_ROWS_MAX: usize = 2_048;
const PENDING_BYTES_MAX: usize = 128 << 10;

/// A table of one transaction.
pub(crate) struct Rows<'txn> {
    table: Table<'txn, Bytes, Bytes>,
    /// The same table in the copy. What is there already is kept equal; what isn't is copied later, as it is then.
    copy: Option<Table<'txn, Bytes, Bytes>>,
    /// Why there is no copy any more.
    copy_failed: Option<Error>,
    /// Rows that the table does not have yet, or has with another value. They hide those.
    pending: Pending,
    pending_bytes: usize,
    gap: RefCell<Option<Gap>>,
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

/// Keys that the tree is known not to have: those from `from` on that are below `to`. New objects come in the order
/// of their keys, so that whoever asks for one mostly asks next for one behind it.
struct Gap {
    from: Vec<u8>,
    /// `None`: up to the end of the table.
    to: Option<Vec<u8>>,
}

impl Gap {
    fn has(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.to.as_deref().is_none_or(|to| key < to)
    }

    /// Are all keys of this range in the gap?
    fn has_all(&self, from: &[u8], end: Option<&[u8]>) -> bool {
        let below = match (end, self.to.as_deref()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(end), Some(to)) => end <= to,
        };
        from >= self.from.as_slice() && below
    }

    /// When these rows are written, what is left of the gap is behind the last of them.
    fn shrink(&mut self, rows: &Pending) {
        let to = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let inside = rows.range::<[u8], _>((Bound::Included(self.from.as_slice()), to));
        if let Some((last, _)) = inside.last() {
            self.from = [last.as_slice(), &[0]].concat();
        }
    }
}

/// A key or a value, in the tree or on its way there.
pub(crate) enum Value<'t> {
    Stored(AccessGuard<'t, Bytes>),
    Pending(&'t [u8]),
}

impl Value<'_> {
    pub(crate) fn value(&self) -> &[u8] {
        match self {
            Value::Stored(guard) => guard.value(),
            Value::Pending(bytes) => bytes,
        }
    }
}

impl<'txn> Rows<'txn> {
    pub(crate) fn new(
        table: Table<'txn, Bytes, Bytes>,
        copy: Option<Table<'txn, Bytes, Bytes>>,
    ) -> Rows<'txn> {
        Rows {
            table,
            copy,
            copy_failed: None,
            pending: Pending::new(),
            pending_bytes: 0,
            gap: RefCell::new(None),
            grown: Size::default(),
        }
    }

    /// The value of a row.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>, Error> {
        if let Some(value) = self.pending.get(key) {
            return Ok(Some(Value::Pending(value)));
        }
        if self.in_gap(key) {
            return Ok(None);
        }
        if let Some(found) = self.table.get(key)? {
            return Ok(Some(Value::Stored(found)));
        }
        let next = self.table.range::<&[u8]>(key..)?.next().transpose()?;
        self.learn(key, next.as_ref().map(|(next, _)| next.value()));
        Ok(None)
    }

    /// All rows from `from` up to, and without, `end`, in the order of their keys.
    pub(crate) fn range(&self, from: &[u8], end: &[u8]) -> Result<Range<'_>, Error> {
        self.range_to(from, Some(end))
    }

    /// All rows.
    pub(crate) fn iter(&self) -> Result<Range<'_>, Error> {
        self.range_to(&[], None)
    }

    fn range_to(&self, from: &[u8], end: Option<&[u8]>) -> Result<Range<'_>, Error> {
        let pending = (Bound::Included(from), end.map_or(Bound::Unbounded, Bound::Excluded));
        let pending = self.pending.range::<[u8], _>(pending);
        if self.gap.borrow().as_ref().is_some_and(|gap| gap.has_all(from, end)) {
            return Ok(Range::of_pending(pending));
        }
        let mut stored = self.table.range::<&[u8]>(from..)?;
        let first = stored.next().transpose()?;
        let next = first.as_ref().map(|(key, _)| key.value());
        if next.is_none_or(|next| end.is_some_and(|end| next >= end)) {
            self.learn(from, next);
            return Ok(Range::of_pending(pending));
        }
        Ok(Range::merged(first, stored, end.map(<[u8]>::to_vec), pending))
    }

    fn in_gap(&self, key: &[u8]) -> bool {
        self.gap.borrow().as_ref().is_some_and(|gap| gap.has(key))
    }

    /// The tree has nothing from a key on up to the next that it has.
    fn learn(&self, from: &[u8], to: Option<&[u8]>) {
        *self.gap.borrow_mut() = Some(Gap { from: from.to_vec(), to: to.map(<[u8]>::to_vec) });
    }

    /// How many rows there are. To be asked when none are pending.
    pub(crate) fn len(&self) -> Result<u64, Error> {
        debug_assert!(self.pending.is_empty(), "pending rows aren't counted");
        Ok(self.table.len()?)
    }

    /// How much larger the table is than when the transaction began, pending rows aside.
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

    /// Has these keys instead of those, where a row is nothing but its key.
    pub(crate) fn exchange(
        &mut self,
        before: &BTreeSet<Vec<u8>>,
        now: &BTreeSet<Vec<u8>>,
    ) -> Result<(), Error> {
        for key in before.difference(now) {
            self.remove(key)?;
        }
        for key in now.difference(before) {
            self.insert(key.clone(), Vec::new())?;
        }
        Ok(())
    }

    /// Inserts or replaces a row.
    pub(crate) fn insert(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), Error> {
        self.pending_bytes += key.len() + value.len();
        self.pending.insert(key, value);
        if self.pending.len() < PENDING_ROWS_MAX && self.pending_bytes < PENDING_BYTES_MAX {
            return Ok(());
        }
        self.flush()
    }

    /// Writes what is pending.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        if let Some(gap) = self.gap.get_mut() {
            gap.shrink(&rows);
        }
        self.repeat(|copy| bulk::insert(copy, rows.clone()).map(drop));
        self.grown += bulk::insert(&mut self.table, rows)?;
        Ok(())
    }

    /// Removes a row, if it is there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), Error> {
        if let Some(value) = self.pending.remove(key) {
            self.pending_bytes -= key.len() + value.len();
        }
        if self.in_gap(key) {
            return Ok(());
        }
        if let Some(old) = self.table.remove(key)? {
            self.grown -= Size::row(key, old.value());
        }
        self.repeat(|copy| copy.remove(key).map(drop).map_err(Error::from));
        Ok(())
    }

    /// Removes all rows from `from` up to, and without, `end`.
    pub(crate) fn remove_range(&mut self, from: &[u8], end: &[u8]) -> Result<(), Error> {
        self.flush()?;
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

#[cfg(test)]
mod tests;
