//! The golden cases: what was observed on the Go linkerd-destination, against ours, a test for each folder.
//! `GOLDEN=folder/name` runs the cases whose names begin like that, and prints every difference.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, stream};
use harness::golden::{Case, Ledger, folder, run_case, run_history};

/// Cases that run at once in one folder. Each has a server of its own, which mostly waits for the disk.
const CASES_AT_ONCE: usize = 6;

/// Differences shown of one case; the first ones explain the others.
const DIFFERENCES_SHOWN: usize = 6;

#[test]
fn abc_names_ports_and_slices() {
    check("abc");
}

#[test]
fn def_topology_families_and_contents() {
    check("def");
}

#[test]
fn ghik_servers_and_mirrors() {
    check("ghik");
}

#[test]
fn jl_profiles_and_state_machines() {
    check("jl");
}

#[test]
fn mno_clusters_and_streams() {
    check("mno");
}

#[test]
fn histories() {
    check("histories");
}

/// The list of expected failures may shrink: then make this number smaller. It never grows.
const EXPECTED_FAILURES: usize = 0;

#[test]
fn the_list_of_expected_failures_only_shrinks() {
    let ledger = Ledger::read(root()).expect("the list can be read");
    assert!(
        ledger.len() == EXPECTED_FAILURES,
        "tests/golden-expected-failures.txt lists {} cases, EXPECTED_FAILURES says {EXPECTED_FAILURES}: \
         make the case pass that was added, or lower the number for the one that was taken out",
        ledger.len()
    );
}

#[test]
fn each_want_of_ours_belongs_to_a_case() {
    for name in ["abc", "def", "ghik", "jl", "mno"] {
        let Ok(entries) = std::fs::read_dir(root().join("golden-want").join(name)) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("a folder entry").path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            Case::read(root(), name, stem).expect("the case that it overrides");
        }
    }
}

/// What became of a case.
enum Outcome {
    /// As expected.
    Passed,
    /// It failed, and is listed.
    Listed,
    /// It should have passed and did not, or the other way round.
    Wrong(String),
}

fn check(name: &'static str) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcomes = runtime.expect("a runtime").block_on(run_folder(name));
    let outcomes = outcomes.expect("the cases can be read");
    let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|o| wanted(o)).count();
    let line = format!(
        "golden {name}: {} passed, {} fail as listed\n",
        count(|outcome| matches!(outcome, Outcome::Passed)),
        count(|outcome| matches!(outcome, Outcome::Listed)),
    );
    // Around libtest, which would keep it to itself.
    std::io::stdout().write_all(line.as_bytes()).expect("stdout");
    let wrong: Vec<_> = outcomes
        .iter()
        .filter_map(
            |outcome| if let Outcome::Wrong(text) = outcome { Some(text.as_str()) } else { None },
        )
        .collect();
    assert!(wrong.is_empty(), "{} cases of {name}:\n{}", wrong.len(), wrong.join("\n"));
}

async fn run_folder(name: &'static str) -> Result<Vec<Outcome>> {
    let ledger = Arc::new(Ledger::read(root())?);
    let only = only();
    let cases = folder(root(), name)?;
    let cases = cases.into_iter().filter(|case| format!("{name}/{case}").starts_with(&only));
    let show_all = !only.is_empty();
    let runs = cases.map(|case| {
        let ledger = ledger.clone();
        // A task each, so that reading one and running another can go on at once.
        tokio::spawn(async move { run(name, &case, &ledger, show_all).await })
    });
    let outcomes: Vec<_> = stream::iter(runs).buffer_unordered(CASES_AT_ONCE).collect().await;
    outcomes.into_iter().map(|outcome| outcome.context("a case panicked")?).collect()
}

async fn run(name: &str, case: &str, ledger: &Ledger, show_all: bool) -> Result<Outcome> {
    let case = Case::read(root(), name, case)?;
    let faults = match faults(&case).await {
        Ok(faults) => faults,
        Err(error) => vec![format!("{error:#}")],
    };
    let title = format!("{name}/{}", case.name);
    Ok(match (faults.is_empty(), ledger.reason(name, &case.name)) {
        (true, None) => Outcome::Passed,
        (false, Some(_)) if !show_all => Outcome::Listed,
        (true, Some(reason)) => Outcome::Wrong(format!(
            "{title} passes; take it out of tests/golden-expected-failures.txt ({reason})"
        )),
        (false, _) => {
            let shown = if show_all { faults.len() } else { DIFFERENCES_SHOWN };
            let lines: Vec<_> =
                faults.iter().take(shown).map(|fault| format!("  {fault}")).collect();
            let want = case.want.map(|want| format!("  want: {want}\n")).unwrap_or_default();
            let about = case.about;
            Outcome::Wrong(format!(
                "{title}: {about}\n{want}{}\n  ({} differences)",
                lines.join("\n"),
                faults.len()
            ))
        }
    })
}

async fn faults(case: &Case) -> Result<Vec<String>> {
    if !case.fresh {
        return run_case(case).await;
    }
    let mut faults = run_history(case, false).await?;
    faults.extend(run_history(case, true).await?);
    Ok(faults)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[expect(clippy::disallowed_methods, reason = "for whoever works on one case")]
fn only() -> String {
    std::env::var("GOLDEN").unwrap_or_default()
}
