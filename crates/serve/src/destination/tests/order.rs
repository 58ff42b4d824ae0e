//! Any order of the same events ends in the same answers.

use std::collections::BTreeMap;

use model::{Change, Kind, Object, ObjectName, ResourceVersion, Service, SliceEndpoint, Target};
use proptest::prelude::*;

use super::fixture::{Server, USUAL, endpoint, key, pod, slice, web};

/// What happens to an object: its kind, its name's number, a number that its contents are made of, and whether it
/// is deleted at last.
type Fate = (u8, u8, u8, bool);

/// An event, with when it happens among those of others.
type Timed = (u32, Fate);

fn kind((kind, ..): &Fate) -> (Kind, &'static str) {
    match kind {
        0 => (Kind::Service, "s"),
        1 => (Kind::EndpointSlice, "e"),
        2 => (Kind::Pod, "p"),
        3 => (Kind::ExternalWorkload, "p"),
        4 => (Kind::Endpoints, "s"),
        _ => (Kind::Node, "n"),
    }
}

fn object(fate: &Fate) -> Object {
    let (_, _, seed, _) = *fate;
    let endpoints = |count: u8| {
        (0..count).map(|at| one_endpoint(seed.wrapping_mul(7).wrapping_add(at * 13))).collect()
    };
    match kind(fate).0 {
        Kind::Service => {
            Object::Service(Service { local_traffic: seed.is_multiple_of(5), ..web() })
        }
        Kind::EndpointSlice => {
            let service = format!("s{}", seed % 2);
            Object::Slice(slice(&service, 8080 + u16::from(seed % 2), endpoints(seed % 4)))
        }
        Kind::Endpoints => {
            let subset = |port| slice(&format!("s{}", fate.1), port, endpoints(2));
            Object::Subsets((0..u16::from(seed % 3)).map(|at| subset(9000 + at)).collect())
        }
        Kind::Node => {
            Object::Node { zone: (!seed.is_multiple_of(3)).then(|| format!("z{}", seed % 3)) }
        }
        _ => Object::Workload(pod(&format!("n{}", seed % 2), &format!("10.0.0.{}", seed % 8))),
    }
}

fn one_endpoint(seed: u8) -> SliceEndpoint {
    let name = ObjectName::new("shop", format!("p{}", seed % 3)).unwrap();
    let target = match seed % 5 {
        0 => Target::Bare,
        1 => Target::ExternalWorkload(name),
        _ => Target::Pod(name),
    };
    SliceEndpoint {
        ready: !seed.is_multiple_of(6),
        zone: (!seed.is_multiple_of(3)).then(|| format!("z{}", seed % 3)),
        hints: (!seed.is_multiple_of(4)).then(|| format!("z{}", seed % 3)).into_iter().collect(),
        ..endpoint(&format!("10.0.0.{}", seed % 8), target)
    }
}

/// The events of a history: those of one object in their order, with the versions that they have in any order.
fn changes(history: &[Fate]) -> Vec<Change> {
    let one = |(version, fate): (usize, &Fate)| {
        let (kind, prefix) = kind(fate);
        let key = key(kind, &format!("{prefix}{}", fate.1));
        let version = ResourceVersion((version + 10).to_string());
        match fate.3 {
            true => Change::Delete { key },
            false => Change::Put { key, version, object: object(fate) },
        }
    };
    history.iter().enumerate().map(one).collect()
}

/// The same events in another order of the objects.
fn reordered(timed: &[Timed]) -> Vec<Change> {
    let history: Vec<Fate> = timed.iter().map(|(_, fate)| *fate).collect();
    let changes = changes(&history);
    // The times are given out anew, so that each object has its own in their order.
    let mut times: BTreeMap<(u8, u8), Vec<u32>> = BTreeMap::new();
    for (at, (kind, name, ..)) in timed {
        times.entry((*kind, *name)).or_default().push(*at);
    }
    times.values_mut().for_each(|times| times.sort_unstable_by(|a, b| b.cmp(a)));
    let mut order: Vec<(u32, usize)> = Vec::new();
    for (place, (kind, name, ..)) in history.iter().enumerate() {
        let at = times.get_mut(&(*kind, *name)).and_then(Vec::pop).unwrap_or_default();
        order.push((at, place));
    }
    order.sort_unstable();
    order.into_iter().map(|(_, place)| changes[place].clone()).collect()
}

/// What new clients get once all has happened, each event in a commit of its own, or all in one.
async fn answers(
    events: Vec<Change>,
    together: bool,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut server = Server::start(USUAL);
    let mut revision = Default::default();
    match together {
        true => revision = server.commit(events),
        false => events.into_iter().for_each(|event| revision = server.commit(vec![event])),
    }
    let mut answers = BTreeMap::new();
    for (service, port, node) in
        [("s0", 80, "n0"), ("s1", 80, "n0"), ("s0", 99, "n1"), ("s1", 80, "n1")]
    {
        let path = format!("{service}.shop.svc.k.test:{port}");
        let held = match server.open(&path, node).await {
            Ok(mut client) => {
                client.settle(&server.hub, revision).await;
                client.held
            }
            Err(status) => [(status.message().to_owned(), String::new())].into(),
        };
        answers.insert(format!("{path} from {node}"), held);
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_the_same_events_ends_in_the_same_answers(
        timed in proptest::collection::vec(
            (any::<u32>(), (0..6_u8, 0..3_u8, any::<u8>(), prop::bool::weighted(0.15))),
            1..40,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let history: Vec<Fate> = timed.iter().map(|(_, fate)| *fate).collect();
        let (one, other, together) = runtime.block_on(async {
            let one = answers(changes(&history), false).await;
            let other = answers(reordered(&timed), false).await;
            (one, other, answers(reordered(&timed), true).await)
        });
        prop_assert_eq!(&one, &other);
        prop_assert_eq!(one, together);
    }
}
