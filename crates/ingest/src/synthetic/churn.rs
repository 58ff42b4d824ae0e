//! How a made-up cluster changes: endpoints lose their readiness and get it back, pods are replaced.

use std::collections::{BTreeMap, VecDeque};

use model::{Change, Kind};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Cluster;
use super::cluster::{Variant, key};
use crate::Delivery;

/// Endpoints that are other than at first, at any time; then the one that changed first is restored.
const CHANGED_MAX: usize = 256;

/// Versions of what has changed begin here, above those of any listing.
const CHURN_VERSION: u64 = 1 << 40;

/// An endless sequence of changes, the same for the same seed.
pub struct Churn {
    cluster: Cluster,
    random: SmallRng,
    changed: BTreeMap<u64, Variant>,
    order: VecDeque<u64>,
    version: u64,
    generation: u64,
}

impl Churn {
    /// Changes of a cluster that has just been listed.
    pub fn new(cluster: Cluster) -> Churn {
        let random = SmallRng::seed_from_u64(cluster.spec().seed);
        Churn {
            cluster,
            random,
            changed: BTreeMap::new(),
            order: VecDeque::new(),
            version: CHURN_VERSION,
            generation: 0,
        }
    }

    fn slice(&mut self, endpoint: u64) -> Change {
        self.version += 1;
        let slice = self.cluster.slice_of_endpoint(endpoint);
        self.cluster.slice(slice, self.version, &self.changed)
    }

    fn delete_pod(&self, endpoint: u64, generation: u64) -> Change {
        Change::Delete { key: key(Kind::Pod, self.cluster.pod_name(endpoint, generation)) }
    }

    /// An endpoint becomes what it was at first.
    fn restore(&mut self, endpoint: u64) -> Vec<Change> {
        let was = self.changed.remove(&endpoint).unwrap_or_default();
        let mut changes = Vec::new();
        if was.generation > 0 {
            self.version += 1;
            changes.push(self.cluster.pod(endpoint, 0, self.version));
        }
        changes.push(self.slice(endpoint));
        if was.generation > 0 {
            changes.push(self.delete_pod(endpoint, was.generation));
        }
        changes
    }

    /// An endpoint loses its readiness, or its pod is replaced.
    fn vary(&mut self, endpoint: u64) -> Vec<Change> {
        self.order.push_back(endpoint);
        if self.random.random_bool(0.5) {
            self.changed.insert(endpoint, Variant { unready: true, generation: 0 });
            return vec![self.slice(endpoint)];
        }
        self.generation += 1;
        let variant = Variant { unready: false, generation: self.generation };
        self.changed.insert(endpoint, variant);
        self.version += 1;
        let pod = self.cluster.pod(endpoint, self.generation, self.version);
        vec![pod, self.slice(endpoint), self.delete_pod(endpoint, 0)]
    }
}

impl Iterator for Churn {
    type Item = Delivery;

    fn next(&mut self) -> Option<Delivery> {
        let all = self.cluster.endpoints();
        if all == 0 {
            return None;
        }
        let endpoint = self.random.random_range(0..all);
        let full = self.order.len() >= CHANGED_MAX;
        let changes = match self.order.pop_front_if(|_| full) {
            Some(first) => self.restore(first),
            None if self.changed.contains_key(&endpoint) => {
                self.order.retain(|changed| *changed != endpoint);
                self.restore(endpoint)
            }
            None => self.vary(endpoint),
        };
        Some(Delivery::new(changes))
    }
}
