//! Random histories over several clusters: what clients of mirrors and federated Services hold, and how their streams end,
//! while links come and go, clusters are replaced, and watches are cut off.

use std::time::Duration;

use harness::shown::{Shown, differences};
use model::Revision;

use crate::client::Client;
use crate::flows::{Asked, Now, Rules};
use crate::mesh::Mesh;
use crate::world::Dice;
use crate::{STEPS, clients, try_histories};

/// Histories, each of so many steps as those of one cluster.
const HISTORIES: u64 = 120;

/// A client, and what its stream was opened for.
struct Caller {
    client: Client,
    asked: Option<Asked>,
    /// How often it had asked when that was said.
    opened: u64,
}

impl Caller {
    /// What is true now, of what it asked for and of what it would ask for now.
    fn learn(&mut self, rules: &Rules<'_>) {
        let question = &self.client.question;
        let asked = self.asked.clone().into_iter().chain(rules.ask(question));
        let now = asked.map(|asked| rules.now(question, &asked));
        let truths: Vec<Shown> = now.flat_map(sets).collect();
        self.client.truths.extend(truths);
    }

    async fn settle(&mut self, mesh: &Mesh, revision: Revision) {
        if self.client.stream.is_none() {
            self.client.open(&mesh.server).await;
        }
        self.client.settle(&mesh.server, revision).await;
    }

    /// Compares what it holds with what the rules say, and whether its stream is open. Says whether it holds something.
    fn check(&mut self, rules: &Rules<'_>) -> bool {
        let client = &mut self.client;
        let case = format!("{:?}, {:?}, slow: {}", client.at, client.question, client.slow);
        if std::mem::replace(&mut self.opened, client.opened) != client.opened {
            let asked = rules.ask(&client.question);
            assert_eq!(client.refused, asked.as_ref().err().copied(), "{case}: {asked:?}");
            self.asked = asked.ok();
        }
        let Some(asked) = &self.asked else { return false };
        let case = format!("{case}, opened for {asked:?}");
        let now = rules.now(&client.question, asked);
        let ends = matches!(now, Now::Ends { .. });
        assert_eq!(client.over, ends, "{case}: is the stream over? Held: {:#?}", client.held);
        match &now {
            Now::Ends { taken_back } => {
                let left = !client.held.is_empty() && client.told && *taken_back;
                assert!(!left, "{case}: {:#?} is not taken back", client.held);
                self.asked = None;
            }
            Now::Silent => {
                assert!(!client.told || client.held.is_empty(), "{case}: {:#?}", client.held);
            }
            Now::Shows(sets) => {
                assert!(client.told, "{case}: it was told nothing");
                let wrong = sets.iter().map(|set| differences(set, &client.held));
                let wrong = wrong.min_by_key(Vec::len).unwrap_or_default();
                assert!(wrong.is_empty(), "{case}: {wrong:#?}");
            }
        }
        client.truths = sets(now);
        client.told && !client.held.is_empty()
    }
}

/// What may be held then.
fn sets(now: Now) -> Vec<Shown> {
    match now {
        Now::Shows(sets) => sets,
        Now::Silent | Now::Ends { .. } => vec![Shown::new()],
    }
}

fn callers() -> Vec<Caller> {
    let clients = clients(&[
        ("mirror", 80, None, Some("n0")),
        ("all", 80, None, Some("n0")),
        ("all", 80, None, Some("n1")),
        ("mirror", 81, Some("h0"), None),
        ("all", 81, None, None),
        ("mirror", 80, None, Some("n1")),
        ("all", 80, Some("h1"), Some("n2")),
        ("mirror", 9_999, None, None),
        ("all", 9_999, None, Some("n0")),
        ("web", 80, None, Some("n0")),
    ]);
    clients.into_iter().map(|client| Caller { client, asked: None, opened: 0 }).collect()
}

/// Lets those read who do, and compares what they hold. Gives how many hold something.
async fn settle(mesh: &Mesh, callers: &mut [Caller], slow_ones_read: bool, at: (u64, u64)) -> u64 {
    let revision = mesh.server.reader.stats().revision;
    let rules = mesh.rules();
    for caller in callers.iter_mut() {
        caller.client.at = at;
        caller.learn(&rules);
    }
    let busy = callers.iter_mut().filter(|caller| !caller.client.slow || slow_ones_read);
    let mut busy: Vec<&mut Caller> = busy.collect();
    let settling = busy.iter_mut().map(|caller| caller.settle(mesh, revision));
    let settling = futures::future::join_all(settling);
    let settled = tokio::time::timeout(Duration::from_secs(60), settling).await;
    assert!(settled.is_ok(), "{at:?}: streams don't settle");
    busy.into_iter().map(|caller| u64::from(caller.check(&rules))).sum()
}

/// Gives how often a client held something in the end of a step.
async fn history(seed: u64) -> u64 {
    let mut held = 0;
    let mut dice = Dice::new(seed);
    let mut mesh = Mesh::new(seed, &mut dice);
    let mut callers = callers();
    for step in 0..STEPS {
        mesh.story.step = step;
        if dice.percent(1) {
            mesh = mesh.restart();
            callers.iter_mut().for_each(|caller| caller.client.stream = None);
        } else {
            while {
                mesh.happen(&mut dice);
                dice.percent(40)
            } {}
        }
        // Some hang up, and ask anew.
        let hang_up = callers.iter_mut().filter(|_| dice.percent(3));
        hang_up.for_each(|caller| caller.client.stream = None);
        held += settle(&mesh, &mut callers, dice.percent(25), (seed, step)).await;
    }
    mesh.rest(&mut dice);
    held += settle(&mesh, &mut callers, true, (seed, STEPS)).await;
    assert_eq!(mesh.server.writer.check().expect("it can be read"), []);
    held
}

#[test]
fn every_client_holds_what_the_oracle_says_when_clusters_are_linked() {
    try_histories(HISTORIES, history);
}
