//! Links to other clusters, the parts of these that are stored, and the Services that are answered with endpoints from there.

use std::collections::BTreeSet;

use model::{ClusterId, EndpointsFrom, Kind, Link, ObjectName, Origin, Part, Source, StoredPart};

use crate::key;
use crate::record::{self, convert, v3};
use crate::write::Work;
use crate::{Error, Snapshot, WakeKey};

/// Parts of clusters that left and whose objects are looked for in one transaction.
const LEFT_MAX: usize = 64;

impl Work<'_> {
    /// Is what is said of a cluster stored? What was on its way when a part left comes too late.
    pub(crate) fn is_stored(&mut self, cluster: ClusterId) -> Result<bool, Error> {
        if cluster == ClusterId::LOCAL {
            return Ok(true);
        }
        if self.state.parts.is_none() {
            let mut parts = BTreeSet::new();
            for entry in self.tables.parts.iter()? {
                let v3::Part { id, .. } = record::decode(entry?.1.value())?;
                parts.insert(id);
            }
            self.state.parts = Some(parts);
        }
        Ok(self.state.parts.as_ref().is_some_and(|parts| parts.contains(&cluster.0)))
    }

    /// A part is stored from here on, under a number of its own. One of another cluster with that name leaves.
    pub(crate) fn join_part(&mut self, part: &Part, origin: Origin) -> Result<(), Error> {
        let Origin { uid, trust_domain } = origin;
        let bytes = key::part(part);
        let stored = self.part(&bytes)?;
        let id = match stored {
            Some(stored) if stored.uid == uid => {
                if stored.trust_domain == trust_domain {
                    return Ok(());
                }
                stored.id
            }
            other => {
                if let Some(other) = other {
                    self.leave_part(ClusterId(other.id))?;
                }
                let Some(id) = self.free_part_id()? else {
                    tracing::error!(%part, "too many parts of linked clusters; it is not stored");
                    return Ok(());
                };
                self.write_part_id(id, part, None)?;
                self.state.parts = None;
                id
            }
        };
        let record = record::encode(&v3::Part { id, uid, trust_domain })?;
        self.tables.parts.insert(bytes, record)?;
        self.part_changed(part);
        Ok(())
    }

    /// A part is not stored any more. Its objects go bit by bit; nobody finds them from here on.
    pub(crate) fn leave_part(&mut self, id: ClusterId) -> Result<(), Error> {
        let Some(v3::PartId { cluster, namespace, left: None }) = self.part_id(id.0)? else {
            return Ok(());
        };
        let part = Part { cluster, namespace };
        self.tables.parts.remove(key::part(&part).as_slice())?;
        self.write_part_id(id.0, &part, Some(self.revision.0))?;
        self.state.left = true;
        self.state.parts = None;
        self.part_changed(&part);
        self.forget_part(id)
    }

    /// What is left of parts that have left: the end of the process may have cut their sweep off.
    pub(crate) fn forget_left_parts(&mut self) -> Result<(), Error> {
        for id in self.left_parts(u64::MAX)? {
            if self.has_objects(id)? {
                self.forget_part(id)?;
            }
        }
        Ok(())
    }

    /// Gives up the numbers of parts of which nothing is left, in the undo log neither.
    pub(crate) fn free_part_ids(&mut self, trimmed: u64) -> Result<(), Error> {
        // There is mostly none, and this is asked with each trim.
        if !self.state.left || self.left_parts(u64::MAX)?.is_empty() {
            self.state.left = false;
            return Ok(());
        }
        for id in self.left_parts(trimmed)? {
            if !self.has_objects(id)? {
                self.tables.part_ids.remove(key::cluster(id).as_slice())?;
            }
        }
        Ok(())
    }

    /// A Service of the local cluster is answered from elsewhere now.
    pub(crate) fn remotes_changed(
        &mut self,
        source: Source,
        name: &ObjectName,
        before: Option<&v3::Service>,
        now: Option<&v3::Service>,
    ) -> Result<(), Error> {
        if source.cluster != ClusterId::LOCAL {
            return Ok(());
        }
        let (before, now) = (remotes(name, before), remotes(name, now));
        if before != now {
            self.touched.insert(WakeKey::links());
        }
        self.tables.remotes.exchange(&before, &now)
    }

    /// A link is another one now.
    pub(crate) fn link_changed(&mut self, before: Option<&v3::Body>, now: Option<&v3::Body>) {
        self.touched.insert(WakeKey::links());
        for body in [before, now].into_iter().flatten() {
            if let v3::Body::Link(Ok(link)) = body {
                self.touched.insert(WakeKey::link(&link.cluster));
            }
        }
    }

    /// More is known of a part than before, if the source is one's.
    pub(crate) fn part_listed(&mut self, source: Source) -> Result<(), Error> {
        if let Some(v3::PartId { cluster, namespace, .. }) = self.part_id(source.cluster.0)? {
            self.part_changed(&Part { cluster, namespace });
        }
        Ok(())
    }

    fn part_changed(&mut self, part: &Part) {
        self.touched.insert(WakeKey::links());
        self.touched.insert(WakeKey::link(&part.cluster));
    }

    /// The linked cluster that a number is of, or was; empty for the local one.
    pub(crate) fn cluster_name(&self, id: ClusterId) -> Result<String, Error> {
        match id {
            ClusterId::LOCAL => Ok(String::new()),
            linked => Ok(self.part_id(linked.0)?.map(|part| part.cluster).unwrap_or_default()),
        }
    }

    fn part(&self, key: &[u8]) -> Result<Option<v3::Part>, Error> {
        self.tables.parts.get(key)?.map(|bytes| record::decode(bytes.value())).transpose()
    }

    fn part_id(&self, id: u16) -> Result<Option<v3::PartId>, Error> {
        let found = self.tables.part_ids.get(key::cluster(ClusterId(id)).as_slice())?;
        found.map(|bytes| record::decode(bytes.value())).transpose()
    }

    fn write_part_id(&mut self, id: u16, part: &Part, left: Option<u64>) -> Result<(), Error> {
        let Part { cluster, namespace } = part.clone();
        let bytes = record::encode(&v3::PartId { cluster, namespace, left })?;
        self.tables.part_ids.insert(key::cluster(ClusterId(id)), bytes)
    }

    /// The first number that no part has; `None`: all are taken.
    fn free_part_id(&self) -> Result<Option<u16>, Error> {
        let mut free = ClusterId::LOCAL.0.checked_add(1);
        for entry in self.tables.part_ids.iter()? {
            let taken = key::KeyReader(entry?.0.value()).u16();
            match free {
                Some(id) if taken == free => free = id.checked_add(1),
                _ => break,
            }
        }
        Ok(free)
    }

    /// Parts that left up to a revision; a bounded number of them.
    fn left_parts(&self, upto: u64) -> Result<Vec<ClusterId>, Error> {
        let mut left = Vec::new();
        for entry in self.tables.part_ids.iter()? {
            let (id, value) = entry?;
            let part: v3::PartId = record::decode(value.value())?;
            if part.left.is_some_and(|left| left <= upto) && left.len() < LEFT_MAX {
                left.push(ClusterId(key::KeyReader(id.value()).u16().unwrap_or(0)));
            }
        }
        Ok(left)
    }

    fn has_objects(&self, id: ClusterId) -> Result<bool, Error> {
        let prefix = key::cluster(id);
        let end = key::prefix_end(&prefix);
        Ok(self.tables.objects.range(&prefix, &end)?.next().transpose()?.is_some())
    }

    fn forget_part(&mut self, cluster: ClusterId) -> Result<(), Error> {
        for kind in Kind::ALL {
            self.forget(Source { cluster, kind })?;
        }
        Ok(())
    }
}

/// The keys of remotes that a Service has.
pub(crate) fn remotes(name: &ObjectName, service: Option<&v3::Service>) -> BTreeSet<Vec<u8>> {
    let Some(service) = service else { return BTreeSet::new() };
    let discovery = convert::discovery(service.discovery.clone());
    let remotes = discovery.remotes(name.namespace()).into_iter();
    remotes.map(|remote| key::remote(&remote.cluster, name)).collect()
}

fn stored_part(part: Part, v3::Part { id, uid, trust_domain }: v3::Part) -> StoredPart {
    StoredPart { part, id: ClusterId(id), origin: Origin { uid, trust_domain } }
}

impl Snapshot {
    /// The Secrets of a namespace that are to declare links, in the order of their names.
    pub fn links(
        &self,
        namespace: &str,
        visit: &mut dyn FnMut(ObjectName, Result<Link, String>),
    ) -> Result<(), Error> {
        let prefix = key::object_namespace(ClusterId::LOCAL, Kind::Secret, namespace);
        let end = key::prefix_end(&prefix);
        for entry in self.tables.objects()?.range(prefix.as_slice()..end.as_slice())? {
            let (key, value) = entry?;
            let object: v3::Object = record::decode(value.value())?;
            if let (Some(name), Some(v3::Body::Link(link))) =
                (key::object_name(key.value()), object.body)
            {
                visit(name, link.map(Link::from));
            }
        }
        Ok(())
    }

    /// The link to a cluster: of several Secrets that declare one, the first by name.
    pub fn link(&self, namespace: &str, cluster: &str) -> Result<Option<Link>, Error> {
        let mut found = None;
        self.links(namespace, &mut |_, link| {
            if let Ok(link) = link
                && link.cluster == cluster
            {
                found.get_or_insert(link);
            }
        })?;
        Ok(found)
    }

    /// A part of a linked cluster, if it is stored.
    pub fn part(&self, part: &Part) -> Result<Option<StoredPart>, Error> {
        let Some(bytes) = self.tables.parts()?.get(key::part(part).as_slice())? else {
            return Ok(None);
        };
        let record: v3::Part = record::decode(bytes.value())?;
        Ok(Some(stored_part(part.clone(), record)))
    }

    /// What is stored of a namespace of a linked cluster: by itself, or with all of the cluster.
    pub fn part_with(&self, cluster: &str, namespace: &str) -> Result<Option<StoredPart>, Error> {
        for namespace in [namespace, ""] {
            let part = Part { cluster: cluster.to_owned(), namespace: namespace.to_owned() };
            if let Some(stored) = self.part(&part)? {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    /// All parts of linked clusters that are stored, by cluster and namespace.
    pub fn parts(&self) -> Result<Vec<StoredPart>, Error> {
        let mut parts = Vec::new();
        let prefix_end = key::prefix_end(&[]);
        for entry in self.tables.parts()?.range::<&[u8]>(..prefix_end.as_slice())? {
            let (key, value) = entry?;
            let record: v3::Part = record::decode(value.value())?;
            parts.extend(key::read_part(key.value()).map(|part| stored_part(part, record)));
        }
        Ok(parts)
    }

    /// The namespaces of other clusters from which local Services are answered. Reads one row for each.
    pub fn parts_in_use(&self) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        let (mut from, end) = (Vec::new(), key::prefix_end(&[]));
        loop {
            let mut range = self.tables.remotes()?.range(from.as_slice()..end.as_slice())?;
            let Some(first) = range.next().transpose()? else { return Ok(parts) };
            let damaged = || Error::Damaged { what: "remotes key", reason: format!("{from:?}") };
            let part = key::read_remote(first.0.value()).ok_or_else(damaged)?;
            from = key::prefix_end(&key::remotes_of(&part));
            parts.push(part);
        }
    }

    /// Has a part been listed to its end once?
    pub fn is_listed(&self, id: ClusterId, endpoints: EndpointsFrom) -> Result<bool, Error> {
        for kind in endpoints.kinds_of_linked() {
            if self.checkpoint(Source { cluster: id, kind })?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
