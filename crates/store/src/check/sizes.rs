//! Who waits, and how much there is of each Service, namespace and cluster.

use std::collections::BTreeMap;

use model::ClusterId;

use super::Faults;
use crate::Error;
use crate::admission::Size;
use crate::dirty::Group;
use crate::key::{self, KeyReader, ServiceId};
use crate::record;
use crate::rows::Rows;
use crate::write::Work;

impl Work<'_> {
    /// Does a target wait, and for the rows that it should have?
    pub(super) fn check_waiting(
        &mut self,
        service: ServiceId,
        group: Group,
        rows: &Rows,
        faults: &mut Faults,
    ) -> Result<bool, Error> {
        let waiting = self.waiting_slices(service, group)?;
        let mut slices: Vec<_> = rows.iter().map(|(key, _)| key.slice).collect();
        slices.sort_unstable();
        slices.dedup();
        if !waiting.is_empty() && waiting != slices {
            faults.add(
                "waiting",
                format_args!("{group:?} of {service}: slices {waiting:?}, not {slices:?}"),
            );
        }
        Ok(!waiting.is_empty())
    }

    /// Compares the sizes with what was counted: for each Service the targets with rows, and those that wait.
    pub(super) fn check_sizes(
        &mut self,
        counted: &BTreeMap<ServiceId, [u64; 2]>,
        faults: &mut Faults,
    ) -> Result<(), Error> {
        let mut expected: BTreeMap<Vec<u8>, [u64; 2]> = BTreeMap::new();
        for (service, targets) in counted {
            for key in self.size_keys_of(*service)?.iter() {
                let sum = expected.entry(key.clone()).or_default();
                *sum = [sum[0] + targets[0], sum[1] + targets[1]];
            }
        }
        for entry in self.tables.sizes.iter()? {
            let (key, size) = entry?;
            let size: Size = record::decode(size.value())?;
            let [targets, waiting] = expected.remove(key.value()).unwrap_or_default();
            let what = format!("targets of {:?}", key.value());
            faults.equal("sizes", &what, size.targets, targets);
            faults.equal("sizes", &format!("{what} that wait"), size.waiting, waiting);
            let is_service = key.value().first() == Some(&0);
            if is_service && size.peak < size.targets {
                faults.add("sizes", format_args!("{what}: never more than {}", size.peak));
            }
        }
        for (key, missing) in expected {
            faults.add("sizes", format_args!("targets of {key:?}: not there, and {missing:?}"));
        }
        let waiting = counted.values().map(|[_, waiting]| waiting).sum();
        faults.equal("waiting", "rows", self.tables.waiting.len()?, waiting);
        self.check_bytes(faults)
    }

    /// Compares what the objects of linked clusters take with what was counted.
    fn check_bytes(&mut self, faults: &mut Faults) -> Result<(), Error> {
        let mut bytes: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        let (mut from, end) = (key::cluster(ClusterId(1)), key::prefix_end(&[]));
        loop {
            let next = self.tables.objects.range(&from, &end)?.next().transpose()?;
            let Some(key) = next.map(|(key, _)| key.value().to_vec()) else { break };
            let cluster = ClusterId(KeyReader(&key).u16().unwrap_or(0));
            let of_cluster = self.cluster_key(cluster)?;
            *bytes.entry(of_cluster).or_default() += self.object_bytes(cluster, &key)?;
            from = [key.as_slice(), &[0]].concat();
        }
        for (key, bytes) in bytes {
            let found = self.tables.sizes.get(&key)?;
            let size: Option<Size> =
                found.map(|found| record::decode(found.value())).transpose()?;
            let what = format!("bytes of {key:?}");
            faults.equal("sizes", &what, size.unwrap_or_default().bytes, bytes);
        }
        Ok(())
    }
}
