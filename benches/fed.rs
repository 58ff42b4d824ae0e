//! A server in the process of a bench, which is told what there is and what changes.

use std::net::{Ipv4Addr, SocketAddr};

use ::ingest::Delivery;
use ::ingest::synthetic::Cluster;
use anyhow::Context as _;
use model::Change;
use spillway::{Options, Running, SourceOptions};
use tokio::sync::oneshot;

/// The server. Its folder goes with it.
pub struct Fed {
    /// As it runs.
    pub running: Running,
    _folder: tempfile::TempDir,
}

impl Fed {
    /// Starts one, and tells it all of a cluster.
    pub async fn start(cluster: &Cluster, set: impl FnOnce(&mut Options)) -> anyhow::Result<Fed> {
        let folder = crate::folder()?;
        let mut options = Options::new(folder.path().to_owned(), SourceOptions::Fed);
        options.admin_addr = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        set(&mut options);
        let fed = Fed { running: spillway::start(options).await?, _folder: folder };
        let mut last = None;
        for delivery in cluster.listing() {
            if let Some(before) = last.replace(delivery.changes) {
                fed.running.deliveries().send(Delivery::new(before)).await?;
            }
        }
        fed.deliver(last.unwrap_or_default()).await?;
        Ok(fed)
    }

    /// Hands changes in, and waits until they are visible.
    pub async fn deliver(&self, changes: Vec<Change>) -> anyhow::Result<()> {
        let (done, committed) = oneshot::channel();
        self.running.deliveries().send(Delivery::told(changes, done)).await?;
        committed.await.context("the commit failed")?;
        Ok(())
    }
}
