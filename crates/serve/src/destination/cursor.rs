//! Where a stream is, and its next step: the only state that a stream has.

use std::net::IpAddr;
use std::sync::Arc;

use model::{ClusterId, Revision, ServiceName};
use resolve::View;
use store::{ServiceRows, Snapshot};

use super::delta::{Answers, IpRange, Position, Target};
use super::shared::Failure;
use super::wire::{self, Update};

/// Segments of a cursor. More than two are met only by a client for which change after change was too large for
/// one message: that client begins again.
const SEGMENTS_MAX: usize = 8;

/// What a Get asks for, as long as it lasts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) service: ServiceName,
    pub(super) port: u16,
    pub(super) hostname: Option<String>,
    /// The client's node.
    pub(super) node: Option<String>,
}

impl Question {
    /// Who asks this at the snapshot's revision.
    fn position(
        &self,
        snapshot: &Snapshot,
        rows: &ServiceRows<'_>,
    ) -> Result<Position, store::Error> {
        let revision = snapshot.revision();
        let zone = match &self.node {
            Some(node) => snapshot.zone(ClusterId::LOCAL, node)?,
            None => None,
        };
        let local = rows.object(revision)?.is_some_and(|service| service.local_traffic);
        let view = View {
            service: self.service.clone(),
            port: self.port,
            hostname: self.hostname.clone(),
            zone,
            node: self.node.clone().filter(|_| local),
        };
        Ok(Position { view: Arc::new(view), revision })
    }
}

/// What a client has been told: mostly one position for all ips. While it takes a change that doesn't fit into one
/// message, the ips that it has been told of are further than the others. The next message is read from the
/// newest revision, so a slow client holds neither a queue nor a snapshot.
#[derive(Debug)]
pub(super) struct Cursor {
    /// In order of their ips; the last one is up to the end.
    segments: Vec<Segment>,
}

/// Ips that a client is at the same position for.
#[derive(Clone, Debug)]
struct Segment {
    /// Behind those of the segment before, up to this one; `None`: to the last.
    upto: Option<IpAddr>,
    /// `None`: the client was told nothing.
    position: Option<Position>,
}

/// What to do next.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// What to send, in this order: at most one message of each kind.
    pub(super) messages: Vec<Update>,
    /// Look again without waiting for a wake-up: there is more to say.
    pub(super) again: bool,
}

impl Default for Cursor {
    fn default() -> Cursor {
        Cursor { segments: vec![Segment { upto: None, position: None }] }
    }
}

impl Cursor {
    /// The first change since the last step was made by this revision, so the cursor may stand just before it:
    /// a quiet stream isn't left behind when the undo log is trimmed.
    pub(super) fn unchanged_until(&mut self, first_change: Revision) {
        if let [Segment { position: Some(seen), .. }] = self.segments.as_mut_slice() {
            seen.revision = seen.revision.max(Revision(first_change.0.saturating_sub(1)));
        }
    }

    /// Compares what the client was told with what the snapshot says.
    pub(super) fn step(
        &mut self,
        question: &Question,
        snapshot: &Snapshot,
        answers: &Answers,
    ) -> Result<Step, Failure> {
        let rows = snapshot.service(&question.service)?;
        let now = question.position(snapshot, &rows)?;
        if self.stays(&rows, &now)? {
            return Ok(Step::default());
        }
        let target = Target::new(&now, &rows, answers)?;
        let mut delta = target.delta();
        let mut cut = None;
        let mut after = None;
        for Segment { upto, position } in &self.segments {
            let range = IpRange { after, upto: *upto };
            cut = target.extend(&mut delta, position.as_ref(), range)?;
            if cut.is_some() {
                break;
            }
            after = *upto;
        }
        let mut messages = delta.messages();
        if messages.is_empty() && matches!(*self.segments, [Segment { position: None, .. }]) {
            messages.push(wire::no_endpoints());
        }
        drop(target);
        self.told(cut, now)?;
        Ok(Step { messages, again: cut.is_some() })
    }

    /// If nothing changed for the view, that is all there is to do.
    fn stays(&mut self, rows: &ServiceRows<'_>, now: &Position) -> Result<bool, store::Error> {
        let [Segment { position: Some(seen), .. }] = self.segments.as_mut_slice() else {
            return Ok(false);
        };
        if seen.view != now.view || rows.changed(seen.revision)? {
            return Ok(false);
        }
        seen.revision = now.revision;
        Ok(true)
    }

    /// The client is at `now`, up to the ip `cut`.
    fn told(&mut self, cut: Option<IpAddr>, now: Position) -> Result<(), Failure> {
        match cut {
            None => self.segments.clear(),
            Some(cut) => self.segments.retain(|old| old.upto.is_none_or(|upto| upto > cut)),
        }
        self.segments.insert(0, Segment { upto: cut, position: Some(now) });
        if self.segments.len() > SEGMENTS_MAX {
            return Err(Failure::TooSlow);
        }
        Ok(())
    }
}
