//! The golden cases of linked clusters, against several real API servers.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use harness::apiserver::User;
use harness::golden::{Case, Far, folder, run_case_live};

use crate::rig::Rig;

/// Those that are about something else: clients that don't read, signals, flags.
const OTHERS: [&str; 5] = [
    "federated-queue-overflow",
    "queue-negative",
    "queue-overflow",
    "shutdown",
    "subscribers-metric",
];

#[tokio::test(flavor = "multi_thread")]
async fn golden_cases_of_linked_clusters_through_api_servers() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rig = Rig::new(&["Server", "ExternalWorkload", "ServiceProfile"]).await?;
    let far = [Far::start().await?, Far::start().await?];
    let source = rig.source(User::Admin)?;
    let mut failed = Vec::new();
    let only = only();
    let is_meant = |name: &&String| name.starts_with(&only) && !OTHERS.contains(&name.as_str());
    for name in folder(root, "mno")?.iter().filter(is_meant) {
        let case = Case::read(root, "mno", name)?;
        let run = run_case_live(&case, source.clone(), &rig.objects, &far).await;
        let faults = run.with_context(|| format!("mno/{name}"));
        match faults {
            Ok(faults) => failed.extend(faults.into_iter().map(|it| format!("mno/{name}: {it}"))),
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "for whoever works on one case")]
fn only() -> String {
    std::env::var("GOLDEN").unwrap_or_default()
}
