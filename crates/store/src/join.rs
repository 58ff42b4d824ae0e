//! From records to rows. A row is a function of the records alone: of the slices that claim the target, of the
//! target itself, and of nothing that happened before. Whatever changes marks groups of claims as dirty; each
//! dirty group is then computed anew and compared with its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use model::Source;
use redb::ReadableTable;

use crate::bulk::{self, Pending};
use crate::key::{self, RowKey, ServiceId, SliceId, WorkloadId};
use crate::record::{convert, v2};
use crate::workload::ClaimKey;
use crate::write::Work;
use crate::{Error, WakeKey, record};

/// Claims that compete with each other within a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Those of one pod or workload, on whatever address.
    Workload(WorkloadId),
    /// Bare ones on one address.
    Bare(IpAddr),
}

/// Groups to be looked at again.
#[derive(Default)]
pub(crate) struct Dirty(BTreeMap<(ServiceId, Group), Mark>);

/// What is known of a dirty group.
#[derive(Default)]
struct Mark {
    /// The template of the workload, under which its claims are found.
    template: u32,
    /// Rows that it may have had besides those that it claims now.
    rows: Vec<RowKey>,
}

/// Groups that wait to be rejoined; more are rejoined before the commit goes on. Rejoining is idempotent, so
/// doing it early costs time at most.
const DIRTY_GROUPS_MAX: usize = 32_768;

/// Rows that wait to be written together.
const ROWS_PENDING_MAX: usize = 8_192;

impl Dirty {
    /// `template` is that of the group's workload now: whatever changes it marks its groups again.
    pub(crate) fn add(
        &mut self,
        service: ServiceId,
        group: Group,
        template: u32,
        row: Option<RowKey>,
    ) {
        let mark = self.0.entry((service, group)).or_default();
        mark.template = template;
        mark.rows.extend(row);
    }
}

/// At most one endpoint for each workload and one bare one for each address: a ready one, else the last.
pub(crate) fn distinct(endpoints: Vec<v2::SliceEndpoint>) -> Vec<v2::SliceEndpoint> {
    let mut distinct: BTreeMap<Group, v2::SliceEndpoint> = BTreeMap::new();
    for endpoint in endpoints {
        let group = group(&endpoint);
        match distinct.get(&group) {
            Some(known) if known.ready && !endpoint.ready => {}
            _ => {
                distinct.insert(group, endpoint);
            }
        }
    }
    distinct.into_values().collect()
}

pub(crate) fn group(endpoint: &v2::SliceEndpoint) -> Group {
    match endpoint.workload {
        0 => Group::Bare(endpoint.ip.into()),
        workload => Group::Workload(workload),
    }
}

/// The endpoints of a slice are in the order of their groups, each there once ([`distinct`]).
fn endpoint_of(slice: &v2::Slice, group: Group) -> Option<&v2::SliceEndpoint> {
    let at = slice.endpoints.binary_search_by_key(&group, self::group).ok()?;
    Some(&slice.endpoints[at])
}

fn by_group(slice: Option<&v2::Slice>) -> BTreeMap<Group, &v2::SliceEndpoint> {
    let endpoints = slice.map(|slice| slice.endpoints.as_slice()).unwrap_or_default();
    endpoints.iter().map(|endpoint| (group(endpoint), endpoint)).collect()
}

pub(crate) fn row_key(slice: SliceId, endpoint: &v2::SliceEndpoint) -> RowKey {
    RowKey { ip: endpoint.ip.into(), slice, workload: endpoint.workload }
}

/// A claim that a client may see, before it has a rank.
pub(crate) struct Part {
    slice: Arc<v2::Slice>,
    key: RowKey,
    row: v2::Row,
}

/// The rows of a group, in the order of their keys. Nearly always one.
pub(crate) type Rows = Vec<(RowKey, v2::Row)>;

/// Addresses, with all rows on them.
type Addresses = Vec<(IpAddr, v2::UndoneRows)>;

/// How many targets more, or fewer, have a signature now.
type Counts = BTreeMap<(ServiceId, v2::Signature), i64>;

/// What rejoining many groups comes to: written once for all of them.
#[derive(Default)]
struct Changes {
    signatures: Counts,
    services: BTreeSet<ServiceId>,
    /// Rows that are not in the table yet.
    rows: Pending,
}

impl Changes {
    fn count(&mut self, service: ServiceId, signature: v2::Signature, by: i64) {
        if !signature.is_empty() {
            *self.signatures.entry((service, signature)).or_default() += by;
        }
    }
}

impl Work<'_> {
    /// What a new version of a slice (or its coming or going) makes dirty.
    pub(crate) fn slice_changed(
        &mut self,
        id: SliceId,
        source: Source,
        before: Option<&v2::Slice>,
        now: Option<&v2::Slice>,
    ) -> Result<(), Error> {
        let same_terms = match (before, now) {
            (Some(b), Some(n)) => (b.service, b.meta, b.v6) == (n.service, n.meta, n.v6),
            _ => false,
        };
        let (old, new) = (by_group(before), by_group(now));
        let old_service = before.and_then(|slice| slice.service);
        let new_service = now.and_then(|slice| slice.service);
        for (group, endpoint) in &old {
            if same_terms && new.get(group) == Some(endpoint) {
                continue;
            }
            let (Some(service), Some(slice)) = (old_service, before) else { continue };
            let claim = self.claim_of(id, slice, endpoint)?;
            self.dirty.add(service, *group, claim.template, Some(row_key(id, endpoint)));
            if endpoint.workload != 0 && !(new_service.is_some() && new.contains_key(group)) {
                self.tables.claims.remove(key::claim(claim).as_slice())?;
            }
        }
        let mut claims = Pending::new();
        for (group, endpoint) in &new {
            if same_terms && old.get(group) == Some(endpoint) {
                continue;
            }
            let (Some(service), Some(slice)) = (new_service, now) else { continue };
            let claim = self.claim_of(id, slice, endpoint)?;
            self.dirty.add(service, *group, claim.template, Some(row_key(id, endpoint)));
            if endpoint.workload != 0 {
                claims.insert(key::claim(claim), Vec::new());
            }
        }
        bulk::insert(&mut self.tables.claims, claims)?;
        // Only now that all claims are written is it known which workloads have none.
        for (group, endpoint) in old.iter().filter(|(_, endpoint)| endpoint.workload != 0) {
            if !new.contains_key(group) {
                let key = self.endpoint_key(source, endpoint)?;
                if let Some(stored) = self.object(&key)? {
                    self.drop_unclaimed(&key, &stored)?;
                }
            }
        }
        if let (Some(b), Some(n)) = (before, now)
            && b.order != n.order
            && let Some(service) = n.service
        {
            self.dirty_contested(id, service)?;
        }
        self.rejoin_if_many()
    }

    /// The claim that an endpoint of a slice makes.
    pub(crate) fn claim_of(
        &mut self,
        id: SliceId,
        slice: &v2::Slice,
        endpoint: &v2::SliceEndpoint,
    ) -> Result<ClaimKey, Error> {
        let standing = match endpoint.workload {
            0 => None,
            _ => self.standing(slice, endpoint)?,
        };
        let template = standing.map_or(0, |standing| standing.template);
        Ok(ClaimKey { template, workload: endpoint.workload, slice: id })
    }

    /// A slice's version has moved, and with it the rank of its claims that compete with others.
    fn dirty_contested(&mut self, slice: SliceId, service: ServiceId) -> Result<(), Error> {
        let prefix = key::id(slice);
        let end = key::prefix_end(&prefix);
        let mut rows = Vec::new();
        for entry in self.tables.contested.range(prefix.as_slice()..end.as_slice())? {
            let entry = entry?.0;
            let mut reader = key::KeyReader(&entry.value()[4..]);
            let (Some(workload), Some(ip)) = (reader.u32(), reader.ip()) else { continue };
            rows.push(RowKey { ip, slice, workload });
        }
        let Some(record) = self.slice(slice)? else { return Ok(()) };
        for row in rows {
            let group = match row.workload {
                0 => Group::Bare(row.ip),
                workload => Group::Workload(workload),
            };
            let Some(endpoint) = endpoint_of(&record, group) else { continue };
            let claim = self.claim_of(slice, &record, endpoint)?;
            self.dirty.add(service, group, claim.template, Some(row));
        }
        Ok(())
    }

    pub(crate) fn rejoin_if_many(&mut self) -> Result<(), Error> {
        if self.dirty.0.len() >= DIRTY_GROUPS_MAX { self.rejoin() } else { Ok(()) }
    }

    /// Computes all dirty groups anew.
    pub(crate) fn rejoin(&mut self) -> Result<(), Error> {
        let mut changes = Changes::default();
        for ((service, group), Mark { template, rows: mut keys }) in
            std::mem::take(&mut self.dirty.0)
        {
            let parts = self.parts(service, (group, template), &mut keys)?;
            keys.sort_unstable();
            keys.dedup();
            self.write_neighbours(service, &keys, &mut changes.rows)?;
            let (old, beside) = self.rows_of(service, &keys)?;
            let new = ranked(parts, matches!(group, Group::Workload(_)));
            if old != new {
                self.replace_rows(service, &old, &new, beside, &mut changes)?;
            }
        }
        bulk::insert(&mut self.tables.endpoints, changes.rows)?;
        self.count_signatures(changes.signatures)?;
        for service in changes.services {
            let key = self.service_key(service)?;
            self.touched.insert(WakeKey::object(&key));
        }
        Ok(())
    }

    /// Before rows are read, those that are pending on the same addresses are written.
    fn write_neighbours(
        &mut self,
        service: ServiceId,
        keys: &[RowKey],
        pending: &mut Pending,
    ) -> Result<(), Error> {
        let waits = |key: &RowKey| {
            let prefix = key::row_ip(service, key.ip);
            let first = pending
                .range::<[u8], _>((Bound::Included(prefix.as_slice()), Bound::Unbounded))
                .next();
            first.is_some_and(|(key, _)| key.starts_with(&prefix))
        };
        if pending.len() >= ROWS_PENDING_MAX || keys.iter().any(waits) {
            bulk::insert(&mut self.tables.endpoints, std::mem::take(pending))?;
        }
        Ok(())
    }

    /// Which of these rows there are; and all rows on the addresses that they are on.
    fn rows_of(&self, service: ServiceId, keys: &[RowKey]) -> Result<(Rows, Addresses), Error> {
        let (mut rows, mut beside) = (Rows::new(), Addresses::new());
        for same in keys.chunk_by(|a, b| a.ip == b.ip) {
            let ip = same[0].ip;
            let on_ip = crate::undo::rows_on(&self.tables.endpoints, service, ip)?;
            for (slice, workload, row) in &on_ip {
                let key = RowKey { ip, slice: *slice, workload: *workload };
                if same.contains(&key) {
                    rows.push((key, row.clone()));
                }
            }
            beside.push((ip, on_ip));
        }
        Ok((rows, beside))
    }

    /// The claims of a group that a client may see. `keys` gets every row that the group may have now.
    pub(crate) fn parts(
        &mut self,
        service: ServiceId,
        (group, template): (Group, u32),
        keys: &mut Vec<RowKey>,
    ) -> Result<Vec<Part>, Error> {
        let mut slices: Vec<SliceId> = keys.iter().map(|key| key.slice).collect();
        match group {
            Group::Workload(id) => {
                let claims = self.claims(&key::workload_claims(template, id), usize::MAX)?;
                slices.extend(claims.iter().map(|claim| claim.slice));
            }
            Group::Bare(ip) => {
                let prefix = key::row_ip(service, ip);
                let end = key::prefix_end(&prefix);
                for entry in self.tables.endpoints.range(prefix.as_slice()..end.as_slice())? {
                    let key = crate::undo::row_key(entry?.0.value())?;
                    if key.workload == 0 {
                        slices.push(key.slice);
                    }
                }
            }
        }
        slices.sort_unstable();
        slices.dedup();
        let mut parts = Vec::with_capacity(slices.len());
        for id in slices {
            let Some(slice) = self.slice(id)? else { continue };
            if slice.service != Some(service) {
                continue;
            }
            let Some(endpoint) = endpoint_of(&slice, group) else { continue };
            let key = row_key(id, endpoint);
            keys.push(key);
            if let Some(row) = self.row(&slice, endpoint)? {
                parts.push(Part { slice, key, row });
            }
        }
        Ok(parts)
    }

    /// The row of an endpoint: `None` if it isn't ready, or what it stands for isn't there.
    fn row(
        &mut self,
        slice: &v2::Slice,
        endpoint: &v2::SliceEndpoint,
    ) -> Result<Option<v2::Row>, Error> {
        if !endpoint.ready {
            return Ok(None);
        }
        let mut row = v2::Row {
            class: convert::class_number(endpoint.target, slice.v6),
            name: v2::Name::Whole(String::new()),
            metadata: 0,
            node: 0,
            slice: slice.meta,
            hostname: endpoint.hostname.clone(),
            zone: endpoint.zone,
            hints: endpoint.hints.clone(),
            rank: 0,
            peers: Vec::new(),
        };
        if endpoint.workload != 0 {
            let Some(standing) = self.standing(slice, endpoint)? else { return Ok(None) };
            let joined = self.joined(standing.template)?;
            row.name = convert::name(&endpoint.name, &joined.name_prefix);
            row.metadata = joined.metadata;
            row.node = standing.node;
        }
        Ok(Some(row))
    }

    fn replace_rows(
        &mut self,
        service: ServiceId,
        old: &Rows,
        new: &Rows,
        beside: Addresses,
        changes: &mut Changes,
    ) -> Result<(), Error> {
        for (ip, rows) in beside {
            let on_ip = |(key, _): &&(RowKey, v2::Row)| key.ip == ip;
            if !old.iter().filter(on_ip).eq(new.iter().filter(on_ip)) {
                self.undo_address(service, ip, rows)?;
            }
        }
        for (key, row) in old.iter().filter(|row| !new.contains(row)) {
            self.remove_row(service, *key, row)?;
        }
        for (key, row) in new.iter().filter(|row| !old.contains(row)) {
            self.insert_row(service, *key, row, &mut changes.rows)?;
        }
        for key in contested(old) {
            self.tables.contested.remove(key::contested(key).as_slice())?;
        }
        for key in contested(new) {
            self.tables.contested.insert(key::contested(key).as_slice(), [].as_slice())?;
        }
        let (before, now) = (signature(old), signature(new));
        if before != now {
            changes.count(service, before, -1);
            changes.count(service, now, 1);
        }
        changes.services.insert(service);
        Ok(())
    }

    fn remove_row(&mut self, service: ServiceId, key: RowKey, row: &v2::Row) -> Result<(), Error> {
        self.tables.endpoints.remove(key.write(service).as_slice())?;
        self.meta.endpoints = self.meta.endpoints.saturating_sub(1);
        if let Some(hostname) = &row.hostname {
            let index = key::hostname(service, hostname, key);
            self.tables.hostnames.remove(index.as_slice())?;
        }
        Ok(())
    }

    fn insert_row(
        &mut self,
        service: ServiceId,
        key: RowKey,
        row: &v2::Row,
        pending: &mut Pending,
    ) -> Result<(), Error> {
        pending.insert(key.write(service), record::encode(row)?);
        self.meta.endpoints += 1;
        if let Some(hostname) = &row.hostname {
            let index = key::hostname(service, hostname, key);
            self.tables.hostnames.insert(index.as_slice(), [].as_slice())?;
        }
        Ok(())
    }

    fn count_signatures(&mut self, by: Counts) -> Result<(), Error> {
        for ((service, signature), by) in by.into_iter().filter(|(_, by)| *by != 0) {
            let signature = record::encode(&signature)?;
            let key = key::context(service, &signature);
            let before = match self.tables.contexts.get(key.as_slice())? {
                Some(count) => key::KeyReader(count.value()).u64().unwrap_or(0),
                None => 0,
            };
            let now = before.saturating_add_signed(by);
            if now == before {
                continue;
            }
            self.undo_signature(service, &signature, before)?;
            if now == 0 {
                self.tables.contexts.remove(key.as_slice())?;
            } else {
                self.tables.contexts.insert(key.as_slice(), now.to_be_bytes().as_slice())?;
            }
        }
        Ok(())
    }

    /// The object key of a Service that slices name.
    pub(crate) fn service_key(&self, service: ServiceId) -> Result<Vec<u8>, Error> {
        let found = self.tables.service_keys.get(key::id(service).as_slice())?;
        let missing =
            || Error::Damaged { what: "service", reason: format!("{service} has no key") };
        Ok(found.ok_or_else(missing)?.value().to_vec())
    }
}

/// The rows of competing claims: higher version of the slice first, then lower name.
pub(crate) fn ranked(mut parts: Vec<Part>, with_peers: bool) -> Rows {
    parts.sort_by(|a, b| {
        let by_version = b.slice.order.cmp(&a.slice.order);
        by_version.then_with(|| a.slice.object.cmp(&b.slice.object)).then(a.key.cmp(&b.key))
    });
    let peer = |part: &Part| v2::Peer {
        ip: part.key.ip.into(),
        class: part.row.class,
        slice: part.row.slice,
        hostname: part.row.hostname.clone(),
        hints: part.row.hints.clone(),
    };
    let peers: Vec<_> =
        if with_peers && parts.len() > 1 { parts.iter().map(peer).collect() } else { Vec::new() };
    let rank = |index: usize| u16::try_from(index).unwrap_or(u16::MAX);
    let row = |(index, part): (usize, Part)| {
        (part.key, v2::Row { rank: rank(index), peers: peers.clone(), ..part.row })
    };
    let mut rows: Rows = parts.into_iter().enumerate().map(row).collect();
    rows.sort_unstable_by_key(|(key, _)| *key);
    rows
}

/// The rows of a group that compete: their rank depends on the versions of their slices.
pub(crate) fn contested(rows: &Rows) -> Vec<RowKey> {
    let rivals = |class: u8| rows.iter().filter(|(_, row)| row.class == class).count() > 1;
    rows.iter().filter(|(_, row)| rivals(row.class)).map(|(key, _)| *key).collect()
}

/// What a group's claims amount to, in order of rank.
pub(crate) fn signature(rows: &Rows) -> v2::Signature {
    let mut rows: Vec<_> = rows.iter().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| row.rank);
    rows.into_iter().map(|row| (row.class, row.slice, row.hints.clone())).collect()
}
