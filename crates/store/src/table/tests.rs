//! A table of a transaction is a map, and asks the tree no more than it must.

use std::collections::BTreeMap;

use proptest::prelude::*;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::*;

const TABLE: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("t");
const COPY: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("copy");

/// What is done to a table, and asked of it.
#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    RemoveRange(Vec<u8>, Vec<u8>),
    Flush,
    Get(Vec<u8>),
    Range(Vec<u8>, Vec<u8>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0..4_u8, 1..4)
}

fn step() -> impl Strategy<Value = Step> {
    let value = proptest::collection::vec(any::<u8>(), 0..3);
    prop_oneof![
        4 => (key(), value).prop_map(|(key, value)| Step::Insert(key, value)),
        2 => key().prop_map(Step::Remove),
        1 => (key(), key()).prop_map(|(a, b)| Step::RemoveRange(a.clone().min(b.clone()), a.max(b))),
        1 => Just(Step::Flush),
        4 => key().prop_map(Step::Get),
        3 => (key(), key()).prop_map(|(a, b)| Step::Range(a.clone().min(b.clone()), a.max(b))),
    ]
}

fn database() -> Database {
    Database::builder().create_with_backend(redb::backends::InMemoryBackend::new()).unwrap()
}

fn size(rows: &BTreeMap<Vec<u8>, Vec<u8>>) -> Size {
    let mut size = Size::default();
    rows.iter().for_each(|(key, value)| size += Size::row(key, value));
    size
}

fn owned(rows: Range<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    rows.map(|row| row.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).unwrap())
        .collect()
}

proptest! {
    /// Whatever is pending and whatever is known to be missing, a table is a map, its copy is equal to it, and it
    /// knows how much larger it has become.
    #[test]
    fn a_table_is_a_map(
        there in proptest::collection::btree_map(key(), Just(b"old".to_vec()), 0..20),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let database = database();
        let txn = database.begin_write().unwrap();
        for table in [TABLE, COPY] {
            let mut table = txn.open_table(table).unwrap();
            for (key, value) in &there {
                table.insert(key.as_slice(), value.as_slice()).unwrap();
            }
        }
        let mut rows =
            Rows::new(txn.open_table(TABLE).unwrap(), Some(txn.open_table(COPY).unwrap()));
        let mut oracle = there.clone();
        for step in steps {
            match step {
                Step::Insert(key, value) => {
                    rows.insert(key.clone(), value.clone()).unwrap();
                    oracle.insert(key, value);
                }
                Step::Remove(key) => {
                    rows.remove(&key).unwrap();
                    oracle.remove(&key);
                }
                Step::RemoveRange(from, end) => {
                    rows.remove_range(&from, &end).unwrap();
                    oracle.retain(|key, _| *key < from || *key >= end);
                }
                Step::Flush => rows.flush().unwrap(),
                Step::Get(key) => {
                    let found = rows.get(&key).unwrap().map(|value| value.value().to_vec());
                    prop_assert_eq!(found.as_ref(), oracle.get(&key));
                }
                Step::Range(from, end) => {
                    let found = owned(rows.range(&from, &end).unwrap());
                    let expected = oracle.range(from..end);
                    prop_assert!(found.iter().map(|(key, value)| (key, value)).eq(expected));
                }
            }
        }
        prop_assert!(owned(rows.iter().unwrap()).into_iter().eq(oracle.clone()));
        rows.flush().unwrap();
        prop_assert_eq!(rows.len().unwrap(), oracle.len() as u64);
        let mut grown = size(&oracle);
        grown -= size(&there);
        prop_assert_eq!(rows.grown(), grown);
        drop(rows);
        txn.commit().unwrap();
        let txn = database.begin_read().unwrap();
        for table in [TABLE, COPY] {
            let table = txn.open_table(table).unwrap();
            let found = table.iter().unwrap().map(|row| {
                let (key, value) = row.unwrap();
                (key.value().to_vec(), value.value().to_vec())
            });
            prop_assert!(found.eq(oracle.clone()));
        }
    }
}

/// A table of which much is written holds little of it.
#[test]
fn what_is_pending_has_a_limit() {
    let database = database();
    let txn = database.begin_write().unwrap();
    let mut rows = Rows::new(txn.open_table(TABLE).unwrap(), None);
    for number in 0..10_000_u32 {
        rows.insert(number.to_be_bytes().to_vec(), vec![0; number as usize % 1_000]).unwrap();
        assert!(rows.pending.len() < PENDING_ROWS_MAX);
        assert!(rows.pending_bytes < PENDING_BYTES_MAX);
    }
}

/// Whoever asks for keys in order asks the tree once.
#[test]
fn a_gap_is_found_once() {
    let database = database();
    let txn = database.begin_write().unwrap();
    let mut rows = Rows::new(txn.open_table(TABLE).unwrap(), None);
    rows.insert(vec![9], Vec::new()).unwrap();
    rows.flush().unwrap();
    for number in 1..9 {
        assert!(rows.get(&[number]).unwrap().is_none());
        rows.insert(vec![number], Vec::new()).unwrap();
        rows.flush().unwrap();
        assert!(rows.in_gap(&[number, 0]), "behind {number}");
        assert!(!rows.in_gap(&[number]));
        assert!(!rows.in_gap(&[9]));
    }
}
