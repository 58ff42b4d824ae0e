//! Runs a case: its steps one after the other on a fresh server, each compared when it has settled.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use spillway::SourceOptions;

use super::case::{Action, Case, Kept, Open, Step};
use super::{Cluster, Far, FarClusters, Linked, Server, Setup, compare};
use crate::apiserver::Objects;
use crate::client::{Seen, Stream};
use crate::shown::Shown;

/// Runs a case, and gives every difference as a line that says where; empty if it passes.
pub async fn run_case(case: &Case) -> Result<Vec<String>> {
    let setup = Setup::read(&case.settings)?;
    let mut cluster = Cluster::new(setup.endpoints);
    let mut linked = Linked::new(&case.clusters, setup.controller_namespace(), setup.endpoints)?;
    let mut server = Server::start(setup, SourceOptions::Fed).await?;
    server.deliver(cluster.list(&linked.stored(&case.objects))?).await?;
    linked.follow(&mut server).await?;
    let mut streams = Streams::default();
    let mut faults = Vec::new();
    let way = Way::Checked;
    for (index, step) in case.steps.iter().enumerate() {
        if let Action::Stop = step.action() {
            server.stop(&streams.all()).await?;
            faults.extend(streams.check(index + 1, step, way)?);
            return Ok(faults);
        }
        if !streams.take(step, &server).await {
            match &step.cluster {
                Some(name) => {
                    linked.change(name, &step.delete, &step.apply, &mut server).await?;
                }
                None => {
                    let mut changes = cluster.delete(&step.delete)?;
                    changes.extend(cluster.apply(&linked.stored(&step.apply))?);
                    if !changes.is_empty() {
                        server.deliver(changes).await?;
                        linked.follow(&mut server).await?;
                    }
                }
            }
        }
        server.settle(&streams.all()).await.with_context(|| format!("step {}", index + 1))?;
        faults.extend(streams.check(index + 1, step, way)?);
    }
    Ok(faults)
}

/// Runs a case with its objects at a real API server, where each is a change of its own: what a stream passes
/// through is not compared, only what it comes to.
pub async fn run_case_live(
    case: &Case,
    source: SourceOptions,
    objects: &Objects,
    far: &[Far],
) -> Result<Vec<String>> {
    let setup = Setup::read(&case.settings)?;
    let namespace = setup.controller_namespace();
    let mut clusters = FarClusters::fill(case, far, namespace, setup.endpoints).await?;
    objects.clear().await?;
    objects.apply(&clusters.with_kubeconfigs(&case.objects)?).await?;
    let mut server = Server::start(setup, source).await?;
    server.follow(objects, Some(&clusters)).await?;
    let mut streams = Streams::default();
    let mut faults = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        if !streams.take(step, &server).await {
            match &step.cluster {
                Some(name) => clusters.change(name, &step.delete, &step.apply).await?,
                None => {
                    objects.delete(&step.delete).await?;
                    objects.apply(&clusters.with_kubeconfigs(&step.apply)?).await?;
                }
            }
            server.follow(objects, Some(&clusters)).await?;
        }
        server.settle(&streams.all()).await.with_context(|| format!("step {}", index + 1))?;
        faults.extend(streams.check(index + 1, step, Way::Free)?);
    }
    Ok(faults)
}

/// Is it compared how a stream got to its state?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Checked,
    Free,
}

/// The open streams by name, each with what it should hold.
#[derive(Default)]
struct Streams(BTreeMap<String, Followed>);

struct Followed {
    stream: Stream,
    expected: Seen,
    profile: bool,
    /// It was on hold: what was sent meanwhile is of several states.
    behind: bool,
}

impl Streams {
    /// Takes a step that is about streams; false if it is about objects.
    async fn take(&mut self, step: &Step, server: &Server) -> bool {
        match step.action() {
            Action::Open(opens) => {
                for open in opens {
                    self.open(server, &open).await;
                }
            }
            Action::Close(name) => {
                self.0.remove(&name);
            }
            Action::Release(name) => {
                if let Some(followed) = self.0.get(&name) {
                    followed.stream.release();
                }
            }
            Action::Change => return false,
            Action::Stop => {}
        }
        true
    }

    async fn open(&mut self, server: &Server, open: &Open) {
        let Some(question) = open.question() else { return };
        let profile = question.profile;
        let stream = server.client().open(question, open.hold).await;
        let expected = Seen::Open(Shown::new());
        let followed = Followed { stream, expected, profile, behind: open.hold };
        self.0.insert(open.open.clone(), followed);
    }

    fn all(&self) -> Vec<&Stream> {
        self.0.values().map(|followed| &followed.stream).collect()
    }

    /// Compares all of them, those too that should have got nothing.
    fn check(&mut self, number: usize, step: &Step, way: Way) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        for (name, followed) in &mut self.0 {
            let before = followed.expected.held();
            if let Some(observed) = step.observed.get(name)
                && let Kept::Now(seen) = observed.kept(followed.profile)?
            {
                followed.expected = seen;
            }
            let mut found = followed.stream.faults();
            let news = followed.stream.news();
            if !followed.stream.is_on_hold() {
                found.extend(compare::states(&followed.expected, &followed.stream.seen()));
                let behind = std::mem::take(&mut followed.behind);
                if let Seen::Open(after) = &followed.expected
                    && way == Way::Checked
                    && !behind
                {
                    found.extend(compare::way(&before, &news, after));
                }
            }
            faults.extend(found.iter().map(|fault| format!("step {number}, {name}: {fault}")));
        }
        Ok(faults)
    }
}
