//! Many clients, many pods, and addresses that are used again.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use harness::client::Question;
use serde_json::{Value, json};

use crate::mesh::{
    CART, Mesh, cart, endpoint, endpoints, ip, node, pod, pods, service, slice, with,
};

/// How long ten thousand streams may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The cluster's pods of one round: five of each of ten workloads, all with other addresses than the round before.
fn round(number: usize) -> Vec<Value> {
    let pods = |service: usize| {
        (0..5).map(move |at| {
            let name = format!("w{service}-{number}-{at}");
            (name, (number * 50 + service * 5 + at) % 500)
        })
    };
    let mut objects = Vec::new();
    for of in 0..10 {
        let labels = json!({"kubernetes.io/service-name": format!("svc{of}")});
        let endpoints = pods(of).map(|(name, at)| endpoint(&name, at)).collect();
        let slice = slice(&format!("svc{of}-1"), endpoints);
        objects.push(with(slice, "/metadata", "labels", labels));
        objects.extend(pods(of).map(|(name, at)| pod(&name, at)));
    }
    objects
}

#[tokio::test]
async fn f31_clients_that_come_and_go_leave_nothing_behind() -> Result<()> {
    let mut objects: Vec<Value> =
        (0..10).map(|of| service(&format!("svc{of}"), &[("http", 8080)])).collect();
    objects.extend(round(0));
    let mut mesh = Mesh::of(&objects).await?;
    for number in 0..200 {
        mesh.open(&format!("svc{}.shop:8080@n{number}", number % 10)).await?;
    }
    for number in 1..30 {
        let mut random = number * 7;
        for _ in 0..20 {
            // Which ones come back is as good as random.
            random = (random * 31 + 7) % 200;
            let name = format!("svc{}.shop:8080@n{random}", random % 10);
            mesh.streams.remove(&name);
            mesh.open(&name).await?;
        }
        let gone: Vec<String> = (0..10)
            .flat_map(|of| (0..5).map(move |at| format!("Pod/shop/w{of}-{}-{at}", number - 1)))
            .collect();
        mesh.apply(&round(number)).await?;
        mesh.delete(&gone.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        for stream in mesh.streams.values() {
            ensure!(stream.seen().held().len() == 5, "{:?}", stream.seen());
        }
    }
    mesh.streams.clear();
    // Returns when the server has none open either.
    mesh.settle().await?;
    ensure!(mesh.server.streams_known() == (0, 0), "{:?}", mesh.server.streams_known());
    Ok(())
}

/// With ten endpoints instead of a thousand, or the clients would be what is measured.
#[tokio::test(flavor = "multi_thread")]
async fn f32_ten_thousand_streams_of_three_zones() -> Result<()> {
    let mut objects = vec![cart(), slice("s1", endpoints(0..10))];
    objects.extend((0..3).map(|at| node(&format!("n{at}"), &format!("z{at}"))));
    objects.extend(pods(0..11));
    let mut mesh = Mesh::of(&objects).await?;
    let (mut clients, mut streams) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let client = mesh.server.another_client().await?;
        for _ in 0..100 {
            let token = json!({"ns": "shop", "nodeName": format!("n{}", number % 3)}).to_string();
            let path = "cart.shop.svc.k.test:8080".to_owned();
            let question = Question { path, token, ..Question::default() };
            streams.push(client.open(question, false).await);
        }
        clients.push(client);
    }
    let all_hold = async |count: usize| {
        while !streams.iter().all(|stream| stream.seen().held().len() == count) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_hold(10)).await.context("not all are told")?;
    let change = mesh.cluster.apply(&[slice("s1", endpoints(0..11))])?;
    mesh.server.deliver(change).await?;
    tokio::time::timeout(PATIENCE, all_hold(11)).await.context("not all hear of a change")?;
    ensure!(streams.len() == 10_000);
    drop((streams, clients));
    let gone = async {
        while mesh.server.streams_known() != (0, 0) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.context("streams are left")
}

#[tokio::test]
async fn f34_a_crowd_of_new_pods_is_answered() -> Result<()> {
    let mut objects: Vec<Value> = (0..50).map(|at| node(&format!("n{at}"), "z1")).collect();
    objects.extend((0..10).map(|of| service(&format!("svc{of}"), &[("http", 8080)])));
    objects.extend(round(0));
    let mut mesh = Mesh::of(&objects).await?;
    for burst in 0..10 {
        mesh.apply(&pods(600 + burst * 50..650 + burst * 50)).await?;
        for number in 0..500 {
            let name = format!("svc{}.shop:8080@n{}", number % 10, number % 50);
            let (path, node) = name.split_once('@').context("a node")?;
            let path = path.replace(":", ".svc.k.test:");
            let token = json!({"ns": "shop", "nodeName": node}).to_string();
            let question = Question { path, token, ..Question::default() };
            let stream = mesh.server.client().open(question, false).await;
            mesh.streams.insert(format!("{burst}/{number}"), stream);
        }
        mesh.settle().await?;
    }
    ensure!(mesh.streams.len() == 5_000);
    let answered = mesh.streams.values().filter(|it| it.seen().held().len() == 5).count();
    ensure!(answered == 5_000, "{answered} of 5000 lookups were answered in full");
    Ok(())
}

#[tokio::test]
async fn f35_a_listing_of_what_is_known_is_no_news() -> Result<()> {
    let mut objects = vec![cart(), slice("s1", endpoints(0..100))];
    objects.extend(pods(0..100));
    let mut mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
    mesh.relist(&objects).await?;
    mesh.heard(0, 0, 0)
}

#[tokio::test]
async fn f36_addresses_that_are_used_again_belong_to_their_new_owner() -> Result<()> {
    // Two Services share 220 addresses; 20 at a time, pods of one go and those of the other take them.
    let other = with(cart(), "/metadata", "name", json!("till"));
    let of = |service: &str, numbers: &[usize], turn: usize| {
        let name = |number: usize| format!("{service}-{number}-{turn}");
        let endpoints = numbers.iter().map(|it| endpoint(&name(*it), *it)).collect();
        let labels = json!({"kubernetes.io/service-name": service});
        let slice = with(slice(&format!("{service}-1"), endpoints), "/metadata", "labels", labels);
        let pods: Vec<Value> = numbers.iter().map(|it| pod(&name(*it), *it)).collect();
        (slice, pods)
    };
    let mut mesh = Mesh::of(&[cart(), other]).await?.opened(&[CART, "till.shop:8080"]).await?;
    for turn in 0..20 {
        let mine: Vec<usize> = (0..200).map(|at| (turn * 20 + at) % 220).collect();
        let free: Vec<usize> = (200..220).map(|at| (turn * 20 + at) % 220).collect();
        // Whose objects come first changes from turn to turn.
        let (cart, till) = (of("cart", &mine, turn), of("till", &free, turn));
        let order = if turn % 2 == 0 { [&cart, &till] } else { [&till, &cart] };
        for (slice, pods) in order {
            match turn % 3 {
                0 => mesh.apply(&[std::slice::from_ref(slice), pods].concat()).await?,
                _ => {
                    mesh.apply(pods).await?;
                    mesh.apply(std::slice::from_ref(slice)).await?;
                }
            }
        }
        for (name, owned) in [(CART, &mine), ("till.shop:8080", &free)] {
            let owned: Vec<String> = owned.iter().map(|it| format!("{}:8080", ip(*it))).collect();
            mesh.holds(name, &owned.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}
