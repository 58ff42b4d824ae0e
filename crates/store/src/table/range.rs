//! Rows of a tree and rows that are pending, as one sequence.

use std::cmp::Ordering;
use std::collections::btree_map;
use std::iter::Peekable;

use redb::AccessGuard;

use super::{Bytes, Value};
use crate::Error;

type Stored<'t> = (AccessGuard<'t, Bytes>, AccessGuard<'t, Bytes>);
type Pending<'t> = btree_map::Range<'t, Vec<u8>, Vec<u8>>;

/// Rows in the order of their keys.
pub(crate) struct Range<'t> {
    /// The next one of the tree.
    first: Option<Stored<'t>>,
    stored: Option<redb::Range<'t, Bytes, Bytes>>,
    /// Where those of the tree end; those that are pending end by themselves.
    end: Option<Vec<u8>>,
    pending: Peekable<Pending<'t>>,
}

impl<'t> Range<'t> {
    pub(super) fn of_pending(pending: Pending<'t>) -> Range<'t> {
        Range { first: None, stored: None, end: None, pending: pending.peekable() }
    }

    /// `first` is before `end`, and `stored` is what comes behind it.
    pub(super) fn merged(
        first: Option<Stored<'t>>,
        stored: redb::Range<'t, Bytes, Bytes>,
        end: Option<Vec<u8>>,
        pending: Pending<'t>,
    ) -> Range<'t> {
        Range { first, stored: Some(stored), end, pending: pending.peekable() }
    }

    fn next_stored(&mut self) -> Result<Option<Stored<'t>>, Error> {
        let next = match &mut self.stored {
            Some(stored) => stored.next().transpose()?,
            None => None,
        };
        let before_end = |(key, _): &Stored<'_>| match &self.end {
            Some(end) => key.value() < end.as_slice(),
            None => true,
        };
        let next = next.filter(before_end);
        if next.is_none() {
            self.stored = None;
        }
        Ok(std::mem::replace(&mut self.first, next))
    }

    fn step(&mut self) -> Result<Option<(Value<'t>, Value<'t>)>, Error> {
        let order = match (&self.first, self.pending.peek()) {
            (Some((stored, _)), Some((pending, _))) => stored.value().cmp(pending.as_slice()),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        if order.is_lt() {
            let stored = self.next_stored()?;
            return Ok(stored.map(|(key, value)| (Value::Stored(key), Value::Stored(value))));
        }
        if order.is_eq() {
            // It is about to be replaced.
            self.next_stored()?;
        }
        let pending = self.pending.next();
        Ok(pending.map(|(key, value)| (Value::Pending(key), Value::Pending(value))))
    }
}

impl<'t> Iterator for Range<'t> {
    type Item = Result<(Value<'t>, Value<'t>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
