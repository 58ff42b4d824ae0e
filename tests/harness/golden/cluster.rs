//! What an API server would hold, and what it would tell its watchers: the objects of a case as changes.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use ingest::objects::{decode, kind_of};
use model::{Change, ClusterId, EndpointsFrom, Key, Kind, ObjectName, ResourceVersion, Source};
use serde_json::{Value, json};

/// The objects of the kinds that we keep, with a version that counts every write.
pub struct Cluster {
    endpoints: EndpointsFrom,
    version: u64,
    objects: BTreeMap<(Kind, ObjectName), Value>,
}

impl Cluster {
    /// One without objects, whose watchers look at these.
    pub fn new(endpoints: EndpointsFrom) -> Cluster {
        Cluster { endpoints, version: 0, objects: BTreeMap::new() }
    }

    /// The first listing of everything, empty kinds too.
    pub fn list(&mut self, objects: &[Value]) -> Result<Vec<Change>> {
        let puts = self.apply(objects)?;
        Ok(self.listed(puts))
    }

    /// A listing of what there is.
    pub fn listing(&self) -> Result<Vec<Change>> {
        let put = |((kind, name), object): (&(Kind, ObjectName), &Value)| put(*kind, name, object);
        Ok(self.listed(self.objects.iter().map(put).collect::<Result<_>>()?))
    }

    fn listed(&self, puts: Vec<Change>) -> Vec<Change> {
        let version = self.now();
        let begins = self.endpoints.kinds().map(|kind| Change::Begin { source: source(kind) });
        let end = |kind| Change::End { source: source(kind), version: version.clone() };
        let ends = self.endpoints.kinds().map(end);
        // The puts' own checkpoints would be of a watch.
        let puts = puts.into_iter().filter(|change| !matches!(change, Change::Checkpoint { .. }));
        begins.chain(puts).chain(ends).collect()
    }

    /// Creates or replaces objects.
    pub fn apply(&mut self, objects: &[Value]) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        for object in objects {
            let Some(kind) = kind(object)?.filter(|kind| self.watched(*kind)) else { continue };
            let name = name(object)?;
            let mut object = object.clone();
            self.version += 1;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            if let (None, Some(old)) =
                (object.get("status"), self.objects.get(&(kind, name.clone())))
            {
                // A write of the object itself leaves its status alone.
                object["status"] = old["status"].clone();
            }
            if let Some(old) = self.objects.get(&(kind, name.clone())) {
                let begun = old["metadata"]["deletionTimestamp"].clone();
                if !begun.is_null() && !is_held(&object) {
                    self.remove(kind, &name, &mut changes);
                    continue;
                }
                if !begun.is_null() {
                    object["metadata"]["deletionTimestamp"] = begun;
                }
            }
            self.write(kind, name, object, &mut changes)?;
        }
        Ok(changes)
    }

    fn write(
        &mut self,
        kind: Kind,
        name: ObjectName,
        object: Value,
        changes: &mut Vec<Change>,
    ) -> Result<()> {
        changes.push(put(kind, &name, &object)?);
        self.objects.insert((kind, name), object);
        changes.push(Change::Checkpoint { source: source(kind), version: self.now() });
        Ok(())
    }

    /// What has finalizers is only about to go.
    fn delete_or_hold(
        &mut self,
        kind: Kind,
        name: &ObjectName,
        changes: &mut Vec<Change>,
    ) -> Result<()> {
        let Some(mut object) = self.objects.get(&(kind, name.clone())).cloned() else {
            return Ok(());
        };
        if !is_held(&object) {
            self.remove(kind, name, changes);
            return Ok(());
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object["metadata"]["deletionTimestamp"] = json!("2026-12-01T00:00:00Z");
        self.write(kind, name.clone(), object, changes)
    }

    /// Deletes objects, given as Kind/namespace/name.
    pub fn delete(&mut self, objects: &[String]) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        for object in objects {
            let parts: Vec<&str> = object.split('/').collect();
            let (kind, namespace, name) = match parts[..] {
                [kind, name] => (kind, "", name),
                [kind, namespace, name] => (kind, namespace, name),
                _ => anyhow::bail!("{object} is not Kind/namespace/name"),
            };
            let name = ObjectName::new(namespace, name)?;
            match named(kind) {
                // The API server deletes the Endpoints of a Service with it.
                Some(Kind::Service) => {
                    self.remove(Kind::Endpoints, &name, &mut changes);
                    self.remove(Kind::Service, &name, &mut changes);
                }
                Some(kind) => self.delete_or_hold(kind, &name, &mut changes)?,
                None => {}
            }
        }
        Ok(changes)
    }

    fn remove(&mut self, kind: Kind, name: &ObjectName, changes: &mut Vec<Change>) {
        if self.objects.remove(&(kind, name.clone())).is_some() {
            self.version += 1;
            let key = Key { source: source(kind), name: name.clone() };
            changes.push(Change::Delete { key });
            changes.push(Change::Checkpoint { source: source(kind), version: self.now() });
        }
    }

    fn watched(&self, kind: Kind) -> bool {
        kind != self.endpoints.other_kind()
    }

    fn now(&self) -> ResourceVersion {
        ResourceVersion(self.version.to_string())
    }
}

/// Has it finalizers?
fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty())
}

fn source(kind: Kind) -> Source {
    Source { cluster: ClusterId::LOCAL, kind }
}

fn named(name: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name)
}

/// Its kind, if it is one that we keep. Some objects leave their API version out.
fn kind(object: &Value) -> Result<Option<Kind>> {
    let kind = object["kind"].as_str().context("an object without kind")?;
    Ok(match object["apiVersion"].as_str() {
        Some(version) => kind_of(version, kind),
        None => named(kind),
    })
}

fn name(object: &Value) -> Result<ObjectName> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().context("an object without name")?;
    Ok(ObjectName::new(metadata["namespace"].as_str().unwrap_or_default(), name)?)
}

fn put(kind: Kind, name: &ObjectName, object: &Value) -> Result<Change> {
    let key = Key { source: source(kind), name: name.clone() };
    Ok(match decode(ClusterId::LOCAL, kind, &object.to_string()) {
        Ok(observed) => {
            anyhow::ensure!(observed.key == key, "{key} was read as {}", observed.key);
            Change::Put { key, version: observed.version, object: observed.object }
        }
        Err(_) => Change::Keep { key },
    })
}
