//! What changed for a view between two revisions: the store's comparison, seen through a lens at either end.
//!
//! *Invariant:* a delta is a function of (old view, R, new view, R'), the range, and the store; no stream's state
//! is in it.

use std::net::IpAddr;
use std::sync::Arc;

use model::{Claim, Revision, Signature};
use resolve::{Address, Lens, Settings, View};
use store::{Scope, ServiceRows};

use super::level::Oversize;
use super::wire::{self, Http2, Message};

/// What all answers of a server have in common.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) settings: Settings,
    pub(crate) http2: Option<Http2>,
    /// Say that there is no endpoint to who asks when there is none (Q01); the original says nothing.
    pub(crate) no_endpoints: bool,
    /// `MESSAGE_BYTES_MAX`, but for tests.
    pub(crate) message_bytes_max: usize,
    /// What to do with a Service that is too large.
    pub(crate) oversize: Oversize,
}

/// What a client knows, or is to know: the addresses of a view at a revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Position {
    pub(crate) view: Arc<View>,
    pub(crate) revision: Revision,
}

/// What to say to a client that goes from one position to another: at most one message of each kind.
pub(crate) struct Delta {
    adds: wire::Adds,
    removes: wire::Removes,
    /// The last ip whose addresses are in it.
    last: Option<IpAddr>,
    /// If there will be so many addresses, and they can't all be in it, it need not be filled to find that out.
    expected: Option<u64>,
}

/// After so many addresses it is clear how large the others are.
const PROBE_ADDRESSES: usize = 1_000;

impl Delta {
    /// Takes what is to say of an ip, or nothing of it and says `false`: then a message is full.
    fn push(&mut self, ip: IpAddr, left: &[u16], now: &[Address<'_>], answers: &Answers) -> bool {
        let before = self.removes.mark();
        let taken = self.removes.push(ip, left) && self.adds.push(now, answers.http2.as_ref());
        match taken {
            true => self.last = Some(ip),
            false => self.removes.back_to(before),
        }
        taken && !self.is_hopeless(answers)
    }

    fn is_hopeless(&self, answers: &Answers) -> bool {
        let told = self.adds.addresses();
        let Some(expected) = self.expected.filter(|_| told >= PROBE_ADDRESSES) else {
            return false;
        };
        let all = self.adds.bytes() as u64 * expected / told as u64;
        all > answers.message_bytes_max as u64 * 5 / 4
    }

    /// Bytes that it adds.
    pub(crate) fn added_bytes(&self) -> usize {
        self.adds.bytes()
    }

    /// Addresses that it adds.
    pub(crate) fn added(&self) -> usize {
        self.adds.addresses()
    }

    /// First what to add, then what to remove.
    pub(crate) fn messages(self) -> Vec<Message> {
        self.adds.finish().into_iter().chain(self.removes.finish()).collect()
    }
}

/// Deltas that end at one position, in the rows of its Service at its revision.
pub(crate) struct Target<'t> {
    answers: &'t Answers,
    rows: &'t ServiceRows<'t>,
    lens: Lens,
    hostname: Option<&'t str>,
}

impl<'t> Target<'t> {
    /// The target of a client that shall be at `position`.
    pub(crate) fn new(
        position: &'t Position,
        rows: &'t ServiceRows<'t>,
        answers: &'t Answers,
    ) -> Result<Target<'t>, store::Error> {
        let lens = lens(position, rows, answers)?;
        Ok(Target { answers, rows, lens, hostname: position.view.hostname.as_deref() })
    }

    /// Nothing to say yet. With a number of addresses that are expected it may end before it is full, if they are too
    /// many.
    pub(crate) fn delta(&self, expected: Option<u64>) -> Delta {
        let bytes_max = self.answers.message_bytes_max;
        Delta {
            adds: wire::Adds::new(self.lens.set_labels(), bytes_max),
            removes: wire::Removes::new(bytes_max),
            last: None,
            expected,
        }
    }

    /// Adds to `delta` what is to say to a client that is at `old` (`None`: that knows nothing) as far as the
    /// ips in `range` are concerned. If a message is full before they all are in it, gives the last that is.
    pub(crate) fn extend(
        &self,
        delta: &mut Delta,
        old: Option<&Position>,
        range: IpRange,
    ) -> Result<Option<IpAddr>, store::Error> {
        if let Some(old) = old {
            // A Service that is forgotten by now has no rows to compare, and no object at any revision. So ask
            // first whether the old position can still be seen.
            self.rows.changed(old.revision)?;
        }
        let old_lens = old.map(|old| lens(old, self.rows, self.answers)).transpose()?;
        let labels = old_lens.as_ref().map(Lens::set_labels);
        let resend = labels != Some(self.lens.set_labels());
        let mut visit = |ip: IpAddr, then: &[Claim], now: &[Claim]| {
            if range.ends_before(ip) {
                return Err(Halt::Done);
            }
            let then = old_lens.as_ref().map(|old| old.project(then)).unwrap_or_default();
            let mut now = self.lens.project(now);
            let left: Vec<u16> =
                then.iter().map(|old| old.port).filter(|port| !holds(&now, *port)).collect();
            if !resend {
                now.retain(|new| !then.contains(new));
            }
            delta.push(ip, &left, &now, self.answers).then_some(()).ok_or(Halt::Full)
        };
        let since = old.map(|old| old.revision);
        let buckets = [Some(&self.lens), old_lens.as_ref()].map(|lens| lens.map(Lens::bucket));
        // What is in neither part is not even decoded.
        let in_part = |ip: IpAddr| {
            buckets.iter().flatten().any(|bucket| bucket.is_none_or(|bucket| bucket.has(ip)))
        };
        let scope = self.scope(old_lens.as_ref(), &in_part);
        match self.rows.compare(since, scope, range.after, &mut visit) {
            Ok(()) | Err(Halt::Done) => Ok(None),
            Err(Halt::Full) => Ok(delta.last),
            Err(Halt::Store(error)) => Err(error),
        }
    }

    /// Equal lenses project equal claims equally, so only those that changed matter.
    fn scope<'s>(
        &'s self,
        old_lens: Option<&Lens>,
        in_part: &'s dyn Fn(IpAddr) -> bool,
    ) -> Scope<'s> {
        match (self.hostname, old_lens) {
            (_, Some(old)) if *old == self.lens => Scope::Changed,
            (Some(hostname), _) => Scope::Hostname(hostname),
            (None, _) => Scope::Part(in_part),
        }
    }
}

/// Some ips, in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpRange {
    /// Those behind this one; `None`: from the first.
    pub(crate) after: Option<IpAddr>,
    /// Those up to this one; `None`: to the last.
    pub(crate) upto: Option<IpAddr>,
}

impl IpRange {
    fn ends_before(self, ip: IpAddr) -> bool {
        self.upto.is_some_and(|upto| ip > upto)
    }
}

/// Why a walk over the rows ends early.
enum Halt {
    /// What follows is not in the range.
    Done,
    /// A message is full.
    Full,
    Store(store::Error),
}

impl From<store::Error> for Halt {
    fn from(error: store::Error) -> Halt {
        Halt::Store(error)
    }
}

fn holds(addresses: &[Address<'_>], port: u16) -> bool {
    addresses.iter().any(|address| address.port == port)
}

/// The lens of a position: made anew each time, so that no stream has to keep one.
pub(super) fn lens(
    position: &Position,
    rows: &ServiceRows<'_>,
    answers: &Answers,
) -> Result<Lens, store::Error> {
    let Position { view, revision } = position;
    let service = rows.object(*revision)?;
    let signatures = match &view.hostname {
        None => rows.signatures(*revision)?,
        Some(hostname) => signatures_of_hostname(rows, hostname, *revision)?,
    };
    Ok(Lens::new(&answers.settings, view, service.as_ref(), &signatures))
}

/// The signatures of the targets with a hostname, which the store doesn't count: a hostname has few.
fn signatures_of_hostname(
    rows: &ServiceRows<'_>,
    hostname: &str,
    at: Revision,
) -> Result<Vec<(Signature, u64)>, store::Error> {
    let mut counts: Vec<(Signature, u64)> = Vec::new();
    rows.compare(Some(at), Scope::Hostname(hostname), None, &mut |_, then, _| {
        for signature in resolve::hostname_signatures(hostname, then) {
            match counts.iter_mut().find(|(known, _)| *known == signature) {
                Some((_, count)) => *count += 1,
                None => counts.push((signature, 1)),
            }
        }
        Ok::<(), store::Error>(())
    })?;
    Ok(counts)
}
