//! What is said of the file format is so: its document, and a file that was written when the format was made.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use model::{
    Change, Claim, ClusterId, Credentials, Discovery, Family, Kind, Link, Object, Origin, OwnerRef,
    Part, ResourceVersion, Revision, SignatureItem, Slice, SliceEndpoint, SliceMeta, SlicePort,
    StoredPart, Target, WorkloadKind,
};
use redb::{ReadableDatabase, ReadableTable, TableDefinition, TableHandle};

use super::fixture::{NOW, config, ip, key, pod, put, source};
use super::service;
use crate::schema::FORMAT;
use crate::{Admission, Birth, Config, Error, Held, Reader, Scope, Writer, open};

/// Makes the committed file anew, if it is set. To be used once for each format, before that is released.
const MAKE: &str = "SPILLWAY_MAKE_FORMAT";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/formats")
}

fn table(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

/// The names of all tables of a file, with the number of their rows.
fn tables(path: &Path) -> Vec<(String, usize)> {
    let database = redb::Database::open(path).unwrap();
    let txn = database.begin_read().unwrap();
    let names: Vec<_> = txn.list_tables().unwrap().map(|it| it.name().to_owned()).collect();
    let rows = |name: &str| txn.open_table(table(name)).unwrap().iter().unwrap().count();
    names.into_iter().map(|name| (name.clone(), rows(&name))).collect()
}

#[test]
fn the_document_describes_each_table_and_no_other() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let document = std::fs::read_to_string(document).unwrap();
    let headings = document.lines().filter_map(|line| line.strip_prefix("### `"));
    let described: BTreeSet<&str> = headings.map(|rest| rest.trim_end_matches('`')).collect();
    let temp = tempfile::tempdir().unwrap();
    drop(open(temp.path(), config(10_000)).unwrap());
    let there = tables(&temp.path().join("spillway.redb"));
    let there: BTreeSet<&str> = there.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(described, there, "docs/format.md has a `### ` heading for each table");
    assert!(
        document.contains(&format!("# The file, format {FORMAT}\n")),
        "it is of another format"
    );
}

fn endpoint(n: u64, target: Target) -> SliceEndpoint {
    SliceEndpoint {
        ip: ip(false, n),
        ready: true,
        target,
        hostname: (n.is_multiple_of(2)).then(|| format!("h-{n}")),
        zone: Some("z1".to_owned()),
        hints: vec!["z1".to_owned(), "z2".to_owned()],
    }
}

fn slice(endpoints: Vec<SliceEndpoint>) -> Object {
    let port = SlicePort { name: "http".to_owned(), port: Some(8_080) };
    Object::Slice(Slice {
        service: Some(key(Kind::Service, "svc-0").name),
        family: Family::V4,
        meta: SliceMeta { ports: Some(vec![port]), ..SliceMeta::default() },
        endpoints,
    })
}

fn workload(kind: WorkloadKind, node: &str) -> Object {
    let Object::Workload(mut workload) = pod("carts") else { unreachable!("a pod is a workload") };
    let owner = OwnerRef { kind: "ReplicaSet".to_owned(), name: "cart-7d".to_owned() };
    workload.template.owner = Some(owner);
    "cart-7d-".clone_into(&mut workload.template.name_prefix);
    workload.template.kind = kind;
    workload.node = Some(node.to_owned());
    Object::Workload(workload)
}

fn link() -> Object {
    Object::Link(Ok(Link {
        cluster: "east".to_owned(),
        trust_domain: "east.org".to_owned(),
        cluster_domain: "e.test".to_owned(),
        credentials: Credentials::default(),
    }))
}

/// Rows in every table, and a past: a pod in two slices, an external workload, bare addresses; then some change
/// and some go. With room for three, the bare address has to wait.
fn fill(writer: &mut Writer) {
    let pod = |name: &str| Target::Pod(key(Kind::Pod, name).name);
    let vm = Target::ExternalWorkload(key(Kind::ExternalWorkload, "vm").name);
    let owned = Object::Owned {
        owner: Some(OwnerRef { kind: "Deployment".to_owned(), name: "cart".to_owned() }),
    };
    let service = |local_traffic| {
        let cluster_ips = vec![ip(false, 200)];
        let discovery = Discovery { members: Some("cart@east".to_owned()), ..Discovery::default() };
        Object::Service(model::Service {
            local_traffic,
            cluster_ips,
            discovery,
            ..model::Service::default()
        })
    };
    let all = vec![endpoint(1, pod("cart-7d-a")), endpoint(2, pod("cart-7d-b")), endpoint(3, vm)];
    let origin = Origin { uid: "1-2-3".to_owned(), trust_domain: "east.org".to_owned() };
    let part =
        |namespace: &str| Part { cluster: "east".to_owned(), namespace: namespace.to_owned() };
    let both = vec![endpoint(4, pod("cart-7d-a")), endpoint(5, Target::Bare)];
    let first = vec![
        put(Kind::Node, "node-1", 1, Object::Node { zone: Some("z1".to_owned()) }),
        put(Kind::ReplicaSet, "cart-7d", 2, owned),
        put(Kind::Service, "svc-0", 3, service(false)),
        put(Kind::Service, "gone", 4, service(false)),
        put(Kind::Pod, "cart-7d-a", 5, workload(WorkloadKind::Pod, "node-1")),
        put(Kind::Pod, "cart-7d-b", 6, workload(WorkloadKind::Pod, "node-2")),
        put(Kind::ExternalWorkload, "vm", 7, workload(WorkloadKind::External, "node-1")),
        put(Kind::EndpointSlice, "s1", 8, slice(all)),
        put(Kind::EndpointSlice, "s2", 9, slice(both.clone())),
        put(Kind::Secret, "credentials", 10, link()),
        Change::Join { part: part("shop"), origin: origin.clone() },
        Change::Join { part: part("other"), origin },
    ];
    writer.commit(NOW, first).unwrap();
    let version = ResourceVersion("13".to_owned());
    let second = vec![
        put(Kind::Service, "svc-0", 10, service(true)),
        Change::Delete { key: key(Kind::Service, "gone") },
        Change::Delete { key: key(Kind::Pod, "cart-7d-b") },
        put(Kind::EndpointSlice, "s2", 12, slice(both)),
        Change::Checkpoint { source: source(Kind::Pod), version },
        Change::Leave { id: ClusterId(2) },
    ];
    writer.commit(NOW, second).unwrap();
}

/// All that a Service has, now and as it was at each revision, as text. It is spelled out, so that the model may
/// change its shape.
fn dump(reader: &Reader) -> String {
    let snapshot = reader.snapshot().unwrap();
    let mut text = format!("revision {}\n", snapshot.revision().0);
    let checkpoint = snapshot.checkpoint(source(Kind::Pod)).unwrap();
    writeln!(text, "pods up to {}", checkpoint.unwrap().0).unwrap();
    for kind in Kind::ALL {
        let visit = &mut |name, version: ResourceVersion| {
            writeln!(text, "{} {name} in version {}", kind.name(), version.0).unwrap();
        };
        snapshot.objects(source(kind), visit).unwrap();
    }
    for StoredPart { part, id, origin } in snapshot.parts().unwrap() {
        let Origin { uid, trust_domain } = origin;
        writeln!(text, "{part} as {}: {uid}, {trust_domain}", id.0).unwrap();
    }
    for part in snapshot.parts_in_use().unwrap() {
        writeln!(text, "{part} is in use").unwrap();
    }
    let name = service(0);
    let Held { targets, peak, waiting } = snapshot.held(&name).unwrap();
    writeln!(text, "{targets} targets, {peak} at most, {waiting} wait").unwrap();
    let rows = snapshot.service(&name).unwrap();
    for revision in (snapshot.trimmed().0..=snapshot.revision().0).map(Revision) {
        let object = rows.object(revision).unwrap();
        let object = object.service().map_or("no Service", |service| match service.local_traffic {
            true => "local traffic only",
            false => "a Service",
        });
        writeln!(text, "\nrevision {}: {object}", revision.0).unwrap();
        for (signature, count) in rows.signatures(revision).unwrap() {
            let item = |item: &SignatureItem| {
                format!("{:?} {} hints={}", item.class, meta(&item.slice), item.hints.join(","))
            };
            let items: Vec<_> = signature.0.iter().map(item).collect();
            writeln!(text, "{count} x {}", items.join(" + ")).unwrap();
        }
        rows.compare::<Error>(Some(revision), Scope::All, None, &mut |_, then, _| {
            then.iter().for_each(|it| writeln!(text, "{}", claim(it)).unwrap());
            Ok(())
        })
        .unwrap();
    }
    text
}

fn claim(claim: &Claim) -> String {
    let Claim { ip, class, name, workload, node, slice, hostname, zone, hints, rank, peers } =
        claim;
    let part = |name: &str, text: Option<&str>| {
        text.map(|text| format!(" {name}={text}")).unwrap_or_default()
    };
    let owner = workload.as_ref().and_then(|workload| workload.owner.as_ref());
    let owner = owner.map(|owner| format!("{}/{}", owner.kind, owner.name));
    let account = workload.as_ref().map(|workload| workload.service_account.as_str());
    let peer = |peer: &model::Peer| format!("{}@{}", peer.ip, meta(&peer.slice));
    [
        format!("{ip} {class:?} {name:?}"),
        part("owner", owner.as_deref()),
        part("account", account),
        part("node", node.as_deref()),
        part("slice", Some(&meta(slice))),
        part("hostname", hostname.as_deref()),
        part("zone", zone.as_deref()),
        part("hints", Some(&hints.join(","))),
        format!(" rank={rank} peers={}", peers.iter().map(peer).collect::<Vec<_>>().join(",")),
    ]
    .concat()
}

fn meta(meta: &SliceMeta) -> String {
    let ports = meta.ports.iter().flatten();
    let ports = ports.map(|port| format!("{}:{}", port.name, port.port.unwrap_or(0)));
    ports.collect::<Vec<_>>().join(",")
}

/// The file was made by this test with [`MAKE`] set to anything, at format 5 and redb 4.6.0.
#[test]
fn a_file_of_this_format_is_opened_and_says_the_same() {
    let committed = folder().join(format!("format-{FORMAT}.redb"));
    let said = committed.with_extension("txt");
    let temp = tempfile::tempdir().unwrap();
    let copy = temp.path().join("spillway.redb");
    #[expect(clippy::disallowed_methods, reason = "a test has no args")]
    if std::env::var(MAKE).is_ok() {
        let admission = Admission { service_max: Some(3), ..Admission::default() };
        let limited = Config { admission, ..config(10_000) };
        let (mut writer, reader, _) = open(temp.path(), limited).unwrap();
        fill(&mut writer);
        std::fs::write(&said, dump(&reader)).unwrap();
        drop((writer, reader));
        std::fs::rename(&copy, &committed).unwrap();
    }
    std::fs::copy(&committed, &copy).unwrap();
    for (name, rows) in tables(&copy) {
        assert!(rows > 0, "{name} is empty");
    }
    let (mut writer, reader, birth) = open(temp.path(), config(10_000)).unwrap();
    assert_eq!(birth, Birth::Opened(Revision(2)));
    assert_eq!(writer.check().unwrap(), []);
    assert_eq!(dump(&reader), std::fs::read_to_string(said).unwrap());
    // It can be written to as well, and then says what a new one would.
    fill(&mut writer);
    assert_eq!(writer.check().unwrap(), []);
}
