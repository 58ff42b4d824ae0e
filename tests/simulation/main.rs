//! Random histories, and after every step what each client holds against what an oracle says from the objects alone.
//!
//! Objects change, listings begin anew or are cut off, the store is closed and opened again, streams are slow or given
//! up. A client never sees an address that was in no truth since it last knew all, and never an empty set while there
//! was always something. Clusters are linked, answered from, replaced and unlinked. `SPILLWAY_SEED` begins elsewhere;
//! `SPILLWAY_LONG=1` goes ten times as far.

mod client;
mod far;
mod flows;
mod linked;
mod mesh;
mod oracle;
mod profiles;
mod world;

use std::future::Future;
use std::sync::Arc;

use harness::crash::{CrashVolume, Image};
use harness::shown::differences;
use model::{EndpointsFrom, PortSet, Revision, Time};
use resolve::Settings;
use serve::{Destination, Hub, Metrics, Needed, Oversize, Setup, StreamLimits};
use store::{Config, Fsync, Reader, Undo, Writer};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use client::Client;
use oracle::{Question, truth};
use world::{CONTROLLERS, Dice, World};

/// Histories, and steps of each history.
const HISTORIES: u64 = 250;
const STEPS: u64 = 400;

/// A door of the server: a stream that isn't read never settles, so slow clients have one of their own.
struct Door {
    hub: Arc<Hub>,
    destination: Destination,
}

struct Server {
    volume: CrashVolume,
    writer: Writer,
    reader: Reader,
    /// For those who read at once, and for slow ones.
    doors: [Door; 2],
    settings: Settings,
    /// Bytes of answers that are kept.
    hot_bytes: usize,
}

impl Server {
    fn start(volume: CrashVolume, settings: &Settings, hot_bytes: usize) -> Server {
        let config = Config {
            cache_bytes: 1 << 20,
            hot_bytes: 64 << 10,
            join: resolve::join,
            join_version: resolve::JOIN_VERSION,
            // Little, so that slow clients are left behind now and then.
            undo: Undo { bytes_max: 20_000, age_max: u64::MAX },
            fsync: Fsync::Together,
            disk_quota_bytes: None,
            admission: store::Admission::default(),
        };
        let opened = store::open_on(Arc::new(volume.clone()), config);
        let (writer, reader, _) = opened.expect("the store opens");
        let doors = [0, 1].map(|_| Door::new(&reader, settings, hot_bytes));
        Server { volume, writer, reader, doors, settings: settings.clone(), hot_bytes }
    }

    /// Ends it, and starts it on what it has left.
    fn restart(self) -> Server {
        let Server { volume, writer, settings, hot_bytes, .. } = self;
        drop(writer);
        Server::start(volume, &settings, hot_bytes)
    }

    fn commit(&mut self, changes: Vec<model::Change>) {
        let commit = self.writer.commit(Time(0), changes).expect("it is written");
        self.advance(&commit);
        while let Some(commit) = self.writer.tick(Time(0)).expect("it is written") {
            self.advance(&commit);
        }
    }

    /// Opens the store again under a server that goes on.
    fn reopen(&mut self) {
        let lost = self.writer.reopen().expect("the store opens");
        let (first, now) = (Revision(lost.after.0 + 1), self.reader.stats().revision);
        self.doors.iter().for_each(|door| door.hub.look_again(first, now));
    }

    fn advance(&self, commit: &store::Commit) {
        self.doors.iter().for_each(|door| door.hub.advance(commit));
    }

    fn door(&self, slow: bool) -> &Door {
        &self.doors[usize::from(slow)]
    }
}

impl Door {
    fn new(reader: &Reader, settings: &Settings, hot_bytes: usize) -> Door {
        let hub = Arc::new(Hub::starting_at(reader.stats().revision));
        let setup = Setup {
            reader: reader.clone(),
            hub: Arc::clone(&hub),
            settings: settings.clone(),
            http2: None,
            no_endpoints: true,
            metrics: Arc::new(Metrics::new()),
            oversize: Oversize { subset: true, endpoints_max: None },
            limits: StreamLimits { reads_max: 4, hot_bytes, sending_bytes: 16 << 20 },
            needed: Needed {
                kinds: EndpointsFrom::Slices.kinds().collect(),
                refused: Arc::new(|_| false),
            },
        };
        Door { hub, destination: Destination::new(setup, CancellationToken::new()) }
    }
}

fn settings(dice: &mut Dice) -> Settings {
    Settings {
        cluster_domain: "k.test".to_owned(),
        trust_domain: if dice.percent(90) { "id.test" } else { "" }.to_owned(),
        controller_namespace: CONTROLLERS.to_owned(),
        transport_header: dice.percent(40),
        h2_upgrade: dice.percent(80),
        ipv6: dice.percent(60),
        default_opaque: PortSet::from_ranges([(8_081, 8_081)]),
        zone_weights: dice.percent(30),
        http2: false,
    }
}

/// Every third of those who ask is slow.
fn clients(asked: &[(&str, u16, Option<&'static str>, Option<&'static str>)]) -> Vec<Client> {
    let client = |(index, (service, port, hostname, node)): (usize, &(&str, _, _, _))| {
        let service = (*service).to_owned();
        let question = Question { service, port: *port, hostname: *hostname, node: *node };
        Client::new(question, index % 3 == 2)
    };
    asked.iter().enumerate().map(client).collect()
}

/// Something happens, save for a restart.
fn happen(server: &mut Server, world: &mut World, dice: &mut Dice) {
    match dice.roll(100) {
        0 => server.reopen(),
        1..=3 => {
            let kinds = EndpointsFrom::Slices.kinds().collect::<Vec<_>>();
            let kind = kinds[dice.roll(kinds.len() as u64) as usize];
            server.commit(world.relist(kind, dice));
        }
        _ => {
            let changes = (0..=dice.roll(3)).map(|_| world.change(dice)).collect();
            server.commit(changes);
        }
    }
}

/// Gives how often a client held something in the end of a step.
async fn history(seed: u64) -> u64 {
    let mut held = 0;
    let mut dice = Dice::new(seed);
    let settings = settings(&mut dice);
    let hot_bytes = [0, 20_000, 1 << 20][dice.roll(3) as usize];
    let mut server = Server::start(CrashVolume::of(Image::new()), &settings, hot_bytes);
    let mut world = World::default();
    server.commit(world.list_all());
    let mut clients = clients(&[
        ("web", 80, None, Some("n0")),
        ("web", 80, None, Some("n1")),
        ("web", 81, None, None),
        ("api", 80, Some("h1"), Some("n0")),
        ("api", 80, None, Some("n2")),
        ("api", 9_999, None, Some("n0")),
    ]);
    let mut dialling = profiles::clients();
    for step in 0..STEPS {
        if dice.percent(1) {
            server = server.restart();
            clients.iter_mut().for_each(|client| client.stream = None);
            dialling.iter_mut().for_each(|client| client.stream = None);
        } else {
            happen(&mut server, &mut world, &mut dice);
        }
        let revision = server.reader.stats().revision;
        let slow_ones_read = dice.percent(25);
        let mut busy = Vec::new();
        for client in &mut clients {
            client.at = (seed, step);
            client.truths.push(truth(&world, &server.settings, &client.question));
            if client.slow && !slow_ones_read {
                continue;
            }
            if client.stream.is_none() {
                client.open(&server).await;
            }
            busy.push(client);
        }
        let dialling = dialling.iter_mut().filter(|client| !client.slow || slow_ones_read);
        let dialling = dialling.map(|client| {
            client.at = (seed, step);
            client.settle(&server, &world, revision)
        });
        let settling = busy.iter_mut().map(|client| client.settle(&server, revision));
        let both = futures::future::join(
            futures::future::join_all(settling),
            futures::future::join_all(dialling),
        );
        let patience = std::time::Duration::from_secs(60);
        let settled = tokio::time::timeout(patience, both).await;
        assert!(settled.is_ok(), "seed {seed}, step {step}: streams don't settle");
        for client in busy {
            let now = client.truths.pop().expect("a truth");
            let wrong = match client.stream {
                Some(_) => differences(&now, &client.held),
                None => Vec::new(),
            };
            let question = &client.question;
            let refused = client.refused.filter(|code| *code != Code::NotFound);
            assert!(!client.over && refused.is_none(), "{question:?}: {refused:?}");
            assert!(wrong.is_empty(), "seed {seed}, step {step}, {question:?}: {wrong:#?}");
            held += u64::from(!now.is_empty());
            client.truths = vec![now];
        }
    }
    held
}

#[expect(clippy::disallowed_methods, reason = "whoever wants another history says so to the test")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// Tries so many histories, or ten times as many, and sums up what they give.
#[expect(clippy::print_stdout, reason = "how much was tried is worth knowing")]
fn try_histories<F: Future<Output = u64>>(histories: u64, history: fn(u64) -> F) {
    let first = setting("SPILLWAY_SEED").unwrap_or(1);
    let histories = histories * if setting("SPILLWAY_LONG") == Some(1) { 10 } else { 1 };
    println!("seeds {first} to {}", first + histories - 1);
    let held: u64 = std::thread::scope(|scope| {
        let threads = [0, 1].map(|thread| {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.expect("a runtime");
                let seeds = (first..first + histories).filter(|seed| seed % 2 == thread);
                seeds.map(|seed| runtime.block_on(history(seed))).sum::<u64>()
            })
        });
        threads.map(|thread| thread.join().expect("a history that ends well")).iter().sum()
    });
    println!("{} steps, after which a client held something {held} times", histories * STEPS);
    assert!(held > histories * STEPS, "there is hardly anything to hold");
}

#[test]
fn every_client_holds_what_the_oracle_says() {
    try_histories(HISTORIES, history);
}
