//! A handful of the golden cases with their objects at a real API server.

use std::path::Path;

use anyhow::{Result, ensure};
use harness::apiserver::User;
use harness::golden::{Case, run_case_live, run_history_live};

use crate::rig::Rig;

/// Cases whose objects a real API server takes as they are, of each sort one.
const CASES: [(&str, &str); 13] = [
    ("abc", "add-and-remove-in-one-change"),
    ("abc", "pod-replaced-under-its-name"),
    ("abc", "service-deleted-and-recreated"),
    ("abc", "endpoints-mode-two-subsets"),
    ("abc", "endpoints-mode-pod-comes-late"),
    ("def", "zone-changes"),
    ("def", "workload"),
    ("ghik", "server-selects-deselects"),
    ("ghik", "profile-created-later"),
    ("ghik", "sp-many-changes"),
    ("jl", "by-instance-name-new-ip"),
    ("jl", "host-port"),
    ("jl", "workload-lives"),
];

const HISTORIES: [&str; 3] = ["history-001", "history-020", "history-044"];

#[tokio::test(flavor = "multi_thread")]
async fn golden_cases_through_the_api_server() -> Result<()> {
    let rig = Rig::new(&["Server", "ExternalWorkload", "ServiceProfile"]).await?;
    let source = rig.source(User::Admin)?;
    let mut failed = Vec::new();
    for (folder, name) in CASES {
        let case = Case::read(Path::new(env!("CARGO_MANIFEST_DIR")), folder, name)?;
        let faults = run_case_live(&case, source.clone(), &rig.objects, &[]).await?;
        failed.extend(faults.into_iter().map(|fault| format!("{folder}/{name}: {fault}")));
    }
    for name in HISTORIES {
        let case = Case::read(Path::new(env!("CARGO_MANIFEST_DIR")), "histories", name)?;
        let faults = run_history_live(&case, source.clone(), &rig.objects).await?;
        failed.extend(faults.into_iter().map(|fault| format!("histories/{name}: {fault}")));
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}
