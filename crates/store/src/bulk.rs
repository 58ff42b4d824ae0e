//! Many rows at once: neighbours are written through a cursor, which finds its place once for all of them.

use std::collections::BTreeMap;
use std::ops::Bound;

use redb::{CursorError, Table};

use crate::Error;
use crate::table::Size;

/// Rows to be written, in the order of their keys.
pub(crate) type Pending = BTreeMap<Vec<u8>, Vec<u8>>;

type Bytes = &'static [u8];

/// A row of a table: key and value.
type Row = (Vec<u8>, Vec<u8>);

/// Inserts or replaces all of these rows. Gives how much larger the table is then.
pub(crate) fn insert(table: &mut Table<'_, Bytes, Bytes>, rows: Pending) -> Result<Size, Error> {
    let mut grown = Size::default();
    rows.iter().for_each(|(key, value)| grown += Size::row(key, value));
    let mut rows = rows.into_iter();
    let mut next = rows.next();
    while let Some((key, value)) = next {
        if let Some(old) = table.insert(key.as_slice(), value.as_slice())? {
            grown -= Size::row(&key, old.value());
        }
        // Finding the place for a run takes as long as an insertion.
        next = if rows.len() == 0 { None } else { insert_run(table, &key, &mut rows)? };
    }
    Ok(grown)
}

/// Inserts what comes behind `after`, up to the first row that is already there, or has another one before it;
/// that one is given back.
fn insert_run(
    table: &mut Table<'_, Bytes, Bytes>,
    after: &[u8],
    rows: &mut impl Iterator<Item = Row>,
) -> Result<Option<Row>, Error> {
    let mut cursor = table.lower_bound_mut(Bound::Excluded(after))?;
    let mut rest = None;
    for (key, value) in rows {
        match cursor.insert_before(key.as_slice(), value.as_slice()) {
            Ok(()) => {}
            Err(CursorError::UnorderedKey) => {
                rest = Some((key, value));
                break;
            }
            Err(error) => return Err(Error::Storage(Box::new(error.into()))),
        }
    }
    cursor.close()?;
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redb::{Database, ReadableTable, TableDefinition, backends::InMemoryBackend};

    use super::*;

    fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
        proptest::collection::vec(proptest::collection::vec(0..4_u8, 1..4), 0..40)
    }

    proptest! {
        #[test]
        fn bulk_is_as_one_by_one(there in keys(), rows in keys()) {
            let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
            let txn = database.begin_write().unwrap();
            let mut table = txn.open_table(TableDefinition::new("t")).unwrap();
            let mut oracle = Pending::new();
            for key in there {
                table.insert(key.as_slice(), b"old".as_slice()).unwrap();
                oracle.insert(key, b"old".to_vec());
            }
            let rows: Pending = rows.into_iter().map(|key| (key, b"new".to_vec())).collect();
            oracle.extend(rows.clone());
            insert(&mut table, rows).unwrap();
            let found = table.iter().unwrap().map(|row| {
                let (key, value) = row.unwrap();
                (key.value().to_vec(), value.value().to_vec())
            });
            prop_assert_eq!(found.collect::<Pending>(), oracle);
        }
    }
}
