//! A batch says the same as its deliveries did, within its limits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use model::{
    ClusterId, Family, Kind, Object, ObjectName, ResourceVersion, Revision, Slice, SliceEndpoint,
    SliceMeta, Target,
};
use proptest::prelude::*;
use tokio::sync::oneshot;

use super::*;

/// What the store would make of changes: an oracle that keeps objects, marks and checkpoints in maps.
#[derive(Debug, Default, PartialEq)]
struct Oracle {
    objects: BTreeMap<Key, String>,
    listings: BTreeMap<Source, BTreeSet<Key>>,
    checkpoints: BTreeMap<Source, String>,
}

impl Oracle {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Begin { source } => {
                self.listings.insert(*source, BTreeSet::new());
            }
            Change::Put { key, version, .. } => {
                self.objects.insert(key.clone(), version.0.clone());
                self.mark(key);
            }
            Change::Keep { key } => self.mark(key),
            Change::Delete { key } => {
                self.objects.remove(key);
            }
            Change::End { source, version } => {
                if let Some(marked) = self.listings.remove(source) {
                    self.objects.retain(|key, _| key.source != *source || marked.contains(key));
                }
                self.checkpoints.insert(*source, version.0.clone());
            }
            Change::Join { .. } | Change::Leave { .. } => unreachable!("it is not made here"),
            Change::Forget { source } => {
                self.listings.remove(source);
                self.objects.retain(|key, _| key.source != *source);
                self.checkpoints.remove(source);
            }
            Change::Checkpoint { source, version } => {
                self.checkpoints.insert(*source, version.0.clone());
            }
        }
    }

    fn mark(&mut self, key: &Key) {
        if let Some(marked) = self.listings.get_mut(&key.source) {
            marked.insert(key.clone());
        }
    }

    /// Marks of what is gone again decide nothing.
    fn settled(mut self) -> Oracle {
        for marked in self.listings.values_mut() {
            marked.retain(|key| self.objects.contains_key(key));
        }
        self
    }
}

fn source(kind: Kind) -> Source {
    Source { cluster: ClusterId::LOCAL, kind }
}

fn key(kind: Kind, name: u8) -> Key {
    Key { source: source(kind), name: ObjectName::new("shop", format!("o{name}")).unwrap() }
}

fn node(name: u8, version: u32) -> Change {
    let version = ResourceVersion(version.to_string());
    Change::Put { key: key(Kind::Node, name), version, object: Object::Node { zone: None } }
}

fn slice(name: u8, version: u32, endpoints: usize) -> Change {
    let endpoint = SliceEndpoint {
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        ready: true,
        target: Target::Bare,
        hostname: None,
        zone: None,
        hints: Vec::new(),
    };
    let slice = Slice {
        service: None,
        family: Family::V4,
        meta: SliceMeta::default(),
        endpoints: vec![endpoint; endpoints],
    };
    Change::Put {
        key: key(Kind::EndpointSlice, name),
        version: ResourceVersion(version.to_string()),
        object: Object::Slice(slice),
    }
}

fn change() -> impl Strategy<Value = Change> {
    let kind = prop_oneof![Just(Kind::Node), Just(Kind::EndpointSlice)];
    (0..20_u8, kind, 0..4_u8, 0..1_000_u32).prop_map(|(what, kind, name, version)| match what {
        0 => Change::Begin { source: source(kind) },
        1 => Change::End { source: source(kind), version: ResourceVersion(version.to_string()) },
        2..5 => Change::Keep { key: key(kind, name) },
        5..9 => Change::Delete { key: key(kind, name) },
        9..12 => Change::Checkpoint {
            source: source(kind),
            version: ResourceVersion(version.to_string()),
        },
        _ if kind == Kind::Node => node(name, version),
        _ => slice(name, version, 900),
    })
}

proptest! {
    #[test]
    fn batches_say_what_their_deliveries_said(
        deliveries in proptest::collection::vec(proptest::collection::vec(change(), 0..12), 1..40),
    ) {
        let (mut told, mut stored) = (Oracle::default(), Oracle::default());
        deliveries.iter().flatten().for_each(|change| told.apply(change));
        // One that is larger than a commit is taken by a batch that is empty; so is what comes after an empty one.
        let weight = |changes: &Vec<Change>| changes.iter().map(endpoints).sum::<usize>();
        let largest = deliveries.iter().map(weight).max().unwrap_or_default();
        let mut waiting = deliveries.into_iter().map(Delivery::new);
        let mut first = waiting.next();
        while let Some(delivery) = first {
            let (batch, left) = Batch::collect(delivery, || waiting.next());
            let (changes, _) = batch.into_parts();
            prop_assert!(weight(&changes) <= COMMIT_ENDPOINTS_MAX.max(largest));
            changes.iter().for_each(|change| stored.apply(change));
            first = left.or_else(|| waiting.next());
        }
        prop_assert_eq!(told.settled(), stored.settled());
    }

    #[test]
    fn without_listings_each_object_is_written_once(
        changes in proptest::collection::vec((0..6_u8, 0..1_000_u32), 1..60),
    ) {
        let deliveries = changes.iter().map(|(name, version)| Delivery::new(vec![node(*name, *version)]));
        let mut deliveries = deliveries.collect::<Vec<_>>().into_iter();
        let (batch, left) = Batch::collect(deliveries.next().unwrap(), || deliveries.next());
        prop_assert!(left.is_none());
        let last: BTreeMap<_, _> = changes.into_iter().collect();
        let (mut written, _) = batch.into_parts();
        written.sort_by_key(|change| match change {
            Change::Put { key, .. } => key.clone(),
            other => panic!("{other:?}"),
        });
        let expected: Vec<_> = last.into_iter().map(|(name, version)| node(name, version)).collect();
        prop_assert_eq!(written, expected);
    }
}

#[test]
fn a_delivery_is_never_split_and_a_large_one_goes_alone() {
    let large = |name| Delivery::new(vec![slice(name, 1, 1_000); COMMIT_ENDPOINTS_MAX / 1_000 + 1]);
    let mut batch = Batch::default();
    assert!(batch.is_empty());
    batch.push(large(1)).unwrap();
    let back = batch.push(Delivery::new(vec![node(1, 1)])).unwrap_err();
    assert_eq!(back.changes, [node(1, 1)]);

    let mut batch = Batch::default();
    batch.push(Delivery::new(vec![node(1, 1)])).unwrap();
    assert!(batch.push(large(2)).is_err());
    assert_eq!(batch.into_parts().0, [node(1, 1)]);
}

#[test]
fn an_object_that_changes_without_end_is_committed() {
    let endless = || Some(Delivery::new(vec![node(1, 1)]));
    let (batch, left) = Batch::collect(Delivery::new(vec![node(1, 0)]), endless);
    assert!(left.is_some());
    assert_eq!(batch.into_parts().0, [node(1, 1)]);
}

#[test]
fn all_who_wait_are_kept_and_a_listing_between_keeps_both() {
    let (first, mut first_told) = oneshot::channel();
    let (second, mut second_told) = oneshot::channel();
    let mut batch = Batch::default();
    batch.push(Delivery::told(vec![node(1, 1)], first)).unwrap();
    let begin = Change::Begin { source: source(Kind::Node) };
    let changes = vec![begin.clone(), node(1, 2), node(1, 3)];
    batch.push(Delivery::told(changes, second)).unwrap();
    let (changes, receipt) = batch.into_parts();
    assert_eq!(changes, [node(1, 1), begin, node(1, 3)]);
    receipt.sign(Revision(7));
    assert_eq!(first_told.try_recv(), Ok(Revision(7)));
    assert_eq!(second_told.try_recv(), Ok(Revision(7)));
}

#[test]
fn a_packer_gives_deliveries_of_bounded_size() {
    let mut packer = Packer::new(3, 250);
    let changes =
        [slice(1, 1, 100), slice(2, 1, 100), slice(3, 1, 100), node(1, 1), node(2, 1), node(3, 1)];
    let mut packed: Vec<_> = changes.into_iter().filter_map(|change| packer.push(change)).collect();
    packed.extend(packer.flush());
    let sizes: Vec<_> = packed.iter().map(|delivery| delivery.changes.len()).collect();
    assert_eq!(sizes, [2, 3, 1]);
    assert!(packer.flush().is_none());
}
