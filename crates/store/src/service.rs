//! The rows of one Service, as they are and as they were.

use std::collections::BTreeMap;
use std::net::IpAddr;

use model::limits::{DELTA_PASS_ADDRESSES_MAX, FEW_ROWS_MAX};
use model::{Claim, Peer, Revision, Service, Signature, SignatureItem};

use crate::key::{self, ServiceId, Undone};
use crate::record::{self, convert, v3};
use crate::undo::{row_key, rows_on};
use crate::{Error, Snapshot, apply};

/// The rows of one Service.
pub struct ServiceRows<'s> {
    snapshot: &'s Snapshot,
    /// `None`: nobody has ever heard of the Service, or not since the undo log begins.
    id: Option<ServiceId>,
    now: v3::Presence,
}

/// Whether a Service is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// Nobody has seen it, as far as is remembered.
    #[default]
    Unseen,
    /// It was there.
    Gone,
    /// This is it.
    There(Service),
}

impl Presence {
    /// The Service, if it is there.
    pub fn service(&self) -> Option<&Service> {
        match self {
            Presence::There(service) => Some(service),
            Presence::Unseen | Presence::Gone => None,
        }
    }
}

impl From<v3::Presence> for Presence {
    fn from(record: v3::Presence) -> Presence {
        match record {
            v3::Presence::Unseen => Presence::Unseen,
            v3::Presence::Gone => Presence::Gone,
            v3::Presence::There(service) => Presence::There(service.into()),
        }
    }
}

/// Which addresses [`ServiceRows::compare`] looks at.
#[derive(Clone, Copy)]
pub enum Scope<'a> {
    /// Those whose claims have changed since.
    Changed,
    /// All that have claims, now or then.
    All,
    /// Those of them that satisfy.
    Part(&'a dyn Fn(IpAddr) -> bool),
    /// Those that have a claim of this hostname, now or then. Claims of others may be on them as well.
    Hostname(&'a str),
}

/// Addresses that have changed, with the record of their claims before.
type Changed = BTreeMap<IpAddr, Vec<u8>>;

/// Rows of a table.
type Rows = redb::Range<'static, &'static [u8], &'static [u8]>;

/// Is given what an undo entry speaks of, and its value.
type VisitUndone<'v> = &'v mut dyn FnMut(&Undone, &[u8]) -> Result<(), Error>;

/// Is given an address, the claims on it before, and the claims on it now.
type Visit<'v, E> = &'v mut dyn FnMut(IpAddr, &[Claim], &[Claim]) -> Result<(), E>;

impl<'s> ServiceRows<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot, object: Option<v3::Object>) -> ServiceRows<'s> {
        let id = object.as_ref().map(|object| object.id);
        let now = match object {
            Some(object) => apply::presence(object.body, &object.version),
            None => v3::Presence::Unseen,
        };
        ServiceRows { snapshot, id, now }
    }

    pub(crate) fn id(&self) -> Option<ServiceId> {
        self.id
    }

    /// The Service object at a revision.
    pub fn object(&self, at: Revision) -> Result<Presence, Error> {
        let mut found = None;
        self.undone(at, &mut |what, bytes| {
            if found.is_none() && *what == Undone::Object {
                found = Some(record::decode::<v3::Presence>(bytes)?);
            }
            Ok(())
        })?;
        Ok(found.unwrap_or_else(|| self.now.clone()).into())
    }

    /// Each signature that targets of the Service had at a revision, and how many had it.
    pub fn signatures(&self, at: Revision) -> Result<Vec<(Signature, u64)>, Error> {
        let Some(id) = self.id else { return Ok(Vec::new()) };
        let mut counts = BTreeMap::new();
        self.undone(at, &mut |what, bytes| {
            if let Undone::Signature(signature) = what {
                let count = key::KeyReader(bytes).u64().unwrap_or(0);
                counts.entry(signature.clone()).or_insert(count);
            }
            Ok(())
        })?;
        for entry in self.contexts(id)? {
            let (signed, count) = entry?;
            let count = key::KeyReader(count.value()).u64().unwrap_or(0);
            counts.entry(key::rest(signed.value(), 4).to_vec()).or_insert(count);
        }
        let there = counts.into_iter().filter(|(_, count)| *count > 0);
        there.map(|(bytes, count)| Ok((self.signature(&bytes)?, count))).collect()
    }

    /// How many targets the Service has: all that have a signature.
    pub fn targets(&self) -> Result<u64, Error> {
        let Some(id) = self.id else { return Ok(0) };
        let mut targets = 0;
        for entry in self.contexts(id)? {
            targets += key::KeyReader(entry?.1.value()).u64().unwrap_or(0);
        }
        Ok(targets)
    }

    fn signature(&self, bytes: &[u8]) -> Result<Signature, Error> {
        let items: v3::Signature = record::decode(bytes)?;
        let item = |(class, slice, hints): (u8, u32, Vec<u32>)| {
            let mut hot = self.snapshot.hot();
            let slice = hot.slice_meta(self.snapshot, slice)?;
            let hints = hot.texts(self.snapshot, &hints)?;
            Ok(SignatureItem { class: convert::class(class), slice, hints })
        };
        Ok(Signature(items.into_iter().map(item).collect::<Result<_, Error>>()?))
    }

    /// The revision that last changed anything an answer depends on; if the undo log doesn't reach back to it, the
    /// oldest that can be compared with. Nothing has changed since.
    pub fn last_change(&self) -> Result<Revision, Error> {
        let Some(id) = self.id else { return Ok(self.snapshot.trimmed()) };
        let last = self.undo_after(id, Revision::default())?.next_back();
        let last = last.transpose()?.and_then(|(key, _)| key::undone_at(key.value()));
        Ok(last.unwrap_or_default().max(self.snapshot.trimmed()))
    }

    /// Has anything that an answer depends on changed since?
    pub fn changed(&self, since: Revision) -> Result<bool, Error> {
        self.snapshot.reaches(since)?;
        let Some(id) = self.id else { return Ok(false) };
        Ok(self.undo_after(id, since)?.next().is_some())
    }

    /// Is little to be read for what has changed since? Then it has been written just now, and is mostly in memory.
    pub fn reads_few(&self, since: Revision) -> Result<bool, Error> {
        self.snapshot.reaches(since)?;
        let Some(id) = self.id else { return Ok(true) };
        let rows = self.contexts(id)?.chain(self.undo_after(id, since)?);
        Ok(rows.take(FEW_ROWS_MAX + 1).count() <= FEW_ROWS_MAX)
    }

    /// Visits addresses in their order, each once, those behind `after` only, with the claims on it as they were
    /// at `since` (`None`: before everything) and as they are now. Holds a bounded number of addresses, however
    /// many there are.
    pub fn compare<E: From<Error>>(
        &self,
        since: Option<Revision>,
        scope: Scope<'_>,
        mut after: Option<IpAddr>,
        visit: Visit<'_, E>,
    ) -> Result<(), E> {
        if let Some(since) = since {
            self.snapshot.reaches(since)?;
        }
        let Some(id) = self.id else { return Ok(()) };
        loop {
            let (changed, last) = self.changed_addresses(since, after)?;
            match scope {
                Scope::Changed => self.visit_changed(id, &changed, visit)?,
                Scope::All => {
                    self.visit_all(id, &changed, (after, last), since, &|_| true, visit)?;
                }
                Scope::Part(wanted) => {
                    self.visit_all(id, &changed, (after, last), since, wanted, visit)?;
                }
                Scope::Hostname(hostname) => {
                    let with = self.with_hostname(id, hostname, &changed, (after, last))?;
                    self.visit_some(id, with, &changed, since, visit)?;
                }
            }
            match last {
                None => return Ok(()),
                last => after = last,
            }
        }
    }

    /// The signatures that its targets have, with how many have each.
    fn contexts(&self, id: ServiceId) -> Result<Rows, Error> {
        let (from, end) = (key::id(id), key::prefix_end(&key::id(id)));
        Ok(self.snapshot.tables.contexts()?.range(from.as_slice()..end.as_slice())?)
    }

    /// The undo entries after a revision, the oldest first.
    fn undo_after(&self, id: ServiceId, after: Revision) -> Result<Rows, Error> {
        let (from, end) = (key::undo_after(id, after), key::prefix_end(&key::id(id)));
        Ok(self.snapshot.tables.undo()?.range(from.as_slice()..end.as_slice())?)
    }

    /// Visits the undo entries after a revision, the oldest first.
    fn undone(&self, after: Revision, visit: VisitUndone<'_>) -> Result<(), Error> {
        let Some(id) = self.id else { return Ok(()) };
        if after >= self.snapshot.revision() {
            return Ok(());
        }
        for entry in self.undo_after(id, after)? {
            let (key, value) = entry?;
            let damaged =
                || Error::Damaged { what: "undo key", reason: format!("{:?}", key.value()) };
            visit(&key::undone(key.value()).ok_or_else(damaged)?, value.value())?;
        }
        Ok(())
    }

    /// The first addresses past `after` that have changed since, with their claims then; and, if there are
    /// more, the last of them.
    fn changed_addresses(
        &self,
        since: Option<Revision>,
        after: Option<IpAddr>,
    ) -> Result<(Changed, Option<IpAddr>), Error> {
        let mut changed = BTreeMap::new();
        let mut more = false;
        let Some(since) = since else { return Ok((changed, None)) };
        self.undone(since, &mut |what, bytes| {
            let Undone::Address(ip) = what else { return Ok(()) };
            if after.is_some_and(|after| *ip <= after) || changed.contains_key(ip) {
                return Ok(());
            }
            // Once some have been left out, only those before the last one that is kept are looked for.
            if more && changed.last_key_value().is_some_and(|(last, _)| ip > last) {
                return Ok(());
            }
            changed.insert(*ip, bytes.to_vec());
            if changed.len() > DELTA_PASS_ADDRESSES_MAX {
                changed.pop_last();
                more = true;
            }
            Ok(())
        })?;
        let last = changed.last_key_value().map(|(ip, _)| *ip);
        Ok((changed, last.filter(|_| more)))
    }

    fn visit_changed<E: From<Error>>(
        &self,
        id: ServiceId,
        changed: &Changed,
        visit: Visit<'_, E>,
    ) -> Result<(), E> {
        for (ip, before) in changed {
            let before = self.claims(*ip, record::decode(before)?)?;
            let now = self.claims(*ip, rows_on(self.snapshot.tables.endpoints()?, id, *ip)?)?;
            visit(*ip, &before, &now)?;
        }
        Ok(())
    }

    /// All addresses past `after` up to `last` that are wanted.
    fn visit_all<E: From<Error>>(
        &self,
        id: ServiceId,
        changed: &Changed,
        (after, last): (Option<IpAddr>, Option<IpAddr>),
        since: Option<Revision>,
        wanted: &dyn Fn(IpAddr) -> bool,
        visit: Visit<'_, E>,
    ) -> Result<(), E> {
        let from = after.map_or_else(|| key::id(id), |ip| key::prefix_end(&key::row_ip(id, ip)));
        let end = key::prefix_end(&last.map_or_else(|| key::id(id), |ip| key::row_ip(id, ip)));
        let mut gone = changed.iter().filter(|(ip, _)| wanted(**ip)).peekable();
        let mut rows = v3::UndoneRows::new();
        let mut current: Option<IpAddr> = None;
        let range = self.snapshot.tables.endpoints()?.range(from.as_slice()..end.as_slice());
        for entry in range.map_err(Error::from)? {
            let (key, value) = entry.map_err(Error::from)?;
            let key = row_key(key.value())?;
            if !wanted(key.ip) {
                continue;
            }
            if let Some(ip) = current.filter(|ip| *ip != key.ip) {
                self.visit_address(ip, std::mem::take(&mut rows), &mut gone, since, visit)?;
            }
            current = Some(key.ip);
            rows.push((key.slice, key.workload, record::decode(value.value())?));
        }
        if let Some(ip) = current {
            self.visit_address(ip, rows, &mut gone, since, visit)?;
        }
        for (ip, before) in gone {
            visit(*ip, &self.claims(*ip, record::decode(before)?)?, &[])?;
        }
        Ok(())
    }

    /// Visits an address that has rows now, and before it those that no longer have any.
    fn visit_address<'c, E: From<Error>>(
        &self,
        ip: IpAddr,
        rows: v3::UndoneRows,
        changed: &mut std::iter::Peekable<impl Iterator<Item = (&'c IpAddr, &'c Vec<u8>)>>,
        since: Option<Revision>,
        visit: Visit<'_, E>,
    ) -> Result<(), E> {
        while let Some((gone, before)) = changed.next_if(|(gone, _)| **gone < ip) {
            visit(*gone, &self.claims(*gone, record::decode(before)?)?, &[])?;
        }
        let now = self.claims(ip, rows)?;
        match changed.next_if(|(changed, _)| **changed == ip) {
            Some((_, before)) => visit(ip, &self.claims(ip, record::decode(before)?)?, &now),
            None if since.is_none() => visit(ip, &[], &now),
            None => visit(ip, &now, &now),
        }
    }

    /// The addresses past `after` up to `last` with a claim of a hostname, now or then.
    fn with_hostname(
        &self,
        id: ServiceId,
        hostname: &str,
        changed: &Changed,
        (after, last): (Option<IpAddr>, Option<IpAddr>),
    ) -> Result<Vec<IpAddr>, Error> {
        let mut addresses = std::collections::BTreeSet::new();
        for (ip, before) in changed {
            let before: v3::UndoneRows = record::decode(before)?;
            if before.iter().any(|(_, _, row)| row.hostname.as_deref() == Some(hostname)) {
                addresses.insert(*ip);
            }
        }
        let prefix = key::hostname_prefix(id, hostname);
        let end = key::prefix_end(&prefix);
        for entry in self.snapshot.tables.hostnames()?.range(prefix.as_slice()..end.as_slice())? {
            let named = entry?.0;
            addresses.extend(key::KeyReader(key::rest(named.value(), prefix.len())).ip());
        }
        let within = |ip: &IpAddr| {
            after.is_none_or(|after| *ip > after) && last.is_none_or(|last| *ip <= last)
        };
        Ok(addresses.into_iter().filter(within).collect())
    }

    fn visit_some<E: From<Error>>(
        &self,
        id: ServiceId,
        addresses: Vec<IpAddr>,
        changed: &Changed,
        since: Option<Revision>,
        visit: Visit<'_, E>,
    ) -> Result<(), E> {
        for ip in addresses {
            let now = self.claims(ip, rows_on(self.snapshot.tables.endpoints()?, id, ip)?)?;
            match changed.get(&ip) {
                Some(before) => {
                    let before = self.claims(ip, record::decode(before)?)?;
                    visit(ip, &before, &now)?;
                }
                None if since.is_none() => visit(ip, &[], &now)?,
                None => visit(ip, &now, &now)?,
            }
        }
        Ok(())
    }

    /// The claims on an address as they are now.
    pub fn claims_on(&self, ip: IpAddr) -> Result<Vec<Claim>, Error> {
        let Some(id) = self.id else { return Ok(Vec::new()) };
        self.claims(ip, rows_on(self.snapshot.tables.endpoints()?, id, ip)?)
    }

    fn claims(&self, ip: IpAddr, rows: v3::UndoneRows) -> Result<Vec<Claim>, Error> {
        rows.into_iter().map(|(_, _, row)| self.claim(ip, row)).collect()
    }

    pub(crate) fn claim(&self, ip: IpAddr, row: v3::Row) -> Result<Claim, Error> {
        let at = self.snapshot;
        let mut hot = at.hot();
        let workload = match row.metadata {
            0 => None,
            id => Some(hot.metadata(at, id)?),
        };
        let prefix = workload.as_ref().map_or("", |workload| &workload.name_prefix);
        let mut peers = Vec::with_capacity(row.peers.len());
        for peer in row.peers {
            peers.push(Peer {
                ip: peer.ip.into(),
                class: convert::class(peer.class),
                slice: hot.slice_meta(at, peer.slice)?,
                hostname: peer.hostname,
                hints: hot.texts(at, &peer.hints)?,
            });
        }
        Ok(Claim {
            ip,
            class: convert::class(row.class),
            name: convert::unname(row.name, prefix),
            node: hot.text(at, row.node)?,
            slice: hot.slice_meta(at, row.slice)?,
            hostname: row.hostname,
            zone: hot.text(at, row.zone)?,
            hints: hot.texts(at, &row.hints)?,
            rank: row.rank,
            workload,
            peers,
        })
    }
}
