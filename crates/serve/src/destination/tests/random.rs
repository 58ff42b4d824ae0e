//! Random histories with tiny messages: whatever the pieces and whenever they are taken, a client ends up with
//! what a new one is told.

use model::{Kind, Object, Revision, Service, Target};

use crate::destination::Oversize;

use super::fixture::{Choice, Client, Server, USUAL, endpoint, of_pod, slice, web};

/// A generator of our own: the same histories on every machine.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const SLICES: u64 = 3;
const PODS: u64 = 30;

fn change(server: &mut Server, dice: &mut Dice) -> Revision {
    match dice.roll(12) {
        0 => {
            let local_traffic = dice.roll(3) == 0;
            let service = Service { local_traffic, ..web() };
            server.put(Kind::Service, "web", Object::Service(service))
        }
        1 if dice.roll(4) == 0 => server.delete(Kind::Service, "web"),
        2 => server.node("n1", [None, Some("z1"), Some("z2")][dice.roll(3) as usize]),
        3 => {
            let pod = dice.roll(PODS);
            server.delete(Kind::Pod, &format!("w{pod}"))
        }
        4..=6 => {
            let (pod, node) = (dice.roll(PODS), dice.roll(3));
            server.pod(&format!("w{pod}"), &format!("n{node}"), "10.1.0.1")
        }
        _ => {
            let name = format!("web-{}", dice.roll(SLICES));
            let hinted = dice.roll(3) > 0;
            let count = dice.roll(40);
            let endpoints = (0..count).map(|_| {
                let pod = dice.roll(PODS);
                let ip = format!("10.1.{}.{pod}", dice.roll(2));
                let zone = format!("z{}", dice.roll(3));
                let mut endpoint = match dice.roll(5) {
                    0 => endpoint(&ip, Target::Bare),
                    _ => of_pod(&ip, &format!("w{pod}"), &zone),
                };
                endpoint.ready = dice.roll(8) > 0;
                endpoint.hostname = Some(format!("h{}", dice.roll(2)));
                if hinted {
                    endpoint.hints = vec![format!("z{}", dice.roll(3))];
                }
                endpoint
            });
            let endpoints: Vec<_> = endpoints.collect();
            let object = slice("web", 8080 + dice.roll(2) as u16, endpoints);
            server.put(Kind::EndpointSlice, &name, Object::Slice(object))
        }
    }
}

async fn open_all(server: &Server) -> Vec<Client> {
    let mut clients = Vec::new();
    for path in ["web.shop.svc.k.test:80", "h1.web.shop.svc.k.test:80", "web.shop.svc.k.test:9"] {
        for node in ["n1", ""] {
            clients.push(server.open(path, node).await.unwrap());
        }
        for pod in ["web-0", "web-1", "web-2"] {
            let token = format!("{{\"nodeName\":\"n1\",\"pod\":\"{pod}\"}}");
            clients.push(server.open_as(path, &token).await.unwrap());
        }
    }
    clients
}

async fn history(seed: u64, choice: Choice) {
    let mut dice = Dice(seed);
    let mut server = Server::start(choice);
    server.web();
    for _ in 0..30 {
        change(&mut server, &mut dice);
    }
    server.web();
    let mut clients = open_all(&server).await;
    for step in 0..60 {
        let mut revision = change(&mut server, &mut dice);
        // Some clients take a message in between, others are slow.
        for client in &mut clients {
            if dice.roll(3) == 0 {
                let soon = std::time::Duration::from_millis(1);
                tokio::time::timeout(soon, client.next()).await.ok();
            }
        }
        if dice.roll(4) > 0 {
            continue;
        }
        revision = revision.max(server.web());
        let mut fresh = open_all(&server).await;
        settle(&server, revision, clients.iter_mut().chain(&mut fresh)).await;
        for (index, (client, fresh)) in clients.iter().zip(&fresh).enumerate() {
            assert_eq!(client.held, fresh.held, "seed {seed}, step {step}, client {index}");
        }
    }
}

async fn settle(server: &Server, revision: Revision, clients: impl Iterator<Item = &mut Client>) {
    let settling = clients.map(|client| client.settle(&server.hub, revision));
    futures::future::join_all(settling).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_holds_what_a_new_one_is_told() {
    for seed in 0..3 {
        history(seed, Choice { message_bytes_max: 400, ..USUAL }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_so_with_messages_of_the_usual_size() {
    for seed in 3..5 {
        history(seed, USUAL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_so_with_hardly_a_hot_set() {
    for (seed, hot_bytes) in [(5, 0), (6, 1_500), (7, 5_000)] {
        history(seed, Choice { message_bytes_max: 400, hot_bytes, ..USUAL }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_so_in_subsets_and_in_chunks() {
    for (seed, subset, message_bytes_max) in
        [(8, true, 4_000), (9, true, 400_000), (10, false, 400)]
    {
        let oversize = Oversize { subset, endpoints_max: Some(6) };
        history(seed, Choice { message_bytes_max, oversize, ..USUAL }).await;
    }
}
