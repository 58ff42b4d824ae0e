//! One change, applied to the records. What depends on them is rejoined at the end of the commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Change, Key, Kind, Object, ObjectName, ResourceVersion, Slice, Source};
use redb::ReadableTable;

use crate::key::{self, ServiceId, SliceId, WorkloadId};
use crate::record::{convert, v2};
use crate::workload::Standing;
use crate::write::Work;
use crate::{Error, WakeKey, record};

/// The kinds that become workloads.
const WORKLOADS: [Kind; 2] = [Kind::Pod, Kind::ExternalWorkload];

/// Whose numbers a kind's objects have: those of all workloads are one sequence, since their claims are told
/// apart by them alone.
pub(crate) fn numbering(kind: Kind) -> Kind {
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
    pub(crate) fn object(&self, key: &[u8]) -> Result<Option<v2::Object>, Error> {
        self.tables.objects.get(key)?.map(|bytes| record::decode(bytes.value())).transpose()
    }

    pub(crate) fn write_object(&mut self, key: &[u8], object: &v2::Object) -> Result<(), Error> {
        self.tables.objects.insert(key, record::encode(object)?.as_slice())?;
        Ok(())
    }

    /// The record of an object, or a new stub of it. A new stub isn't written.
    fn object_or_stub(&mut self, source: Source, key: &[u8]) -> Result<v2::Object, Error> {
        match self.object(key)? {
            Some(object) => Ok(object),
            None => self.stub(source),
        }
    }

    fn stub(&mut self, source: Source) -> Result<v2::Object, Error> {
        let id = self.next_id(numbering(source.kind) as usize)?;
        let version = v2::Version::from("");
        Ok(v2::Object { id, version, slices: 0, vacant: 0, body: None })
    }

    fn put(&mut self, key: Key, version: ResourceVersion, object: Object) -> Result<(), Error> {
        let source = key.source;
        let bytes = key::object(source, &key.name);
        let found = self.object(&bytes)?;
        let known_before = found.is_some();
        let mut stored = match found {
            Some(found) => found,
            None => self.stub(source)?,
        };
        self.mark(source, stored.id);
        let known = std::mem::replace(&mut stored.version, v2::Version::from(&*version.0));
        if stored.body.is_some() && stored.version == known && !version.0.is_empty() {
            self.done.unchanged += 1;
            return Ok(());
        }
        self.done.put += 1;
        if stored.body.is_none() {
            self.meta.objects[source.kind as usize] += 1;
        }
        let before = stored.body.take();
        match object {
            Object::Service(service) => {
                let now = v2::Service::from(&service);
                self.service_changed(&bytes, stored.id, before.as_ref(), Some(&now))?;
                stored.body = Some(v2::Body::Service(now));
            }
            Object::Slice(slice) => {
                stored.body = Some(v2::Body::Slice);
                self.put_slice(&bytes, stored.id, source, &version, slice)?;
            }
            Object::Workload(workload) => {
                let before = workload_of(before);
                stored.body = Some(self.put_workload(source, before.as_ref(), workload)?);
                self.write_workload(&bytes, &stored)?;
                // Nobody can have named what had no number.
                return if known_before {
                    self.standing_changed(&stored, before.as_ref())
                } else {
                    Ok(())
                };
            }
            Object::Node { zone } => {
                self.touched.insert(WakeKey::object(&bytes));
                stored.body = Some(v2::Body::Node { zone });
            }
            Object::Owned { owner } => {
                stored.body = Some(convert::owned(owner.as_ref()));
                self.write_object(&bytes, &stored)?;
                return self.owner_changed(source, &key.name);
            }
            Object::Server(server) => {
                stored.body = Some(v2::Body::Server(v2::Server::from(&server)));
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
        stored.version = v2::Version::from("");
        match before {
            v2::Body::Service(_) => {
                self.service_changed(&bytes, stored.id, Some(&before), None)?;
                self.write_or_vacate(&bytes, stored)
            }
            v2::Body::Workload(workload) => {
                self.release_workload(source, &workload)?;
                self.write_workload(&bytes, &stored)?;
                self.standing_changed(&stored, Some(&workload))?;
                self.drop_unclaimed(&bytes, &stored)
            }
            v2::Body::Slice => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.delete_slice(stored.id, source)
            }
            v2::Body::Node { .. } => {
                self.touched.insert(WakeKey::object(&bytes));
                self.tables.objects.remove(bytes.as_slice())?;
                Ok(())
            }
            v2::Body::Owned { .. } => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.owner_changed(source, name)
            }
            v2::Body::Server(_) => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.servers_changed(source, name.namespace())
            }
        }
    }

    /// Writes a Service back. One that neither exists nor is named by a slice is remembered for as long as the
    /// undo log reaches back to when it was.
    fn write_or_vacate(&mut self, key: &[u8], mut service: v2::Object) -> Result<(), Error> {
        if service.body.is_none() && service.slices == 0 {
            service.vacant = self.revision.0;
            self.tables.vacant.insert(key::vacant(self.revision, key).as_slice(), [].as_slice())?;
        }
        self.write_object(key, &service)
    }

    /// A workload that doesn't exist and that no slice names is forgotten.
    pub(crate) fn drop_unclaimed(&mut self, key: &[u8], stored: &v2::Object) -> Result<(), Error> {
        if stored.body.is_none() && self.claims(&key::workload_claims(0, stored.id), 1)?.is_empty()
        {
            self.tables.objects.remove(key)?;
        }
        Ok(())
    }

    fn service_changed(
        &mut self,
        key: &[u8],
        id: ServiceId,
        before: Option<&v2::Body>,
        now: Option<&v2::Service>,
    ) -> Result<(), Error> {
        let before = match before {
            Some(v2::Body::Service(service)) => Some(service),
            _ => None,
        };
        if before != now {
            self.undo_object(id, before)?;
            self.touched.insert(WakeKey::object(key));
        }
        Ok(())
    }

    // === slices ===

    /// An EndpointSlice as the newest transaction has it.
    pub(crate) fn slice(&mut self, id: SliceId) -> Result<Option<Arc<v2::Slice>>, Error> {
        if let Some(slice) = self.state.slices.get(&id) {
            return Ok(Some(slice.clone()));
        }
        let Some(bytes) = self.tables.slices.get(key::id(id).as_slice())? else { return Ok(None) };
        let slice = Arc::new(convert::unpacked(record::decode(bytes.value())?));
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
        let meta = self.intern(&v2::SliceMeta::from(&slice.meta))?;
        let mut texts = Texts::new();
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
            endpoints.push(self.endpoint_record(source, endpoint, &known, &mut texts)?);
        }
        let now = v2::Slice {
            object: object.to_vec(),
            order: version.order(),
            service,
            v6: slice.family == model::Family::V6,
            meta,
            name_prefix: String::new(),
            endpoints: crate::dirty::distinct(endpoints),
        };
        self.release_texts(texts.values().copied(), &now)?;
        let bytes = record::encode(&convert::packed(&now))?;
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
    fn drop_slice_references(&mut self, before: &v2::Slice) -> Result<(), Error> {
        self.release(before.meta)?;
        for text in convert::texts(before) {
            self.release(text)?;
        }
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
        texts: &mut Texts,
    ) -> Result<v2::SliceEndpoint, Error> {
        let mut text = |text: String| match texts.get(&text) {
            Some(id) => Ok(*id),
            None => {
                let id = self.intern(&text)?;
                texts.insert(text, id);
                Ok::<u32, Error>(id)
            }
        };
        let zone = endpoint.zone.map(&mut text).transpose()?.unwrap_or(0);
        let hints = endpoint.hints.into_iter().map(text).collect::<Result<_, _>>()?;
        let (target, name) = match endpoint.target {
            model::Target::Bare => (0, None),
            model::Target::Pod(name) => (1, Some(name)),
            model::Target::ExternalWorkload(name) => (2, Some(name)),
        };
        let mut record = v2::SliceEndpoint {
            ip: endpoint.ip.into(),
            ready: endpoint.ready,
            workload: 0,
            target,
            namespace: String::new(),
            name: String::new(),
            hostname: endpoint.hostname,
            zone,
            hints,
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
            self.state.workloads.put(stored.id, Standing::of(&stored));
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
        endpoint: &v2::SliceEndpoint,
    ) -> Result<Vec<u8>, Error> {
        let kind = WORKLOADS[usize::from(endpoint.target.clamp(1, 2)) - 1];
        let name = ObjectName::new(endpoint.namespace.as_str(), endpoint.name.as_str());
        let name =
            name.map_err(|error| Error::Damaged { what: "endpoint", reason: error.to_string() })?;
        Ok(key::object(Source { kind, ..source }, &name))
    }

    /// Gives up the references that a slice turned out not to need: those of endpoints that were said twice.
    fn release_texts(
        &mut self,
        taken: impl Iterator<Item = u32>,
        slice: &v2::Slice,
    ) -> Result<(), Error> {
        let needed = convert::texts(slice);
        for text in taken.filter(|text| !needed.contains(text)) {
            self.release(text)?;
        }
        Ok(())
    }
}

/// The texts of a slice's endpoints, each interned once for all of them.
type Texts = BTreeMap<String, u32>;

fn workload_of(body: Option<v2::Body>) -> Option<v2::Workload> {
    match body {
        Some(v2::Body::Workload(workload)) => Some(workload),
        _ => None,
    }
}
