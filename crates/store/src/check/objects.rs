//! Objects: their numbers and counts, the slices that name Services, and the undo log's own counts.

use std::collections::BTreeMap;

use model::{ClusterId, Kind, ObjectName, Part, Source, Template};

use super::Faults;
use crate::addresses::instances;
use crate::key::{self, KeyReader, Undone};
use crate::record::{self, v3};
use crate::template::host_ports;
use crate::write::Work;
use crate::{Error, addresses, apply, linked};

impl Work<'_> {
    pub(super) fn check_objects(&self, faults: &mut Faults) -> Result<(), Error> {
        let mut objects = [0u64; 16];
        let mut slices = 0;
        let mut named = 0;
        let mut addresses = 0;
        for entry in self.tables.objects.iter()? {
            let (key, value) = entry?;
            let object: v3::Object = record::decode(value.value())?;
            let kind = key.value().get(2).copied().and_then(kind);
            let (Some(kind), Some(name)) = (kind, key::object_name(key.value())) else {
                faults.add("objects", format_args!("{:?} is no key", key.value()));
                continue;
            };
            if object.id == 0 || object.id > self.meta.ids[apply::numbering(kind) as usize] {
                let id = object.id;
                faults.add("objects", format_args!("{name}: number {id} was never given out"));
            }
            objects[kind as usize] += u64::from(object.body.is_some());
            let cluster = ClusterId(KeyReader(key.value()).u16().unwrap_or(0));
            let source = Source { cluster, kind };
            addresses += self.check_owned(source, &name, object.body.as_ref(), faults)?;
            let own = match object.body {
                Some(v3::Body::Slice) => vec![object.id],
                Some(v3::Body::Subsets(ids)) => ids,
                _ => Vec::new(),
            };
            slices += own.len() as u64;
            for id in own {
                self.check_slice(id, key.value(), faults)?;
            }
            if object.slices > 0 {
                named += u64::from(object.slices);
                let found = self.tables.service_keys.get(key::id(object.id).as_slice())?;
                if found.is_none_or(|found| found.value() != key.value()) {
                    faults.add("service_keys", format_args!("{name} is not there"));
                }
            }
        }
        for kind in Kind::ALL {
            let (is, should) = (self.meta.objects[kind as usize], objects[kind as usize]);
            faults.equal("meta", kind.name(), is, should);
        }
        faults.equal("slices", "rows", self.tables.slices.len()?, slices);
        faults.equal("addresses", "rows", self.tables.addresses.len()?, addresses);
        self.check_remotes(faults)?;
        self.check_parts(faults)?;
        let (mut naming, mut hostnames) = (0, 0);
        for entry in self.tables.slices.iter()? {
            let (id, slice) = entry?;
            let slice: v3::Slice = record::decode(slice.value())?;
            naming += u64::from(slice.service.is_some());
            let id = KeyReader(id.value()).u32().unwrap_or(0);
            for key in instances(id, Some(&slice)) {
                hostnames += 1;
                if self.tables.instances.get(&key)?.is_none() {
                    faults.add("instances", format_args!("{key:?} is not there"));
                }
            }
        }
        faults.equal("instances", "rows", self.tables.instances.len()?, hostnames);
        faults.equal("objects", "slices that name a Service", named, naming);
        self.check_services(faults)
    }

    /// Each local Service is found by the namespaces of other clusters that it is answered from.
    fn check_remotes(&self, faults: &mut Faults) -> Result<(), Error> {
        let prefix = key::source(Source { cluster: ClusterId::LOCAL, kind: Kind::Service });
        let mut remotes = 0;
        for entry in self.tables.objects.range(&prefix, &key::prefix_end(&prefix))? {
            let (key, value) = entry?;
            let object: v3::Object = record::decode(value.value())?;
            let (Some(name), Some(v3::Body::Service(service))) =
                (key::object_name(key.value()), object.body)
            else {
                continue;
            };
            for key in linked::remotes(&name, Some(&service)) {
                remotes += 1;
                if self.tables.remotes.get(&key)?.is_none() {
                    faults.add("remotes", format_args!("{key:?} of {name} is not there"));
                }
            }
        }
        faults.equal("remotes", "rows", self.tables.remotes.len()?, remotes);
        Ok(())
    }

    /// Each part that is stored has its number, and each number that has not left its part.
    fn check_parts(&self, faults: &mut Faults) -> Result<(), Error> {
        let mut there = 0;
        for entry in self.tables.part_ids.iter()? {
            let (id, part) = entry?;
            let v3::PartId { cluster, namespace, left } = record::decode(part.value())?;
            if left.is_some() {
                continue;
            }
            there += 1;
            let part = Part { cluster, namespace };
            let found = self.tables.parts.get(key::part(&part).as_slice())?;
            let found = found.map(|found| record::decode::<v3::Part>(found.value())).transpose()?;
            if found.map(|found| found.id) != KeyReader(id.value()).u16() {
                faults.add("parts", format_args!("{part} has another number"));
            }
        }
        faults.equal("parts", "rows", self.tables.parts.len()?, there);
        Ok(())
    }

    /// Gives how many addresses an object owns.
    fn check_owned(
        &self,
        source: Source,
        name: &ObjectName,
        body: Option<&v3::Body>,
        faults: &mut Faults,
    ) -> Result<u64, Error> {
        let owned = match body {
            Some(v3::Body::Workload(workload)) => {
                let template = Template::from(self.interned::<v3::Template>(workload.template)?);
                let host_ports = host_ports(&template);
                addresses::of_workload(source, name, workload, &template.name_prefix, &host_ports)
            }
            Some(v3::Body::Service(service)) => addresses::of_service(source, name, Some(service)),
            _ => return Ok(0),
        };
        for key in &owned {
            if self.tables.addresses.get(key)?.is_none() {
                faults.add("addresses", format_args!("{key:?} of {name} is not there"));
            }
        }
        Ok(owned.len() as u64)
    }

    /// A Service is remembered for as long as anything has its number.
    fn check_services(&self, faults: &mut Faults) -> Result<(), Error> {
        for entry in self.tables.service_keys.iter()? {
            let (id, key) = entry?;
            let id = KeyReader(id.value()).u32().unwrap_or(0);
            if self.object(key.value())?.is_none_or(|object| object.id != id) {
                faults.add("service_keys", format_args!("{id} leads to another object"));
            }
        }
        for entry in self.tables.vacant.iter()? {
            let key = entry?.0;
            let object = key.value().get(8..).unwrap_or_default();
            if self.object(object)?.is_none() {
                faults.add("vacant", format_args!("{object:?} is not there"));
            }
        }
        Ok(())
    }

    fn check_slice(&self, id: u32, object: &[u8], faults: &mut Faults) -> Result<(), Error> {
        let Some(bytes) = self.tables.slices.get(key::id(id).as_slice())? else {
            faults.add("slices", format_args!("{id} is not there"));
            return Ok(());
        };
        let slice: v3::Slice = record::decode(bytes.value())?;
        if slice.object != object {
            faults.add("slices", format_args!("{id} belongs to another object"));
        }
        Ok(())
    }

    pub(super) fn check_undo(&self, faults: &mut Faults) -> Result<(), Error> {
        let mut by_revision: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for entry in self.tables.undo.iter()? {
            let (key, value) = entry?;
            let revision = key.value().get(4..).and_then(|rest| KeyReader(rest).u64());
            let (Some(revision), Some(what)) = (revision, key::undone(key.value())) else {
                faults.add("undo", format_args!("{:?} is no key", key.value()));
                continue;
            };
            if let Err(error) = check_undone(&what, value.value()) {
                faults.add("undo", format_args!("{what:?} before {revision}: {error}"));
            }
            let (entries, bytes) = by_revision.entry(revision).or_default();
            *entries += 1;
            *bytes += (key.value().len() + value.value().len()) as u64;
        }
        let (mut entries, mut bytes) = (0, 0);
        for entry in self.tables.revisions.iter()? {
            let (key, value) = entry?;
            let revision = KeyReader(key.value()).u64().unwrap_or(0);
            let touched: v3::Touched = record::decode(value.value())?;
            let found = by_revision.remove(&revision).unwrap_or_default();
            if found != (touched.entries, touched.bytes) {
                let told = (touched.entries, touched.bytes);
                faults.add("revisions", format_args!("{revision}: {told:?}, but it has {found:?}"));
            }
            if revision <= self.meta.trimmed || revision > self.meta.revision {
                faults.add("revisions", format_args!("{revision} should not be there"));
            }
            entries += touched.entries;
            bytes += touched.bytes;
        }
        if let Some(revision) = by_revision.keys().next() {
            faults.add("undo", format_args!("entries of {revision}, which is not in revisions"));
        }
        faults.equal("meta", "undo entries", self.meta.undo_entries, entries);
        faults.equal("meta", "undo bytes", self.meta.undo_bytes, bytes);
        Ok(())
    }
}

/// Can it be read, should somebody ask for that revision?
fn check_undone(what: &Undone, value: &[u8]) -> Result<(), Error> {
    match what {
        Undone::Object => record::decode::<v3::Presence>(value).map(drop),
        Undone::Address(_) => record::decode::<v3::UndoneRows>(value).map(drop),
        Undone::Signature(signature) => {
            let count = KeyReader(value).u64().ok_or_else(|| Error::Damaged {
                what: "undo",
                reason: "a count is too short".to_owned(),
            });
            count.and_then(|_| record::decode::<v3::Signature>(signature).map(drop))
        }
    }
}

fn kind(number: u8) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
}
