//! Rows and what is derived along with them: each group of claims is joined anew, slice by slice, and compared.

use std::collections::BTreeMap;

use super::Faults;
use crate::Error;
use crate::dirty::{group, row_key};
use crate::join::ranked;
use crate::key::{self, KeyReader, RowKey, ServiceId, SliceId};
use crate::record::{self, v3};
use crate::rows::{contested, signature};
use crate::slices::{name_of, workload_key};
use crate::workload::ClaimKey;
use crate::write::Work;

/// How many rows there should be of each table.
#[derive(Default)]
struct Expected {
    rows: u64,
    hostnames: u64,
    contested: u64,
    claims: u64,
    /// Targets by (Service, signature).
    signatures: BTreeMap<(ServiceId, Vec<u8>), u64>,
    /// Targets that have rows, and those that wait, by Service.
    targets: BTreeMap<ServiceId, [u64; 2]>,
}

impl Work<'_> {
    pub(super) fn check_rows(&mut self, faults: &mut Faults) -> Result<(), Error> {
        let mut expected = Expected::default();
        let mut next = 0;
        while let Some(id) = self.next_slice(next)? {
            self.check_rows_of(id, &mut expected, faults)?;
            let Some(after) = id.checked_add(1) else { break };
            next = after;
        }
        let tables = &self.tables;
        faults.equal("endpoints", "rows", tables.endpoints.len()?, expected.rows);
        faults.equal("meta", "endpoints", self.meta.endpoints, expected.rows);
        faults.equal("hostnames", "rows", tables.hostnames.len()?, expected.hostnames);
        faults.equal("contested", "rows", tables.contested.len()?, expected.contested);
        faults.equal("claims", "rows", tables.claims.len()?, expected.claims);
        self.check_sizes(&expected.targets, faults)?;
        let tables = &self.tables;
        let signatures = expected.signatures.len() as u64;
        faults.equal("contexts", "rows", tables.contexts.len()?, signatures);
        for ((service, signature), count) in expected.signatures {
            let key = key::context(service, &signature);
            let found = self.tables.contexts.get(key.as_slice())?;
            let found = found.and_then(|count| KeyReader(count.value()).u64()).unwrap_or(0);
            faults.equal("contexts", &format!("a signature of Service {service}"), found, count);
        }
        Ok(())
    }

    /// The first slice whose number is at least this.
    fn next_slice(&self, from: SliceId) -> Result<Option<SliceId>, Error> {
        let first = self.tables.slices.range(&key::id(from), &key::prefix_end(&[]))?.next();
        Ok(first.transpose()?.and_then(|(key, _)| KeyReader(key.value()).u32()))
    }

    /// Compares the rows that come from one slice.
    fn check_rows_of(
        &mut self,
        id: SliceId,
        expected: &mut Expected,
        faults: &mut Faults,
    ) -> Result<(), Error> {
        let Some(slice) = self.slice(id)? else { return Ok(()) };
        let Some(service) = slice.service else { return Ok(()) };
        for endpoint in &slice.endpoints {
            let ClaimKey { template, .. } =
                self.check_claim(id, &slice, endpoint, expected, faults)?;
            let group = group(endpoint);
            let mut keys = vec![row_key(id, endpoint)];
            let parts = self.parts(service, (group, template), &mut keys)?;
            let mut rows = ranked(parts, endpoint.workload != 0);
            let is_first = |(key, row): &(RowKey, v3::Row)| row.rank == 0 && key.slice == id;
            if rows.iter().any(is_first) {
                let waits = self.check_waiting(service, group, &rows, faults)?;
                let targets = expected.targets.entry(service).or_default();
                targets[usize::from(waits)] += 1;
            }
            if !self.waiting_slices(service, group)?.is_empty() {
                rows.clear();
            }
            for (key, row) in rows.iter().filter(|(key, _)| key.slice == id) {
                expected.rows += 1;
                let found = self.tables.endpoints.get(key.write(service).as_slice())?;
                let found =
                    found.map(|found| record::decode::<v3::Row>(found.value())).transpose()?;
                if found.as_ref() != Some(row) {
                    faults.add(
                        "endpoints",
                        format_args!("{key:?} of {service}: {found:?}, not {row:?}"),
                    );
                }
                if let Some(hostname) = &row.hostname {
                    expected.hostnames += 1;
                    let index = key::hostname(service, hostname, *key);
                    if self.tables.hostnames.get(index.as_slice())?.is_none() {
                        faults
                            .add("hostnames", format_args!("{hostname} of {service} is not there"));
                    }
                }
                if row.rank == 0 {
                    let signature = record::encode(&signature(&rows))?;
                    *expected.signatures.entry((service, signature)).or_default() += 1;
                }
            }
            for key in contested(&rows).into_iter().filter(|key| key.slice == id) {
                expected.contested += 1;
                let index = key::contested(service, key);
                if self.tables.contested.get(index.as_slice())?.is_none() {
                    faults.add("contested", format_args!("{key:?} is not there"));
                }
            }
        }
        Ok(())
    }

    /// Compares the claim of an endpoint, and gives it.
    fn check_claim(
        &mut self,
        id: SliceId,
        slice: &v3::Slice,
        endpoint: &v3::SliceEndpoint,
        expected: &mut Expected,
        faults: &mut Faults,
    ) -> Result<ClaimKey, Error> {
        let claim = self.claim_of(id, slice, endpoint)?;
        if endpoint.workload != 0 {
            expected.claims += 1;
            let object = self.object(&workload_key(slice, endpoint)?)?;
            if object.is_none_or(|object| object.id != endpoint.workload) {
                let name = name_of(slice, endpoint);
                faults.add(
                    "objects",
                    format_args!("{name}, which slice {id} names, has another number"),
                );
            }
            if self.tables.claims.get(key::claim(claim).as_slice())?.is_none() {
                faults.add("claims", format_args!("{claim:?} is not there"));
            }
        }
        Ok(claim)
    }
}
