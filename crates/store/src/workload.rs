//! Pods and ExternalWorkloads: their records, and the index from templates and workloads to their rows.

use model::{Source, Workload};

use crate::Error;
use crate::dirty::Group;
use crate::key::{self, KeyReader, SliceId, WorkloadId};
use crate::record::{convert, v2};
use crate::slices::workload_key;
use crate::write::Work;

/// What the rows of a workload need of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) template: u32,
    pub(crate) node: u32,
}

impl Standing {
    /// `None` if the workload isn't there.
    pub(crate) fn of(object: &v2::Object) -> Option<Standing> {
        match &object.body {
            Some(v2::Body::Workload(workload)) => Some(Standing::from(workload)),
            _ => None,
        }
    }
}

impl From<&v2::Workload> for Standing {
    fn from(workload: &v2::Workload) -> Standing {
        Standing { template: workload.template, node: workload.node }
    }
}

/// A row of the claims table: a slice has an endpoint for a workload, whose template is this one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimKey {
    pub(crate) template: u32,
    pub(crate) workload: WorkloadId,
    pub(crate) slice: SliceId,
}

/// Claims looked at in one go.
const CLAIMS_MAX: usize = 4_096;

impl Work<'_> {
    pub(crate) fn put_workload(
        &mut self,
        source: Source,
        before: Option<&v2::Workload>,
        workload: Workload,
    ) -> Result<v2::Body, Error> {
        let template = self.refer_to_template(source, &workload.template)?;
        let node = match &workload.node {
            Some(node) => self.intern_text(node)?,
            None => 0,
        };
        if let Some(before) = before {
            self.release_workload(source, before)?;
        }
        Ok(v2::Body::Workload(v2::Workload {
            template,
            node,
            phase: convert::phase(workload.phase),
            deleting: workload.deleting,
            host_network: workload.host_network,
            ips: workload.ips.into_iter().map(v2::Ip::from).collect(),
            host_ips: workload.host_ips.into_iter().map(v2::Ip::from).collect(),
        }))
    }

    /// Gives up what a workload's record holds on to.
    pub(crate) fn release_workload(
        &mut self,
        source: Source,
        workload: &v2::Workload,
    ) -> Result<(), Error> {
        if workload.node != 0 {
            self.release(workload.node)?;
        }
        self.release_template(source, workload.template)
    }

    /// Writes a workload's record; what its rows need of it is kept at hand, since its slices are often next.
    pub(crate) fn write_workload(&mut self, key: &[u8], object: &v2::Object) -> Result<(), Error> {
        self.state.workloads.put(object.id, Standing::of(object));
        self.write_object(key, object)
    }

    /// Looks at a workload's rows again, if they depend on what is different now.
    pub(crate) fn standing_changed(
        &mut self,
        object: &v2::Object,
        before: Option<&v2::Workload>,
    ) -> Result<(), Error> {
        let (before, now) = (before.map(Standing::from), Standing::of(object));
        if before == now {
            return Ok(());
        }
        let template = |standing: Option<Standing>| standing.map_or(0, |it| it.template);
        let (old, new) = (template(before), template(now));
        if old != new {
            self.move_claims(object.id, old, new)?;
        }
        self.dirty_claims(&key::workload_claims(new, object.id))
    }

    fn move_claims(&mut self, workload: WorkloadId, old: u32, new: u32) -> Result<(), Error> {
        loop {
            let claims = self.claims(&key::workload_claims(old, workload), CLAIMS_MAX)?;
            if claims.is_empty() {
                return Ok(());
            }
            for claim in claims {
                self.tables.claims.remove(key::claim(claim).as_slice())?;
                let moved = ClaimKey { template: new, ..claim };
                self.tables.claims.insert(key::claim(moved), Vec::new())?;
            }
        }
    }

    /// All rows behind the claims that begin with `prefix` are looked at again.
    pub(crate) fn dirty_claims(&mut self, prefix: &[u8]) -> Result<(), Error> {
        let end = key::prefix_end(prefix);
        let mut from = prefix.to_vec();
        loop {
            let claims = self.claims_in(&from, &end, CLAIMS_MAX)?;
            for claim in &claims {
                let service = self.slice(claim.slice)?.and_then(|slice| slice.service);
                if let Some(service) = service {
                    let group = Group::Workload(claim.workload);
                    self.dirty.add(service, group, claim.template, None);
                }
            }
            self.rejoin_if_many()?;
            match claims.last() {
                Some(last) if claims.len() == CLAIMS_MAX => {
                    from = [key::claim(*last).as_slice(), &[0]].concat();
                }
                _ => return Ok(()),
            }
        }
    }

    /// The first `max` claims whose keys begin with `prefix`.
    pub(crate) fn claims(&self, prefix: &[u8], max: usize) -> Result<Vec<ClaimKey>, Error> {
        self.claims_in(prefix, &key::prefix_end(prefix), max)
    }

    fn claims_in(&self, from: &[u8], end: &[u8], max: usize) -> Result<Vec<ClaimKey>, Error> {
        let mut claims = Vec::new();
        for entry in self.tables.claims.range(from, end)?.take(max) {
            let key = entry?.0;
            let damaged =
                || Error::Damaged { what: "claims key", reason: format!("{:?}", key.value()) };
            claims.push(claim_key(key.value()).ok_or_else(damaged)?);
        }
        Ok(claims)
    }

    /// What the rows need of the workload behind an endpoint; `None` if that isn't there.
    pub(crate) fn standing(
        &mut self,
        slice: &v2::Slice,
        endpoint: &v2::SliceEndpoint,
    ) -> Result<Option<Standing>, Error> {
        if let Some(known) = self.state.workloads.get(&endpoint.workload) {
            return Ok(*known);
        }
        let object = self.object(&workload_key(slice, endpoint)?)?;
        let standing = object.and_then(|object| Standing::of(&object));
        self.state.workloads.put(endpoint.workload, standing);
        Ok(standing)
    }
}

/// The claim in a key of the claims table.
pub(crate) fn claim_key(bytes: &[u8]) -> Option<ClaimKey> {
    let mut reader = KeyReader(bytes);
    Some(ClaimKey { template: reader.u32()?, workload: reader.u32()?, slice: reader.u32()? })
}

/// Whose a slice is.
pub(crate) fn slice_source(slice: &v2::Slice) -> Result<Source, Error> {
    let damaged = || Error::Damaged { what: "slice", reason: "its key is too short".to_owned() };
    let [high, low, ..] = slice.object.as_slice() else { return Err(damaged()) };
    let cluster = model::ClusterId(u16::from_be_bytes([*high, *low]));
    Ok(Source { cluster, kind: model::Kind::EndpointSlice })
}
