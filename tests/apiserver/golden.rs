//! A handful of the golden cases with their objects at a real API server.

use std::path::Path;

use anyhow::{Result, ensure};
use harness::apiserver::User;
use harness::golden::{Case, run_case_live};

use crate::rig::Rig;

const CASES: [(&str, &str); 1] = [("abc", "add-and-remove-in-one-change")];

#[tokio::test(flavor = "multi_thread")]
async fn golden_cases_through_the_api_server() -> Result<()> {
    let rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    let source = rig.source(User::Admin)?;
    let mut failed = Vec::new();
    for (folder, name) in CASES {
        let case = Case::read(Path::new(env!("CARGO_MANIFEST_DIR")), folder, name)?;
        let faults = run_case_live(&case, source.clone(), &rig.objects).await?;
        failed.extend(faults.into_iter().map(|fault| format!("{folder}/{name}: {fault}")));
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}
