//! A folder of manifests as a source of all kinds: what `kubectl apply` takes, without an API server.
//!
//! The folder is looked at a few times a second, by size and time of modification: that works on every file
//! system, also where a ConfigMap is mounted. Of an object that was handed on only its key and a hash of its
//! text are remembered, some 200 bytes, so that an edit becomes the changes that it makes and no more.

mod document;
mod folder;
mod reading;
mod scan;
mod status;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{Change, ClusterId, Key, Kind, ObjectName, ResourceVersion, Source};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::Delivery;
use crate::objects::{self, Observed, Reject};

pub use document::{Document, ParseError, parse};
pub use status::{Status, Summary};

/// Between two looks at the folder. A change is taken when two of them in a row saw the same.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Hands on what the folder says, then what changes in it, until nobody listens.
///
/// It is always listed anew at the start, so nothing needs to be known of the past. If a file can't be read
/// then, nothing is swept until all can be: what is stored may be what it said.
pub async fn watch(dir: PathBuf, to: mpsc::Sender<Delivery>, status: Arc<Status>) {
    let mut folder = folder::Folder::new(dir, ClusterId::LOCAL);
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (to, status) = (to.clone(), Arc::clone(&status));
        let look = tokio::task::spawn_blocking(move || {
            let heard = folder.look(&mut |delivery| to.blocking_send(delivery).is_ok());
            status.set(folder.summary());
            heard.then_some(folder)
        });
        match look.await {
            Ok(Some(same)) => folder = same,
            Ok(None) => return,
            Err(error) => {
                tracing::error!(%error, "the folder of manifests is no longer watched");
                return;
            }
        }
    }
}

/// The change that makes an object what a manifest says. `version` is for one that has none of its own.
/// `None`: an object of a kind that isn't kept.
pub fn put(cluster: ClusterId, document: &Value, version: u64) -> Result<Option<Change>, Reject> {
    let Some(Observed { key, version: own, object, warnings }) = observe(cluster, document)? else {
        return Ok(None);
    };
    for warning in warnings {
        tracing::warn!(object = %key, "{warning}");
    }
    let version = if own.0.is_empty() { ResourceVersion(version.to_string()) } else { own };
    Ok(Some(Change::Put { key, version, object }))
}

/// The change that deletes what `Kind/namespace/name` or `Kind/name` stands for; a namespaced object without
/// a namespace is in `default`. `None`: a kind that isn't kept.
pub fn delete(cluster: ClusterId, reference: &str) -> Result<Option<Change>, Reject> {
    let reject = |reason: String| Reject { name: None, reason };
    let parts: Vec<_> = reference.split('/').collect();
    let (kind, namespace, name) = match parts.as_slice() {
        ["Node", name] => ("Node", "", *name),
        [kind, name] => (*kind, "default", *name),
        [kind, namespace, name] => (*kind, *namespace, *name),
        _ => return Err(reject(format!("{reference:?} is not Kind/namespace/name"))),
    };
    let Some(kind) = Kind::ALL.into_iter().find(|known| known.name() == kind) else {
        return Ok(None);
    };
    let name = ObjectName::new(namespace, name).map_err(|error| reject(error.to_string()))?;
    Ok(Some(Change::Delete { key: Key { source: Source { cluster, kind }, name } }))
}

fn observe(cluster: ClusterId, document: &Value) -> Result<Option<Observed>, Reject> {
    let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
    match objects::kind_of(text("apiVersion"), text("kind")) {
        Some(kind) => objects::decode(cluster, kind, &document.to_string()).map(Some),
        None => Ok(None),
    }
}
