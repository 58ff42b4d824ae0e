//! A case as it is written, with our own expectations laid over what was observed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use tonic::Code;

use crate::client::{Question, Seen};
use crate::shown::{Shown, written, written_profile};

/// One history.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, that of the file.
    pub name: String,
    /// What it shows.
    #[serde(default)]
    pub about: String,
    /// The rows of the specification that it belongs to.
    #[serde(default)]
    pub rows: Vec<String>,
    /// A random history: observed anew after each step.
    #[serde(default)]
    pub fresh: bool,
    /// What differs from the usual settings.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// Remote clusters, and the objects there.
    #[serde(default)]
    pub clusters: BTreeMap<String, Value>,
    /// What is in the local cluster before the start.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// The original doesn't start with these.
    #[serde(default)]
    pub refuses_to_start: bool,
    /// What happens.
    pub steps: Vec<Step>,
    /// Where ours must differ, in words.
    pub want: Option<String>,
}

/// One step of a case.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    open: Option<String>,
    get: Option<String>,
    profile: Option<String>,
    token: String,
    scheme: String,
    hold: bool,
    federated: bool,
    /// The streams of a history, all opened in its first step.
    pub opens: Vec<Open>,
    /// Objects to create or replace.
    pub apply: Vec<Value>,
    /// Objects to delete, as Kind/namespace/name.
    pub delete: Vec<String>,
    /// In which cluster; the local one if it is missing.
    pub cluster: Option<String>,
    close: Option<String>,
    wait: Option<Value>,
    release: Option<String>,
    signal: Option<String>,
    metrics: Option<String>,
    /// What each stream got.
    pub observed: BTreeMap<String, Observed>,
}

/// A stream to open.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Open {
    /// Its name in the case.
    pub open: String,
    /// The authority of a Get, or …
    pub get: Option<String>,
    /// … of a GetProfile.
    pub profile: Option<String>,
    token: String,
    scheme: String,
    /// It isn't read until it is released.
    pub hold: bool,
    federated: bool,
}

impl Open {
    /// What it asks.
    pub fn question(&self) -> Option<Question> {
        let path = self.get.clone().or_else(|| self.profile.clone())?;
        let profile = self.get.is_none();
        Some(Question { path, profile, token: self.token.clone(), scheme: self.scheme.clone() })
    }
}

/// What one stream got in one step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Observed {
    updates: Vec<Value>,
    state: Option<Value>,
    error: Option<String>,
    message: Option<String>,
    ended: Option<String>,
    lines: Vec<Value>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Opens streams.
    Open(Vec<Open>),
    /// Changes objects; also when there is nothing to change.
    Change,
    /// Closes a stream.
    Close(String),
    /// Starts to read a stream.
    Release(String),
    /// Stops the server.
    Stop,
}

impl Step {
    /// What it does.
    pub fn action(&self) -> Action {
        if let Some(open) = &self.open {
            return Action::Open(vec![Open {
                open: open.clone(),
                get: self.get.clone(),
                profile: self.profile.clone(),
                token: self.token.clone(),
                scheme: self.scheme.clone(),
                hold: self.hold,
                federated: self.federated,
            }]);
        }
        match (&self.close, &self.release, &self.signal) {
            (Some(stream), _, _) => Action::Close(stream.clone()),
            (_, Some(stream), _) => Action::Release(stream.clone()),
            (_, _, Some(_)) => Action::Stop,
            _ if !self.opens.is_empty() => Action::Open(self.opens.clone()),
            // `wait` and `metrics` are nothing to do.
            _ => Action::Change,
        }
    }
}

/// Whether a stream's earlier state goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// Nothing came: it holds what it held.
    Same,
    /// It came to this.
    Now(Seen),
}

impl Observed {
    /// What it came to, a profile or a Get.
    pub fn kept(&self, profile: bool) -> Result<Kept> {
        if let Some(error) = &self.error {
            return Ok(Kept::Now(Seen::Ended(code(error)?)));
        }
        if let Some(ended) = &self.ended {
            return Ok(Kept::Now(Seen::Ended(code(ended)?)));
        }
        match &self.state {
            Some(state) if profile => Ok(Kept::Now(Seen::Open(written_profile(state)))),
            Some(state) => Ok(Kept::Now(Seen::Open(written(state)?))),
            None => Ok(Kept::Same),
        }
    }

    /// What a fresh stream came to: one that got nothing holds nothing.
    pub fn fresh(&self, profile: bool) -> Result<Seen> {
        Ok(match self.kept(profile)? {
            Kept::Now(seen) => seen,
            Kept::Same => Seen::Open(Shown::new()),
        })
    }
}

fn code(name: &str) -> Result<Code> {
    Ok(match name {
        "OK" => Code::Ok,
        "FAILED_PRECONDITION" => Code::FailedPrecondition,
        "INVALID_ARGUMENT" => Code::InvalidArgument,
        "NOT_FOUND" => Code::NotFound,
        "UNAVAILABLE" => Code::Unavailable,
        "UNKNOWN" => Code::Unknown,
        _ => bail!("{name} is no status code that a case uses"),
    })
}

/// Our own expectations for a case, by the number of the step, from 1.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Want {
    /// Of a case without `want`: which of the original's quirks it shows.
    quirk: Option<String>,
    steps: BTreeMap<usize, BTreeMap<String, Observed>>,
}

impl Case {
    /// Reads a case and, if there is one, what we want instead of what was observed.
    pub fn read(root: &Path, folder: &str, name: &str) -> Result<Case> {
        let mut case: Case = yaml(&root.join("golden").join(folder).join(format!("{name}.yaml")))?;
        let own = root.join("golden-want").join(folder).join(format!("{name}.yaml"));
        if own.exists() {
            let want: Want = yaml(&own)?;
            if case.want.is_none() && want.quirk.is_none() {
                bail!("{} overrides a case without `want`, and names no quirk", own.display());
            }
            for (number, streams) in want.steps {
                let step = number.checked_sub(1).and_then(|index| case.steps.get_mut(index));
                let step = step.with_context(|| format!("{}: no step {number}", own.display()))?;
                step.observed.extend(streams);
            }
        }
        Ok(case)
    }
}

fn yaml<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    // Whoever wrote the cases takes `y` for a name.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&text, options).with_context(|| path.display().to_string())
}

/// The names of the cases of a folder, in order.
pub fn folder(root: &Path, folder: &str) -> Result<Vec<String>> {
    let path = root.join("golden").join(folder);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&path).with_context(|| path.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            names.push(stem.context("a file name that is no text")?.to_owned());
        }
    }
    names.sort();
    Ok(names)
}
