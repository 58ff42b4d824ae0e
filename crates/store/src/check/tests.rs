//! The check finds what a damaged file would have: any one row too few, in any table.

use std::collections::BTreeMap;

use model::{
    Change, Discovery, Family, Kind, Object, Origin, Part, ResourceVersion, Slice, SliceEndpoint,
    SliceMeta, Target,
};
use redb::{ReadableDatabase, ReadableTable, TableDefinition, TableHandle};

use crate::tests::fixture::{NOW, config, ip, key, pod, put, source};
use crate::{Admission, Birth, Config, Writer, open};

fn table(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

/// Rows in every table: two slices of one Service with a pod in both, a hostname, and something unused.
fn fill(writer: &mut Writer) {
    let endpoint = |n: u64, pod: &str| SliceEndpoint {
        ip: ip(false, n),
        ready: true,
        target: Target::Pod(key(Kind::Pod, pod).name),
        hostname: Some("h".to_owned()),
        zone: Some("z".to_owned()),
        hints: vec!["z".to_owned()],
    };
    let bare = SliceEndpoint { target: Target::Bare, ..endpoint(4, "a") };
    let slice = |endpoints| {
        Object::Slice(Slice {
            service: Some(key(Kind::Service, "svc").name),
            family: Family::V4,
            meta: SliceMeta::default(),
            endpoints,
        })
    };
    let service = || {
        let cluster_ips = vec![ip(false, 9)];
        let discovery = Discovery { members: Some("a@east".to_owned()), ..Discovery::default() };
        Object::Service(model::Service { cluster_ips, discovery, ..model::Service::default() })
    };
    writer
        .commit(
            NOW,
            vec![
                put(Kind::Service, "svc", 1, service()),
                put(Kind::Service, "gone", 1, service()),
                Change::Join {
                    part: Part { cluster: "east".to_owned(), namespace: "shop".to_owned() },
                    origin: Origin::default(),
                },
                put(Kind::Pod, "a", 1, pod("one")),
                put(Kind::Pod, "b", 1, pod("two")),
                put(Kind::EndpointSlice, "s1", 1, slice(vec![endpoint(1, "a"), endpoint(2, "b")])),
                put(Kind::EndpointSlice, "s2", 2, slice(vec![endpoint(3, "a"), bare])),
                Change::Checkpoint {
                    source: source(Kind::Pod),
                    version: ResourceVersion("2".to_owned()),
                },
            ],
        )
        .unwrap();
    let changes = vec![
        Change::Delete { key: key(Kind::Service, "gone") },
        Change::Delete { key: key(Kind::Pod, "b") },
    ];
    writer.commit(NOW, changes).unwrap();
}

/// All rows of a file, by table.
fn rows(path: &std::path::Path) -> BTreeMap<String, Vec<Vec<u8>>> {
    let database = redb::Database::open(path).unwrap();
    let txn = database.begin_read().unwrap();
    let names: Vec<_> = txn.list_tables().unwrap().map(|it| it.name().to_owned()).collect();
    let keys = |name: &String| {
        let opened = txn.open_table(table(name)).unwrap();
        opened.iter().unwrap().map(|row| row.unwrap().0.value().to_vec()).collect()
    };
    names.iter().map(|name| (name.clone(), keys(name))).collect()
}

#[test]
fn a_row_that_is_missing_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spillway.redb");
    {
        let admission = Admission { service_max: Some(2), ..Admission::default() };
        let config = Config { admission, ..config(10_000) };
        let (mut writer, _reader, _) = open(folder.path(), config).unwrap();
        fill(&mut writer);
        assert_eq!(writer.check().unwrap(), []);
    }
    let whole = std::fs::read(&path).unwrap();
    let mut tables = 0;
    for (name, keys) in rows(&path) {
        // Nothing else says what a checkpoint is, when a Service went, or what there is in meta.
        if ["meta.1", "checkpoints.1", "vacant.1"].contains(&name.as_str()) {
            continue;
        }
        assert!(!keys.is_empty(), "{name} has no rows to lose");
        tables += 1;
        for key in keys {
            std::fs::write(&path, &whole).unwrap();
            let database = redb::Database::open(&path).unwrap();
            let txn = database.begin_write().unwrap();
            let lost =
                txn.open_table(table(&name)).unwrap().remove(key.as_slice()).unwrap().is_some();
            assert!(lost);
            txn.commit().unwrap();
            drop(database);
            // They are of a file that nobody else writes to.
            std::fs::remove_file(folder.path().join("spillway.sums")).unwrap();
            let (mut writer, _reader, birth) = open(folder.path(), config(10_000)).unwrap();
            assert!(matches!(birth, Birth::Opened(_)), "{name}: {key:?}: {birth:?}");
            // What depends on the row may not even be readable without it.
            let found = writer.check().is_ok_and(|faults| faults.is_empty());
            assert!(!found, "{name}: {key:?} is not missed");
        }
    }
    assert_eq!(tables, 21);
}
