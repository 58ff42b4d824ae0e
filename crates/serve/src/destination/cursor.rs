//! Where a stream is, and its next step: the only state that a stream has.

use std::net::IpAddr;
use std::sync::Arc;

use model::Revision;
use store::{ServiceRows, Snapshot};

use super::delta::{Answers, IpRange, Position, Target};
use super::shared::Failure;
use super::wire::{self, Message};

/// Segments of a cursor. More than two are met only by a client for which change after change was too large for
/// one message: that client begins again.
const SEGMENTS_MAX: usize = 8;

/// What a segment takes, with the names in its view, about.
const SEGMENT_BYTES: usize = 256;

/// What a client has been told: mostly one position for all ips. While it takes a change that doesn't fit into one
/// message, the ips that it has been told of are further than the others. The next message is read from the
/// newest revision, so a slow client holds neither a queue nor a snapshot.
/// Clients that were told the same have equal cursors, and mostly share one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cursor {
    /// In order of their ips; the last one is up to the end.
    segments: Vec<Segment>,
}

/// Ips that a client is at the same position for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Segment {
    /// Behind those of the segment before, up to this one; `None`: to the last.
    upto: Option<IpAddr>,
    /// `None`: the client was told nothing.
    position: Option<Position>,
}

/// What to say next, and what the client has been told then.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What to send, in this order: at most one message of each kind.
    pub(super) messages: Vec<Message>,
    /// Where the client is then.
    pub(super) next: Arc<Cursor>,
    /// Look again without waiting for a wake-up: there is more to say.
    pub(super) again: bool,
    /// Addresses that are added, and their bytes.
    pub(super) added: (usize, usize),
}

impl Step {
    /// There is nothing to say to a client that is there.
    pub(super) fn none(cursor: &Arc<Cursor>) -> Step {
        Step { messages: Vec::new(), next: Arc::clone(cursor), again: false, added: (0, 0) }
    }

    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        let messages = self.messages.iter().map(|message| message.bytes().len()).sum::<usize>();
        messages + self.next.segments.len() * SEGMENT_BYTES
    }
}

impl Default for Cursor {
    fn default() -> Cursor {
        Cursor { segments: vec![Segment { upto: None, position: None }] }
    }
}

impl Cursor {
    /// Has the client been told all that there is at a position?
    pub(super) fn is_at(&self, position: &Position) -> bool {
        match self.segments.as_slice() {
            [Segment { position: Some(told), .. }] => told == position,
            _ => false,
        }
    }

    /// Has the client been told nothing?
    pub(super) fn is_new(&self) -> bool {
        matches!(*self.segments, [Segment { position: None, .. }])
    }

    /// Where a client is that has been told all there was at one position.
    pub(super) fn position(&self, unchanged_until: Revision) -> Option<Position> {
        let [Segment { position, .. }] = self.segments_at(unchanged_until).try_into().ok()?;
        position
    }

    /// What to say to a client that is to know all of `now`, which is where `rows` are. Nothing has changed for it
    /// between what it was told last and `unchanged_until`: so a quiet stream isn't left behind when the undo log is
    /// trimmed. If so many addresses are expected that they don't fit, it may be given up early.
    pub(super) fn step(
        &self,
        unchanged_until: Revision,
        now: &Position,
        (rows, snapshot): (Vec<ServiceRows<'_>>, &Snapshot),
        answers: &Answers,
        expected: Option<u64>,
    ) -> Result<Step, Failure> {
        let target = Target::new(now, rows, snapshot, answers)?;
        let mut delta = target.delta(expected);
        let mut cut = None;
        let mut after = None;
        for Segment { upto, position } in self.segments_at(unchanged_until) {
            let range = IpRange { after, upto };
            cut = target.extend(&mut delta, position.as_ref(), range)?;
            if cut.is_some() {
                break;
            }
            after = upto;
        }
        let added = (delta.added(), delta.added_bytes());
        let mut messages = delta.messages();
        if messages.is_empty() && self.is_new() && answers.no_endpoints {
            messages.push(wire::no_endpoints());
        }
        let next = Arc::new(self.told(cut, now.clone())?);
        Ok(Step { messages, next, again: cut.is_some(), added })
    }

    /// The segments; a single one, which is all that a stream that waits has, as of that revision.
    fn segments_at(&self, unchanged_until: Revision) -> Vec<Segment> {
        let mut segments = self.segments.clone();
        if let [Segment { position: Some(told), .. }] = segments.as_mut_slice() {
            for at in &mut told.views {
                at.revision = at.revision.max(unchanged_until);
            }
        }
        segments
    }

    /// Where the client is once it was told `now`, up to the ip `cut`.
    fn told(&self, cut: Option<IpAddr>, now: Position) -> Result<Cursor, Failure> {
        let mut segments = vec![Segment { upto: cut, position: Some(now) }];
        if let Some(cut) = cut {
            let behind = |old: &&Segment| old.upto.is_none_or(|upto| upto > cut);
            segments.extend(self.segments.iter().filter(behind).cloned());
        }
        if segments.len() > SEGMENTS_MAX {
            return Err(Failure::TooSlow);
        }
        Ok(Cursor { segments })
    }
}
