//! What changed for a view between two revisions: the store's comparison, seen through a lens at either end.
//!
//! *Invariant:* a delta is a function of (old view, R, new view, R'), the range, and the store; no stream's state
//! is in it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use model::limits::DELTA_PASS_ADDRESSES_MAX;
use model::{Claim, Revision, Service, ServiceName, Signature};
use resolve::{Address, Labels, Lens, Settings, View};
use store::{Presence, Scope, ServiceRows, Snapshot};

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

/// What a client knows, or is to know: the addresses of one view, or of several as one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Position {
    /// Where two have an address, the first says what it is.
    pub(crate) views: Vec<ViewAt>,
}

/// A view at a revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ViewAt {
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

/// Deltas that end at one position.
pub(crate) struct Target<'t> {
    answers: &'t Answers,
    snapshot: &'t Snapshot,
    now: Vec<Now<'t>>,
}

/// A view of the target, with the rows of its Service.
struct Now<'t> {
    service: &'t ServiceName,
    rows: ServiceRows<'t>,
    lens: Lens,
}

/// One Service as a client has seen it, and as it is to see it.
struct Pair<'p> {
    rows: &'p ServiceRows<'p>,
    /// Its place among those that the client has seen, its lens, and when that was.
    then: Option<(usize, Lens, Revision)>,
    now: Option<&'p Lens>,
    /// The places of some are others now, so what two have may be told otherwise.
    moved: bool,
}

/// The claims on an address of one Service, before and now.
type Claims<'c> = (&'c [Claim], &'c [Claim]);

impl<'t> Target<'t> {
    /// The target of a client that shall be at `position`; there are rows for each of its views.
    pub(crate) fn new(
        position: &'t Position,
        rows: Vec<ServiceRows<'t>>,
        snapshot: &'t Snapshot,
        answers: &'t Answers,
    ) -> Result<Target<'t>, store::Error> {
        let with_lens = |(at, rows): (&'t ViewAt, ServiceRows<'t>)| {
            let lens = lens(at, &rows, answers)?;
            Ok::<_, store::Error>(Now { service: &at.view.service, rows, lens })
        };
        let now = position.views.iter().zip(rows).map(with_lens).collect::<Result<_, _>>()?;
        Ok(Target { answers, snapshot, now })
    }

    /// Nothing to say yet. With a number of addresses that are expected it may end before it is full, if they are too
    /// many.
    pub(crate) fn delta(&self, expected: Option<u64>) -> Delta {
        let bytes_max = self.answers.message_bytes_max;
        let none = Labels::default();
        Delta {
            adds: wire::Adds::new(self.set_labels().unwrap_or(&none), bytes_max),
            removes: wire::Removes::new(bytes_max),
            last: None,
            expected,
        }
    }

    /// What several have in common they say with each address.
    fn set_labels(&self) -> Option<&Labels<'static>> {
        self.now.first().map(|now| now.lens.set_labels())
    }

    /// Adds to `delta` what is to say to a client that is at `old` (`None`: that knows nothing) as far as the
    /// ips in `range` are concerned. If a message is full before they all are in it, gives the last that is.
    pub(crate) fn extend(
        &self,
        delta: &mut Delta,
        old: Option<&Position>,
        range: IpRange,
    ) -> Result<Option<IpAddr>, store::Error> {
        let old = old.map(|old| old.views.as_slice()).unwrap_or_default();
        let is_left = |at: &&ViewAt| self.now.iter().all(|now| *now.service != at.view.service);
        let left: Vec<&ViewAt> = old.iter().filter(is_left).collect();
        let read = |at: &&ViewAt| self.snapshot.service(&at.view.service);
        let left_rows = left.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let mut pairs = Vec::with_capacity(self.now.len() + left.len());
        for Now { service, rows, lens } in &self.now {
            let then = self.then(old, service, rows)?;
            pairs.push(Pair { rows, then, now: Some(lens), moved: false });
        }
        for (at, rows) in left.into_iter().zip(&left_rows) {
            let then = self.then(old, &at.view.service, rows)?;
            pairs.push(Pair { rows, then, now: None, moved: false });
        }
        let places = pairs.iter().filter(|pair| pair.now.is_some());
        let places = places.filter_map(|pair| pair.then.as_ref().map(|(place, ..)| *place));
        if !places.is_sorted() {
            pairs.iter_mut().for_each(|pair| pair.moved = true);
        }
        let labels = pairs.iter().find_map(Pair::then_lens).map(Lens::set_labels);
        let resend = labels != self.set_labels();
        let walked = match pairs.as_slice() {
            [pair] => self.walk(delta, pair, resend, range),
            pairs => self.walk_all(delta, pairs, resend, range),
        };
        match walked {
            Ok(()) | Err(Halt::Done) => Ok(None),
            Err(Halt::Full) => Ok(delta.last),
            Err(Halt::Store(error)) => Err(error),
        }
    }

    /// How a client has seen a Service, if it has.
    fn then(
        &self,
        old: &[ViewAt],
        service: &ServiceName,
        rows: &ServiceRows<'_>,
    ) -> Result<Option<(usize, Lens, Revision)>, store::Error> {
        let Some(place) = old.iter().position(|at| at.view.service == *service) else {
            return Ok(None);
        };
        // A Service that is forgotten by now has no rows to compare, and no object at any revision. So ask
        // first whether the old position can still be seen.
        rows.changed(old[place].revision)?;
        Ok(Some((place, lens(&old[place], rows, self.answers)?, old[place].revision)))
    }

    /// Goes through one Service.
    fn walk(
        &self,
        delta: &mut Delta,
        pair: &Pair<'_>,
        resend: bool,
        range: IpRange,
    ) -> Result<(), Halt> {
        let pairs = std::slice::from_ref(pair);
        let mut visit = |ip: IpAddr, then: &[Claim], now: &[Claim]| {
            if range.ends_before(ip) {
                return Err(Halt::Done);
            }
            self.say(delta, ip, pairs, &[(then, now)], resend)
        };
        let in_part = |ip: IpAddr| pair.may_show(ip);
        pair.rows.compare(pair.since(), pair.scope(&in_part), range.after, &mut visit)
    }

    /// Goes through several Services at once, a bounded number of addresses of each at a time.
    fn walk_all(
        &self,
        delta: &mut Delta,
        pairs: &[Pair<'_>],
        resend: bool,
        range: IpRange,
    ) -> Result<(), Halt> {
        let most = (DELTA_PASS_ADDRESSES_MAX / pairs.len().max(1)).max(PASS_ADDRESSES_MIN);
        let mut after = range.after;
        loop {
            let mut met = Met::new();
            // Up to here all Services have been gone through.
            let mut upto = None::<IpAddr>;
            for (place, pair) in pairs.iter().enumerate() {
                let (mut count, mut last) = (0, None);
                let mut visit = |ip: IpAddr, then: &[Claim], now: &[Claim]| {
                    if range.ends_before(ip) || upto.is_some_and(|upto| ip > upto) {
                        return Err(Halt::Done);
                    }
                    if count == most {
                        return Err(Halt::Full);
                    }
                    (count, last) = (count + 1, Some(ip));
                    let claims = met.entry(ip).or_insert_with(|| vec![None; pairs.len()]);
                    claims[place] = Some((then.to_vec(), now.to_vec()));
                    Ok(())
                };
                let in_part = |ip: IpAddr| pair.may_show(ip);
                let scope = pair.scope(&in_part);
                match pair.rows.compare(pair.since(), scope, after, &mut visit) {
                    Ok(()) | Err(Halt::Done) => {}
                    Err(Halt::Full) => upto = last,
                    Err(error) => return Err(error),
                }
            }
            for (ip, claims) in met {
                if upto.is_some_and(|upto| ip > upto) {
                    break;
                }
                let claims = self.complete(ip, pairs, claims)?;
                let claims: Vec<Claims<'_>> =
                    claims.iter().map(|(then, now)| (then.as_slice(), now.as_slice())).collect();
                self.say(delta, ip, pairs, &claims, resend)?;
            }
            match upto {
                None => return Ok(()),
                upto => after = upto,
            }
        }
    }

    /// Where only changes are visited, those that were not have the claims that they had.
    fn complete(
        &self,
        ip: IpAddr,
        pairs: &[Pair<'_>],
        met: Vec<Option<OwnClaims>>,
    ) -> Result<Vec<OwnClaims>, store::Error> {
        let one = |(pair, met): (&Pair<'_>, Option<OwnClaims>)| match met {
            Some(claims) => Ok(claims),
            None if pair.is_seen_alike() => {
                let claims = pair.rows.claims_on(ip)?;
                Ok((claims.clone(), claims))
            }
            None => Ok(OwnClaims::default()),
        };
        pairs.iter().zip(met).map(one).collect()
    }

    /// Says what has changed on an ip, if there is room.
    fn say(
        &self,
        delta: &mut Delta,
        ip: IpAddr,
        pairs: &[Pair<'_>],
        claims: &[Claims<'_>],
        resend: bool,
    ) -> Result<(), Halt> {
        let (mut seen, mut now) = (Vec::with_capacity(pairs.len()), Vec::new());
        for (pair, (before, after)) in pairs.iter().zip(claims) {
            if let Some((place, lens, _)) = &pair.then {
                seen.push((*place, lens.project(before)));
            }
            if let Some(lens) = pair.now {
                add_new(&mut now, lens.project(after));
            }
        }
        // The client was told of them in the order that they had then.
        seen.sort_by_key(|(place, _)| *place);
        let mut then = Vec::new();
        seen.into_iter().for_each(|(_, addresses)| add_new(&mut then, addresses));
        let left: Vec<u16> =
            then.iter().map(|old| old.port).filter(|port| !holds(&now, *port)).collect();
        if !resend {
            now.retain(|new| !then.contains(new));
        }
        delta.push(ip, &left, &now, self.answers).then_some(()).ok_or(Halt::Full)
    }
}

/// Addresses of each Service that are gone through at a time, at least.
const PASS_ADDRESSES_MIN: usize = 16;

/// The claims on an address of one Service, before and now.
type OwnClaims = (Vec<Claim>, Vec<Claim>);

/// The claims on addresses of several Services; `None`: it was not visited.
type Met = BTreeMap<IpAddr, Vec<Option<OwnClaims>>>;

/// Where two have an address, the first says what it is.
fn add_new<'c>(addresses: &mut Vec<Address<'c>>, more: Vec<Address<'c>>) {
    if addresses.is_empty() {
        *addresses = more;
        return;
    }
    for address in more {
        if !holds(addresses, address.port) {
            addresses.push(address);
        }
    }
}

impl Pair<'_> {
    fn since(&self) -> Option<Revision> {
        self.then.as_ref().map(|(.., since)| *since)
    }

    fn then_lens(&self) -> Option<&Lens> {
        self.then.as_ref().map(|(_, lens, _)| lens)
    }

    fn lenses(&self) -> impl Iterator<Item = &Lens> {
        self.now.into_iter().chain(self.then_lens())
    }

    /// Equal lenses project equal claims equally, so only those that changed matter.
    fn is_seen_alike(&self) -> bool {
        !self.moved && self.now.is_some() && self.now == self.then_lens()
    }

    /// What is in neither part is not even decoded.
    fn may_show(&self, ip: IpAddr) -> bool {
        self.lenses().any(|lens| lens.bucket().is_none_or(|bucket| bucket.has(ip)))
    }

    fn scope<'s>(&'s self, in_part: &'s dyn Fn(IpAddr) -> bool) -> Scope<'s> {
        let hostname = self.lenses().find_map(Lens::hostname);
        match (self.is_seen_alike(), hostname) {
            (true, _) => Scope::Changed,
            (_, Some(hostname)) => Scope::Hostname(hostname),
            (_, None) => Scope::Part(in_part),
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

/// The lens of a view: made anew each time, so that no stream has to keep one.
pub(super) fn lens(
    at: &ViewAt,
    rows: &ServiceRows<'_>,
    answers: &Answers,
) -> Result<Lens, store::Error> {
    let ViewAt { view, revision } = at;
    let service = match rows.object(*revision)? {
        Presence::There(service) => Some(service),
        // Its slices may be there first: then the port is taken as it is (spec 7.M11).
        Presence::Unseen if view.linked.is_some() => Some(Service::default()),
        Presence::Unseen | Presence::Gone => None,
    };
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
