//! A server of our own, fed by the test or by an API server, with a client at it.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use ingest::Delivery;
use model::{Change, Revision};
use spillway::{Options, Running, SourceOptions};
use store::Reader;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{FarClusters, Setup};
use crate::apiserver::{Objects, equal};
use crate::client::{Client, Stream};

/// How long anything may take. Nothing here takes a hundredth of it; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a step may take while some stream is not read.
const HOLD_WAIT: Duration = Duration::from_millis(300);

/// The server, its folder, and a connection to it.
pub struct Server {
    running: Running,
    client: Client,
    setup: Setup,
    source: SourceOptions,
    data: TempDir,
    revision: Revision,
}

impl Server {
    /// Starts on an empty folder.
    pub async fn start(setup: Setup, source: SourceOptions) -> Result<Server> {
        let data = TempDir::new()?;
        let (running, client) = boot(&data, &setup, &source).await?;
        Ok(Server { running, client, setup, source, data, revision: Revision::default() })
    }

    /// Stops it and starts it on the same folder. Its streams end.
    pub async fn restart(self) -> Result<Server> {
        let Server { running, client, setup, source, data, revision } = self;
        drop(client);
        timeout(PATIENCE, running.stop()).await.context("the server does not stop")??;
        let (running, client) = boot(&data, &setup, &source).await?;
        Ok(Server { running, client, setup, source, data, revision })
    }

    /// Stops it, and returns when its streams have ended.
    pub async fn stop(self, streams: &[&Stream]) -> Result<()> {
        timeout(PATIENCE, self.running.stop()).await.context("the server does not stop")??;
        let ended = async {
            while streams.iter().any(|stream| stream.is_open()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, ended).await.context("streams outlive the server")
    }

    /// Reads its store.
    pub fn reader(&self) -> Reader {
        self.running.reader()
    }

    /// The connection to it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How many streams the server has open, and how many things they wait for.
    pub fn streams_known(&self) -> (usize, usize) {
        let hub = self.running.hub();
        (hub.stream_count(), hub.key_count())
    }

    /// Another connection to it.
    pub async fn another_client(&self) -> Result<Client> {
        timeout(PATIENCE, Client::connect(self.running.addr())).await.context("no connection")?
    }

    /// Hands on changes as one delivery, and returns when they are committed.
    pub async fn deliver(&mut self, changes: Vec<Change>) -> Result<()> {
        let (done, committed) = oneshot::channel();
        let delivery = Delivery::told(changes, done);
        let sent = self.running.deliveries().send(delivery).await;
        sent.map_err(|_| anyhow!("the server takes no deliveries"))?;
        let committed = timeout(PATIENCE, committed).await.context("no commit")?;
        self.revision = committed.context("the commit failed")?;
        Ok(())
    }

    /// Returns when all that an API server has is stored, and what is used of linked clusters.
    pub async fn follow(&mut self, objects: &Objects, far: Option<&FarClusters<'_>>) -> Result<()> {
        equal(objects, &self.running.reader(), self.setup.endpoints, None).await?;
        if let Some(far) = far {
            far.follow(objects, &self.running.reader()).await?;
        }
        self.revision = self.running.reader().snapshot()?.revision();
        Ok(())
    }

    /// Returns when all that was delivered has reached these streams, which must be all that are open.
    pub async fn settle(&self, streams: &[&Stream]) -> Result<()> {
        if streams.iter().any(|stream| stream.is_on_hold()) {
            // Who doesn't read can't tell what was sent, nor is there an end to its being sent. What others are
            // to get is on its way by then.
            tokio::time::sleep(HOLD_WAIT).await;
            return Ok(());
        }
        let hub = self.running.hub();
        timeout(PATIENCE, hub.settled(self.revision)).await.context("the hub does not settle")?;
        let sent = self.running.messages_sent();
        timeout(PATIENCE, self.client.received(sent)).await.with_context(|| {
            format!("{sent} messages were sent, {} received", self.client.messages())
        })?;
        // Whoever was reset or ended is still on its way out.
        let open = || streams.iter().filter(|stream| stream.is_open()).count();
        let counted = async {
            while hub.stream_count() != open() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, counted).await.with_context(|| {
            format!("the client has {} open streams, the server {}", open(), hub.stream_count())
        })
    }
}

async fn boot(data: &TempDir, setup: &Setup, source: &SourceOptions) -> Result<(Running, Client)> {
    let mut options = Options::new(data.path().to_owned(), source.clone());
    setup.put_into(&mut options);
    let running = timeout(PATIENCE, spillway::start(options)).await.context("no start")??;
    let client =
        timeout(PATIENCE, Client::connect(running.addr())).await.context("no connection")??;
    Ok((running, client))
}
