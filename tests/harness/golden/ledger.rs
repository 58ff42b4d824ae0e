//! The cases that are expected to fail, and why. The list may only shrink.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// The list.
pub struct Ledger {
    reasons: BTreeMap<String, String>,
}

impl Ledger {
    /// Reads `folder/name: reason` lines; `#` begins a comment, an empty line is nothing.
    pub fn read(root: &Path) -> Result<Ledger> {
        let path = root.join("golden-expected-failures.txt");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut reasons = BTreeMap::new();
        for line in text.lines() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (case, reason) =
                line.split_once(": ").with_context(|| format!("no reason: {line}"))?;
            if reasons.insert(case.to_owned(), reason.to_owned()).is_some() {
                bail!("{case} is listed twice");
            }
            if !root.join("golden").join(format!("{case}.yaml")).exists() {
                bail!("{case} is listed, and is no case");
            }
        }
        Ok(Ledger { reasons })
    }

    /// Why a case is expected to fail, if it is.
    pub fn reason(&self, folder: &str, name: &str) -> Option<&str> {
        self.reasons.get(&format!("{folder}/{name}")).map(String::as_str)
    }

    /// How many are listed.
    pub fn len(&self) -> usize {
        self.reasons.len()
    }

    /// Is none listed?
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }
}
