//! How much there is of each Service, namespace and cluster: what the limits are compared with.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ClusterId, ServiceName};

use super::bytes_of_slice;
use crate::key::{self, KeyReader, ServiceId};
use crate::record::{self, v3};
use crate::write::Work;
use crate::{Error, Snapshot};

pub(crate) use crate::record::v3::Size;

/// A Service that had so many targets is remembered when it has none: it may have them again.
const PEAK_KEPT: u64 = 1_000;

/// Under which keys the sizes of a Service, its namespace and its cluster are.
pub(crate) type SizeKeys = Arc<[Vec<u8>; 3]>;

/// Sizes that a transaction has looked at; they are written at its end.
#[derive(Default)]
pub(crate) struct Sizes {
    /// By their keys: as they were, and as they are.
    sizes: BTreeMap<Vec<u8>, (Size, Size)>,
    of_services: BTreeMap<ServiceId, (ClusterId, SizeKeys)>,
    of_clusters: BTreeMap<ClusterId, Vec<u8>>,
}

/// Targets of a Service that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Those that have been let in.
    pub targets: u64,
    /// The most that there were.
    pub peak: u64,
    /// Those that wait.
    pub waiting: u64,
}

/// What there is of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSize {
    /// The linked cluster; empty for the local one.
    pub cluster: String,
    /// Targets of its Services.
    pub targets: u64,
    /// Those that wait.
    pub waiting: u64,
    /// Bytes that its objects take, about; only counted of linked clusters.
    pub bytes: u64,
    /// How often an object was refused since all were listed: not 0, and some are missing.
    pub refused: u64,
}

impl Work<'_> {
    /// The sizes of a Service, its namespace and its cluster.
    pub(super) fn sizes_of(&mut self, service: ServiceId) -> Result<[Size; 3], Error> {
        let (_, keys) = self.size_keys(service)?;
        let mut sizes = [Size::default(); 3];
        for (size, key) in sizes.iter_mut().zip(keys.iter()) {
            *size = *self.size(key)?;
        }
        Ok(sizes)
    }

    pub(super) fn cluster_of(&mut self, service: ServiceId) -> Result<ClusterId, Error> {
        Ok(self.size_keys(service)?.0)
    }

    pub(super) fn cluster_size(&mut self, cluster: ClusterId) -> Result<Size, Error> {
        let key = self.cluster_key(cluster)?;
        self.size(&key).copied()
    }

    /// A Service has a target more, or one less.
    pub(crate) fn count_target(&mut self, service: ServiceId, by: i64) -> Result<(), Error> {
        let (_, keys) = self.size_keys(service)?;
        for key in keys.iter() {
            let size = self.size(key)?;
            size.targets = size.targets.saturating_add_signed(by);
        }
        let size = self.size(&keys[0])?;
        size.peak = size.peak.max(size.targets);
        Ok(())
    }

    pub(super) fn count_waiting(&mut self, service: ServiceId, by: i64) -> Result<(), Error> {
        let (_, keys) = self.size_keys(service)?;
        for key in keys.iter() {
            let size = self.size(key)?;
            size.waiting = size.waiting.saturating_add_signed(by);
        }
        Ok(())
    }

    pub(super) fn refuse_object(&mut self, part: ClusterId) -> Result<(), Error> {
        for key in [key::part_size(part), self.cluster_key(part)?] {
            self.size(&key)?.refused += 1;
        }
        let cluster = self.cluster_name(part)?;
        *self.done.refused.entry(cluster).or_default() += 1;
        Ok(())
    }

    /// A part of a cluster is listed anew: what was refused of it is told again.
    pub(crate) fn forgive_refused(&mut self, part: ClusterId) -> Result<(), Error> {
        if part == ClusterId::LOCAL {
            return Ok(());
        }
        let refused = std::mem::take(&mut self.size(&key::part_size(part))?.refused);
        let key = self.cluster_key(part)?;
        let of_cluster = self.size(&key)?;
        of_cluster.refused = of_cluster.refused.saturating_sub(refused);
        Ok(())
    }

    /// What an object takes, about; only asked of linked clusters.
    pub(crate) fn object_bytes(&mut self, cluster: ClusterId, key: &[u8]) -> Result<u64, Error> {
        if cluster == ClusterId::LOCAL {
            return Ok(0);
        }
        let Some(found) = self.tables.objects.get(key)? else { return Ok(0) };
        let mut bytes = (key.len() + found.value().len()) as u64;
        let object: v3::Object = record::decode(found.value())?;
        let slices = match object.body {
            Some(v3::Body::Slice) => vec![object.id],
            Some(v3::Body::Subsets(ids)) => ids,
            Some(_) => Vec::new(),
            // A stub is what the slices that name it cost.
            None => return Ok(0),
        };
        for id in slices {
            let Some(found) = self.tables.slices.get(key::id(id).as_slice())? else { continue };
            let slice: v3::Slice = record::decode(found.value())?;
            bytes += bytes_of_slice(&slice, found.value().len());
        }
        Ok(bytes)
    }

    /// An object of a cluster takes more than before, or less.
    pub(crate) fn count_bytes(
        &mut self,
        cluster: ClusterId,
        before: u64,
        now: u64,
    ) -> Result<(), Error> {
        if before != now {
            let key = self.cluster_key(cluster)?;
            let size = self.size(&key)?;
            size.bytes = (size.bytes + now).saturating_sub(before);
        }
        Ok(())
    }

    pub(crate) fn write_sizes(&mut self) -> Result<(), Error> {
        for (key, (before, now)) in std::mem::take(&mut self.sizes.sizes) {
            if now.is_none() {
                self.tables.sizes.remove(&key)?;
            } else if before != now {
                self.tables.sizes.insert(key, record::encode(&now)?)?;
            }
        }
        Ok(())
    }

    /// Nobody refers to a Service any more.
    pub(crate) fn forget_size(&mut self, service: ServiceId) -> Result<(), Error> {
        let key = key::service_size(service);
        self.sizes.sizes.remove(&key);
        self.tables.sizes.remove(&key)
    }

    fn size(&mut self, key: &[u8]) -> Result<&mut Size, Error> {
        if !self.sizes.sizes.contains_key(key) {
            let found = self.tables.sizes.get(key)?;
            let size: Size =
                found.map(|found| record::decode(found.value())).transpose()?.unwrap_or_default();
            self.sizes.sizes.insert(key.to_vec(), (size, size));
        }
        let missing = || Error::Damaged { what: "sizes", reason: format!("{key:?}") };
        self.sizes.sizes.get_mut(key).map(|(_, now)| now).ok_or_else(missing)
    }

    fn size_keys(&mut self, service: ServiceId) -> Result<(ClusterId, SizeKeys), Error> {
        if let Some((cluster, keys)) = self.sizes.of_services.get(&service) {
            return Ok((*cluster, Arc::clone(keys)));
        }
        let object = self.service_key(service)?;
        let damaged = || Error::Damaged { what: "service", reason: format!("{object:?}") };
        let cluster = ClusterId(KeyReader(&object).u16().ok_or_else(damaged)?);
        let name = key::object_name(&object).ok_or_else(damaged)?;
        let namespace = key::namespace_size(cluster, name.namespace());
        let of_cluster = self.cluster_key(cluster)?;
        let keys = Arc::new([key::service_size(service), namespace, of_cluster]);
        self.sizes.of_services.insert(service, (cluster, Arc::clone(&keys)));
        Ok((cluster, keys))
    }

    pub(crate) fn size_keys_of(&mut self, service: ServiceId) -> Result<SizeKeys, Error> {
        Ok(self.size_keys(service)?.1)
    }

    /// All parts of a linked cluster count together.
    pub(crate) fn cluster_key(&mut self, cluster: ClusterId) -> Result<Vec<u8>, Error> {
        if let Some(key) = self.sizes.of_clusters.get(&cluster) {
            return Ok(key.clone());
        }
        let key = key::cluster_size(&self.cluster_name(cluster)?);
        self.sizes.of_clusters.insert(cluster, key.clone());
        Ok(key)
    }
}

impl Size {
    fn is_none(&self) -> bool {
        let Size { targets, peak, waiting, bytes, refused } = *self;
        targets == 0 && waiting == 0 && peak < PEAK_KEPT && bytes == 0 && refused == 0
    }
}

impl Snapshot {
    /// How much there is of a Service, and how much of it waits to be let in.
    pub fn held(&self, service: &ServiceName) -> Result<Held, Error> {
        let Some(id) = self.service(service)?.id() else { return Ok(Held::default()) };
        let found = self.tables.sizes()?.get(key::service_size(id).as_slice())?;
        let size: Option<Size> = found.map(|found| record::decode(found.value())).transpose()?;
        let Size { targets, peak, waiting, .. } = size.unwrap_or_default();
        Ok(Held { targets, peak, waiting })
    }

    /// Was anything refused of a part of a linked cluster for which there is room now?
    pub fn has_room_again(
        &self,
        cluster: &str,
        part: ClusterId,
        bytes_max: u64,
    ) -> Result<bool, Error> {
        let size = |key: Vec<u8>| -> Result<Size, Error> {
            let found = self.tables.sizes()?.get(key.as_slice())?;
            Ok(found.map(|found| record::decode(found.value())).transpose()?.unwrap_or_default())
        };
        if size(key::part_size(part))?.refused == 0 {
            return Ok(false);
        }
        Ok(size(key::cluster_size(cluster))?.bytes < bytes_max / 4 * 3)
    }

    /// What there is of each cluster of which there is anything.
    pub fn cluster_sizes(&self) -> Result<Vec<ClusterSize>, Error> {
        let prefix = key::cluster_size("");
        let end = key::prefix_end(&prefix);
        let mut sizes = Vec::new();
        for entry in self.tables.sizes()?.range(prefix.as_slice()..end.as_slice())? {
            let (key, value) = entry?;
            let cluster = String::from_utf8_lossy(key::rest(key.value(), prefix.len()));
            let Size { targets, waiting, bytes, refused, .. } = record::decode(value.value())?;
            let cluster = cluster.into_owned();
            sizes.push(ClusterSize { cluster, targets, waiting, bytes, refused });
        }
        Ok(sizes)
    }
}
