//! Doors for fuzzers: what a damaged file may do to us, in three sizes. Each panics where something doesn't hold;
//! `fuzz/` has the targets, and the tests beside this run the same with mutations of their own.

use std::fmt::Debug;
use std::path::Path;

use bincode::{Decode, Encode};
use model::{
    ClusterId, Kind, Metadata, OwnerRef, PortSet, Server, Service, ServiceName, ServiceProfile,
    SliceMeta, Source, Template,
};

use crate::key::{self, KeyBuf, KeyReader, RowKey};
use crate::record::{self, convert, v3};
use crate::{Birth, Config, Error, Fsync, Reader, Scope, Undo, open, slices, workload};

/// Bytes as each record: refused, or a value that can be written, and then is read as the same.
pub fn record(bytes: &[u8]) {
    if let Some(object) = stable::<v3::Object>(bytes) {
        match object.body {
            Some(v3::Body::Service(found)) => {
                lasting(found, Service::from, |it| v3::Service::from(it))
            }
            Some(v3::Body::Server(found)) => {
                lasting(found, Server::from, |it| v3::Server::from(it))
            }
            Some(v3::Body::Profile(Some(found))) => {
                if let Ok(profile) = ServiceProfile::try_from(found) {
                    let again = ServiceProfile::try_from(v3::Profile::from(profile.clone()));
                    assert_eq!(again.ok(), Some(profile));
                }
            }
            _ => {}
        }
    }
    if let Some(slice) = stable::<v3::Slice>(bytes) {
        slices::texts(&slice);
        for endpoint in &slice.endpoints {
            // A name that is none is an error, whatever the bytes.
            slices::workload_key(&slice, endpoint).ok();
        }
    }
    if let Some(v3::Presence::There(found)) = stable::<v3::Presence>(bytes) {
        lasting(found, Service::from, |it| v3::Service::from(it));
    }
    if let Some(found) = stable::<v3::Template>(bytes) {
        let cluster = ClusterId(found.cluster);
        lasting(found, Template::from, |it| convert::template(cluster, it));
    }
    if let Some(found) = stable::<v3::Metadata>(bytes) {
        lasting(found, Metadata::from, |it| v3::Metadata::from(it));
    }
    if let Some(found) = stable::<v3::SliceMeta>(bytes) {
        lasting(found, SliceMeta::from, |it| v3::SliceMeta::from(it));
    }
    stable::<v3::Row>(bytes).map(|row| convert::class(row.class));
    stable::<v3::Signature>(bytes);
    stable::<v3::Part>(bytes);
    stable::<v3::PartId>(bytes);
    stable::<v3::Size>(bytes);
    stable::<v3::UndoneRows>(bytes);
    stable::<v3::Checkpoint>(bytes);
    stable::<v3::Touched>(bytes);
    stable::<v3::Interned>(bytes);
    stable::<v3::Meta>(bytes);
    stable::<String>(bytes);
}

/// What is read, is written, and is read again: the same. Shortest forms only are written, so the bytes may differ.
fn stable<T: Encode + Decode<()> + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = record::decode(bytes).ok()?;
    let again = record::encode(&value).and_then(|bytes| record::decode::<T>(&bytes));
    assert!(again.as_ref().is_ok_and(|again| *again == value), "{value:?} became {again:?}");
    Some(value)
}

/// What the model makes of a record may say less (ports are merged, labels are there once), but stays the same when it
/// is written and read again.
fn lasting<R, M: PartialEq + Debug>(found: R, read: impl Fn(R) -> M, write: impl Fn(&M) -> R) {
    let value = read(found);
    let again = read(write(&value));
    assert_eq!(again, value, "what is written is another value");
}

/// Bytes as each key: none, or one that is written as they begin.
pub fn key(bytes: &[u8]) {
    let begins = |key: Vec<u8>| assert!(bytes.starts_with(&key), "{bytes:?} was read as {key:?}");
    if let Some(row) = RowKey::read(bytes) {
        begins(row.write(KeyReader(bytes).u32().unwrap_or(0)));
    }
    if let Some(claim) = workload::claim_key(bytes) {
        begins(key::claim(claim));
    }
    if let Some(undone) = key::undone(bytes) {
        let mut reader = KeyReader(bytes);
        let (service, revision) = (reader.u32(), reader.u64());
        let revision = model::Revision(revision.unwrap_or(0));
        begins(key::undo(service.unwrap_or(0), revision, &undone));
    }
    if let Some(group) = key::waiting_group(bytes) {
        begins(key::waiting(KeyReader(bytes).u32().unwrap_or(0), group));
    }
    if let Some(part) = key::read_part(bytes) {
        begins(key::part(&part));
    }
    if let Some(part) = key::read_remote(bytes) {
        begins(key::remotes_of(&part));
    }
    if let Some(ip) = KeyReader(bytes).ip() {
        begins(KeyBuf::new().ip(ip).done());
    }
    let kind = bytes.get(2).and_then(|kind| Kind::ALL.into_iter().find(|it| *it as u8 == *kind));
    if let (Some(kind), Some(name), [high, low, ..]) = (kind, key::object_name(bytes), bytes) {
        let cluster = ClusterId(u16::from_be_bytes([*high, *low]));
        begins(key::object(Source { cluster, kind }, &name));
    }
    let end = key::prefix_end(bytes);
    assert!(bytes.len() >= 64 || bytes < end.as_slice(), "{end:?} ends nothing");
    // No key of ours begins with nothing but 0xff; there the end is only far enough away.
    if bytes.iter().any(|byte| *byte < u8::MAX) {
        assert!([bytes, &[u8::MAX; 64]].concat() < end, "{end:?} is too early");
        assert!(!end.starts_with(bytes), "{end:?} is too late");
    }
}

/// Bytes as the file of an empty folder: opened, replaced by a new one, or refused. One that is opened can be read,
/// or says where it is damaged; one that was replaced is empty and whole.
pub fn file(folder: &Path, bytes: &[u8]) -> Result<Birth, Error> {
    let failed = |error: std::io::Error| Error::Folder {
        path: folder.to_owned(),
        reason: error.to_string(),
    };
    std::fs::write(folder.join("spillway.redb"), bytes).map_err(failed)?;
    let (mut writer, reader, birth) = open(folder, config())?;
    let checked = writer.check();
    let read = read(&reader, false);
    if let Birth::Rebuilt { .. } = &birth {
        assert!(checked.is_ok_and(|faults| faults.is_empty()), "a new file has faults");
        assert!(read.is_ok_and(|rows| rows == 0), "a new file has rows");
        return Ok(birth);
    }
    // What the check finds whole is whole for readers too. It counts what the undo log has, and does not read it: so
    // a stream that is behind may still be told of damage.
    if checked.is_ok_and(|faults| faults.is_empty()) {
        read?;
    }
    self::read(&reader, true).ok();
    Ok(birth)
}

/// Reads all Services of a file as streams do that are new, or as far behind as they can be. Gives how many claims
/// there were.
fn read(reader: &Reader, behind: bool) -> Result<usize, Error> {
    let snapshot = reader.snapshot()?;
    let mut names = Vec::new();
    let source = Source { cluster: ClusterId::LOCAL, kind: Kind::Service };
    snapshot.objects(source, &mut |name, _| names.push(name))?;
    let mut claims = 0;
    for object in names {
        let rows = snapshot.service(&ServiceName { cluster: ClusterId::LOCAL, object })?;
        let at = if behind { snapshot.trimmed() } else { snapshot.revision() };
        rows.compare::<Error>(behind.then_some(at), Scope::All, None, &mut |_, then, now| {
            claims += then.len() + now.len();
            Ok(())
        })?;
        rows.object(at)?;
        rows.signatures(at)?;
    }
    reader.table_stats()?;
    Ok(claims)
}

fn config() -> Config {
    let undo = Undo { bytes_max: 10_000, age_max: 1_000 };
    Config {
        cache_bytes: 1 << 20,
        hot_bytes: 1 << 20,
        join,
        join_version: 1,
        undo,
        fsync: Fsync::Together,
        disk_quota_bytes: None,
        admission: crate::Admission::default(),
    }
}

fn join(template: &Template, _: Option<Option<&OwnerRef>>, _: &[Server]) -> Metadata {
    Metadata {
        kind: template.kind,
        namespace: template.namespace.clone(),
        control_plane_ns: None,
        owner: None,
        service_account: template.service_account.clone(),
        pod_template_hash: None,
        name_prefix: template.name_prefix.clone(),
        opaque: None,
        opaque_by_server: PortSet::default(),
        skip_inbound: PortSet::default(),
        proxy: None,
        mesh_tls: None,
    }
}

#[cfg(test)]
mod tests;
