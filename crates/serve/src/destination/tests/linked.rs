//! Random histories of linked clusters: whatever is linked, unlinked, replaced or edited, and however small the messages are, a
//! client that has been there all along holds what a new one is told.

use model::{
    Change, ClusterId, Credentials, Discovery, EndpointsFrom, Key, Kind, Link, Object, ObjectName,
    Origin, Part, ResourceVersion, Revision, Service, Source, Target,
};
use tonic::Status;

use super::fixture::{Choice, Client, Server, USUAL, endpoint, of_pod, pod, slice, web};
use super::random::Dice;
use crate::destination::Oversize;

const CLUSTERS: [&str; 2] = ["east", "west"];

fn secret(cluster: &str) -> Key {
    let source = Source { cluster: ClusterId::LOCAL, kind: Kind::Secret };
    Key { source, name: ObjectName::new("mesh-sys", cluster).unwrap() }
}

fn part(cluster: &str) -> Part {
    Part { cluster: cluster.to_owned(), namespace: "shop".to_owned() }
}

impl Server {
    fn number(&self, cluster: &str) -> Option<ClusterId> {
        let snapshot = self.destination.shared.snapshot_for_tests();
        snapshot.part(&part(cluster)).unwrap().map(|stored| stored.id)
    }

    fn link(&mut self, cluster: &str, trust_domain: &str) -> Revision {
        let link = Link {
            cluster: cluster.to_owned(),
            trust_domain: trust_domain.to_owned(),
            cluster_domain: "x.test".to_owned(),
            credentials: Credentials::default(),
        };
        let object = Object::Link(Ok(link));
        let version = ResourceVersion(self.next_version());
        self.commit(vec![Change::Put { key: secret(cluster), version, object }])
    }

    fn join(&mut self, cluster: &str, uid: u64) -> Revision {
        let origin = Origin { uid: uid.to_string(), trust_domain: format!("{cluster}.org") };
        self.commit(vec![Change::Join { part: part(cluster), origin }])
    }

    /// Lists what there is of a kind, so far as it isn't there yet: nothing.
    fn list(&mut self, cluster: ClusterId) {
        for kind in EndpointsFrom::Slices.kinds_of_linked() {
            let source = Source { cluster, kind };
            let version = ResourceVersion("1".to_owned());
            self.commit(vec![Change::Begin { source }, Change::End { source, version }]);
        }
    }
}

fn change(server: &mut Server, dice: &mut Dice) -> Revision {
    let cluster = CLUSTERS[dice.roll(2) as usize];
    match dice.roll(40) {
        0 => server.commit(vec![Change::Delete { key: secret(cluster) }]),
        1 | 2 => server.link(cluster, "t"),
        3 => match server.number(cluster) {
            Some(id) => server.commit(vec![Change::Leave { id }]),
            None => server.join(cluster, 0),
        },
        4 => server.join(cluster, dice.roll(2)),
        5..=7 => {
            if let Some(id) = server.number(cluster) {
                server.list(id);
            }
            server.commit(Vec::new())
        }
        8 | 9 => {
            let members = ["web@east", "web@west,web@east,web@east", "", "api@east, web@west"];
            let local = [None, Some("web".to_owned()), Some("all".to_owned())];
            let discovery = Discovery {
                members: Some(members[dice.roll(4) as usize].to_owned()),
                local_member: local[dice.roll(3) as usize].clone(),
                ..Discovery::default()
            };
            server.put(Kind::Service, "all", Object::Service(Service { discovery, ..web() }))
        }
        10 if dice.roll(4) == 0 => server.delete(Kind::Service, "all"),
        _ => change_in(server, dice, cluster),
    }
}

/// Changes what is in some cluster, be it the local one.
fn change_in(server: &mut Server, dice: &mut Dice, cluster: &str) -> Revision {
    let cluster = match dice.roll(3) {
        0 => ClusterId::LOCAL,
        _ => server.number(cluster).unwrap_or(ClusterId::LOCAL),
    };
    let service = ["web", "api"][dice.roll(2) as usize];
    match dice.roll(8) {
        0 => {
            // Who asks for such a one by its own name is refused.
            let external_name = service == "api" && dice.roll(2) == 0;
            let object = Object::Service(Service { external_name, ..web() });
            server.put_in(cluster, Kind::Service, service, object)
        }
        1 if dice.roll(3) == 0 => server.delete_in(cluster, Kind::Service, service),
        2 | 3 => {
            let number = dice.roll(12);
            let object = Object::Workload(pod("n1", "10.1.0.1"));
            server.put_in(cluster, Kind::Pod, &format!("w{number}"), object)
        }
        4 => server.delete_in(cluster, Kind::Pod, &format!("w{}", dice.roll(12))),
        _ => {
            let endpoints = (0..dice.roll(20)).map(|_| {
                // Few addresses, so that several clusters have the same.
                let number = dice.roll(12);
                let ip = format!("10.1.{}.{number}", dice.roll(2));
                match dice.roll(4) {
                    0 => endpoint(&ip, Target::Bare),
                    _ => of_pod(&ip, &format!("w{number}"), &format!("z{}", dice.roll(2))),
                }
            });
            let endpoints = endpoints.collect();
            let object = slice(service, 8080 + dice.roll(2) as u16, endpoints);
            let name = format!("{service}-{}", dice.roll(2));
            server.put_in(cluster, Kind::EndpointSlice, &name, Object::Slice(object))
        }
    }
}

/// What a proxy does: it asks again for what has ended, and keeps what it had until it is told otherwise.
struct Proxy {
    path: &'static str,
    client: Option<Client>,
}

impl Proxy {
    /// Takes what there is; and once more if the stream has ended meanwhile. `None`: it is refused.
    async fn settle(&mut self, server: &Server, revision: Revision) -> Result<(), Status> {
        loop {
            if self.client.is_none() {
                self.client = Some(server.open(self.path, "n1").await?);
            }
            let Some(client) = &mut self.client else { continue };
            match client.settle_or_end(&server.hub, revision).await {
                true => return Ok(()),
                false => self.client = None,
            }
        }
    }

    fn held(&self) -> Option<&std::collections::BTreeMap<String, String>> {
        self.client.as_ref().map(|client| &client.held)
    }
}

const PATHS: [&str; 4] = [
    "all.shop.svc.k.test:80",
    "mirror.shop.svc.k.test:80",
    "web.shop.svc.k.test:80",
    "all.shop.svc.k.test:9",
];

async fn history(seed: u64, choice: Choice) {
    let mut dice = Dice(seed);
    let mut server = Server::start(choice);
    let discovery = Discovery {
        cluster: Some("east".to_owned()),
        service: Some("web".to_owned()),
        ..Discovery::default()
    };
    server.put(Kind::Service, "mirror", Object::Service(Service { discovery, ..web() }));
    for cluster in CLUSTERS {
        server.link(cluster, "t");
        server.join(cluster, 0);
        let id = server.number(cluster).unwrap();
        server.list(id);
    }
    let mut proxies: Vec<_> = PATHS.map(|path| Proxy { path, client: None }).into();
    let mut addresses = 0;
    for step in 0..300 {
        let revision = change(&mut server, &mut dice);
        if dice.roll(3) > 0 {
            continue;
        }
        let mut fresh: Vec<_> = PATHS.map(|path| Proxy { path, client: None }).into();
        // All at once: the hub has settled when none of them has anything left to look at.
        let all = proxies.iter_mut().chain(&mut fresh);
        let settled = all.map(|proxy| proxy.settle(&server, revision));
        let mut codes = futures::future::join_all(settled).await;
        let fresh_codes = codes.split_off(PATHS.len());
        let pairs = proxies.iter().zip(&fresh);
        for ((proxy, fresh), (old, new)) in pairs.zip(codes.into_iter().zip(fresh_codes)) {
            let about = format!("seed {seed}, step {step}, {}: {old:?}, {new:?}", proxy.path);
            let held = proxy.held().filter(|held| !held.is_empty());
            // Of what is refused now, who asked before holds nothing; all others hold the same.
            assert_eq!(held, fresh.held().filter(|held| !held.is_empty()), "{about}");
            assert!(new.is_err() || old.is_ok(), "{about}");
            addresses += held.map_or(0, |held| held.len());
        }
    }
    assert!(addresses > 100, "hardly anything was compared: {addresses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_holds_what_a_new_one_is_told_of_all_members() {
    for seed in 0..6 {
        history(seed, USUAL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_so_in_pieces_and_with_hardly_a_hot_set_of_q_15() {
    let oversize = Oversize { subset: false, endpoints_max: None };
    for (seed, hot_bytes) in [(6, 0), (7, 5_000), (8, 1 << 20), (9, 1 << 20)] {
        history(seed, Choice { message_bytes_max: 400, hot_bytes, oversize, ..USUAL }).await;
    }
}

#[tokio::test]
async fn an_address_whose_workload_is_not_watched_is_left_out_of_q_12() {
    let mut server = Server::start(USUAL);
    server.link("east", "t");
    server.join("east", 0);
    let east = server.number("east").unwrap();
    server.list(east);
    let vm = Target::ExternalWorkload(ObjectName::new("shop", "vm").unwrap());
    let endpoints = vec![endpoint("10.7.0.1", vm), endpoint("10.7.0.2", Target::Bare)];
    server.put_in(east, Kind::Service, "web", Object::Service(web()));
    let object = Object::Slice(slice("web", 8080, endpoints));
    let revision = server.put_in(east, Kind::EndpointSlice, "web-1", object);
    let discovery = Discovery { members: Some("web@east".to_owned()), ..Discovery::default() };
    server.put(Kind::Service, "all", Object::Service(Service { discovery, ..web() }));
    let mut client = server.open(PATHS[0], "n1").await.unwrap();
    client.settle(&server.hub, revision).await;
    assert_eq!(client.held.keys().collect::<Vec<_>>(), ["10.7.0.2:8080"]);
}
