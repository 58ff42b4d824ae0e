//! Keys: bytes that sort as their values do. Each has a writer, and a reader where something is read back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::{ClusterId, Kind, ObjectName, Part, Revision, Source};

use crate::dirty::Group;
use crate::workload::ClaimKey;

/// A Service's number.
pub(crate) type ServiceId = u32;
/// An EndpointSlice's number.
pub(crate) type SliceId = u32;
/// A Pod's or ExternalWorkload's number; 0 stands for a bare address.
pub(crate) type WorkloadId = u32;

/// Builds a key part by part.
#[derive(Default)]
pub(crate) struct KeyBuf(Vec<u8>);

impl KeyBuf {
    pub(crate) fn new() -> KeyBuf {
        KeyBuf(Vec::with_capacity(32))
    }

    pub(crate) fn u8(mut self, n: u8) -> KeyBuf {
        self.0.push(n);
        self
    }

    pub(crate) fn u16(mut self, n: u16) -> KeyBuf {
        self.0.extend(n.to_be_bytes());
        self
    }

    pub(crate) fn u32(mut self, n: u32) -> KeyBuf {
        self.0.extend(n.to_be_bytes());
        self
    }

    pub(crate) fn u64(mut self, n: u64) -> KeyBuf {
        self.0.extend(n.to_be_bytes());
        self
    }

    /// A string that something follows: ended by NUL, which no name contains.
    pub(crate) fn text(mut self, text: &str) -> KeyBuf {
        self.0.extend(text.as_bytes());
        self.0.push(0);
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> KeyBuf {
        self.0.extend(bytes);
        self
    }

    /// IPv4 before IPv6, each in numeric order; an IPv4-mapped IPv6 address stays IPv6.
    pub(crate) fn ip(mut self, ip: IpAddr) -> KeyBuf {
        match ip {
            IpAddr::V4(ip) => {
                self.0.push(4);
                self.0.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                self.0.push(6);
                self.0.extend(ip.octets());
            }
        }
        self
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a key part by part. `None` where the key is too short: the file is damaged.
pub(crate) struct KeyReader<'k>(pub(crate) &'k [u8]);

impl<'k> KeyReader<'k> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    pub(crate) fn ip(&mut self) -> Option<IpAddr> {
        match self.u8()? {
            4 => self.take::<4>().map(|octets| IpAddr::V4(Ipv4Addr::from(octets))),
            6 => self.take::<16>().map(|octets| IpAddr::V6(Ipv6Addr::from(octets))),
            _ => None,
        }
    }
}

/// What comes after the first bytes of a key; nothing if it is too short, which then is found out.
pub(crate) fn rest(key: &[u8], bytes: usize) -> &[u8] {
    key.get(bytes..).unwrap_or_default()
}

/// The end of the range of all keys that start with `prefix`.
pub(crate) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Only the empty prefix and 0xff… get here; no key of ours is as long.
    vec![u8::MAX; 64]
}

/// checkpoints: cluster, kind. Also the prefix of the source's objects.
pub(crate) fn source(source: Source) -> Vec<u8> {
    KeyBuf::new().u16(source.cluster.0).u8(source.kind as u8).done()
}

/// The source that a key of checkpoints is of.
pub(crate) fn read_source(key: &[u8]) -> Option<Source> {
    let [high, low, kind] = *<&[u8; 3]>::try_from(key).ok()?;
    let kind = Kind::ALL.into_iter().find(|it| *it as u8 == kind)?;
    Some(Source { cluster: ClusterId(u16::from_be_bytes([high, low])), kind })
}

/// objects: cluster, kind, namespace, name.
pub(crate) fn object(source: Source, name: &ObjectName) -> Vec<u8> {
    let prefix = KeyBuf::new().u16(source.cluster.0).u8(source.kind as u8);
    prefix.text(name.namespace()).bytes(name.name().as_bytes()).done()
}

/// objects: the prefix of one namespace.
pub(crate) fn object_namespace(cluster: ClusterId, kind: Kind, namespace: &str) -> Vec<u8> {
    KeyBuf::new().u16(cluster.0).u8(kind as u8).text(namespace).done()
}

/// The name within a key of objects.
pub(crate) fn object_name(key: &[u8]) -> Option<ObjectName> {
    let text = std::str::from_utf8(key.get(3..)?).ok()?;
    let (namespace, name) = text.split_once('\0')?;
    ObjectName::new(namespace, name).ok()
}

/// part_ids: a cluster's number. Also the prefix of its objects.
pub(crate) fn cluster(id: ClusterId) -> Vec<u8> {
    KeyBuf::new().u16(id.0).done()
}

/// parts: cluster, namespace.
pub(crate) fn part(part: &Part) -> Vec<u8> {
    KeyBuf::new().text(&part.cluster).bytes(part.namespace.as_bytes()).done()
}

/// The part in a key of parts.
pub(crate) fn read_part(key: &[u8]) -> Option<Part> {
    let (cluster, namespace) = std::str::from_utf8(key).ok()?.split_once('\0')?;
    Some(Part { cluster: cluster.to_owned(), namespace: namespace.to_owned() })
}

/// remotes: cluster, namespace, name of the local Service.
pub(crate) fn remote(cluster: &str, service: &ObjectName) -> Vec<u8> {
    let prefix = KeyBuf::new().text(cluster).text(service.namespace());
    prefix.bytes(service.name().as_bytes()).done()
}

/// remotes: the prefix of a namespace of a cluster.
pub(crate) fn remotes_of(part: &Part) -> Vec<u8> {
    KeyBuf::new().text(&part.cluster).text(&part.namespace).done()
}

/// The namespace of a cluster in a key of remotes.
pub(crate) fn read_remote(key: &[u8]) -> Option<Part> {
    let mut texts = std::str::from_utf8(key).ok()?.split('\0');
    let (cluster, namespace) = (texts.next()?, texts.next()?);
    texts.next()?;
    Some(Part { cluster: cluster.to_owned(), namespace: namespace.to_owned() })
}

/// A key of endpoints, within its service. Ordered by address, so all claims on one are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    pub(crate) ip: IpAddr,
    pub(crate) slice: SliceId,
    pub(crate) workload: WorkloadId,
}

impl RowKey {
    pub(crate) fn write(self, service: ServiceId) -> Vec<u8> {
        KeyBuf::new().u32(service).ip(self.ip).u32(self.slice).u32(self.workload).done()
    }

    pub(crate) fn read(key: &[u8]) -> Option<RowKey> {
        let mut reader = KeyReader(key.get(4..)?);
        Some(RowKey { ip: reader.ip()?, slice: reader.u32()?, workload: reader.u32()? })
    }
}

/// endpoints: the prefix of one address.
pub(crate) fn row_ip(service: ServiceId, ip: IpAddr) -> Vec<u8> {
    KeyBuf::new().u32(service).ip(ip).done()
}

/// waiting: service, then 0 and the workload, or 1 and the bare address.
pub(crate) fn waiting(service: ServiceId, group: Group) -> Vec<u8> {
    let prefix = KeyBuf::new().u32(service);
    match group {
        Group::Workload(id) => prefix.u8(0).u32(id),
        Group::Bare(ip) => prefix.u8(1).ip(ip),
    }
    .done()
}

/// Who it is in a key of waiting.
pub(crate) fn waiting_group(key: &[u8]) -> Option<Group> {
    let mut reader = KeyReader(key.get(4..)?);
    match reader.u8()? {
        0 => reader.u32().map(Group::Workload),
        1 => reader.ip().map(Group::Bare),
        _ => None,
    }
}

/// sizes: 0, service.
pub(crate) fn service_size(service: ServiceId) -> Vec<u8> {
    KeyBuf::new().u8(0).u32(service).done()
}

/// sizes: 1, cluster, namespace.
pub(crate) fn namespace_size(cluster: ClusterId, namespace: &str) -> Vec<u8> {
    KeyBuf::new().u8(1).u16(cluster.0).bytes(namespace.as_bytes()).done()
}

/// sizes: what a part of a linked cluster was refused. No namespace is empty.
pub(crate) fn part_size(cluster: ClusterId) -> Vec<u8> {
    namespace_size(cluster, "")
}

/// sizes: 2, the name of a linked cluster; nothing for the local one.
pub(crate) fn cluster_size(name: &str) -> Vec<u8> {
    KeyBuf::new().u8(2).bytes(name.as_bytes()).done()
}

/// A key that is only a number: slices, interned, the prefix of a service's rows and of a template's claims.
pub(crate) fn id(id: u32) -> Vec<u8> {
    KeyBuf::new().u32(id).done()
}

/// claims: template, workload, slice.
pub(crate) fn claim(claim: ClaimKey) -> Vec<u8> {
    KeyBuf::new().u32(claim.template).u32(claim.workload).u32(claim.slice).done()
}

/// claims: the prefix of one workload.
pub(crate) fn workload_claims(template: u32, workload: WorkloadId) -> Vec<u8> {
    KeyBuf::new().u32(template).u32(workload).done()
}

/// contested: the prefix of a slice's rows in a Service. (A commit in which the slice goes from one Service to another
/// writes rows of both.)
pub(crate) fn contested_of(slice: SliceId, service: ServiceId) -> Vec<u8> {
    KeyBuf::new().u32(slice).u32(service).done()
}

/// contested: slice, service, workload, ip.
pub(crate) fn contested(service: ServiceId, row: RowKey) -> Vec<u8> {
    KeyBuf::new().u32(row.slice).u32(service).u32(row.workload).ip(row.ip).done()
}

/// hostnames: service, hostname, then the row.
pub(crate) fn hostname(service: ServiceId, hostname: &str, row: RowKey) -> Vec<u8> {
    let prefix = KeyBuf::new().u32(service).text(hostname);
    prefix.ip(row.ip).u32(row.slice).u32(row.workload).done()
}

/// hostnames: the prefix of one hostname.
pub(crate) fn hostname_prefix(service: ServiceId, hostname: &str) -> Vec<u8> {
    KeyBuf::new().u32(service).text(hostname).done()
}

/// addresses: the prefix of one address. An IPv4-mapped IPv6 address is the IPv4 address (spec §1.3.2).
pub(crate) fn address(cluster: ClusterId, ip: IpAddr) -> Vec<u8> {
    KeyBuf::new().u16(cluster.0).ip(ip.to_canonical()).done()
}

/// Whose an address is, in the order in which it is looked for (spec §3.2, §3.4.1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner<'k> {
    /// A Service's ClusterIP.
    Service { namespace: &'k str, name: &'k str },
    /// A pod's own.
    Pod(Named<'k>),
    /// The host's of a pod, with a port of the host.
    HostPort(u16, Named<'k>),
    /// An ExternalWorkload's.
    External(Named<'k>),
}

/// A workload's template, and its name: what comes after the prefix of the template, or after [`NAME_WHOLE`] all of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named<'k> {
    pub(crate) template: u32,
    pub(crate) name: &'k [u8],
}

/// Before a name that doesn't begin as its template says. No name has such a byte.
pub(crate) const NAME_WHOLE: u8 = u8::MAX;

impl<'k> Owner<'k> {
    /// A key of addresses.
    pub(crate) fn write(&self, cluster: ClusterId, ip: IpAddr) -> Vec<u8> {
        let prefix = KeyBuf::new().u16(cluster.0).ip(ip.to_canonical());
        let named = |prefix: KeyBuf, it: &Named<'_>| prefix.u32(it.template).bytes(it.name);
        match self {
            Owner::Service { namespace, name } => {
                prefix.u8(1).text(namespace).bytes(name.as_bytes())
            }
            Owner::Pod(pod) => named(prefix.u8(2), pod),
            Owner::HostPort(port, pod) => named(prefix.u8(3).u16(*port), pod),
            Owner::External(workload) => named(prefix.u8(4), workload),
        }
        .done()
    }

    /// What comes after the address in a key of addresses.
    pub(crate) fn read(rest: &'k [u8]) -> Option<Owner<'k>> {
        let mut reader = KeyReader(rest);
        let named =
            |mut reader: KeyReader<'k>| Some(Named { template: reader.u32()?, name: reader.0 });
        match reader.u8()? {
            1 => {
                let text = std::str::from_utf8(reader.0).ok()?;
                text.split_once('\0').map(|(namespace, name)| Owner::Service { namespace, name })
            }
            2 => named(reader).map(Owner::Pod),
            3 => reader.u16().and_then(|port| named(reader).map(|pod| Owner::HostPort(port, pod))),
            4 => named(reader).map(Owner::External),
            _ => None,
        }
    }
}

/// instances: service, hostname, slice.
pub(crate) fn instance(service: ServiceId, hostname: &str, slice: SliceId) -> Vec<u8> {
    KeyBuf::new().u32(service).text(hostname).u32(slice).done()
}

/// contexts: service, signature.
pub(crate) fn context(service: ServiceId, signature: &[u8]) -> Vec<u8> {
    KeyBuf::new().u32(service).bytes(signature).done()
}

/// What an undo entry speaks of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Undone {
    /// The Service object.
    Object,
    /// The count of a signature.
    Signature(Vec<u8>),
    /// The rows of an address.
    Address(IpAddr),
}

/// undo: service, revision, what.
pub(crate) fn undo(service: ServiceId, revision: Revision, what: &Undone) -> Vec<u8> {
    let prefix = KeyBuf::new().u32(service).u64(revision.0);
    match what {
        Undone::Object => prefix.u8(0),
        Undone::Signature(signature) => prefix.u8(1).bytes(signature),
        Undone::Address(ip) => prefix.u8(2).ip(*ip),
    }
    .done()
}

/// undo: where the entries of a service after a revision begin.
pub(crate) fn undo_after(service: ServiceId, revision: Revision) -> Vec<u8> {
    KeyBuf::new().u32(service).u64(revision.0 + 1).done()
}

/// The revision in a key of undo.
pub(crate) fn undone_at(key: &[u8]) -> Option<Revision> {
    KeyReader(key.get(4..)?).u64().map(Revision)
}

/// What a key of undo speaks of.
pub(crate) fn undone(key: &[u8]) -> Option<Undone> {
    let mut reader = KeyReader(key.get(12..)?);
    match reader.u8()? {
        0 => Some(Undone::Object),
        1 => Some(Undone::Signature(reader.0.to_vec())),
        2 => reader.ip().map(Undone::Address),
        _ => None,
    }
}

/// revisions, and the prefix of freed and vacant: a revision.
pub(crate) fn revision(revision: Revision) -> Vec<u8> {
    KeyBuf::new().u64(revision.0).done()
}

/// freed: revision, interned id.
pub(crate) fn freed(revision: Revision, id: u32) -> Vec<u8> {
    KeyBuf::new().u64(revision.0).u32(id).done()
}

/// vacant: revision, object key.
pub(crate) fn vacant(revision: Revision, object: &[u8]) -> Vec<u8> {
    KeyBuf::new().u64(revision.0).bytes(object).done()
}

/// interned_ids: the prefix of a hash.
pub(crate) fn interned_hash(hash: u64) -> Vec<u8> {
    KeyBuf::new().u64(hash).done()
}

/// interned_ids: hash, id.
pub(crate) fn interned_id(hash: u64, id: u32) -> Vec<u8> {
    KeyBuf::new().u64(hash).u32(id).done()
}

/// templates: the prefix of a namespace.
pub(crate) fn template_namespace(cluster: ClusterId, namespace: &str) -> Vec<u8> {
    KeyBuf::new().u16(cluster.0).text(namespace).done()
}

/// templates: the prefix of an owner.
pub(crate) fn template_owner(
    cluster: ClusterId,
    namespace: &str,
    kind: &str,
    name: &str,
) -> Vec<u8> {
    KeyBuf::new().u16(cluster.0).text(namespace).text(kind).text(name).done()
}

#[cfg(test)]
mod tests;
