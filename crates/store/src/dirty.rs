//! Groups of claims that are to be joined anew, and how the endpoints of a slice fall into groups.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::key::{RowKey, ServiceId, SliceId, WorkloadId};
use crate::record::v3;

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
pub(crate) struct Mark {
    /// The template of the workload, under which its claims are found.
    pub(crate) template: u32,
    /// Rows that it may have had besides those that it claims now.
    pub(crate) rows: Vec<RowKey>,
}

/// Groups that wait to be rejoined; more are rejoined before the commit goes on. Rejoining is idempotent, so
/// doing it early costs time at most.
const DIRTY_GROUPS_MAX: usize = 32_768;

impl Dirty {
    pub(crate) fn many(&self) -> bool {
        self.0.len() >= DIRTY_GROUPS_MAX
    }

    /// All groups, which are clean from now on.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = ((ServiceId, Group), Mark)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }

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

/// At most one endpoint for each workload and one bare one for each address, in the order of their groups: a ready
/// one, else the last.
pub(crate) fn distinct(mut endpoints: Vec<v3::SliceEndpoint>) -> Vec<v3::SliceEndpoint> {
    endpoints.sort_by_key(group);
    endpoints.dedup_by(|later, kept| {
        let same = group(later) == group(kept);
        if same && (later.ready || !kept.ready) {
            std::mem::swap(later, kept);
        }
        same
    });
    endpoints
}

pub(crate) fn group(endpoint: &v3::SliceEndpoint) -> Group {
    match endpoint.workload {
        0 => Group::Bare(endpoint.ip.into()),
        workload => Group::Workload(workload),
    }
}

/// The endpoints of a slice are in the order of their groups, each there once ([`distinct`]).
pub(crate) fn endpoint_of(slice: &v3::Slice, group: Group) -> Option<&v3::SliceEndpoint> {
    let at = slice.endpoints.binary_search_by_key(&group, self::group).ok()?;
    Some(&slice.endpoints[at])
}

/// The groups of two versions of a slice, each with its endpoint in the one and in the other.
pub(crate) fn by_group<'s>(
    before: Option<&'s v3::Slice>,
    now: Option<&'s v3::Slice>,
) -> impl Iterator<Item = (Group, Option<&'s v3::SliceEndpoint>, Option<&'s v3::SliceEndpoint>)> {
    let endpoints = |slice: Option<&'s v3::Slice>| {
        slice.map(|slice| slice.endpoints.as_slice()).unwrap_or_default().iter().peekable()
    };
    let (mut old, mut new) = (endpoints(before), endpoints(now));
    std::iter::from_fn(move || {
        let next = [old.peek(), new.peek()].into_iter().flatten().map(|it| group(it)).min()?;
        let of_next = |it: &&v3::SliceEndpoint| group(it) == next;
        Some((next, old.next_if(of_next), new.next_if(of_next)))
    })
}

/// Do two endpoints of one group say the same? Its workload has one name for ever.
pub(crate) fn alike(a: &v3::SliceEndpoint, b: &v3::SliceEndpoint) -> bool {
    let said = |it: &v3::SliceEndpoint| (it.ip, it.ready, it.zone);
    said(a) == said(b) && a.hostname == b.hostname && a.hints == b.hints
}

pub(crate) fn row_key(slice: SliceId, endpoint: &v3::SliceEndpoint) -> RowKey {
    RowKey { ip: endpoint.ip.into(), slice, workload: endpoint.workload }
}
