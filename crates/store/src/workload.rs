//! Pods and ExternalWorkloads: their records, and the index from templates and workloads to their rows.

use model::{Key, Source, Workload};

use crate::Error;
use crate::dirty::Group;
use crate::key::{self, KeyReader, SliceId, WorkloadId};
use crate::record::{convert, v3};
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
    pub(crate) fn of(object: &v3::Object) -> Option<Standing> {
        match &object.body {
            Some(v3::Body::Workload(workload)) => Some(Standing::from(workload)),
            _ => None,
        }
    }
}

impl From<&v3::Workload> for Standing {
    fn from(workload: &v3::Workload) -> Standing {
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
    /// Writes a workload; whether it had a number before, and what it was then, is told.
    pub(crate) fn put_workload(
        &mut self,
        bytes: &[u8],
        key: &Key,
        mut stored: v3::Object,
        (known_before, before): (bool, Option<v3::Workload>),
        workload: Workload,
    ) -> Result<(), Error> {
        let source = key.source;
        let owned = self.owned(source, &key.name, before.as_ref())?;
        let now = self.workload_record(source, before.as_ref(), workload)?;
        let owned_now = self.owned(source, &key.name, Some(&now))?;
        self.workload_moved(source, (before.as_ref(), &owned), (Some(&now), &owned_now))?;
        stored.body = Some(v3::Body::Workload(now));
        self.write_workload(bytes, &stored)?;
        // Nobody can have named what had no number.
        match known_before {
            true => self.standing_changed(&stored, before.as_ref()),
            false => Ok(()),
        }
    }

    fn workload_record(
        &mut self,
        source: Source,
        before: Option<&v3::Workload>,
        workload: Workload,
    ) -> Result<v3::Workload, Error> {
        let template = self.refer_to_template(source, &workload.template)?;
        let has_host_ports = workload.template.ports.iter().any(|port| port.host_port.is_some());
        let node = match &workload.node {
            Some(node) => self.intern_text(node)?,
            None => 0,
        };
        if let Some(before) = before {
            self.release_workload(source, before)?;
        }
        Ok(v3::Workload {
            template,
            node,
            state: v3::Workload::state(
                convert::phase(workload.phase),
                workload.deleting,
                workload.host_network,
            ),
            ips: ips(workload.ips),
            host_ips: if has_host_ports { ips(workload.host_ips) } else { Vec::new() },
        })
    }

    /// Gives up what a workload's record holds on to.
    pub(crate) fn release_workload(
        &mut self,
        source: Source,
        workload: &v3::Workload,
    ) -> Result<(), Error> {
        if workload.node != 0 {
            self.release(workload.node)?;
        }
        self.release_template(source, workload.template)
    }

    /// Writes a workload's record; what its rows need of it is kept at hand, since its slices are often next.
    pub(crate) fn write_workload(&mut self, key: &[u8], object: &v3::Object) -> Result<(), Error> {
        self.state.workloads.put(object.id, Standing::of(object));
        self.write_object(key, object)
    }

    /// Looks at a workload's rows again, if they depend on what is different now.
    pub(crate) fn standing_changed(
        &mut self,
        object: &v3::Object,
        before: Option<&v3::Workload>,
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
        slice: &v3::Slice,
        endpoint: &v3::SliceEndpoint,
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

fn ips(ips: Vec<std::net::IpAddr>) -> Vec<v3::Ip> {
    ips.into_iter().map(v3::Ip::from).collect()
}

/// The claim in a key of the claims table.
pub(crate) fn claim_key(bytes: &[u8]) -> Option<ClaimKey> {
    let mut reader = KeyReader(bytes);
    Some(ClaimKey { template: reader.u32()?, workload: reader.u32()?, slice: reader.u32()? })
}

/// Whose a slice is.
pub(crate) fn slice_source(slice: &v3::Slice) -> Result<Source, Error> {
    let damaged = || Error::Damaged { what: "slice", reason: "its key is too short".to_owned() };
    let [high, low, ..] = slice.object.as_slice() else { return Err(damaged()) };
    let cluster = model::ClusterId(u16::from_be_bytes([*high, *low]));
    Ok(Source { cluster, kind: model::Kind::EndpointSlice })
}
