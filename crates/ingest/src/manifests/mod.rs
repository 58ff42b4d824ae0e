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

use model::{ClusterId, EndpointsFrom, Kind};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::Delivery;
use crate::objects;

pub use document::{Document, ParseError, parse};
pub use status::{Status, Summary};

/// Between two looks at the folder. A change is taken when two of them in a row saw the same.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Hands on what the folder says, then what changes in it, until nobody listens.
///
/// It is always listed anew at the start, so nothing needs to be known of the past. If a file can't be read
/// then, nothing is swept until all can be: what is stored may be what it said.
pub async fn watch(
    dir: PathBuf,
    endpoints: EndpointsFrom,
    to: mpsc::Sender<Delivery>,
    status: Arc<Status>,
) {
    let mut folder = folder::Folder::new(dir, Kept { cluster: ClusterId::LOCAL, endpoints });
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

/// Whose objects they are, and which of them count.
#[derive(Clone, Copy, Debug)]
struct Kept {
    cluster: ClusterId,
    endpoints: EndpointsFrom,
}

impl Kept {
    /// The kind that a document says it is of, if that is kept.
    fn kind(self, document: &Value) -> Option<Kind> {
        let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = objects::kind_of(text("apiVersion"), text("kind"))?;
        if kind == Kind::Secret {
            // There is nobody to follow a link.
            return None;
        }
        (kind != self.endpoints.other_kind()).then_some(kind)
    }
}
