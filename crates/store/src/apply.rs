//! One change, applied to the records. What depends on them is rejoined at the end of the commit.

use model::{Change, Key, Kind, Object, ObjectName, ResourceVersion, Source};

use crate::addresses::Keys;
use crate::key::{self, ServiceId};
use crate::record::{convert, v3};
use crate::write::Work;
use crate::{Error, WakeKey, record};

/// The kinds that become workloads.
pub(crate) const WORKLOADS: [Kind; 2] = [Kind::Pod, Kind::ExternalWorkload];

/// Whose numbers a kind's objects have: those of all workloads are one sequence, since their claims are told
/// apart by them alone.
pub(crate) fn numbering(kind: Kind) -> Kind {
    if WORKLOADS.contains(&kind) { Kind::Pod } else { kind }
}

impl Work<'_> {
    pub(crate) fn apply(&mut self, change: Change) -> Result<(), Error> {
        if let Some(source) = change.source()
            && !self.is_stored(source.cluster)?
        {
            return Ok(());
        }
        match change {
            Change::Begin { source } => self.begin_listing(source)?,
            Change::Put { key, version, object } => self.put(key, version, object)?,
            Change::Keep { key } => {
                if let Some(found) = self.object(&key::object(key.source, &key.name))? {
                    self.mark(key.source, found.id);
                }
            }
            Change::Delete { key } => self.delete(key.source, &key.name)?,
            Change::End { source, version } => self.end_listing(source, version)?,
            Change::Forget { source } => self.forget(source)?,
            Change::Join { part, origin } => self.join_part(&part, origin)?,
            Change::Leave { id } => self.leave_part(id)?,
            Change::Checkpoint { source, version } => self.checkpoint(source, version)?,
        }
        Ok(())
    }

    /// The record of an object, stub or not.
    pub(crate) fn object(&self, key: &[u8]) -> Result<Option<v3::Object>, Error> {
        self.tables.objects.get(key)?.map(|bytes| record::decode(bytes.value())).transpose()
    }

    pub(crate) fn write_object(&mut self, key: &[u8], object: &v3::Object) -> Result<(), Error> {
        self.tables.objects.insert(key.to_vec(), record::encode(object)?)
    }

    /// The record of an object, or a new stub of it. A new stub isn't written.
    pub(crate) fn object_or_stub(
        &mut self,
        source: Source,
        key: &[u8],
    ) -> Result<v3::Object, Error> {
        match self.object(key)? {
            Some(object) => Ok(object),
            None => self.stub(source),
        }
    }

    fn stub(&mut self, source: Source) -> Result<v3::Object, Error> {
        let id = self.next_id(numbering(source.kind) as usize)?;
        let version = v3::Version::from("");
        Ok(v3::Object { id, version, slices: 0, vacant: 0, body: None })
    }

    fn put(&mut self, key: Key, version: ResourceVersion, object: Object) -> Result<(), Error> {
        let source = key.source;
        let bytes = key::object(source, &key.name);
        let found = self.object(&bytes)?;
        let stored = found.as_ref().is_some_and(|found| found.body.is_some());
        if !self.has_room_for(source, stored)? {
            return Ok(());
        }
        let before = self.object_bytes(source.cluster, &bytes)?;
        self.put_object(&bytes, key, found, version, object)?;
        let now = self.object_bytes(source.cluster, &bytes)?;
        self.count_bytes(source.cluster, before, now)
    }

    fn put_object(
        &mut self,
        bytes: &[u8],
        key: Key,
        found: Option<v3::Object>,
        version: ResourceVersion,
        object: Object,
    ) -> Result<(), Error> {
        let source = key.source;
        let known_before = found.is_some();
        let mut stored = match found {
            Some(found) => found,
            None => self.stub(source)?,
        };
        self.mark(source, stored.id);
        let known = std::mem::replace(&mut stored.version, v3::Version::from(&*version.0));
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
                let now = v3::Service::from(&service);
                let before = presence(before, &known);
                let changed = v3::Presence::There(now.clone());
                self.service_changed((bytes, &key), stored.id, &before, &changed)?;
                stored.body = Some(v3::Body::Service(now));
            }
            Object::Slice(slice) => {
                stored.body = Some(v3::Body::Slice);
                let source = (source, key.name.namespace());
                self.put_slice((bytes, stored.id), source, &version, slice)?;
            }
            Object::Subsets(slices) => {
                let before = match before {
                    Some(v3::Body::Subsets(ids)) => ids,
                    _ => Vec::new(),
                };
                let source = (source, key.name.namespace());
                let ids = self.put_subsets(bytes, before, source, &version, slices)?;
                stored.body = Some(v3::Body::Subsets(ids));
            }
            Object::Workload(workload) => {
                let before = (known_before, workload_of(before));
                return self.put_workload(bytes, &key, stored, before, workload);
            }
            Object::Node { zone } => {
                self.touched.insert(WakeKey::object(bytes));
                stored.body = Some(v3::Body::Node { zone });
            }
            Object::Owned { owner } => {
                stored.body = Some(convert::owned(owner.as_ref()));
                self.write_object(bytes, &stored)?;
                return self.owner_changed(source, &key.name);
            }
            Object::Profile(profile) => {
                self.touched.insert(WakeKey::object(bytes));
                stored.body = Some(v3::Body::Profile(profile.map(v3::Profile::from)));
            }
            Object::Link(link) => {
                let now = v3::Body::Link(link.map(v3::Link::from));
                self.link_changed(before.as_ref(), Some(&now));
                stored.body = Some(now);
            }
            Object::Server(server) => {
                stored.body = Some(v3::Body::Server(v3::Server::from(&server)));
                self.write_object(bytes, &stored)?;
                return self.servers_changed(source, key.name.namespace());
            }
        }
        self.write_object(bytes, &stored)
    }

    pub(crate) fn delete(&mut self, source: Source, name: &ObjectName) -> Result<(), Error> {
        let bytes = key::object(source, name);
        let Some(mut stored) = self.object(&bytes)? else { return Ok(()) };
        let used = self.object_bytes(source.cluster, &bytes)?;
        let Some(before) = stored.body.take() else { return Ok(()) };
        self.count_bytes(source.cluster, used, 0)?;
        self.done.deleted += 1;
        self.meta.objects[source.kind as usize] -= 1;
        let version = std::mem::replace(&mut stored.version, v3::Version::from(""));
        match before {
            v3::Body::Service(service) => {
                let key = Key { source, name: name.clone() };
                let before = v3::Presence::There(service);
                self.service_changed((&bytes, &key), stored.id, &before, &v3::Presence::Gone)?;
                // It tells one that was there from one that nobody has seen.
                stored.version = version;
                self.write_or_vacate(&bytes, stored)
            }
            v3::Body::Workload(workload) => {
                let owned = self.owned(source, name, Some(&workload))?;
                self.workload_moved(source, (Some(&workload), &owned), (None, &Keys::new()))?;
                self.release_workload(source, &workload)?;
                self.write_workload(&bytes, &stored)?;
                self.standing_changed(&stored, Some(&workload))?;
                self.drop_unclaimed(&bytes, &stored)
            }
            v3::Body::Slice => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.delete_slice(stored.id)
            }
            v3::Body::Subsets(ids) => {
                self.tables.objects.remove(bytes.as_slice())?;
                ids.into_iter().try_for_each(|id| self.delete_slice(id))
            }
            v3::Body::Node { .. } | v3::Body::Profile(_) => {
                self.touched.insert(WakeKey::object(&bytes));
                self.tables.objects.remove(bytes.as_slice())?;
                Ok(())
            }
            v3::Body::Link(_) => {
                self.link_changed(Some(&before), None);
                self.tables.objects.remove(bytes.as_slice())?;
                Ok(())
            }
            v3::Body::Owned { .. } => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.owner_changed(source, name)
            }
            v3::Body::Server(_) => {
                self.tables.objects.remove(bytes.as_slice())?;
                self.servers_changed(source, name.namespace())
            }
        }
    }

    /// Writes a Service back. One that neither exists nor is named by a slice is remembered for as long as the
    /// undo log reaches back to when it was.
    pub(crate) fn write_or_vacate(
        &mut self,
        key: &[u8],
        mut service: v3::Object,
    ) -> Result<(), Error> {
        if service.body.is_none() && service.slices == 0 {
            service.vacant = self.revision.0;
            self.tables.vacant.insert(key::vacant(self.revision, key), Vec::new())?;
        }
        self.write_object(key, &service)
    }

    /// A workload that doesn't exist and that no slice names is forgotten.
    pub(crate) fn drop_unclaimed(&mut self, key: &[u8], stored: &v3::Object) -> Result<(), Error> {
        if stored.body.is_none() && self.claims(&key::workload_claims(0, stored.id), 1)?.is_empty()
        {
            self.tables.objects.remove(key)?;
        }
        Ok(())
    }

    fn service_changed(
        &mut self,
        (bytes, key): (&[u8], &Key),
        id: ServiceId,
        before: &v3::Presence,
        now: &v3::Presence,
    ) -> Result<(), Error> {
        if before != now {
            self.undo_object(id, before)?;
            self.touched.insert(WakeKey::object(bytes));
            self.touched.insert(WakeKey::only_object(bytes));
            let (before, now) = (before.service(), now.service());
            self.remotes_changed(key.source, &key.name, before, now)?;
            self.service_moved(key.source, &key.name, before, now)?;
        }
        Ok(())
    }
}

/// What a record says of a Service whose version was this.
pub(crate) fn presence(body: Option<v3::Body>, version: &v3::Version) -> v3::Presence {
    match body {
        Some(v3::Body::Service(service)) => v3::Presence::There(service),
        _ if *version == v3::Version::from("") => v3::Presence::Unseen,
        _ => v3::Presence::Gone,
    }
}

impl v3::Presence {
    /// The Service, if it is there.
    pub(crate) fn service(&self) -> Option<&v3::Service> {
        match self {
            v3::Presence::There(service) => Some(service),
            v3::Presence::Unseen | v3::Presence::Gone => None,
        }
    }
}

fn workload_of(body: Option<v3::Body>) -> Option<v3::Workload> {
    match body {
        Some(v3::Body::Workload(workload)) => Some(workload),
        _ => None,
    }
}
