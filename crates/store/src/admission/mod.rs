//! Who is let in: endpoints of a Service that grows faster than it ever did come bit by bit, and beyond a quota none comes.
//!
//! What is let in is a *target*: a workload, or a bare address. One that has to wait is told by its EndpointSlices as any
//! other, and has a row in `waiting` instead of rows in `endpoints`; so it costs no listing to let it in later.
//!
//! *Invariant:* only what is new waits. Who has been let in is kept current, and goes, at once.

mod sizes;
mod surge;

use model::{ClusterId, Kind, ObjectName, Source, Time};

use crate::dirty::{Group, endpoint_of, row_key};
use crate::key::{self, KeyReader, ServiceId, SliceId};
use crate::record::v3;
use crate::rows::Rows;
use crate::write::Work;
use crate::{Error, WakeKey};

pub use sizes::{ClusterSize, Held};
pub(crate) use sizes::{Size, Sizes};
pub(crate) use surge::Buckets;

/// What is let in. Nothing has a limit unless it is given one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// How fast a Service may grow.
    pub surge: Option<Surge>,
    /// Targets of a Service.
    pub service_max: Option<u64>,
    /// Targets of all Services of a namespace.
    pub namespace_max: Option<u64>,
    /// Targets of all Services of a cluster.
    pub cluster_max: Option<u64>,
    /// Bytes that the objects of a linked cluster may take in the store. The last tenth is not for pods.
    pub linked_bytes_max: Option<u64>,
}

/// In each window a Service may gain so many targets, or as many as it ever had, whichever is more. It may always have again
/// as many as it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surge {
    /// Targets.
    pub targets: u64,
    /// Milliseconds.
    pub window_ms: u64,
}

/// Why a target has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Its Service grows too fast.
    Surge,
    /// Its Service has as many as it may have.
    Service,
    /// Its namespace has.
    Namespace,
    /// Its cluster has.
    Cluster,
}

impl Limit {
    /// All of them.
    pub const ALL: [Limit; 4] = [Limit::Surge, Limit::Service, Limit::Namespace, Limit::Cluster];

    /// In a word, as metrics and the log have it.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Surge => "surge",
            Limit::Service => "service",
            Limit::Namespace => "namespace",
            Limit::Cluster => "cluster",
        }
    }
}

/// Targets that have to wait for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// How many.
    pub count: u64,
    /// One of their Services.
    pub service: ObjectName,
    /// The linked cluster that it is in; empty for the local one.
    pub cluster: String,
}

/// Those who wait are looked through so often: a second is less than a client notices, and a bound on what it costs when
/// nobody can be let in for days.
const ROUND_INTERVAL_MS: u64 = 1_000;

/// Targets let in, and Services looked at, in one transaction.
const LET_IN_MAX: usize = 1_024;
const LOOKED_AT_MAX: usize = 256;

/// When those who wait are looked through next.
#[derive(Default)]
pub(crate) struct Round {
    /// Nobody waits, as far as is known.
    pub(crate) idle: bool,
    at: Time,
    /// Where it goes on.
    from: Vec<u8>,
}

impl Round {
    pub(crate) fn is_due(&self, now: Time) -> bool {
        !self.idle && (now >= self.at || self.at.0 > now.0 + ROUND_INTERVAL_MS)
    }
}

impl Work<'_> {
    /// The rows of a target that had none: those that it is to have, or none if it has to wait.
    pub(crate) fn admit(
        &mut self,
        service: ServiceId,
        group: Group,
        rows: Rows,
    ) -> Result<Rows, Error> {
        let key = key::waiting(service, group);
        let before = self.tables.waiting.get(&key)?.map(|slices| slices.value().to_vec());
        if rows.is_empty() {
            if before.is_some() {
                self.tables.waiting.remove(&key)?;
                self.count_waiting(service, -1)?;
            }
            return Ok(rows);
        }
        let slices = slices_of(&rows);
        if before.is_some() {
            if before.as_deref() != Some(&slices) {
                self.tables.waiting.insert(key, slices)?;
            }
            return Ok(Rows::new());
        }
        let Some(limit) = self.limit(service)? else { return Ok(rows) };
        self.tables.waiting.insert(key, slices)?;
        self.count_waiting(service, 1)?;
        self.state.round.idle = false;
        self.tell_held(limit, service)?;
        Ok(Rows::new())
    }

    fn tell_held(&mut self, limit: Limit, service: ServiceId) -> Result<(), Error> {
        if let Some(held) = self.done.held.get_mut(&limit) {
            held.count += 1;
            return Ok(());
        }
        let key = self.service_key(service)?;
        let damaged = || Error::Damaged { what: "service", reason: format!("{key:?}") };
        let name = key::object_name(&key).ok_or_else(damaged)?;
        let cluster = self.cluster_of(service)?;
        let cluster = self.cluster_name(cluster)?;
        self.done.held.insert(limit, HeldBack { count: 1, service: name, cluster });
        Ok(())
    }

    /// What keeps one more target of a Service out.
    fn limit(&mut self, service: ServiceId) -> Result<Option<Limit>, Error> {
        if self.config.admission == Admission::default() {
            return Ok(None);
        }
        let [of_service, _, _] = self.sizes_of(service)?;
        if let Some((limit, _)) = self.quotas(service)?.into_iter().find(|(_, room)| *room == 0) {
            return Ok(Some(limit));
        }
        let Some(surge) = self.config.admission.surge else { return Ok(None) };
        let cluster = self.cluster_of(service)?;
        if of_service.targets < of_service.peak || !self.is_listed(cluster)? {
            return Ok(None);
        }
        let taken = self.state.buckets.take(service, of_service.peak, surge, self.now);
        Ok((!taken).then_some(Limit::Surge))
    }

    /// How many more targets of a Service the quotas leave room for.
    fn quotas(&mut self, service: ServiceId) -> Result<Vec<(Limit, u64)>, Error> {
        let Admission { service_max, namespace_max, cluster_max, .. } = self.config.admission;
        let sizes = self.sizes_of(service)?;
        let limits = [
            (Limit::Service, service_max),
            (Limit::Namespace, namespace_max),
            (Limit::Cluster, cluster_max),
        ];
        let rooms = limits.into_iter().zip(sizes);
        let room = |((limit, max), size): ((Limit, Option<u64>), Size)| {
            Some((limit, max?.saturating_sub(size.targets)))
        };
        Ok(rooms.filter_map(room).collect())
    }

    /// How many targets of a Service could be let in now.
    fn room(&mut self, service: ServiceId) -> Result<u64, Error> {
        let by_quota = self.quotas(service)?.into_iter().map(|(_, room)| room).min();
        let [Size { targets, peak, .. }, ..] = self.sizes_of(service)?;
        let by_surge = match self.config.admission.surge {
            Some(surge) => {
                let again = peak.saturating_sub(targets);
                let more = self.state.buckets.left(service, peak, surge, self.now);
                again.saturating_add(more)
            }
            None => u64::MAX,
        };
        Ok(by_quota.unwrap_or(u64::MAX).min(by_surge))
    }

    /// A step of looking through those who wait: where there is room, they are let in.
    pub(crate) fn let_in(&mut self) -> Result<(), Error> {
        let mut from = std::mem::take(&mut self.state.round.from);
        let begins = from.is_empty();
        let end = key::prefix_end(&[]);
        let mut left = LET_IN_MAX;
        for _ in 0..LOOKED_AT_MAX {
            let first = self.tables.waiting.range(&from, &end)?.next().transpose()?;
            let Some(service) = first.and_then(|(key, _)| KeyReader(key.value()).u32()) else {
                let idle = begins && from.is_empty();
                self.state.round = Round { idle, at: self.next_round(), from: Vec::new() };
                return Ok(());
            };
            let room = usize::try_from(self.room(service)?).unwrap_or(usize::MAX);
            left -= self.let_some_in(service, room.min(left))?;
            if left == 0 {
                break;
            }
            from = key::prefix_end(&key::id(service));
        }
        self.state.round.from = from;
        if left == LET_IN_MAX {
            self.state.round.at = self.next_round();
        }
        Ok(())
    }

    fn next_round(&self) -> Time {
        Time(self.now.0.saturating_add(ROUND_INTERVAL_MS))
    }

    /// Has so many of a Service's targets joined as if they were new. How many there were to let in?
    fn let_some_in(&mut self, service: ServiceId, max: usize) -> Result<usize, Error> {
        let prefix = key::id(service);
        let mut waiting = Vec::new();
        for entry in self.tables.waiting.range(&prefix, &key::prefix_end(&prefix))?.take(max) {
            let (key, slices) = entry?;
            waiting.push((key.value().to_vec(), slices.value().to_vec()));
        }
        for (key, slices) in &waiting {
            self.tables.waiting.remove(key)?;
            self.count_waiting(service, -1)?;
            let damaged =
                || Error::Damaged { what: "waiting key", reason: format!("{key:?} is none") };
            let group = key::waiting_group(key).ok_or_else(damaged)?;
            for id in read_slices(slices) {
                let Some(slice) = self.slice(id)? else { continue };
                let Some(endpoint) = endpoint_of(&slice, group) else { continue };
                let claim = self.claim_of(id, &slice, endpoint)?;
                let row = row_key(id, endpoint);
                self.dirty.add(service, group, claim.template, Some(row));
            }
        }
        Ok(waiting.len())
    }

    /// The EndpointSlices that tell of a bare address that waits.
    pub(crate) fn waiting_slices(
        &self,
        service: ServiceId,
        group: Group,
    ) -> Result<Vec<SliceId>, Error> {
        let found = self.tables.waiting.get(&key::waiting(service, group))?;
        Ok(found.map(|slices| read_slices(slices.value()).collect()).unwrap_or_default())
    }

    /// Has everything that a cluster's endpoints are made of been listed once? Before, nothing can be said to grow.
    fn is_listed(&mut self, cluster: ClusterId) -> Result<bool, Error> {
        if self.state.listed.contains(&cluster) {
            return Ok(true);
        }
        let has = |kind| {
            let key = key::source(Source { cluster, kind });
            Ok::<_, Error>(self.tables.checkpoints.get(&key)?.is_some())
        };
        let listed = has(Kind::Pod)? && (has(Kind::EndpointSlice)? || has(Kind::Endpoints)?);
        if listed {
            self.state.listed.insert(cluster);
        }
        Ok(listed)
    }

    /// May this object of a linked cluster be stored? What is stored already may always be replaced.
    pub(crate) fn has_room_for(&mut self, source: Source, stored: bool) -> Result<bool, Error> {
        let Some(max) = self.config.admission.linked_bytes_max else { return Ok(true) };
        if source.cluster == ClusterId::LOCAL || stored {
            return Ok(true);
        }
        let of_pods = matches!(source.kind, Kind::Pod | Kind::ReplicaSet | Kind::Job);
        let max = if of_pods { max - max / 10 } else { max };
        let used = self.cluster_size(source.cluster)?.bytes;
        if used < max {
            return Ok(true);
        }
        self.refuse_object(source.cluster)?;
        self.touched.insert(WakeKey::links());
        Ok(false)
    }
}

fn slices_of(rows: &Rows) -> Vec<u8> {
    let mut slices: Vec<SliceId> = rows.iter().map(|(key, _)| key.slice).collect();
    slices.sort_unstable();
    slices.dedup();
    slices.into_iter().flat_map(u32::to_be_bytes).collect()
}

fn read_slices(bytes: &[u8]) -> impl Iterator<Item = SliceId> {
    bytes.chunks_exact(4).filter_map(|bytes| KeyReader(bytes).u32())
}

/// What an object takes on disk, about: its record, and for each endpoint of an EndpointSlice what its rows take besides.
pub(crate) fn bytes_of_slice(slice: &v3::Slice, record: usize) -> u64 {
    const ENDPOINT_BYTES: u64 = 150;
    record as u64 + slice.endpoints.len() as u64 * ENDPOINT_BYTES
}
