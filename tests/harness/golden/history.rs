//! Runs a random history: after each step a stream opened now and one open since the beginning must both show
//! what was observed, which is a function of the objects.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use spillway::SourceOptions;

use super::case::{Case, Open, Step};
use super::{Cluster, Server, Setup, compare};
use crate::apiserver::Objects;
use crate::client::{Seen, Stream};
use crate::shown::{Shown, differences};

/// Runs a history, with or without a restart of the server after each step, and gives every difference as a
/// line that says where.
pub async fn run_history(case: &Case, restarts: bool) -> Result<Vec<String>> {
    let opens = case.steps.iter().flat_map(|step| &step.opens);
    let opens: Vec<&Open> = opens.collect();
    let setup = Setup::read(&case.settings)?;
    let mut cluster = Cluster::new(setup.endpoints);
    let mut server = Server::start(setup, SourceOptions::Fed).await?;
    server.deliver(cluster.list(&case.objects)?).await?;
    let mut olds = BTreeMap::new();
    let mut faults = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let mut changes = cluster.delete(&step.delete)?;
        changes.extend(cluster.apply(&step.apply)?);
        if !changes.is_empty() {
            server.deliver(changes).await?;
        }
        if restarts && index > 0 {
            olds.clear();
            server = server.restart().await?;
        }
        let found = observe(&server, (step, true), &opens, &mut olds).await;
        let found = found.with_context(|| format!("step {}", index + 1))?;
        let after = if restarts { " after a restart" } else { "" };
        faults.extend(found.iter().map(|fault| format!("step {}{after}, {fault}", index + 1)));
    }
    Ok(faults)
}

/// Runs a history with its objects at a real API server.
pub async fn run_history_live(
    case: &Case,
    source: SourceOptions,
    objects: &Objects,
) -> Result<Vec<String>> {
    let opens = case.steps.iter().flat_map(|step| &step.opens);
    let opens: Vec<&Open> = opens.collect();
    objects.clear().await?;
    objects.apply(&case.objects).await?;
    let mut server = Server::start(Setup::read(&case.settings)?, source).await?;
    let mut olds = BTreeMap::new();
    let mut faults = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        for object in &step.delete {
            match objects.delete(std::slice::from_ref(object)).await {
                // A history deletes what may not be there.
                Err(error) if error.to_string().contains(": 404 ") => {}
                deleted => deleted?,
            }
        }
        objects.apply(&step.apply).await?;
        server.follow(objects, None).await?;
        let found = observe(&server, (step, false), &opens, &mut olds).await;
        let found = found.with_context(|| format!("step {}", index + 1))?;
        faults.extend(found.iter().map(|fault| format!("step {}, {fault}", index + 1)));
    }
    Ok(faults)
}

/// A stream open since the beginning, with what it should hold.
struct Old {
    stream: Stream,
    expected: Shown,
}

/// Compares the old streams with what was observed in a step, then as many new ones. What they passed through is compared
/// only where a step is one commit.
async fn observe(
    server: &Server,
    (step, at_once): (&Step, bool),
    opens: &[&Open],
    olds: &mut BTreeMap<String, Old>,
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    // What was ended by a status is opened again, as a proxy does.
    olds.retain(|_, old| old.stream.is_open());
    for open in opens {
        if let (None, Some(question)) = (olds.get(&open.open), open.question()) {
            let stream = server.client().open(question, false).await;
            olds.insert(open.open.clone(), Old { stream, expected: Shown::new() });
        }
    }
    server.settle(&olds.values().map(|old| &old.stream).collect::<Vec<_>>()).await?;
    for open in opens {
        let name = &open.open;
        let Some(old) = olds.get_mut(name) else { continue };
        let expected = observed(step, open)?;
        if open.profile.is_some() && matches!(expected, Seen::Ended(_)) {
            // It may keep what it was told of a Service that is gone, or end.
            old.expected = old.stream.seen().held();
            old.stream.news();
            continue;
        }
        let before = std::mem::replace(&mut old.expected, expected.held());
        let mut found = old.stream.faults();
        found.extend(differences(&old.expected, &old.stream.seen().held()));
        let way = compare::way(&before, &old.stream.news(), &old.expected);
        found.extend(way.into_iter().filter(|_| at_once));
        faults.extend(found.iter().map(|fault| format!("old {name}: {fault}")));
    }
    let mut news = BTreeMap::new();
    for open in opens {
        if let Some(question) = open.question() {
            news.insert(open.open.clone(), server.client().open(question, false).await);
        }
    }
    let all: Vec<&Stream> = olds.values().map(|old| &old.stream).chain(news.values()).collect();
    server.settle(&all).await?;
    for open in opens {
        let name = &open.open;
        let Some(stream) = news.get(name) else { continue };
        let mut found = stream.faults();
        found.extend(compare::states(&observed(step, open)?, &stream.seen()));
        faults.extend(found.iter().map(|fault| format!("new {name}: {fault}")));
    }
    drop(news);
    server.settle(&olds.values().map(|old| &old.stream).collect::<Vec<_>>()).await?;
    Ok(faults)
}

fn observed(step: &Step, open: &Open) -> Result<Seen> {
    match step.observed.get(&open.open) {
        Some(observed) => observed.fresh(open.profile.is_some()),
        None => Ok(Seen::Open(Shown::new())),
    }
}
