//! All that EndpointSlices say of one address, whether or not a client may see it: for those who ask why.

use std::net::IpAddr;

use model::{Claim, Kind, ObjectName, ServiceName};

use crate::apply::WORKLOADS;
use crate::dirty::group;
use crate::key::ServiceId;
use crate::record::{self, v3};
use crate::slices::workload_key;
use crate::undo::rows_on;
use crate::{Error, Snapshot, key};

/// What one EndpointSlice, or a subset of Endpoints, says of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// EndpointSlice or Endpoints.
    pub kind: Kind,
    /// Its name.
    pub slice: ObjectName,
    /// It belongs to the Service; otherwise to none at all.
    pub belongs: bool,
    /// The endpoint is ready.
    pub ready: bool,
    /// The kind and name of the endpoint's target; `None`: it is a bare address.
    pub target: Option<(Kind, ObjectName)>,
    /// The target, if the endpoint has one, is there.
    pub target_known: bool,
    /// It waits to be let in.
    pub waits: bool,
    /// What clients may see of it.
    pub claim: Option<Claim>,
}

impl Snapshot {
    /// Visits what there is about an address in the EndpointSlices and Endpoints of a Service, and in those that
    /// belong to no Service, in the order of their names. Reads all of the Service's namespace, one at a time.
    pub fn mentions(
        &self,
        service: &ServiceName,
        ip: IpAddr,
        visit: &mut dyn FnMut(Mention),
    ) -> Result<(), Error> {
        let rows = self.service(service)?;
        let claims = match rows.id() {
            Some(id) => rows_on(self.tables.endpoints()?, id, ip)?,
            None => Vec::new(),
        };
        for kind in [Kind::EndpointSlice, Kind::Endpoints] {
            let namespace = service.object.namespace();
            let prefix = key::object_namespace(service.cluster, kind, namespace);
            let end = key::prefix_end(&prefix);
            for entry in self.tables.objects()?.range(prefix.as_slice()..end.as_slice())? {
                let (object_key, value) = entry?;
                let Some(slice_name) = key::object_name(object_key.value()) else { continue };
                for id in slice_ids(record::decode(value.value())?) {
                    let Some(slice) = self.slice(id)? else { continue };
                    if slice.service.is_some_and(|owner| rows.id() != Some(owner)) {
                        continue;
                    }
                    for endpoint in slice.endpoints.iter().filter(|it| IpAddr::from(it.ip) == ip) {
                        let row = claims.iter().find(|(in_slice, workload, _)| {
                            (*in_slice, *workload) == (id, endpoint.workload)
                        });
                        let claim = row.map(|(_, _, row)| rows.claim(ip, row.clone()));
                        let (target, target_known) = self.target(&slice, endpoint)?;
                        visit(Mention {
                            kind,
                            slice: slice_name.clone(),
                            belongs: slice.service.is_some(),
                            ready: endpoint.ready,
                            target,
                            target_known,
                            waits: self.waits(slice.service, endpoint)?,
                            claim: claim.transpose()?,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn waits(
        &self,
        service: Option<ServiceId>,
        endpoint: &v3::SliceEndpoint,
    ) -> Result<bool, Error> {
        let Some(service) = service else { return Ok(false) };
        let key = key::waiting(service, group(endpoint));
        Ok(self.tables.waiting()?.get(key.as_slice())?.is_some())
    }

    fn slice(&self, id: key::SliceId) -> Result<Option<v3::Slice>, Error> {
        let found = self.tables.slices()?.get(key::id(id).as_slice())?;
        found.map(|bytes| record::decode(bytes.value())).transpose()
    }

    /// What an endpoint stands for, and whether that is there.
    fn target(
        &self,
        slice: &v3::Slice,
        endpoint: &v3::SliceEndpoint,
    ) -> Result<(Option<(Kind, ObjectName)>, bool), Error> {
        if endpoint.workload == 0 {
            return Ok((None, true));
        }
        let key = workload_key(slice, endpoint)?;
        let kind = WORKLOADS[usize::from(endpoint.target.clamp(1, 2)) - 1];
        let known = self.object(&key)?.is_some_and(|object| object.body.is_some());
        Ok((key::object_name(&key).map(|name| (kind, name)), known))
    }
}

/// The slices that an object is kept as.
fn slice_ids(object: v3::Object) -> Vec<key::SliceId> {
    match object.body {
        Some(v3::Body::Slice) => vec![object.id],
        Some(v3::Body::Subsets(ids)) => ids,
        _ => Vec::new(),
    }
}
