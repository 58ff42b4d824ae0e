//! Templates and the metadata that they join to: changed by the workload, its owner, and the Servers of its
//! namespace, and by nothing else.

use model::{ClusterId, Kind, ObjectName, OwnerRef, Server, Source, Template};

use crate::key::KeyReader;
use crate::record::{convert, v3};
use crate::write::Work;
use crate::{Error, WakeKey, key, record};

/// What a template joins to, as far as rows need it.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    /// The interned metadata.
    pub(crate) metadata: u32,
    /// What the names of its workloads begin with.
    pub(crate) name_prefix: model::Text,
    /// The ports of the host that its pods have.
    pub(crate) host_ports: std::sync::Arc<[u16]>,
}

impl Work<'_> {
    /// The template's number, with one reference more.
    pub(crate) fn refer_to_template(
        &mut self,
        source: Source,
        template: &Template,
    ) -> Result<u32, Error> {
        let known = self.state.templates.get(template).copied();
        if let Some((_, id)) = known.filter(|(cluster, _)| *cluster == source.cluster) {
            self.refer(id)?;
            return Ok(id);
        }
        let id = self.intern(&convert::template(source.cluster, template))?;
        let key = template_key(source.cluster, template, id);
        if self.template_metadata(&key)?.is_none() {
            let servers = self.servers(source, &template.namespace)?;
            let metadata = self.join(source, template, &servers)?;
            self.tables.templates.insert(key, metadata.to_be_bytes().to_vec())?;
        }
        self.state.templates.put(template.clone(), (source.cluster, id));
        Ok(id)
    }

    /// One reference less to a template; the last one takes its metadata along.
    pub(crate) fn release_template(&mut self, source: Source, id: u32) -> Result<(), Error> {
        if self.release(id)? {
            let template = Template::from(self.interned::<v3::Template>(id)?);
            let key = template_key(source.cluster, &template, id);
            let metadata = self.template_metadata(&key)?;
            self.tables.templates.remove(key.as_slice())?;
            self.state.templates.pop(&template);
            self.state.joined.pop(&id);
            if let Some(metadata) = metadata {
                self.release(metadata)?;
            }
        }
        Ok(())
    }

    /// What a template joins to now.
    pub(crate) fn joined(&mut self, id: u32) -> Result<Joined, Error> {
        if let Some(known) = self.state.joined.get(&id) {
            return Ok(known.clone());
        }
        let record = self.interned::<v3::Template>(id)?;
        let cluster = ClusterId(record.cluster);
        let template = Template::from(record);
        let found = self.template_metadata(&template_key(cluster, &template, id))?;
        let missing =
            || Error::Damaged { what: "template", reason: format!("{id} joins to nothing") };
        let metadata = found.ok_or_else(missing)?;
        let host_ports = host_ports(&template).into();
        let joined = Joined { metadata, name_prefix: template.name_prefix.into(), host_ports };
        self.state.joined.put(id, joined.clone());
        Ok(joined)
    }

    fn template_metadata(&self, key: &[u8]) -> Result<Option<u32>, Error> {
        let found = self.tables.templates.get(key)?;
        Ok(found.and_then(|bytes| KeyReader(bytes.value()).u32()))
    }

    /// Joins a template, and refers to the result.
    fn join(
        &mut self,
        source: Source,
        template: &Template,
        servers: &[Server],
    ) -> Result<u32, Error> {
        let owner = self.owner_of_owner(source, template)?;
        let owner = owner.as_ref().map(Option::as_ref);
        let metadata = (self.config.join)(template, owner, servers);
        self.intern(&v3::Metadata::from(&metadata))
    }

    /// `None`: the owner's object isn't known. Only ReplicaSets and Jobs are kept.
    fn owner_of_owner(
        &self,
        source: Source,
        template: &Template,
    ) -> Result<Option<Option<OwnerRef>>, Error> {
        let Some(owner) = &template.owner else { return Ok(None) };
        let kinds = [Kind::ReplicaSet, Kind::Job];
        let Some(kind) = kinds.into_iter().find(|kind| kind.name() == owner.kind) else {
            return Ok(None);
        };
        let Ok(name) = ObjectName::new(template.namespace.as_str(), owner.name.as_str()) else {
            return Ok(None);
        };
        match self.object(&key::object(Source { kind, ..source }, &name))?.and_then(|o| o.body) {
            Some(v3::Body::Owned { owner }) => Ok(Some(owner.map(OwnerRef::from))),
            _ => Ok(None),
        }
    }

    /// The Servers of a namespace.
    fn servers(&self, source: Source, namespace: &str) -> Result<Vec<Server>, Error> {
        let prefix = key::object_namespace(source.cluster, Kind::Server, namespace);
        let end = key::prefix_end(&prefix);
        let mut servers = Vec::new();
        for entry in self.tables.objects.range(&prefix, &end)? {
            let object: v3::Object = record::decode(entry?.1.value())?;
            if let Some(v3::Body::Server(server)) = object.body {
                servers.push(Server::from(server));
            }
        }
        Ok(servers)
    }

    /// A ReplicaSet or Job has come, changed or gone: the templates that it owns join anew.
    pub(crate) fn owner_changed(&mut self, source: Source, name: &ObjectName) -> Result<(), Error> {
        let kind = source.kind.name();
        let prefix = key::template_owner(source.cluster, name.namespace(), kind, name.name());
        self.rejoin_templates(source, name.namespace(), &prefix)
    }

    /// A Server has come, changed or gone: the templates of its namespace join anew.
    pub(crate) fn servers_changed(&mut self, source: Source, namespace: &str) -> Result<(), Error> {
        let prefix = key::template_namespace(source.cluster, namespace);
        self.rejoin_templates(source, namespace, &prefix)
    }

    fn rejoin_templates(
        &mut self,
        source: Source,
        namespace: &str,
        prefix: &[u8],
    ) -> Result<(), Error> {
        let servers = self.servers(source, namespace)?;
        let (mut from, end) = (prefix.to_vec(), key::prefix_end(prefix));
        while let Some((key, before)) = self.next_template(&from, &end)? {
            let id = KeyReader(key::rest(&key, key.len().saturating_sub(4))).u32().unwrap_or(0);
            let template = Template::from(self.interned::<v3::Template>(id)?);
            let now = self.join(source, &template, &servers)?;
            self.release(before)?;
            if now != before {
                self.tables.templates.insert(key.clone(), now.to_be_bytes().to_vec())?;
                self.state.joined.pop(&id);
                self.touched.insert(WakeKey::template(id));
                self.dirty_claims(&key::id(id))?;
            }
            from = [key.as_slice(), &[0]].concat();
        }
        Ok(())
    }

    fn next_template(&self, from: &[u8], end: &[u8]) -> Result<Option<(Vec<u8>, u32)>, Error> {
        let Some(entry) = self.tables.templates.range(from, end)?.next() else { return Ok(None) };
        let (key, value) = entry?;
        Ok(Some((key.value().to_vec(), KeyReader(value.value()).u32().unwrap_or(0))))
    }
}

/// The ports of the host that a template's pods have.
pub(crate) fn host_ports(template: &Template) -> Vec<u16> {
    template.ports.iter().filter_map(|port| port.host_port).collect()
}

pub(crate) fn template_key(cluster: ClusterId, template: &Template, id: u32) -> Vec<u8> {
    let (kind, name) = match &template.owner {
        Some(owner) => (owner.kind.as_str(), owner.name.as_str()),
        None => ("", ""),
    };
    let prefix = key::template_owner(cluster, &template.namespace, kind, name);
    [prefix.as_slice(), &id.to_be_bytes()].concat()
}
