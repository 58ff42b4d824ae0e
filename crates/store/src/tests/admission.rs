//! Who is let in, and when: quotas, growth, what a linked cluster may take.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Change, ClusterId, Family, Key, Kind, Object, ObjectName, Origin, Part, ResourceVersion, Slice,
    SliceEndpoint, SliceMeta, Source, StoredPart, Target, Time,
};

use super::fixture::{NOW, Random, config, key, pod, put, random_object, source};
use super::{KINDS, Oracle, Seen, service, stored};
use crate::{Admission, Commit, Config, Held, Limit, Reader, Surge, Writer, open};

fn limited(admission: Admission) -> Config {
    Config { admission, ..config(60_000) }
}

/// Does all that can be done by then.
fn rest(writer: &mut Writer, now: Time) {
    while writer.tick(now).unwrap().is_some() {}
}

/// How many have to wait from now on, by why.
fn held_back(commit: &Commit) -> BTreeMap<Limit, u64> {
    commit.held.iter().map(|(limit, held)| (*limit, held.count)).collect()
}

fn held(reader: &Reader, n: usize) -> Held {
    reader.snapshot().unwrap().held(&service(n)).unwrap()
}

/// An EndpointSlice of `svc-<n>` with bare addresses, of each whether it is ready.
fn bare(n: usize, addresses: impl IntoIterator<Item = (u32, bool)>) -> Object {
    let endpoint = |(number, ready): (u32, bool)| SliceEndpoint {
        ip: std::net::Ipv4Addr::from(0x0a00_0000 + number).into(),
        ready,
        target: Target::Bare,
        hostname: None,
        zone: None,
        hints: Vec::new(),
    };
    Object::Slice(Slice {
        service: Some(service(n).object),
        family: Family::V4,
        meta: SliceMeta::default(),
        endpoints: addresses.into_iter().map(endpoint).collect(),
    })
}

/// Slices `slice-0` and on, of 1,000 addresses each, together these.
fn many(n: usize, count: u32, version: u64) -> Vec<Change> {
    let all: Vec<u32> = (0..count).collect();
    let slices = all.chunks(1_000).enumerate();
    let slice = |(index, numbers): (usize, &[u32])| {
        let ready = numbers.iter().map(|number| (*number, true));
        put(Kind::EndpointSlice, &format!("slice-{index}"), version, bare(n, ready))
    };
    slices.map(slice).collect()
}

/// Both kinds that endpoints are made of have been listed.
fn listed() -> Vec<Change> {
    let checkpoint = |kind| Change::Checkpoint {
        source: source(kind),
        version: ResourceVersion("1".to_owned()),
    };
    vec![checkpoint(Kind::Pod), checkpoint(Kind::EndpointSlice)]
}

/// The targets of a Service, each with all that is seen of it.
fn targets(seen: &Seen) -> BTreeMap<String, BTreeSet<String>> {
    let mut targets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (ip, claim) in seen.iter().flat_map(|(ip, claims)| claims.iter().map(move |it| (ip, it))) {
        let name = claim.split('"').nth(1).filter(|name| !name.is_empty());
        let target = name.map_or_else(|| ip.to_string(), str::to_owned);
        targets.entry(target).or_default().insert(format!("{ip} {claim}"));
    }
    targets
}

/// Objects come and go at random, with room for three targets in each Service and four in the namespace.
fn history(seed: u64, steps: usize) {
    let (of_service, of_all) = (3, 4);
    let admission = Admission {
        service_max: Some(of_service),
        namespace_max: Some(of_all),
        ..Admission::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, mut reader, _) = open(folder.path(), limited(admission)).unwrap();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut oracle = Oracle::default();
    let mut waited = false;
    for step in 1..=steps as u64 {
        let (kind, prefix, count) = KINDS[random.below(KINDS.len() as u64) as usize];
        let name = format!("{prefix}-{}", random.below(count));
        let change = if random.chance(25) {
            oracle.objects.remove(&key(kind, &name));
            Change::Delete { key: key(kind, &name) }
        } else {
            let object = random_object(&mut random, kind);
            oracle.objects.insert(key(kind, &name), (step, object.clone()));
            put(kind, &name, step, object)
        };
        let now = Time(step * 1_000);
        writer.commit(now, vec![change]).unwrap();
        if random.chance(5) {
            drop((writer, reader));
            (writer, reader, _) = open(folder.path(), limited(admission)).unwrap();
        }
        rest(&mut writer, now);
        let told = format!("seed {seed}, step {step}");
        assert_eq!(writer.check().unwrap(), [], "{told}");
        let sizes = [0, 1].map(|n| held(&reader, n));
        let all: u64 = sizes.iter().map(|size| size.targets).sum();
        assert!(all <= of_all, "{told}: {sizes:?}");
        for (n, size) in sizes.iter().enumerate() {
            let (are, could) = (stored(&reader, &service(n)), oracle.claims(&service(n).object));
            let (are, could) = (targets(&are), targets(&could));
            assert_eq!(size.targets, are.len() as u64, "{told}");
            assert_eq!(size.targets + size.waiting, could.len() as u64, "{told}");
            // Whoever is in is there as it would be without any limit.
            assert!(are.iter().all(|(target, claims)| could[target] == *claims), "{told}");
            let has_room = size.targets < of_service && all < of_all;
            assert!(size.targets <= of_service && (size.waiting == 0 || !has_room), "{told}");
            waited |= size.waiting > 0;
        }
    }
    assert!(waited, "there was room for all");
    drop((writer, reader));
    let (mut writer, reader, _) = open(folder.path(), config(60_000)).unwrap();
    rest(&mut writer, NOW);
    for n in [0, 1] {
        assert_eq!(stored(&reader, &service(n)), oracle.claims(&service(n).object), "seed {seed}");
        assert_eq!(held(&reader, n).waiting, 0);
    }
    assert_eq!(writer.check().unwrap(), []);
}

#[test]
fn quotas_hold_whatever_happens_and_leave_no_trace_when_they_are_lifted() {
    for seed in 1..=4 {
        history(seed, 120);
    }
}

#[test]
fn beyond_the_quota_who_is_in_is_kept_current_and_room_is_filled_without_a_listing() {
    let admission = Admission { service_max: Some(2), ..Admission::default() };
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), limited(admission)).unwrap();
    let told = |version, ready: [bool; 4]| {
        let addresses = (1..).zip(ready);
        vec![put(Kind::EndpointSlice, "s", version, bare(0, addresses))]
    };
    let seen = |reader: &Reader| {
        let addresses: Vec<_> = stored(reader, &service(0)).into_keys().collect();
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let commit = writer.commit(Time(0), told(1, [true; 4])).unwrap();
    assert_eq!(held_back(&commit), BTreeMap::from([(Limit::Service, 2)]));
    assert_eq!(seen(&reader), ["10.0.0.1", "10.0.0.2"]);
    // One that is in is lost at once, and its room goes to one that waits, within a second.
    writer.commit(Time(0), told(2, [false, true, true, true])).unwrap();
    assert_eq!(seen(&reader), ["10.0.0.2"]);
    rest(&mut writer, Time(1_000));
    assert_eq!(seen(&reader), ["10.0.0.2", "10.0.0.3"]);
    assert_eq!(held(&reader, 0), Held { targets: 2, peak: 2, waiting: 1 });
    // One that waits is lost at once as well.
    writer.commit(Time(1_000), told(3, [false, true, true, false])).unwrap();
    assert_eq!(held(&reader, 0).waiting, 0);
    rest(&mut writer, Time(2_000));
    assert!(!writer.has_waiting());
    assert_eq!(writer.check().unwrap(), []);
}

#[test]
fn each_limit_is_told() {
    let only = |admission: Admission| {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, _reader, _) = open(folder.path(), limited(admission)).unwrap();
        writer.commit(Time(0), listed()).unwrap();
        held_back(&writer.commit(Time(0), many(0, 10, 1)).unwrap())
    };
    let none = Admission::default();
    let surge = Surge { targets: 4, window_ms: 1_000 };
    for (admission, limit) in [
        (Admission { surge: Some(surge), ..none }, Limit::Surge),
        (Admission { service_max: Some(4), ..none }, Limit::Service),
        (Admission { namespace_max: Some(4), ..none }, Limit::Namespace),
        (Admission { cluster_max: Some(4), ..none }, Limit::Cluster),
    ] {
        assert_eq!(only(admission), BTreeMap::from([(limit, 6)]));
    }
    assert_eq!(only(none), BTreeMap::new());
}

#[test]
fn a_service_that_explodes_is_let_in_at_a_rate_and_goes_at_once() {
    let surge = Surge { targets: 1_000, window_ms: 10_000 };
    let admission = Admission { surge: Some(surge), ..Admission::default() };
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), limited(admission)).unwrap();
    // A first listing isn't growth.
    writer.commit(Time(0), many(1, 3_000, 1)).unwrap();
    assert_eq!(held(&reader, 1), Held { targets: 3_000, peak: 3_000, waiting: 0 });
    writer.commit(Time(0), listed()).unwrap();
    rest(&mut writer, Time(0));

    let grown: Vec<Change> = many(0, 5_000, 2);
    let renamed = |change: Change| match change {
        Change::Put { key: Key { source, name }, version, object } => {
            let name = ObjectName::new("shop", format!("new-{}", name.name())).unwrap();
            Change::Put { key: Key { source, name }, version, object }
        }
        other => other,
    };
    let commit = writer.commit(Time(0), grown.into_iter().map(renamed).collect()).unwrap();
    assert_eq!(held_back(&commit), BTreeMap::from([(Limit::Surge, 4_000)]));
    let mut let_in = Vec::new();
    for second in 1..=10 {
        rest(&mut writer, Time(second * 1_000));
        let_in.push(held(&reader, 0).targets);
    }
    assert_eq!(let_in, (1..=10).map(|n| 1_000 + n * 100).collect::<Vec<_>>());
    assert_eq!(writer.check().unwrap(), []);
    // It goes at once; and as many as there were are let in again at once.
    let gone =
        (0..5).map(|n| Change::Delete { key: key(Kind::EndpointSlice, &format!("new-slice-{n}")) });
    writer.commit(Time(10_000), gone.collect()).unwrap();
    assert_eq!(held(&reader, 0), Held { targets: 0, peak: 2_000, waiting: 0 });
    let again = many(0, 5_000, 3).into_iter().map(renamed).collect();
    let commit = writer.commit(Time(10_000), again).unwrap();
    assert_eq!(held_back(&commit), BTreeMap::from([(Limit::Surge, 3_000)]));
    assert_eq!(writer.check().unwrap(), []);
}

#[test]
fn who_waits_survives_a_restart_and_a_crash_of_what_is_remembered() {
    let surge = Surge { targets: 10, window_ms: 10_000 };
    let admission = Admission { surge: Some(surge), ..Admission::default() };
    let folder = tempfile::tempdir().unwrap();
    {
        let (mut writer, _reader, _) = open(folder.path(), limited(admission)).unwrap();
        writer.commit(Time(0), listed()).unwrap();
        writer.commit(Time(0), many(0, 100, 1)).unwrap();
    }
    let (mut writer, reader, _) = open(folder.path(), limited(admission)).unwrap();
    assert_eq!(held(&reader, 0), Held { targets: 10, peak: 10, waiting: 90 });
    assert!(writer.has_waiting(), "nobody knows yet that nobody waits");
    let mut seconds = 0;
    while held(&reader, 0).waiting > 0 {
        seconds += 1;
        rest(&mut writer, Time(seconds * 1_000));
        assert!(seconds < 120, "{:?}", held(&reader, 0));
    }
    assert_eq!(held(&reader, 0), Held { targets: 100, peak: 100, waiting: 0 });
    rest(&mut writer, Time((seconds + 1) * 1_000));
    assert!(!writer.has_waiting());
    assert_eq!(writer.check().unwrap(), []);
}

fn join(reader: &Reader, writer: &mut Writer) -> StoredPart {
    let part = Part { cluster: "east".to_owned(), namespace: "shop".to_owned() };
    let origin = Origin { uid: "u".to_owned(), trust_domain: "t".to_owned() };
    writer.commit(NOW, vec![Change::Join { part: part.clone(), origin }]).unwrap();
    reader.snapshot().unwrap().part(&part).unwrap().unwrap()
}

fn far(part: &StoredPart, kind: Kind, name: &str, version: u64, object: Object) -> Change {
    let source = Source { cluster: part.id, kind };
    let key = Key { source, name: ObjectName::new("shop", name).unwrap() };
    Change::Put { key, version: ResourceVersion(version.to_string()), object }
}

fn refused(reader: &Reader) -> u64 {
    let sizes = reader.snapshot().unwrap().cluster_sizes().unwrap();
    sizes.iter().find(|size| size.cluster == "east").map_or(0, |size| size.refused)
}

#[test]
fn a_linked_cluster_takes_no_more_than_its_bytes_and_the_local_one_what_it_needs() {
    let max = 20_000;
    let admission = Admission { linked_bytes_max: Some(max), ..Admission::default() };
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), limited(admission)).unwrap();
    let part = join(&reader, &mut writer);
    let used = |reader: &Reader| {
        let sizes = reader.snapshot().unwrap().cluster_sizes().unwrap();
        sizes.iter().find(|size| size.cluster == "east").map_or(0, |size| size.bytes)
    };
    let pods = |version, names: std::ops::Range<u32>| -> Vec<Change> {
        let pod = |n| far(&part, Kind::Pod, &format!("pod-{n:04}"), version, pod("sa"));
        names.map(pod).collect()
    };
    let commit = writer.commit(NOW, pods(1, 0..2_000)).unwrap();
    let (stored, not) = (commit.put, commit.refused["east"]);
    assert!(stored > 100 && not > 100 && stored + not == 2_000, "{stored} and {not}");
    assert!(used(&reader) < max - max / 10 + 200, "{}", used(&reader));
    assert_eq!(refused(&reader), not);
    // What isn't a pod has the last tenth; what is stored is replaced.
    let slice = || bare(0, [(1, true)]);
    let commit = writer.commit(NOW, vec![far(&part, Kind::EndpointSlice, "s", 2, slice())]);
    assert_eq!(commit.unwrap().put, 1);
    assert_eq!(writer.commit(NOW, pods(3, 0..10)).unwrap().put, 10);
    // The local cluster has no such limit.
    let local = (0..300).map(|n| put(Kind::Pod, &format!("p-{n}"), 1, pod("sa"))).collect();
    assert_eq!(writer.commit(NOW, local).unwrap().put, 300);
    assert_eq!(writer.check().unwrap(), []);
    let has_room =
        |reader: &Reader| reader.snapshot().unwrap().has_room_again("east", part.id, max).unwrap();
    assert!(!has_room(&reader));
    // When much of it is gone, it is worth while to list anew, and then nothing is owed.
    let source = Source { cluster: part.id, kind: Kind::Pod };
    let gone = |n| {
        let name = ObjectName::new("shop", format!("pod-{n:04}")).unwrap();
        Change::Delete { key: Key { source, name } }
    };
    writer.commit(NOW, (0..stored as u32).map(gone).collect()).unwrap();
    assert!(has_room(&reader));
    writer.commit(NOW, vec![Change::Begin { source }]).unwrap();
    assert!(!has_room(&reader) && refused(&reader) == 0);
    assert_eq!(writer.check().unwrap(), []);
    // What leaves takes nothing.
    writer.commit(NOW, vec![Change::Leave { id: part.id }]).unwrap();
    rest(&mut writer, NOW);
    assert_eq!(used(&reader), 0);
    assert_eq!(writer.check().unwrap(), []);
    assert_ne!(part.id, ClusterId::LOCAL);
}

/// The number is said in docs/flood.md.
#[test]
fn a_pod_that_can_own_no_address_costs_a_stub() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(60_000)).unwrap();
    let finished = |n: u64| {
        let Object::Workload(mut workload) = pod("job") else {
            unreachable!("a pod is a workload")
        };
        workload.phase = model::Phase::Finished;
        workload.template.labels = (0..20).map(|n| (format!("l-{n}"), "x".repeat(60))).collect();
        "import-28765432-".clone_into(&mut workload.template.name_prefix);
        let name = format!("import-28765432-{n:05}");
        put(Kind::Pod, &name, 1_000_000 + n, Object::Workload(workload))
    };
    writer.commit(NOW, vec![finished(0)]).unwrap();
    let (rows, bytes) = (reader.stats().rows, reader.stats().bytes);
    writer.commit(NOW, (1..=1_000).map(finished).collect()).unwrap();
    let (rows, bytes) = (reader.stats().rows - rows, reader.stats().bytes - bytes);
    assert_eq!(rows, 1_000, "a row of each, and nothing else");
    assert!(bytes / 1_000 < 60, "{bytes}");
}
