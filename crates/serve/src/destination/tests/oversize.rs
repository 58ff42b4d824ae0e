//! Services that are too large: subsets and chunks, and how a client gets from one to the other.

use std::collections::{BTreeMap, BTreeSet};

use model::{Kind, Object, SliceEndpoint, Target};

use super::fixture::{Choice, Client, Server, USUAL, endpoint, slice};
use crate::destination::Oversize;
use crate::destination::wire::UpdateKind;

/// About two hundred bare addresses.
const MESSAGE_BYTES_MAX: usize = 10_000;

fn subsets(endpoints_max: Option<usize>) -> Choice {
    let oversize = Oversize { subset: true, endpoints_max };
    Choice { message_bytes_max: MESSAGE_BYTES_MAX, oversize, ..USUAL }
}

fn ips(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("10.1.{}.{}", at / 250, at % 250)).collect()
}

/// So many endpoints, in slices of a thousand.
fn scale(server: &mut Server, count: usize) -> model::Revision {
    let ips = ips(count);
    let mut revision = Default::default();
    for number in 0..5 {
        let part = ips.iter().skip(number * 1_000).take(1_000).map(String::as_str);
        revision = server.bare(&format!("web-{number}"), &part.collect::<Vec<_>>());
    }
    revision
}

async fn open(server: &Server, pod: &str) -> Client {
    server.open_as("web.shop.svc.k.test:80", &format!("{{\"pod\":\"{pod}\"}}")).await.unwrap()
}

/// Lets all of them take what there is; none may be left with nothing on the way.
async fn settle(
    server: &Server,
    clients: impl Iterator<Item = &mut Client>,
    revision: model::Revision,
) {
    let each = clients.map(async |client| {
        while let Some(message) = client.unsettled(&server.hub, revision).await {
            assert!(message.kind != UpdateKind::NoEndpoints && !client.held.is_empty());
        }
    });
    futures::future::join_all(each).await;
}

#[tokio::test]
async fn a_client_with_a_name_gets_its_part_in_one_message() {
    let mut server = Server::start(subsets(None));
    server.web();
    let revision = scale(&mut server, 3_000);
    let mut all = BTreeSet::new();
    let mut parts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for number in 0..100 {
        let mut client = open(&server, &format!("web-{number}")).await;
        let first = client.next().await;
        assert!(first.bytes().len() <= MESSAGE_BYTES_MAX);
        let held: Vec<String> = client.held.keys().cloned().collect();
        client.settle(&server.hub, revision).await;
        assert_eq!(client.held.len(), held.len(), "there is no second message");
        assert!(held.len() > 50, "{}", held.len());
        all.extend(held.clone());
        *parts.entry(held).or_default() += 1;
    }
    assert_eq!(all.len(), 3_000, "together they have all");
    assert!(parts.len().is_power_of_two() && parts.len() >= 16, "{} parts", parts.len());
    // Who doesn't say who it is gets all, in several messages.
    let mut anybody = server.open_web().await;
    anybody.settle(&server.hub, revision).await;
    assert_eq!(anybody.held.len(), 3_000);
}

#[tokio::test]
async fn chunks_are_all_of_it() {
    let oversize = Oversize { subset: false, endpoints_max: Some(10) };
    let mut server =
        Server::start(Choice { message_bytes_max: MESSAGE_BYTES_MAX, oversize, ..USUAL });
    server.web();
    let revision = scale(&mut server, 3_000);
    let mut client = open(&server, "web-1").await;
    client.settle(&server.hub, revision).await;
    assert_eq!(client.held.len(), 3_000);
}

#[tokio::test]
async fn scaling_over_the_threshold_and_back_never_leaves_a_client_with_nothing() {
    for endpoints_max in [None, Some(100)] {
        let mut server = Server::start(subsets(endpoints_max));
        server.web();
        scale(&mut server, 80);
        let mut clients = Vec::new();
        for number in 0..8 {
            clients.push(open(&server, &format!("web-{number}")).await);
        }
        let mut sizes = BTreeSet::new();
        for count in [80, 150, 1_000, 3_000, 1_500, 700, 90, 40] {
            let revision = scale(&mut server, count);
            settle(&server, clients.iter_mut(), revision).await;
            // That it is too large may be found out by who comes new; those who have grown into it learn it then.
            let mut fresh = Vec::new();
            for number in 0..clients.len() {
                fresh.push(open(&server, &format!("web-{number}")).await);
            }
            settle(&server, clients.iter_mut().chain(&mut fresh), revision).await;
            for (client, new) in clients.iter().zip(&fresh) {
                assert_eq!(client.held, new.held, "of {count}");
                sizes.insert(new.held.len());
                if let Some(max) = endpoints_max {
                    assert!(new.held.len() <= max, "{} of {count}", new.held.len());
                }
            }
        }
        assert!(sizes.contains(&40) && sizes.len() > 3, "{sizes:?}");
    }
}

#[tokio::test]
async fn who_shares_a_part_shares_its_bytes() {
    let mut server = Server::start(subsets(Some(100)));
    server.web();
    scale(&mut server, 1_000);
    let mut by_part: BTreeMap<Vec<String>, BTreeSet<usize>> = BTreeMap::new();
    for number in 0..64 {
        let mut client = open(&server, &format!("web-{number}")).await;
        let at = client.next().await.bytes().as_ptr() as usize;
        let held = client.held.keys().cloned().collect();
        by_part.entry(held).or_default().insert(at);
    }
    assert!(by_part.len() == 16 && by_part.values().all(|bytes| bytes.len() == 1), "{by_part:?}");
}

#[tokio::test]
async fn an_instance_of_a_service_that_is_too_large_is_found_by_everybody() {
    let mut server = Server::start(subsets(Some(100)));
    server.web();
    let named = |number: usize| SliceEndpoint {
        hostname: Some(format!("db-{number}")),
        ..endpoint(&ips(1_000)[number], Target::Bare)
    };
    let endpoints = (0..1_000).map(named).collect();
    server.put(Kind::EndpointSlice, "web-1", Object::Slice(slice("web", 8080, endpoints)));
    for number in 0..32 {
        let (path, token) =
            ("db-7.web.shop.svc.k.test:80", format!("{{\"pod\":\"web-{number}\"}}"));
        let mut client = server.open_as(path, &token).await.unwrap();
        client.next().await;
        assert_eq!(client.held.keys().collect::<Vec<_>>(), ["10.1.0.7:8080"]);
    }
}
