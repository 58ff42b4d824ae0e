//! A made-up cluster is the same for the same seed, and is consistent in itself.

use std::collections::{BTreeMap, BTreeSet};

use model::{Change, Key, Object, Target};

use super::{Churn, Cluster, Spec, SpecError};

fn spec(text: &str) -> Spec {
    text.parse().unwrap()
}

fn changes(text: &str) -> Vec<Change> {
    Cluster::new(spec(text)).listing().flat_map(|delivery| delivery.changes).collect()
}

fn apply(objects: &mut BTreeMap<Key, Object>, change: Change) {
    match change {
        Change::Put { key, object, .. } => {
            objects.insert(key, object);
        }
        Change::Delete { key } => {
            objects.remove(&key).expect("only what is there is deleted");
        }
        _ => {}
    }
}

/// Every endpoint's pod is there, with the endpoint's address, and no two share one.
fn check(objects: &BTreeMap<Key, Object>, endpoints: usize) {
    let mut addresses = BTreeSet::new();
    for (key, object) in objects {
        let Object::Slice(slice) = object else { continue };
        assert!(slice.service.is_some(), "{key} serves nobody");
        for endpoint in &slice.endpoints {
            assert!(addresses.insert(endpoint.ip), "{} twice", endpoint.ip);
            let Target::Pod(name) = &endpoint.target else { panic!("{key} has a bare address") };
            let pod = super::cluster::key(model::Kind::Pod, name.clone());
            let Some(Object::Workload(pod)) = objects.get(&pod) else { panic!("no pod {name}") };
            assert_eq!(pod.ips, [endpoint.ip]);
        }
    }
    assert_eq!(addresses.len(), endpoints);
}

#[test]
fn the_listing_has_what_was_asked_for() {
    let text = "services=3,endpoints=7,big=2x250,nodes=4";
    let mut objects = BTreeMap::new();
    for change in changes(text) {
        apply(&mut objects, change);
    }
    check(&objects, 3 * 7 + 2 * 250);
    let kinds = |wanted| objects.keys().filter(|key| key.source.kind == wanted).count();
    assert_eq!(kinds(model::Kind::Service), 5);
    assert_eq!(kinds(model::Kind::EndpointSlice), 3 + 2 * 3);
    assert_eq!(kinds(model::Kind::Node), 4);
    assert_eq!(changes(text), changes(text));
}

#[test]
fn changes_keep_it_consistent() {
    let cluster = Cluster::new(spec("services=3,endpoints=40,big=1x230,seed=7"));
    let mut objects = BTreeMap::new();
    for change in cluster.listing().flat_map(|delivery| delivery.changes) {
        apply(&mut objects, change);
    }
    for delivery in Churn::new(cluster.clone()).take(2_000) {
        for change in delivery.changes {
            apply(&mut objects, change);
        }
    }
    check(&objects, 350);
    let again = |cluster: &Cluster| -> Vec<_> {
        Churn::new(cluster.clone()).take(50).map(|delivery| delivery.changes).collect()
    };
    assert_eq!(again(&cluster), again(&cluster));
}

#[test]
fn a_wrong_description_says_what_is_wrong() {
    assert_eq!(spec(""), Spec::DEFAULT);
    assert_eq!(spec("churn=5/s, meshed=false").churn, 5);
    let error = |text: &str| text.parse::<Spec>().unwrap_err();
    assert_eq!(error("pods"), SpecError::Item { item: "pods".to_owned() });
    assert_eq!(error("pods=3"), SpecError::Name { name: "pods".to_owned() });
    assert_eq!(error("big=3").to_string(), "big=3 should be two numbers, as in 250x1000");
    assert!(matches!(error("churn=x"), SpecError::Value { .. }));
    assert!(matches!(error("services=100000000"), SpecError::TooLarge { .. }));
}

#[test]
fn junk_has_no_address() {
    let junk = Cluster::new(Spec::DEFAULT).junk(1_234).flat_map(|delivery| delivery.changes);
    let count = junk
        .inspect(|change| {
            let Change::Put { object: Object::Workload(pod), .. } = change else { panic!() };
            assert!(pod.ips.is_empty());
        })
        .count();
    assert_eq!(count, 1_234);
}

#[tokio::test]
async fn a_quiet_cluster_goes_on_where_it_was_and_another_is_listed() {
    async fn said(text: &str, resume: u64) -> usize {
        let (to, mut from) = tokio::sync::mpsc::channel(64);
        let version = model::ResourceVersion(resume.to_string());
        let run = tokio::spawn(super::run(spec(text), Some(version), to));
        let wait = std::time::Duration::from_millis(100);
        let mut said = 0;
        while let Ok(Some(_)) = tokio::time::timeout(wait, from.recv()).await {
            said += 1;
        }
        run.abort();
        said
    }
    let quiet = "services=2,endpoints=3,churn=0";
    let version = Cluster::new(spec(quiet)).version();
    assert_eq!(said(quiet, version).await, 0);
    assert!(said("services=2,endpoints=4,churn=0", version).await > 0);
    assert!(said("services=2,endpoints=3,churn=1", version).await > 0);
}
