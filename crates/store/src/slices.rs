//! EndpointSlices: their records, and the Services, workloads and texts that these refer to.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;
use std::sync::Arc;

use model::{Kind, ObjectName, ResourceVersion, Slice, Source};
use siphasher::sip::SipHasher13;

use crate::apply::WORKLOADS;
use crate::dirty::distinct;
use crate::key::{self, ServiceId, SliceId, WorkloadId};
use crate::record::v3;
use crate::workload::{Standing, slice_source};
use crate::write::Work;
use crate::{Error, record};

impl Work<'_> {
    /// An EndpointSlice as the newest transaction has it.
    pub(crate) fn slice(&mut self, id: SliceId) -> Result<Option<Arc<v3::Slice>>, Error> {
        if let Some(slice) = self.state.slices.get(&id) {
            return Ok(Some(slice.clone()));
        }
        let Some(bytes) = self.tables.slices.get(key::id(id).as_slice())? else { return Ok(None) };
        let slice: Arc<v3::Slice> = Arc::new(record::decode(bytes.value())?);
        self.state.slices.put(id, slice.clone());
        Ok(Some(slice))
    }

    pub(crate) fn put_slice(
        &mut self,
        (object, id): (&[u8], SliceId),
        (source, namespace): (Source, &str),
        version: &ResourceVersion,
        slice: Slice,
    ) -> Result<(), Error> {
        let before = self.slice(id)?;
        let meta = self.intern(&v3::SliceMeta::from(&slice.meta))?;
        let service = self.refer_to_service(source, slice.service.as_ref(), before.as_deref())?;
        let mut named = Named {
            source,
            namespace,
            name_prefix: common_prefix(&slice),
            known: Known::of(before.as_deref()),
            texts: Texts::new(),
        };
        let mut endpoints = Vec::with_capacity(slice.endpoints.len());
        for (at, endpoint) in slice.endpoints.iter().enumerate() {
            endpoints.push(self.endpoint_record(at, endpoint, &mut named)?);
        }
        let Named { name_prefix, texts: taken, .. } = named;
        let now = Arc::new(v3::Slice {
            object: object.to_vec(),
            order: version.order(),
            service,
            v6: slice.family == model::Family::V6,
            meta,
            name_prefix: name_prefix.to_owned(),
            endpoints: distinct(endpoints),
        });
        // Those of endpoints that were said twice are perhaps not needed.
        let needed = texts(&now);
        for text in taken.into_values().filter(|text| !needed.contains(text)) {
            self.release(text)?;
        }
        self.tables.slices.insert(key::id(id), record::encode(&*now)?)?;
        self.state.slices.put(id, now.clone());
        self.slice_changed(id, before.as_deref(), Some(&now))?;
        match before {
            Some(before) => self.drop_slice_references(&before, service),
            None => Ok(()),
        }
    }

    /// Puts the subsets of Endpoints, each as a slice. Gives their numbers, which grow with their places.
    pub(crate) fn put_subsets(
        &mut self,
        object: &[u8],
        before: Vec<SliceId>,
        of: (Source, &str),
        version: &ResourceVersion,
        slices: Vec<Slice>,
    ) -> Result<Vec<SliceId>, Error> {
        let mut ids = Vec::with_capacity(slices.len());
        let mut known = before.into_iter();
        for slice in slices {
            let id = match known.next() {
                Some(id) => id,
                None => self.next_id(Kind::EndpointSlice as usize)?,
            };
            self.put_slice((object, id), of, version, slice)?;
            ids.push(id);
        }
        known.try_for_each(|id| self.delete_slice(id))?;
        Ok(ids)
    }

    pub(crate) fn delete_slice(&mut self, id: SliceId) -> Result<(), Error> {
        let Some(before) = self.slice(id)? else { return Ok(()) };
        self.tables.slices.remove(key::id(id).as_slice())?;
        self.state.slices.pop(&id);
        self.slice_changed(id, Some(&before), None)?;
        self.drop_slice_references(&before, None)
    }

    /// The number of the Service that a slice names, which remembers how many slices do.
    fn refer_to_service(
        &mut self,
        source: Source,
        name: Option<&ObjectName>,
        before: Option<&v3::Slice>,
    ) -> Result<Option<ServiceId>, Error> {
        let Some(name) = name else { return Ok(None) };
        let source = Source { kind: Kind::Service, ..source };
        let key = key::object(source, name);
        let mut service = self.object_or_stub(source, &key)?;
        if before.is_none_or(|before| before.service != Some(service.id)) {
            service.slices += 1;
            self.write_object(&key, &service)?;
            if service.slices == 1 {
                self.tables.service_keys.insert(key::id(service.id), key.clone())?;
            }
        }
        Ok(Some(service.id))
    }

    /// What an old version of a slice held on to; its successor names this Service.
    fn drop_slice_references(
        &mut self,
        before: &v3::Slice,
        service_now: Option<ServiceId>,
    ) -> Result<(), Error> {
        self.release(before.meta)?;
        for text in texts(before) {
            self.release(text)?;
        }
        if let Some(id) = before.service.filter(|id| Some(*id) != service_now) {
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
        at: usize,
        endpoint: &model::SliceEndpoint,
        named: &mut Named<'_>,
    ) -> Result<v3::SliceEndpoint, Error> {
        let mut text = |text: &String| match named.texts.get(text) {
            Some(id) => Ok(*id),
            None => {
                let id = self.intern_text(text)?;
                named.texts.insert(text.clone(), id);
                Ok::<u32, Error>(id)
            }
        };
        let zone = endpoint.zone.as_ref().map(&mut text).transpose()?.unwrap_or(0);
        let hints = endpoint.hints.iter().map(text).collect::<Result<_, _>>()?;
        let mut record = v3::SliceEndpoint {
            ip: endpoint.ip.into(),
            ready: endpoint.ready,
            workload: 0,
            target: 0,
            namespace: String::new(),
            name: String::new(),
            hostname: endpoint.hostname.clone(),
            zone,
            hints,
        };
        if let Some((target, name)) = target_of(endpoint) {
            record.target = target;
            record.workload = match named.known.get(at, target, name, named.namespace) {
                Some(id) => id,
                None => self.claimed_workload(named.source, target, name)?,
            };
            if name.namespace() != named.namespace {
                name.namespace().clone_into(&mut record.namespace);
            }
            name.name()[named.name_prefix.len()..].clone_into(&mut record.name);
        }
        Ok(record)
    }

    /// The number of a workload that a slice names; if it isn't known, a stub keeps the number for it.
    fn claimed_workload(
        &mut self,
        source: Source,
        target: u8,
        name: &ObjectName,
    ) -> Result<WorkloadId, Error> {
        let source = Source { kind: WORKLOADS[usize::from(target) - 1], ..source };
        let key = key::object(source, name);
        if let Some(stored) = self.object(&key)? {
            self.state.workloads.put(stored.id, Standing::of(&stored));
            return Ok(stored.id);
        }
        let stub = self.object_or_stub(source, &key)?;
        self.write_object(&key, &stub)?;
        Ok(stub.id)
    }
}

/// What the endpoints of a slice that is being written have in common.
struct Named<'s> {
    source: Source,
    namespace: &'s str,
    name_prefix: &'s str,
    known: Known<'s>,
    texts: Texts,
}

/// The texts of a slice's endpoints, each interned once for all of them.
type Texts = BTreeMap<String, u32>;

/// The workloads that the version before named, with their numbers.
struct Known<'b> {
    before: Option<&'b v3::Slice>,
    /// The hashes of their names, with their places; made when an endpoint isn't where it was.
    by_hash: OnceCell<Vec<(u64, usize)>>,
}

impl Known<'_> {
    fn of(before: Option<&v3::Slice>) -> Known<'_> {
        // Without a Service a slice makes no claims, and then numbers may be given up behind its back.
        let before = before.filter(|before| before.service.is_some());
        Known { before, by_hash: OnceCell::new() }
    }

    /// The number of a workload, which is perhaps at the same place as before.
    fn get(&self, at: usize, target: u8, name: &ObjectName, namespace: &str) -> Option<WorkloadId> {
        let before = self.before?;
        let suffix = name.name().strip_prefix(before.name_prefix.as_str())?;
        let namespace = if name.namespace() == namespace { "" } else { name.namespace() };
        let same = |it: &&v3::SliceEndpoint| {
            it.target == target && it.name == suffix && it.namespace == namespace
        };
        if let Some(endpoint) = before.endpoints.get(at).filter(same) {
            return Some(endpoint.workload);
        }
        let by_hash = self.by_hash.get_or_init(|| by_hash(before));
        let hash = hash([name.name(), ""]);
        let from = by_hash.partition_point(|(other, _)| *other < hash);
        let alike = by_hash[from..].iter().take_while(|(other, _)| *other == hash);
        let found = alike.map(|(_, at)| &before.endpoints[*at]).find(same);
        found.map(|endpoint| endpoint.workload)
    }
}

fn by_hash(slice: &v3::Slice) -> Vec<(u64, usize)> {
    let hash = |(at, it): (usize, &v3::SliceEndpoint)| (hash([&slice.name_prefix, &it.name]), at);
    let mut by_hash: Vec<_> = slice.endpoints.iter().enumerate().map(hash).collect();
    by_hash.sort_unstable();
    by_hash
}

/// A hash of a text in two parts, wherever it is cut.
fn hash([head, tail]: [&str; 2]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(head.as_bytes());
    hasher.write(tail.as_bytes());
    hasher.finish()
}

/// The kind of an endpoint's target, as records number it, and its name.
fn target_of(endpoint: &model::SliceEndpoint) -> Option<(u8, &ObjectName)> {
    match &endpoint.target {
        model::Target::Bare => None,
        model::Target::Pod(name) => Some((1, name)),
        model::Target::ExternalWorkload(name) => Some((2, name)),
    }
}

/// What the names of all of a slice's workloads begin with.
fn common_prefix(slice: &Slice) -> &str {
    let mut names = slice.endpoints.iter().filter_map(target_of).map(|(_, name)| name.name());
    let mut prefix = names.next().unwrap_or_default();
    for name in names {
        let same = prefix.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        // Names are ASCII; should one not be, it is cut before the character that differs.
        prefix = &prefix[..(0..=same).rfind(|end| prefix.is_char_boundary(*end)).unwrap_or(0)];
    }
    prefix
}

/// The interned texts that a slice refers to, each once.
pub(crate) fn texts(slice: &v3::Slice) -> BTreeSet<u32> {
    let mut texts = BTreeSet::new();
    for endpoint in &slice.endpoints {
        texts.insert(endpoint.zone);
        texts.extend(&endpoint.hints);
    }
    texts.remove(&0);
    texts
}

/// The name of the workload behind an endpoint.
pub(crate) fn name_of(slice: &v3::Slice, endpoint: &v3::SliceEndpoint) -> String {
    [slice.name_prefix.as_str(), &endpoint.name].concat()
}

/// The object key of the workload behind an endpoint.
pub(crate) fn workload_key(
    slice: &v3::Slice,
    endpoint: &v3::SliceEndpoint,
) -> Result<Vec<u8>, Error> {
    let kind = WORKLOADS[usize::from(endpoint.target.clamp(1, 2)) - 1];
    let damaged = |reason: String| Error::Damaged { what: "slice", reason };
    let own =
        key::object_name(&slice.object).ok_or_else(|| damaged("it has no name".to_owned()))?;
    let namespace = match endpoint.namespace.as_str() {
        "" => own.namespace(),
        other => other,
    };
    let name = ObjectName::new(namespace, name_of(slice, endpoint));
    let name = name.map_err(|error| damaged(error.to_string()))?;
    Ok(key::object(Source { kind, ..slice_source(slice)? }, &name))
}
