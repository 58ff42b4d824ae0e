//! Random histories against an oracle that can't be wrong: it keeps the objects in maps and computes
//! everything anew, each time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use model::{
    Change, Claim, ClusterId, Family, Key, Kind, Metadata, Object, ObjectName, ResourceVersion,
    Revision, Server, Service, ServiceName, Slice, SliceEndpoint, Target, Workload,
};

use crate::{Birth, Error, Reader, Scope, Writer, open};

mod admission;
pub(crate) mod fixture;
mod format;
mod linked;
mod owners;
mod reopen;

use fixture::{NOW, Random, config, join, key, put, random_object, source, workload_key};

const KINDS: [(Kind, &str, u64); 7] = [
    (Kind::Endpoints, "endpoints", 2),
    (Kind::EndpointSlice, "slice", 4),
    (Kind::EndpointSlice, "slice", 4),
    (Kind::Pod, "pod", 5),
    (Kind::ExternalWorkload, "vm", 3),
    (Kind::ReplicaSet, "rs", 2),
    (Kind::Server, "srv", 2),
];

#[derive(Default)]
struct Oracle {
    objects: BTreeMap<Key, (u64, Object)>,
}

/// What can be compared of a claim: everything but how it is shared.
type Seen = BTreeMap<IpAddr, BTreeSet<String>>;

impl Oracle {
    fn metadata(&self, workload: &Workload) -> Metadata {
        let servers: Vec<Server> = self
            .objects
            .values()
            .filter_map(|(_, object)| match object {
                Object::Server(server) => Some(server.clone()),
                _ => None,
            })
            .collect();
        let owner = workload.template.owner.as_ref().and_then(|owner| {
            match self.objects.get(&key(Kind::ReplicaSet, &owner.name)) {
                Some((_, Object::Owned { owner })) => Some(owner.clone()),
                _ => None,
            }
        });
        join(&workload.template, owner.as_ref().map(Option::as_ref), &servers)
    }

    /// The claims of a Service, by address, each as text.
    fn claims(&self, service: &ObjectName) -> Seen {
        struct Found<'o> {
            order: u64,
            slice_name: &'o Key,
            slice: &'o Slice,
            endpoint: &'o SliceEndpoint,
            workload: Option<&'o Workload>,
        }
        let mut found = Vec::new();
        for (slice_name, (order, object)) in &self.objects {
            // Of what one object says of a target, the later counts.
            let slices: Vec<&Slice> = match object {
                Object::Slice(slice) => vec![slice],
                Object::Subsets(slices) => slices.iter().rev().collect(),
                _ => continue,
            };
            let ours = slices.into_iter().filter(|slice| slice.service.as_ref() == Some(service));
            let endpoints =
                ours.flat_map(|slice| slice.endpoints.iter().map(move |it| (slice, it)));
            for (slice, endpoint) in endpoints.filter(|(_, endpoint)| endpoint.ready) {
                let workload = match &endpoint.target {
                    Target::Bare => None,
                    target => match self.objects.get(&workload_key(target)) {
                        Some((_, Object::Workload(workload))) => Some(workload),
                        _ => continue,
                    },
                };
                found.push(Found { order: *order, slice_name, slice, endpoint, workload });
            }
        }
        found.sort_by(|a, b| b.order.cmp(&a.order).then_with(|| a.slice_name.cmp(b.slice_name)));
        let rivals = |claim: &Found<'_>, other: &Found<'_>| {
            claim.endpoint.target == other.endpoint.target
                && (claim.endpoint.target != Target::Bare || claim.endpoint.ip == other.endpoint.ip)
        };
        let mut seen = Seen::new();
        for (index, claim) in found.iter().enumerate() {
            let rank = found[..index].iter().filter(|other| rivals(claim, other)).count();
            let peers = found.iter().filter(|other| rivals(claim, other)).count();
            let peers = if claim.endpoint.target == Target::Bare || peers == 1 { 0 } else { peers };
            let text = format!(
                "{:?} v6={} {:?} {:?} {:?} {:?} {:?} {:?} rank={rank} peers={peers}",
                match &claim.endpoint.target {
                    Target::Bare => "",
                    Target::Pod(name) | Target::ExternalWorkload(name) => name.name(),
                },
                claim.slice.family == Family::V6 && claim.workload.is_some(),
                claim.workload.map(|workload| self.metadata(workload)),
                claim.workload.and_then(|workload| workload.node.clone()),
                claim.slice.meta,
                claim.endpoint.hostname,
                claim.endpoint.zone,
                claim.endpoint.hints,
            );
            seen.entry(claim.endpoint.ip).or_default().insert(text);
        }
        seen
    }
}

fn text(claim: &Claim) -> String {
    format!(
        "{:?} v6={} {:?} {:?} {:?} {:?} {:?} {:?} rank={} peers={}",
        claim.name,
        matches!(claim.class, model::Class::PodV6 | model::Class::ExternalV6),
        claim.workload.as_deref(),
        claim.node,
        *claim.slice,
        claim.hostname,
        claim.zone,
        claim.hints,
        claim.rank,
        claim.peers.len(),
    )
}

fn texts(claims: &[Claim]) -> BTreeSet<String> {
    claims.iter().map(text).collect()
}

fn service(n: usize) -> ServiceName {
    ServiceName {
        cluster: ClusterId::LOCAL,
        object: ObjectName::new("shop", format!("svc-{n}")).unwrap(),
    }
}

/// The claims of a Service as the store has them.
fn stored(reader: &Reader, name: &ServiceName) -> Seen {
    let snapshot = reader.snapshot().unwrap();
    let mut seen = Seen::new();
    let rows = snapshot.service(name).unwrap();
    rows.compare::<Error>(None, Scope::All, None, &mut |ip, before, now| {
        assert!(before.is_empty());
        assert!(seen.insert(ip, texts(now)).is_none(), "{ip} was visited twice");
        Ok(())
    })
    .unwrap();
    seen
}

/// The signatures that the claims of a Service should be counted under.
fn signatures(reader: &Reader, name: &ServiceName) -> BTreeMap<String, u64> {
    let snapshot = reader.snapshot().unwrap();
    let rows = snapshot.service(name).unwrap();
    let counted = rows.signatures(snapshot.revision()).unwrap();
    counted.into_iter().map(|(signature, count)| (format!("{signature:?}"), count)).collect()
}

fn signatures_of(reader: &Reader, name: &ServiceName) -> BTreeMap<String, u64> {
    let snapshot = reader.snapshot().unwrap();
    let mut groups: BTreeMap<String, BTreeMap<u16, model::SignatureItem>> = BTreeMap::new();
    let rows = snapshot.service(name).unwrap();
    rows.compare::<Error>(None, Scope::All, None, &mut |ip, _, now| {
        for claim in now {
            let group = if claim.workload.is_some() { claim.name.clone() } else { ip.to_string() };
            let item = model::SignatureItem {
                class: claim.class,
                slice: claim.slice.clone(),
                hints: claim.hints.clone(),
            };
            assert!(groups.entry(group).or_default().insert(claim.rank, item).is_none());
        }
        Ok(())
    })
    .unwrap();
    let mut counts = BTreeMap::new();
    for items in groups.into_values() {
        let signature = model::Signature(items.into_values().collect());
        *counts.entry(format!("{signature:?}")).or_default() += 1;
    }
    counts
}

fn deltas_lead_from(
    reader: &Reader,
    name: &ServiceName,
    since: Revision,
    before: &Seen,
    now: &Seen,
) {
    let snapshot = reader.snapshot().unwrap();
    let rows = snapshot.service(name).unwrap();
    let mut state = before.clone();
    for scope in [Scope::Changed, Scope::All] {
        let mut last = None;
        rows.compare::<Error>(Some(since), scope, None, &mut |ip, then, now| {
            assert!(last.is_none_or(|last| last < ip), "addresses come in order");
            last = Some(ip);
            let known = before.get(&ip).cloned().unwrap_or_default();
            assert_eq!(texts(then), known, "{ip} at {since:?}");
            state.insert(ip, texts(now));
            Ok(())
        })
        .unwrap();
        state.retain(|_, claims| !claims.is_empty());
        assert_eq!(&state, now);
    }
    for hostname in ["h-0", "h-1"] {
        let mut visited = BTreeSet::new();
        let scope = Scope::Hostname(hostname);
        rows.compare::<Error>(Some(since), scope, None, &mut |ip, then, _| {
            assert_eq!(texts(then), before.get(&ip).cloned().unwrap_or_default());
            visited.insert(ip);
            Ok(())
        })
        .unwrap();
        let named = format!("Some({hostname:?})");
        for (ip, claims) in before.iter().chain(now) {
            assert!(visited.contains(ip) || !claims.iter().any(|claim| claim.contains(&named)));
        }
    }
}

fn history(seed: u64, steps: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, mut reader, birth) = open(folder.path(), config(60_000)).unwrap();
    assert_eq!(birth, Birth::Created);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut oracle = Oracle::default();
    let mut version = 0;
    let mut past: Vec<(Revision, [Seen; 2])> = Vec::new();
    for step in 0..steps {
        let mut changes = Vec::new();
        for _ in 0..=random.below(3) {
            version += 1;
            let (kind, prefix, count) = KINDS[random.below(KINDS.len() as u64) as usize];
            let name = format!("{prefix}-{}", random.below(count));
            if random.chance(25) {
                oracle.objects.remove(&key(kind, &name));
                changes.push(Change::Delete { key: key(kind, &name) });
            } else {
                let object = random_object(&mut random, kind);
                oracle.objects.insert(key(kind, &name), (version, object.clone()));
                changes.push(put(kind, &name, version, object));
            }
        }
        writer.commit(NOW, changes).unwrap();
        if random.chance(10) {
            relist(&mut writer, &mut oracle, &mut random);
        }
        while writer.tick(NOW).unwrap().is_some() {}
        assert_eq!(writer.check().unwrap(), [], "seed {seed}, step {step}");
        if random.chance(5) {
            drop((writer, reader));
            let birth;
            (writer, reader, birth) = open(folder.path(), config(60_000)).unwrap();
            assert!(matches!(birth, Birth::Opened(_)));
        }
        let now = [0, 1].map(|n| oracle.claims(&service(n).object));
        for n in [0, 1] {
            let name = service(n);
            assert_eq!(stored(&reader, &name), now[n], "seed {seed}, step {step}");
            assert_eq!(signatures(&reader, &name), signatures_of(&reader, &name));
            for (since, before) in &past {
                if *since >= reader.stats().trimmed {
                    deltas_lead_from(&reader, &name, *since, &before[n], &now[n]);
                }
            }
        }
        let rows: usize = now.iter().flat_map(BTreeMap::values).map(BTreeSet::len).sum();
        assert_eq!(reader.stats().endpoints, rows as u64);
        past.push((reader.stats().revision, now));
        if past.len() > 12 {
            past.remove(0);
        }
    }
}

/// A listing that leaves some objects out, perhaps interrupted first.
fn relist(writer: &mut Writer, oracle: &mut Oracle, random: &mut Random) {
    let kind = if random.chance(50) { Kind::Pod } else { Kind::EndpointSlice };
    if random.chance(50) {
        writer.commit(NOW, vec![Change::Begin { source: source(kind) }]).unwrap();
    }
    oracle.objects.retain(|key, _| key.source.kind != kind || random.chance(70));
    let mut changes = vec![Change::Begin { source: source(kind) }];
    let listed = oracle.objects.iter().filter(|(key, _)| key.source.kind == kind);
    changes.extend(listed.map(|(key, (version, object))| Change::Put {
        key: key.clone(),
        version: ResourceVersion(version.to_string()),
        object: object.clone(),
    }));
    writer.commit(NOW, changes).unwrap();
    let end = Change::End { source: source(kind), version: ResourceVersion("9".to_owned()) };
    writer.commit(NOW, vec![end]).unwrap();
}

#[test]
fn histories_equal_the_oracle() {
    for seed in 1..=4 {
        history(seed, 90);
    }
}

/// A listing of these Services, as changes; it ends with their version.
fn listing_of(names: &[String]) -> Vec<Change> {
    let source = source(Kind::Service);
    let put = |name: &String| put(Kind::Service, name, 7, Object::Service(Service::default()));
    let version = ResourceVersion("7".to_owned());
    let mut changes = vec![Change::Begin { source }];
    changes.extend(names.iter().map(put));
    changes.push(Change::End { source, version });
    changes
}

#[test]
fn a_listing_that_is_interrupted_anywhere_sweeps_nothing() {
    let names =
        |range: std::ops::Range<u32>| range.map(|n| format!("svc-{n:02}")).collect::<Vec<_>>();
    let before: Vec<String> = names(0..12);
    // What is gone meanwhile is in the middle and at both ends.
    let now: Vec<String> = names(2..5).into_iter().chain(names(8..11)).collect();
    let listing = listing_of(&now);
    for position in 1..listing.len() {
        for restarted in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (mut writer, mut reader, _) = open(folder.path(), config(10_000)).unwrap();
            writer.commit(NOW, listing_of(&before)).unwrap();
            for change in &listing[..position] {
                writer.commit(NOW, vec![change.clone()]).unwrap();
                while writer.tick(NOW).unwrap().is_some() {}
            }
            if restarted {
                drop((writer, reader));
                (writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
            }
            let told = format!("cut at {position}, restarted: {restarted}");
            assert_eq!(reader.stats().objects[&Kind::Service], 12, "{told}");
            // The next one begins anew, and what the one before it marked counts for nothing.
            for change in listing.clone() {
                writer.commit(NOW, vec![change]).unwrap();
            }
            while writer.tick(NOW).unwrap().is_some() {}
            assert_eq!(reader.stats().objects[&Kind::Service], 6, "{told}");
            assert_eq!(writer.check().unwrap(), [], "{told}");
            let checkpoint = reader.snapshot().unwrap().checkpoint(source(Kind::Service)).unwrap();
            assert_eq!(checkpoint, Some(ResourceVersion("7".to_owned())), "{told}");
        }
    }
}

#[test]
fn a_damaged_file_is_moved_aside_and_a_newer_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spillway.redb");
    for content in [b"".as_slice(), b"not a database", &[0; 8192]] {
        std::fs::write(&path, content).unwrap();
        let (_, _, birth) = open(folder.path(), config(10_000)).unwrap();
        let Birth::Rebuilt { aside, .. } = birth else { panic!("{birth:?}") };
        assert_eq!(std::fs::read(aside).unwrap(), content);
    }
    // They are of a file that nobody else writes to.
    std::fs::remove_file(folder.path().join("spillway.sums")).unwrap();
    {
        let database = redb::Database::open(&path).unwrap();
        let txn = database.begin_write().unwrap();
        let table = redb::TableDefinition::<&[u8], &[u8]>::new("meta.1");
        let format = 99u32.to_be_bytes();
        let mut meta = txn.open_table(table).unwrap();
        meta.insert(b"format".as_slice(), format.as_slice()).unwrap();
        drop(meta);
        txn.commit().unwrap();
    }
    let Err(Error::Newer { found: 99, known: 5, .. }) = open(folder.path(), config(10_000)) else {
        panic!("a newer file was opened");
    };
}

#[test]
fn a_folder_in_use_names_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let _open = open(folder.path(), config(10_000)).unwrap();
    let Err(Error::InUse { pid, .. }) = open(folder.path(), config(10_000)) else {
        panic!("the folder was opened twice");
    };
    assert_eq!(pid, std::process::id().to_string());
}

#[test]
fn unchanged_versions_are_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _reader, _) = open(folder.path(), config(10_000)).unwrap();
    let change = || put(Kind::Service, "svc-0", 1, Object::Service(Service::default()));
    assert_eq!(writer.commit(NOW, vec![change()]).unwrap().put, 1);
    let again = writer.commit(NOW, vec![change()]).unwrap();
    assert_eq!((again.put, again.unchanged), (0, 1));
}

#[test]
fn a_source_that_is_forgotten_is_as_if_it_had_never_been_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
    let names: Vec<String> = (0..3_000).map(|n| format!("svc-{n:04}")).collect();
    writer.commit(NOW, listing_of(&names)).unwrap();
    let services = source(Kind::Service);
    let checkpoint = |reader: &Reader| reader.snapshot().unwrap().checkpoint(services).unwrap();
    assert!(checkpoint(&reader).is_some());
    writer.commit(NOW, vec![Change::Forget { source: services }]).unwrap();
    assert_eq!(checkpoint(&reader), None, "not even while some are still there");
    assert!(reader.stats().objects[&Kind::Service] > 0, "a step is bounded");
    while writer.tick(NOW).unwrap().is_some() {}
    assert_eq!((reader.stats().objects[&Kind::Service], checkpoint(&reader)), (0, None));
    assert_eq!(writer.check().unwrap(), []);
}
