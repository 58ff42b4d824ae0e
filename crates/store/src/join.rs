//! From records to rows. A row is a function of the records alone: of the slices that claim the target, of the
//! target itself, and of nothing that happened before. Whatever changes marks groups of claims as dirty; each
//! dirty group is then computed anew and compared with its rows.

use std::sync::Arc;

use crate::Error;
use crate::dirty::{Group, Mark, alike, by_group, endpoint_of, row_key};
use crate::key::{self, RowKey, ServiceId, SliceId};
use crate::record::{convert, v3};
use crate::rows::{Changes, Rows};
use crate::slices::{name_of, workload_key};
use crate::workload::ClaimKey;
use crate::write::Work;

/// A claim that a client may see, before it has a rank.
pub(crate) struct Part {
    slice: Arc<v3::Slice>,
    key: RowKey,
    row: v3::Row,
}

impl Work<'_> {
    /// What a new version of a slice (or its coming or going) makes dirty.
    pub(crate) fn slice_changed(
        &mut self,
        id: SliceId,
        before: Option<&v3::Slice>,
        now: Option<&v3::Slice>,
    ) -> Result<(), Error> {
        self.instances_changed(id, before, now)?;
        let terms = |slice: &v3::Slice| (slice.service, slice.meta, slice.v6);
        let same_terms = before.map(terms) == now.map(terms);
        let mut left = Vec::new();
        for (group, old, new) in by_group(before, now) {
            if same_terms && old.zip(new).is_some_and(|(old, new)| alike(old, new)) {
                continue;
            }
            let mut claimed = None;
            for (slice, endpoint) in [before.zip(old), now.zip(new)].into_iter().flatten() {
                let Some(service) = slice.service else { continue };
                let claim = self.claim_of(id, slice, endpoint)?;
                self.dirty.add(service, group, claim.template, Some(row_key(id, endpoint)));
                claimed = Some(claim).filter(|claim| claim.workload != 0);
            }
            if let (Some(slice), Some(endpoint), None) = (before, old, new)
                && endpoint.workload != 0
            {
                left.push(workload_key(slice, endpoint)?);
            }
            let Some(claim) = claimed else { continue };
            let claims_it = |slice: Option<&v3::Slice>, endpoint: Option<&v3::SliceEndpoint>| {
                endpoint.is_some() && slice.is_some_and(|slice| slice.service.is_some())
            };
            let (was, is) = (claims_it(before, old), claims_it(now, new));
            if is && !was {
                self.tables.claims.insert(key::claim(claim), Vec::new())?;
            } else if !is {
                self.tables.claims.remove(key::claim(claim).as_slice())?;
            }
        }
        // Only now that all claims are written is it known which workloads have none.
        for key in left {
            if let Some(stored) = self.object(&key)? {
                self.drop_unclaimed(&key, &stored)?;
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
        slice: &v3::Slice,
        endpoint: &v3::SliceEndpoint,
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
        let prefix = key::contested_of(slice, service);
        let end = key::prefix_end(&prefix);
        let mut rows = Vec::new();
        for entry in self.tables.contested.range(&prefix, &end)? {
            let entry = entry?.0;
            let mut reader = key::KeyReader(key::rest(entry.value(), 8));
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
        if self.dirty.many() { self.rejoin() } else { Ok(()) }
    }

    /// Computes all dirty groups anew.
    pub(crate) fn rejoin(&mut self) -> Result<(), Error> {
        let mut changes = Changes::default();
        for ((service, group), Mark { template, rows: mut keys }) in self.dirty.take() {
            let parts = self.parts(service, (group, template), &mut keys)?;
            keys.sort_unstable();
            keys.dedup();
            let (old, beside) = self.rows_of(service, &keys)?;
            let mut new = ranked(parts, matches!(group, Group::Workload(_)));
            if old.is_empty() {
                new = self.admit(service, group, new)?;
            }
            if old.is_empty() != new.is_empty() {
                self.count_target(service, if new.is_empty() { -1 } else { 1 })?;
            }
            if old != new {
                self.replace_rows(service, &old, &new, beside, &mut changes)?;
            }
        }
        self.write_changes(changes)
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
                for entry in self.tables.endpoints.range(&prefix, &end)? {
                    let key = crate::undo::row_key(entry?.0.value())?;
                    if key.workload == 0 {
                        slices.push(key.slice);
                    }
                }
                slices.extend(self.waiting_slices(service, group)?);
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
        slice: &v3::Slice,
        endpoint: &v3::SliceEndpoint,
    ) -> Result<Option<v3::Row>, Error> {
        if !endpoint.ready {
            return Ok(None);
        }
        let mut row = v3::Row {
            class: convert::class_number(endpoint.target, slice.v6),
            name: v3::Name::Whole(String::new()),
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
            row.name = convert::name(&name_of(slice, endpoint), &joined.name_prefix);
            row.metadata = joined.metadata;
            row.node = standing.node;
        }
        Ok(Some(row))
    }
}

/// The rows of competing claims: higher version of the slice first, then lower name, then of one object the later subset.
pub(crate) fn ranked(mut parts: Vec<Part>, with_peers: bool) -> Rows {
    parts.sort_by(|a, b| {
        let by_version = b.slice.order.cmp(&a.slice.order);
        let by_name = by_version.then_with(|| a.slice.object.cmp(&b.slice.object));
        by_name.then_with(|| b.key.slice.cmp(&a.key.slice)).then_with(|| a.key.cmp(&b.key))
    });
    let peer = |part: &Part| v3::Peer {
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
        (part.key, v3::Row { rank: rank(index), peers: peers.clone(), ..part.row })
    };
    let mut rows: Rows = parts.into_iter().enumerate().map(row).collect();
    rows.sort_unstable_by_key(|(key, _)| *key);
    rows
}
