//! Where the data in a folder is from. Versions of objects mean something only to the cluster that gave them,
//! so the data of another cluster is dropped, and that of another sort of source is refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use ingest::kube;
use tokio::sync::watch;

use crate::SourceOptions;

/// Names the file in the data folder that says it: the sort of source, and for a cluster its uid once known.
const FILE: &str = "source";

/// The files of the store begin with one of these.
const STORE_FILES: [&str; 2] = ["spillway.redb", "spillway.sums"];

/// How long a start waits to hear which cluster it is. Without an answer it goes on with what it has.
const ANSWER_WAIT: Duration = Duration::from_millis(500);

/// Between two attempts to hear it later.
const RETRY_WAIT: Duration = Duration::from_secs(10);

/// Where the data is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    file: PathBuf,
    sort: &'static str,
    /// The uid of the cluster, if it is written down.
    uid: Option<String>,
}

impl Origin {
    /// Reads what the folder says. Refuses a folder whose data is from another sort of source.
    pub(super) fn read(data: &Path, source: &SourceOptions) -> anyhow::Result<Option<Origin>> {
        let sort = match source {
            SourceOptions::Kubernetes { .. } => "kubernetes",
            SourceOptions::Manifests(_) => "manifests",
            SourceOptions::Synthetic(_) => "synthetic",
            SourceOptions::Fed => return Ok(None),
        };
        let file = data.join(FILE);
        // A file that is missing, or was cut off while it was written, says nothing.
        let said = std::fs::read_to_string(&file).unwrap_or_default();
        let mut words = said.split_whitespace();
        match words.next() {
            Some(before) if before != sort => anyhow::bail!(
                "data folder {} holds data from {before}, not {sort}; remove it, or choose another --data",
                data.display()
            ),
            _ => Ok(Some(Origin { file, sort, uid: words.next().map(str::to_owned) })),
        }
    }

    /// Writes it down.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        let said = format!("{} {}\n", self.sort, self.uid.as_deref().unwrap_or_default());
        std::fs::write(&self.file, said)
            .with_context(|| format!("cannot write {}", self.file.display()))
    }

    /// Is this another cluster than the data's? Then forgets the data's, and says so.
    pub(super) async fn is_foreign(&mut self, client: &kube::Client) -> bool {
        let Some(before) = self.uid.clone() else { return false };
        match tokio::time::timeout(ANSWER_WAIT, kube::cluster_uid(client)).await {
            Ok(Ok(uid)) if uid != before => {
                tracing::warn!(%before, %uid, "the data is of another cluster and is dropped");
                self.uid = Some(uid);
                true
            }
            _ => false,
        }
    }

    /// Goes on asking which cluster it is until that is known, and writes it down. If it is another one after
    /// all, that is a failure of the server: the next start drops the data.
    pub(super) async fn confirm(
        mut self,
        client: kube::Client,
        failure: watch::Sender<Option<String>>,
    ) {
        let mut told = false;
        let uid = loop {
            match kube::cluster_uid(&client).await {
                Ok(uid) => break uid,
                Err(error) if !std::mem::replace(&mut told, true) => tracing::warn!("{error}"),
                Err(_) => {}
            }
            tokio::time::sleep(RETRY_WAIT).await;
        };
        match &self.uid {
            Some(before) if *before == uid => return,
            Some(before) => {
                let reason = format!(
                    "the data is of cluster {before}, and this is {uid}; start again to drop it"
                );
                failure.send_replace(Some(reason));
                return;
            }
            None => self.uid = Some(uid),
        }
        if let Err(error) = self.write() {
            tracing::warn!("{error:#}");
        }
    }
}

/// Removes the store's files; nobody has them open.
pub(super) fn drop_store(data: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if STORE_FILES.iter().any(|beginning| name.starts_with(beginning)) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_other_sorts_are_refused() {
        let data = tempfile::tempdir().unwrap();
        let kubernetes = SourceOptions::Kubernetes { kubeconfig: None, context: None };
        let mut origin = Origin::read(data.path(), &kubernetes).unwrap().unwrap();
        assert_eq!(origin.uid, None);
        origin.uid = Some("1-2-3".to_owned());
        origin.write().unwrap();
        assert_eq!(Origin::read(data.path(), &kubernetes).unwrap(), Some(origin));
        assert_eq!(Origin::read(data.path(), &SourceOptions::Fed).unwrap(), None);
        let manifests = SourceOptions::Manifests("m".into());
        let error = Origin::read(data.path(), &manifests).unwrap_err().to_string();
        assert!(error.contains("holds data from kubernetes, not manifests"), "{error}");
    }

    #[test]
    fn only_the_stores_files_are_dropped() {
        let data = tempfile::tempdir().unwrap();
        for name in ["spillway.redb", "spillway.redb.damaged", "spillway.sums", "source", "mine"] {
            std::fs::write(data.path().join(name), "").unwrap();
        }
        drop_store(data.path()).unwrap();
        let names = std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        assert_eq!(names, ["mine", "source"]);
    }
}
