//! The rows of the groups that were joined anew, and all that is written along with them: undo entries, indexes,
//! counts of signatures.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::key::{self, RowKey, ServiceId};
use crate::record::v3;
use crate::table::Value;
use crate::undo::undone_row;
use crate::write::Work;
use crate::{Error, WakeKey, record};

/// The rows of a group, in the order of their keys. Nearly always one.
pub(crate) type Rows = Vec<(RowKey, v3::Row)>;

/// Addresses, with all rows on them.
pub(crate) type Addresses = Vec<(IpAddr, v3::UndoneRows)>;

/// How many targets more, or fewer, have a signature now.
type Counts = BTreeMap<(ServiceId, v3::Signature), i64>;

/// What rejoining many groups comes to: written once for all of them.
#[derive(Default)]
pub(crate) struct Changes {
    signatures: Counts,
    services: BTreeSet<ServiceId>,
}

impl Changes {
    fn count(&mut self, service: ServiceId, signature: v3::Signature, by: i64) {
        if !signature.is_empty() {
            *self.signatures.entry((service, signature)).or_default() += by;
        }
    }
}

impl Work<'_> {
    /// Which of these rows there are; and all rows on the addresses that they are on.
    pub(crate) fn rows_of(
        &self,
        service: ServiceId,
        keys: &[RowKey],
    ) -> Result<(Rows, Addresses), Error> {
        let (mut rows, mut beside) = (Rows::new(), Addresses::new());
        for same in keys.chunk_by(|a, b| a.ip == b.ip) {
            let ip = same[0].ip;
            let on_ip = self.rows_on(service, ip)?;
            for (slice, workload, row) in &on_ip {
                let key = RowKey { ip, slice: *slice, workload: *workload };
                if same.contains(&key) {
                    rows.push((key, row.clone()));
                }
            }
            beside.push((ip, on_ip));
        }
        Ok((rows, beside))
    }

    /// All rows on an address, as this transaction has them.
    fn rows_on(&self, service: ServiceId, ip: IpAddr) -> Result<v3::UndoneRows, Error> {
        let prefix = key::row_ip(service, ip);
        let rows = self.tables.endpoints.range(&prefix, &key::prefix_end(&prefix))?;
        let row = |entry: Result<(Value<'_>, Value<'_>), Error>| {
            let (key, value) = entry?;
            undone_row(key.value(), value.value())
        };
        rows.map(row).collect()
    }

    pub(crate) fn replace_rows(
        &mut self,
        service: ServiceId,
        old: &Rows,
        new: &Rows,
        beside: Addresses,
        changes: &mut Changes,
    ) -> Result<(), Error> {
        for (ip, rows) in beside {
            let on_ip = |(key, _): &&(RowKey, v3::Row)| key.ip == ip;
            if !old.iter().filter(on_ip).eq(new.iter().filter(on_ip)) {
                self.undo_address(service, ip, rows)?;
            }
        }
        for (key, row) in old.iter().filter(|row| !new.contains(row)) {
            self.remove_row(service, *key, row)?;
        }
        for (key, row) in new.iter().filter(|row| !old.contains(row)) {
            self.insert_row(service, *key, row)?;
        }
        for key in contested(old) {
            self.tables.contested.remove(key::contested(service, key).as_slice())?;
        }
        for key in contested(new) {
            self.tables.contested.insert(key::contested(service, key), Vec::new())?;
        }
        let (before, now) = (signature(old), signature(new));
        if before != now {
            changes.count(service, before, -1);
            changes.count(service, now, 1);
        }
        changes.services.insert(service);
        Ok(())
    }

    /// Writes what rejoining came to.
    pub(crate) fn write_changes(&mut self, changes: Changes) -> Result<(), Error> {
        self.count_signatures(changes.signatures)?;
        for service in changes.services {
            let key = self.service_key(service)?;
            self.touched.insert(WakeKey::object(&key));
        }
        Ok(())
    }

    fn remove_row(&mut self, service: ServiceId, key: RowKey, row: &v3::Row) -> Result<(), Error> {
        self.tables.endpoints.remove(key.write(service).as_slice())?;
        self.meta.endpoints = self.meta.endpoints.saturating_sub(1);
        if let Some(hostname) = &row.hostname {
            let index = key::hostname(service, hostname, key);
            self.tables.hostnames.remove(index.as_slice())?;
        }
        Ok(())
    }

    fn insert_row(&mut self, service: ServiceId, key: RowKey, row: &v3::Row) -> Result<(), Error> {
        self.tables.endpoints.insert(key.write(service), record::encode(row)?)?;
        self.meta.endpoints += 1;
        if let Some(hostname) = &row.hostname {
            let index = key::hostname(service, hostname, key);
            self.tables.hostnames.insert(index, Vec::new())?;
        }
        Ok(())
    }

    fn count_signatures(&mut self, by: Counts) -> Result<(), Error> {
        for ((service, signature), by) in by.into_iter().filter(|(_, by)| *by != 0) {
            let signature = record::encode(&signature)?;
            let key = key::context(service, &signature);
            let before = match self.tables.contexts.get(key.as_slice())? {
                Some(count) => key::KeyReader(count.value()).u64().unwrap_or(0),
                None => 0,
            };
            let now = before.saturating_add_signed(by);
            if now == before {
                continue;
            }
            self.undo_signature(service, &signature, before)?;
            if now == 0 {
                self.tables.contexts.remove(key.as_slice())?;
            } else {
                self.tables.contexts.insert(key, now.to_be_bytes().to_vec())?;
            }
        }
        Ok(())
    }

    /// The object key of a Service that slices name.
    pub(crate) fn service_key(&self, service: ServiceId) -> Result<Vec<u8>, Error> {
        let found = self.tables.service_keys.get(key::id(service).as_slice())?;
        let missing =
            || Error::Damaged { what: "service", reason: format!("{service} has no key") };
        Ok(found.ok_or_else(missing)?.value().to_vec())
    }
}

/// The rows of a group that compete: their rank depends on the versions of their slices.
pub(crate) fn contested(rows: &Rows) -> Vec<RowKey> {
    let rivals = |class: u8| rows.iter().filter(|(_, row)| row.class == class).count() > 1;
    rows.iter().filter(|(_, row)| rivals(row.class)).map(|(key, _)| *key).collect()
}

/// What a group's claims amount to, in order of rank.
pub(crate) fn signature(rows: &Rows) -> v3::Signature {
    let mut rows: Vec<_> = rows.iter().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| row.rank);
    rows.into_iter().map(|row| (row.class, row.slice, row.hints.clone())).collect()
}
