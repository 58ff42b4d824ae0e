//! What one commit takes: deliveries that wait, in their order, each whole, up to the limits of a commit.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use model::limits::{COMMIT_CHANGES_MAX, COMMIT_ENDPOINTS_MAX};
use model::{Change, Key, Source};

use crate::{Delivery, Receipt};

/// Deliveries that become one commit.
///
/// Changes of one object are reduced to the last, as long as no listing of its kind begins or ends between
/// them: a listing gives a meaning to what was said before and after it.
#[derive(Debug, Default)]
pub struct Batch {
    /// `None` where a later change said it all.
    changes: Vec<Option<Change>>,
    endpoints: usize,
    /// Hash of what a change is about → its place. A shared hash costs a missed reduction, nothing else.
    latest: BTreeMap<u64, usize>,
    /// Where a listing of the source began or ended last.
    fences: BTreeMap<Source, usize>,
    receipt: Receipt,
}

impl Batch {
    /// Takes `first`, then what `next` gives, until nothing waits or the next one would be too much. That one
    /// is given back, to be the first of the next batch.
    pub fn collect(
        first: Delivery,
        mut next: impl FnMut() -> Option<Delivery>,
    ) -> (Batch, Option<Delivery>) {
        let mut batch = Batch::default();
        let mut delivery = Some(first);
        while let Some(one) = delivery {
            if let Err(too_much) = batch.push(one) {
                return (batch, Some(too_much));
            }
            delivery = next();
        }
        (batch, None)
    }

    /// Takes a delivery, or gives it back if the batch would grow beyond a commit's limits. An empty batch
    /// takes any: a delivery is never split, however large.
    pub fn push(&mut self, delivery: Delivery) -> Result<(), Delivery> {
        // What was replaced counts as well: else one object that changes without end would never be committed.
        let changes = self.changes.len() + delivery.changes.len();
        let endpoints = self.endpoints + delivery.changes.iter().map(endpoints).sum::<usize>();
        let too_much = changes > COMMIT_CHANGES_MAX || endpoints > COMMIT_ENDPOINTS_MAX;
        if too_much && !self.is_empty() {
            return Err(delivery);
        }
        self.endpoints = endpoints;
        self.receipt.add(delivery.receipt);
        for change in delivery.changes {
            self.add(change);
        }
        Ok(())
    }

    /// Has nothing been taken that anybody waits for?
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.receipt.is_empty()
    }

    /// The changes to commit, and what is signed when they are.
    pub fn into_parts(self) -> (Vec<Change>, Receipt) {
        (self.changes.into_iter().flatten().collect(), self.receipt)
    }

    fn add(&mut self, change: Change) {
        let place = self.changes.len();
        match &change {
            Change::Begin { source } | Change::End { source, .. } | Change::Forget { source } => {
                self.fences.insert(*source, place);
            }
            _ => {}
        }
        if let Some(subject) = Subject::of(&change) {
            let earlier = self.latest.insert(subject.hash(), place);
            let fence = self.fences.get(&subject.source()).copied();
            if let Some(earlier) = earlier
                && fence.is_none_or(|fence| fence < earlier)
                && self.changes[earlier].as_ref().and_then(Subject::of) == Some(subject)
            {
                self.changes[earlier] = None;
            }
        }
        self.changes.push(Some(change));
    }
}

/// What a change is about, if a later change about the same makes it superfluous.
#[derive(PartialEq, Eq)]
enum Subject<'a> {
    Object(&'a Key),
    Checkpoint(Source),
}

impl<'a> Subject<'a> {
    fn of(change: &'a Change) -> Option<Subject<'a>> {
        match change {
            Change::Put { key, .. } | Change::Delete { key } => Some(Subject::Object(key)),
            Change::Checkpoint { source, .. } => Some(Subject::Checkpoint(*source)),
            Change::Begin { .. }
            | Change::Keep { .. }
            | Change::End { .. }
            | Change::Forget { .. }
            | Change::Join { .. }
            | Change::Leave { .. } => None,
        }
    }

    fn source(&self) -> Source {
        match self {
            Subject::Object(key) => key.source,
            Subject::Checkpoint(source) => *source,
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            Subject::Object(key) => {
                (key.source, key.name.namespace(), key.name.name()).hash(&mut hasher);
            }
            Subject::Checkpoint(source) => source.hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// The endpoints that a change brings.
fn endpoints(change: &Change) -> usize {
    match change {
        Change::Put { object, .. } => object.endpoint_count(),
        _ => 0,
    }
}

/// Packs changes that belong to no larger whole into deliveries of bounded size.
#[derive(Debug)]
pub(crate) struct Packer {
    changes_max: usize,
    endpoints_max: usize,
    changes: Vec<Change>,
    endpoints: usize,
}

impl Packer {
    pub(crate) fn new(changes_max: usize, endpoints_max: usize) -> Packer {
        Packer { changes_max, endpoints_max, changes: Vec::new(), endpoints: 0 }
    }

    /// Adds a change. Gives the delivery before it, if the two would be too much together.
    pub(crate) fn push(&mut self, change: Change) -> Option<Delivery> {
        let weight = endpoints(&change);
        let full = self.changes.len() + 1 > self.changes_max
            || self.endpoints + weight > self.endpoints_max;
        let before = if full { self.flush() } else { None };
        self.endpoints += weight;
        self.changes.push(change);
        before
    }

    /// What is left, if anything is.
    pub(crate) fn flush(&mut self) -> Option<Delivery> {
        self.endpoints = 0;
        let changes = std::mem::take(&mut self.changes);
        (!changes.is_empty()).then(|| Delivery::new(changes))
    }
}

#[cfg(test)]
mod tests;
