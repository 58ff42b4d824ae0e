//! One change, applied to the records. What depends on them is rejoined at the end of the commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Change, Key, Kind, Object, ObjectName, ResourceVersion, Slice, Source, Workload};
use redb::ReadableTable;

use crate::join::{Group, standing};
use crate::key::{self, ServiceId, SliceId, WorkloadId};
use crate::record::{convert, v1};
use crate::write::Work;
use crate::{Error, WakeKey, record};

/// The kinds that become workloads.
const WORKLOADS: [Kind; 2] = [Kind::Pod, Kind::ExternalWorkload];

/// Whose numbers a kind's objects have: those of all workloads are one sequence, since their claims are told
/// apart by them alone.
fn numbering(kind: Kind) -> Kind {
    if WORKLOADS.contains(&kind) { Kind::Pod } else { kind }
}

impl Work<'_> {
    pub(crate) fn apply(&mut self, change: Change) -> Result<(), Error> {
        match change {
            Change::Begin { source } => self.begin_listing(source),
            Change::Put { key, version, object } => self.put(key, version, object)?,
            Change::Keep { key } => {
                if let Some(found) = self.object(&key::object(key.source, &key.name))? {
                    self.mark(key.source, found.id);
                }
            }
            Change::Delete { key } => self.delete(key.source, &key.name)?,
            Change::End { source, version } => self.end_listing(source, version)?,
            Change::Checkpoint { source, version } => self.checkpoint(source, version)?,
        }
        Ok(())
    }

    /// The record of an object, stub or not.
    pub(crate) fn object(&self, key: &[u8]) -> Result<Option<v1::Object>, Error> {
        self.tables.objects.get(key)?.map(|bytes| record::decode(bytes.value())).transpose()
    }

    pub(crate) fn write_object(&mut self, key: &[u8], object: &v1::Object) -> Result<(), Error> {
        self.tables.objects.insert(key, record::encode(object)?.as_slice())?;
        Ok(())
    }

    /// A workload's record; what its rows need of it is kept at hand, since its slices are often next.
    pub(crate) fn write_workload(&mut self, key: &[u8], object: &v1::Object) -> Result<(), Error> {
        self.state.workloads.put(object.id, standing(object));
        self.write_object(key, object)
    }

    /// The record of an object, or a new stub of it. A new stub isn't written.
    fn object_or_stub(&mut self, source: Source, key: &[u8]) -> Result<v1::Object, Error> {
        match self.object(key)? {
            Some(object) => Ok(object),
            None => {
                let id = self.next_id(numbering(source.kind) as usize)?;
                Ok(v1::Object { id, version: String::new(), slices: 0, vacant: 0, body: None })
            }
        }
    }

    fn put(&mut self, key: Key, version: ResourceVersion, object: Object) -> Result<(), Error> {
        let source = key.source;
        let bytes = key::object(source, &key.name);
        let mut stored = self.object_or_stub(source, &bytes)?;
        self.mark(source, stored.id);
        if stored.body.is_some() && stored.version == version.0 && !version.0.is_empty() {
            self.done.unchanged += 1;
            return Ok(());
        }
        self.done.put += 1;
        if stored.body.is_none() {
            self.meta.objects[source.kind as usize] += 1;
        }
        let before = stored.body.take();
        stored.version.clone_from(&version.0);
        match object {
            Object::Service(service) => {
                let now = v1::Service::from(&service);
                self.service_changed(&bytes, stored.id, before.as_ref(), Some(&now))?;
                stored.body = Some(v1::Body::Service(now));
            }
            Object::Slice(slice) => {
                stored.body = Some(v1::Body::Slice);
                self.put_slice(&bytes, stored.id, source, &version, slice)?;
            }
            Object::Workload(workload) => {
                stored.body = Some(self.put_workload(source, before, workload)?);
                self.write_workload(&bytes, &stored)?;
                return self.dirty_claims(stored.id);
            }
            Object::Node { zone } => {
                self.touched.insert(WakeKey::object(&bytes));
                stored.body = Some(v1::Body::Node { zone });
            }
            Object::Owned { owner } => {
                stored.body = Some(convert::owned(owner.as_ref()));
                self.write_object(&bytes, &stored)?;
                return self.owner_changed(source, &key.name);
            }
            Object::Server(server) => {
                stored.body = Some(v1::Body::Server(v1::Server::from(&server)));
                self.write_object(&bytes, &stored)?;
                return self.servers_changed(source, key.name.namespace());
            }
        }
        self.write_object(&bytes, &stored)
    }

    pub(crate) fn delete(&mut self, source: Source, name: &ObjectName) -> Result<(), Error> {
        let bytes = key::object(source, name);
        let Some(mut stored) = self.object(&bytes)? else { return Ok(()) };
        let Some(before) = stored.body.take() else { return Ok(()) };
        self.done.deleted += 1;
        self.meta.objects[source.kind as usize] -= 1;
        stored.version.clear();
        match before {
            v1::Body::Service(_) => {
                self.service_changed(&bytes, stored.id, Some(&before), None)?;
                self.write_or_vacate(&bytes, stored)
            }
            v1::Body::Workload(workload) => {
                self.release_template(source, &workload)?;
                self.write_workload(&bytes, &stored)?;
                self.dirty_claims(stored.id)?;
                self.drop_unclaimed(&bytes, &stored)
            }
            v1::Body::Slice => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.delete_slice(stored.id, source)
            }
            v1::Body::Node { .. } => {
                self.touched.insert(WakeKey::object(&bytes));
                self.tables.objects.remove(bytes.as_slice())?;
                Ok(())
            }
            v1::Body::Owned { .. } => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.owner_changed(source, name)
            }
            v1::Body::Server(_) => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.servers_changed(source, name.namespace())
            }
        }
    }

    /// Writes a Service back. One that neither exists nor is named by a slice is remembered for as long as the
    /// undo log reaches back to when it was.
    fn write_or_vacate(&mut self, key: &[u8], mut service: v1::Object) -> Result<(), Error> {
        if service.body.is_none() && service.slices == 0 {
            service.vacant = self.revision.0;
            self.tables.vacant.insert(key::vacant(self.revision, key).as_slice(), [].as_slice())?;
        }
        self.write_object(key, &service)
    }

    /// A workload that doesn't exist and that no slice names is forgotten.
    pub(crate) fn drop_unclaimed(&mut self, key: &[u8], stored: &v1::Object) -> Result<(), Error> {
        let prefix = key::id(stored.id);
        let end = key::prefix_end(&prefix);
        let claimed = self.tables.claims.range(prefix.as_slice()..end.as_slice())?.next().is_some();
        if stored.body.is_none() && !claimed {
            self.tables.objects.remove(key)?;
        }
        Ok(())
    }

    fn service_changed(
        &mut self,
        key: &[u8],
        id: ServiceId,
        before: Option<&v1::Body>,
        now: Option<&v1::Service>,
    ) -> Result<(), Error> {
        let before = match before {
            Some(v1::Body::Service(service)) => Some(service),
            _ => None,
        };
        if before != now {
            self.undo_object(id, before)?;
            self.touched.insert(WakeKey::object(key));
        }
        Ok(())
    }

    /// All rows of a workload are looked at again.
    pub(crate) fn dirty_claims(&mut self, workload: WorkloadId) -> Result<(), Error> {
        let prefix = key::id(workload);
        let end = key::prefix_end(&prefix);
        for entry in self.tables.claims.range(prefix.as_slice()..end.as_slice())? {
            let entry = entry?.0;
            let service = key::KeyReader(&entry.value()[4..]).u32().unwrap_or(0);
            self.dirty.add(service, Group::Workload(workload), None);
        }
        self.rejoin_if_many()
    }

    // === slices ===

    /// An EndpointSlice as the newest transaction has it.
    pub(crate) fn slice(&mut self, id: SliceId) -> Result<Option<Arc<v1::Slice>>, Error> {
        if let Some(slice) = self.state.slices.get(&id) {
            return Ok(Some(slice.clone()));
        }
        let Some(bytes) = self.tables.slices.get(key::id(id).as_slice())? else { return Ok(None) };
        let slice: Arc<v1::Slice> = Arc::new(record::decode(bytes.value())?);
        self.state.slices.put(id, slice.clone());
        Ok(Some(slice))
    }

    fn put_slice(
        &mut self,
        object: &[u8],
        id: SliceId,
        source: Source,
        version: &ResourceVersion,
        slice: Slice,
    ) -> Result<(), Error> {
        let before = self.slice(id)?;
        let meta = self.intern(&v1::SliceMeta::from(&slice.meta))?;
        let service = match &slice.service {
            Some(name) => Some(self.refer_to_service(source, name)?),
            None => None,
        };
        // Without a Service a slice makes no claims, and then numbers may be given up behind its back.
        let known = before.as_ref().filter(|before| before.service.is_some());
        let known = known.map(|before| before.endpoints.as_slice()).unwrap_or_default();
        let known =
            known.iter().map(|e| ((e.target, e.namespace.as_str(), e.name.as_str()), e.workload));
        let known: BTreeMap<_, _> = known.collect();
        let mut endpoints = Vec::with_capacity(slice.endpoints.len());
        for endpoint in slice.endpoints {
            endpoints.push(self.endpoint_record(source, endpoint, &known)?);
        }
        let now = v1::Slice {
            object: object.to_vec(),
            order: version.order(),
            service,
            v6: slice.family == model::Family::V6,
            meta,
            endpoints: crate::join::distinct(endpoints),
        };
        let bytes = record::encode(&now)?;
        self.tables.slices.insert(key::id(id).as_slice(), bytes.as_slice())?;
        let now = Arc::new(now);
        self.state.slices.put(id, now.clone());
        self.slice_changed(id, source, before.as_deref(), Some(&now))?;
        match before {
            Some(before) => self.drop_slice_references(&before),
            None => Ok(()),
        }
    }

    fn delete_slice(&mut self, id: SliceId, source: Source) -> Result<(), Error> {
        let Some(before) = self.slice(id)? else { return Ok(()) };
        self.tables.slices.remove(key::id(id).as_slice())?;
        self.state.slices.pop(&id);
        self.slice_changed(id, source, Some(&before), None)?;
        self.drop_slice_references(&before)
    }

    /// One slice more that names the Service.
    fn refer_to_service(&mut self, source: Source, name: &ObjectName) -> Result<u32, Error> {
        let source = Source { kind: Kind::Service, ..source };
        let key = key::object(source, name);
        let mut service = self.object_or_stub(source, &key)?;
        service.slices += 1;
        self.write_object(&key, &service)?;
        if service.slices == 1 {
            self.tables.service_keys.insert(key::id(service.id).as_slice(), key.as_slice())?;
        }
        Ok(service.id)
    }

    /// What an old version of a slice held on to.
    fn drop_slice_references(&mut self, before: &v1::Slice) -> Result<(), Error> {
        self.release(before.meta)?;
        if let Some(id) = before.service {
            let key = self.service_key(id)?;
            if let Some(mut service) = self.object(&key)? {
                service.slices = service.slices.saturating_sub(1);
                self.write_or_vacate(&key, service)?;
            }
        }
        Ok(())
    }

    fn endpoint_record(
        &mut self,
        source: Source,
        endpoint: model::SliceEndpoint,
        known: &BTreeMap<(u8, &str, &str), WorkloadId>,
    ) -> Result<v1::SliceEndpoint, Error> {
        let (target, name) = match endpoint.target {
            model::Target::Bare => (0, None),
            model::Target::Pod(name) => (1, Some(name)),
            model::Target::ExternalWorkload(name) => (2, Some(name)),
        };
        let mut record = v1::SliceEndpoint {
            ip: endpoint.ip.into(),
            ready: endpoint.ready,
            workload: 0,
            target,
            namespace: String::new(),
            name: String::new(),
            hostname: endpoint.hostname,
            zone: endpoint.zone,
            hints: endpoint.hints,
        };
        if let Some(name) = name {
            let source = Source { kind: WORKLOADS[usize::from(target) - 1], ..source };
            let key = key::object(source, &name);
            record.workload = match known.get(&(target, name.namespace(), name.name())) {
                Some(id) => *id,
                None => self.claimed_workload(source, &key)?,
            };
            record.namespace = name.namespace().to_owned();
            record.name = name.name().to_owned();
        }
        Ok(record)
    }

    /// The number of a workload that a slice names; if it isn't known, a stub keeps the number for it.
    fn claimed_workload(&mut self, source: Source, key: &[u8]) -> Result<WorkloadId, Error> {
        if let Some(stored) = self.object(key)? {
            self.state.workloads.put(stored.id, standing(&stored));
            return Ok(stored.id);
        }
        let stub = self.object_or_stub(source, key)?;
        self.write_object(key, &stub)?;
        Ok(stub.id)
    }

    /// The object key of the workload behind an endpoint.
    pub(crate) fn endpoint_key(
        &self,
        source: Source,
        endpoint: &v1::SliceEndpoint,
    ) -> Result<Vec<u8>, Error> {
        let kind = WORKLOADS[usize::from(endpoint.target.clamp(1, 2)) - 1];
        let name = ObjectName::new(endpoint.namespace.as_str(), endpoint.name.as_str());
        let name =
            name.map_err(|error| Error::Damaged { what: "endpoint", reason: error.to_string() })?;
        Ok(key::object(Source { kind, ..source }, &name))
    }

    // === workloads ===

    fn put_workload(
        &mut self,
        source: Source,
        before: Option<v1::Body>,
        workload: Workload,
    ) -> Result<v1::Body, Error> {
        let (template, metadata) = self.refer_to_template(source, &workload.template)?;
        if let Some(v1::Body::Workload(before)) = before {
            self.release_template(source, &before)?;
        }
        Ok(v1::Body::Workload(v1::Workload {
            template,
            metadata,
            node: workload.node,
            phase: convert::phase(workload.phase),
            deleting: workload.deleting,
            host_network: workload.host_network,
            ips: workload.ips.into_iter().map(v1::Ip::from).collect(),
            host_ips: workload.host_ips.into_iter().map(v1::Ip::from).collect(),
        }))
    }
}
