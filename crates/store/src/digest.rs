//! One number for all that a store says.

use std::hash::Hasher as _;

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, TableHandle as _};
use siphasher::sip::SipHasher13;

use crate::Error;

/// Of every key and value of every table, in order, each with its length.
pub(crate) fn digest(txn: &ReadTransaction) -> Result<u64, Error> {
    let mut names: Vec<String> = txn.list_tables()?.map(|table| table.name().to_owned()).collect();
    names.sort_unstable();
    let mut hasher = SipHasher13::new();
    let mut say = |bytes: &[u8]| {
        hasher.write_u64(bytes.len() as u64);
        hasher.write(bytes);
    };
    for name in names {
        say(name.as_bytes());
        let table = txn.open_table(TableDefinition::<&[u8], &[u8]>::new(&name))?;
        for entry in table.iter()? {
            let (key, value) = entry?;
            say(key.value());
            say(value.value());
        }
    }
    Ok(hasher.finish())
}
