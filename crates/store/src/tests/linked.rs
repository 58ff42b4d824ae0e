//! Parts of linked clusters: their numbers, and what is left of those that leave; and which are in use.

use std::collections::BTreeSet;

use model::{
    Change, ClusterId, Credentials, Discovery, EndpointsFrom, Key, Kind, Link, Object, ObjectName,
    Origin, Part, ResourceVersion, Service, Source, StoredPart,
};

use super::fixture::{NOW, Random, config, key, put};
use crate::{Reader, WakeKey, Writer, open};

fn part(cluster: &str, namespace: &str) -> Part {
    Part { cluster: cluster.to_owned(), namespace: namespace.to_owned() }
}

fn join(part: &Part, uid: &str, trust_domain: &str) -> Change {
    let origin = Origin { uid: uid.to_owned(), trust_domain: trust_domain.to_owned() };
    Change::Join { part: part.clone(), origin }
}

fn stored(reader: &Reader, part: &Part) -> Option<StoredPart> {
    reader.snapshot().unwrap().part(part).unwrap()
}

fn nodes(cluster: ClusterId, count: usize) -> Vec<Change> {
    let source = Source { cluster, kind: Kind::Node };
    let put = |n| Change::Put {
        key: Key { source, name: ObjectName::new("", format!("n-{n}")).unwrap() },
        version: ResourceVersion("1".to_owned()),
        object: Object::Node { zone: None },
    };
    (0..count).map(put).collect()
}

fn count(reader: &Reader, cluster: ClusterId) -> usize {
    let mut count = 0;
    let source = Source { cluster, kind: Kind::Node };
    reader.snapshot().unwrap().objects(source, &mut |_, _| count += 1).unwrap();
    count
}

/// Does all work that waits.
fn rest(writer: &mut Writer) {
    while writer.tick(NOW).unwrap().is_some() {}
    assert_eq!(writer.check().unwrap(), []);
}

#[test]
fn a_part_keeps_its_number_unless_it_is_of_another_cluster_m02() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
    let (east, west) = (part("east", "shop"), part("west", ""));
    let commit = writer.commit(NOW, vec![join(&east, "u1", "t1"), join(&west, "u2", "t2")]);
    let touched = commit.unwrap().touched;
    for key in [WakeKey::links(), WakeKey::link("east"), WakeKey::link("west")] {
        assert!(touched.contains(&key));
    }
    let first = stored(&reader, &east).unwrap();
    assert_eq!((first.id, first.origin.trust_domain.as_str()), (ClusterId(1), "t1"));
    assert_eq!(stored(&reader, &west).unwrap().id, ClusterId(2));
    assert_eq!(writer.commit(NOW, vec![join(&east, "u1", "t1")]).unwrap().touched, []);
    writer.commit(NOW, vec![join(&east, "u1", "new")]).unwrap();
    let again = stored(&reader, &east).unwrap();
    assert_eq!((again.id, again.origin.trust_domain.as_str()), (first.id, "new"));
    // All of a cluster stands in for its namespaces.
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.part_with("west", "shop").unwrap().unwrap().part, west);
    assert_eq!(snapshot.part_with("east", "other").unwrap(), None);
    drop(snapshot);

    writer.commit(NOW, nodes(first.id, 3)).unwrap();
    writer.commit(NOW, vec![join(&east, "other", "new")]).unwrap();
    assert_eq!(stored(&reader, &east).unwrap().id, ClusterId(3));
    rest(&mut writer);
    assert_eq!(count(&reader, first.id), 0, "those of the cluster before");
    // What was on its way comes too late.
    writer.commit(NOW, nodes(first.id, 3)).unwrap();
    assert_eq!(count(&reader, first.id), 0);
}

#[test]
fn what_is_left_of_a_part_is_swept_after_a_restart_too_and_then_its_number_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let east = part("east", "shop");
    {
        let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
        writer.commit(NOW, vec![join(&east, "u", "t")]).unwrap();
        let id = stored(&reader, &east).unwrap().id;
        for _ in 0..3 {
            writer.commit(NOW, nodes(id, 2_000)).unwrap();
        }
        writer.commit(NOW, vec![Change::Leave { id }]).unwrap();
        assert!(stored(&reader, &east).is_none() && count(&reader, id) > 0, "it has just begun");
    }
    let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
    writer.commit(NOW, vec![join(&east, "u", "t")]).unwrap();
    assert_eq!(stored(&reader, &east).unwrap().id, ClusterId(2), "the other is still in use");
    rest(&mut writer);
    assert_eq!(count(&reader, ClusterId(1)), 0);
    // Once the undo log doesn't reach back to it.
    writer.commit(NOW, vec![Change::Leave { id: ClusterId(2) }]).unwrap();
    let mut small = Random(7);
    for version in 0..2_000_u64 {
        let ports = Service { local_traffic: small.chance(50), ..Service::default() };
        let change = put(Kind::Service, "svc-0", version + 1, Object::Service(ports));
        writer.commit(NOW, vec![change]).unwrap();
        rest_quickly(&mut writer);
    }
    writer.commit(NOW, vec![join(&east, "u", "t")]).unwrap();
    assert_eq!(stored(&reader, &east).unwrap().id, ClusterId(1));
    assert_eq!(writer.check().unwrap(), []);
}

fn rest_quickly(writer: &mut Writer) {
    while writer.tick(NOW).unwrap().is_some() {}
}

fn text(random: &mut Random, texts: &[&str]) -> Option<String> {
    let place = random.below(texts.len() as u64 + 1) as usize;
    texts.get(place).map(|text| (*text).to_owned())
}

#[test]
fn parts_in_use_are_those_that_services_stand_for() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
    let mut random = Random(11);
    let mut services = std::collections::BTreeMap::new();
    for version in 1..400 {
        let name = format!("svc-{}", random.below(4));
        if random.chance(25) {
            services.remove(&name);
            writer.commit(NOW, vec![Change::Delete { key: key(Kind::Service, &name) }]).unwrap();
        } else {
            let discovery = Discovery {
                cluster: text(&mut random, &["east", "west", ""]),
                service: text(&mut random, &["web", ""]),
                members: text(&mut random, &["a@east", "a@north,b@west,a@north", "a,b@c@d,", ""]),
                local_member: text(&mut random, &["a"]),
            };
            let service = Service { discovery: discovery.clone(), ..Service::default() };
            let change = put(Kind::Service, &name, version, Object::Service(service));
            writer.commit(NOW, vec![change]).unwrap();
            services.insert(name, discovery);
        }
        let namespace = key(Kind::Service, "x").name.namespace().to_owned();
        let remotes = services.values().flat_map(|discovery| discovery.remotes(&namespace));
        let expected: BTreeSet<Part> =
            remotes.map(|remote| part(&remote.cluster, &namespace)).collect();
        let found = reader.snapshot().unwrap().parts_in_use().unwrap();
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    }
    assert_eq!(writer.check().unwrap(), []);
}

#[test]
fn of_several_secrets_for_a_cluster_the_first_counts_and_none_keeps_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
    let link = |trust_domain: &str| {
        Object::Link(Ok(Link {
            cluster: "east".to_owned(),
            trust_domain: trust_domain.to_owned(),
            cluster_domain: "e.test".to_owned(),
            credentials: Credentials("s3cret".into()),
        }))
    };
    let faulty = Object::Link(Err("it has no data.kubeconfig".to_owned()));
    let changes = vec![
        put(Kind::Secret, "b", 1, link("b")),
        put(Kind::Secret, "c", 2, link("c")),
        put(Kind::Secret, "a", 3, faulty),
    ];
    let touched = writer.commit(NOW, changes).unwrap().touched;
    assert!(touched.contains(&WakeKey::link("east")) && touched.contains(&WakeKey::links()));
    let namespace = key(Kind::Secret, "a").name.namespace().to_owned();
    let found = || reader.snapshot().unwrap().link(&namespace, "east").unwrap();
    let first = found().unwrap();
    assert_eq!((first.trust_domain.as_str(), first.credentials), ("b", Credentials::default()));
    writer.commit(NOW, vec![Change::Delete { key: key(Kind::Secret, "b") }]).unwrap();
    assert_eq!(found().unwrap().trust_domain, "c");
    let mut all = Vec::new();
    let snapshot = reader.snapshot().unwrap();
    snapshot
        .links(&namespace, &mut |name, link| all.push((name.name().to_owned(), link.is_ok())))
        .unwrap();
    assert_eq!(all, [("a".to_owned(), false), ("c".to_owned(), true)]);
    assert_eq!(snapshot.link("other", "east").unwrap(), None);
    drop(snapshot);
    drop((writer, reader));
    let file = std::fs::read(folder.path().join("spillway.redb")).unwrap();
    assert!(!file.windows(6).any(|bytes| bytes == b"s3cret"), "credentials are on the disk");
}

#[test]
fn a_part_is_listed_once_all_its_kinds_are() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(10_000)).unwrap();
    writer.commit(NOW, vec![join(&part("east", "shop"), "u", "t")]).unwrap();
    let listed =
        || reader.snapshot().unwrap().is_listed(ClusterId(1), EndpointsFrom::Slices).unwrap();
    for kind in EndpointsFrom::Slices.kinds_of_linked() {
        assert!(!listed());
        let source = Source { cluster: ClusterId(1), kind };
        let version = ResourceVersion("1".to_owned());
        let changes = vec![Change::Begin { source }, Change::End { source, version }];
        let touched = writer.commit(NOW, changes).unwrap().touched;
        assert!(touched.contains(&WakeKey::link("east")), "streams that wait for it look");
    }
    assert!(listed());
}
