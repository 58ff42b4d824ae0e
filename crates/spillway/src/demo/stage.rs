//! The acts of the demo, each on the same server: it fills up, is watched while it changes, is flooded.

use std::time::Duration;

use ingest::Delivery;
use spillway::Running;
use spillway::memory::rss_bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::lookups::{Client, Streams, Times};
use super::screen::{Screen, bar, count, mib, ms};

/// How long the cluster is watched while it changes.
const WATCH_TIME: Duration = Duration::from_secs(6);

/// Between two changes of the cluster that is watched.
const CHURN_INTERVAL: Duration = Duration::from_millis(20);

/// Streams that are held open.
const STREAMS: u64 = 200;

/// The server, what is done to it, and where that is shown.
pub(super) struct Stage<'s> {
    server: &'s Running,
    cluster: Cluster,
    client: Client,
    screen: Screen,
    streams: Option<Streams>,
}

/// What filling up took.
pub(super) struct Filled {
    pub(super) endpoints: u64,
    pub(super) time: Duration,
    pub(super) rss_bytes: Option<u64>,
}

/// Lookups while nothing much happens.
pub(super) struct Calm {
    pub(super) addresses: u64,
    pub(super) times: Times,
}

/// Lookups during the flood.
pub(super) struct Flooded {
    pub(super) pods: u64,
    pub(super) times: Times,
    pub(super) rss_bytes: Option<u64>,
}

/// Rows on disk at a moment, to tell how many come in a second.
struct Pace {
    rows: u64,
    at: Instant,
}

impl<'s> Stage<'s> {
    pub(super) async fn new(
        server: &'s Running,
        cluster: Cluster,
        url: &str,
    ) -> anyhow::Result<Stage<'s>> {
        let client = Client::connect(url).await?;
        Ok(Stage { server, cluster, client, screen: Screen::new(), streams: None })
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The cluster is listed, as by a watch of an API server.
    pub(super) async fn fill(&mut self) -> anyhow::Result<Filled> {
        let begun = Instant::now();
        let all = self.cluster.endpoints();
        let feeding = feed(self.server.deliveries(), self.cluster.listing());
        let mut pace = self.pace();
        while !feeding.is_finished() {
            tokio::time::sleep(self.screen.interval()).await;
            let stats = self.server.reader().stats();
            let line = format!("filling  {} {}", bar(stats.endpoints, all), self.disk(&mut pace));
            self.screen.show(&line)?;
        }
        feeding.await??;
        let time = begun.elapsed();
        self.screen.keep()?;
        let endpoints = self.server.reader().stats().endpoints;
        Ok(Filled { endpoints, time, rss_bytes: rss_bytes() })
    }

    /// Streams are opened, the cluster changes a little, and lookups are timed.
    pub(super) async fn watch(&mut self) -> anyhow::Result<Calm> {
        let authorities = (0..STREAMS).map(|at| self.cluster.large(at));
        self.streams = Some(Streams::open(&mut self.client, authorities).await?);
        let until = Instant::now() + WATCH_TIME;
        let churn = tokio::spawn(churn(self.server.deliveries(), self.cluster.changes(), until));
        let mut calm = Calm { addresses: 0, times: Times::default() };
        let mut pace = self.pace();
        let mut shown = Instant::now();
        while Instant::now() < until {
            let authority = self.cluster.large(calm.times.len() as u64);
            calm.addresses = calm.times.lookup(&mut self.client, &authority).await? as u64;
            if shown.elapsed() >= self.screen.interval() {
                shown = Instant::now();
                self.live("serving ", &mut pace, &calm.times)?;
            }
            tokio::time::sleep(CHURN_INTERVAL).await;
        }
        self.screen.keep()?;
        churn.await??;
        Ok(calm)
    }

    /// Junk pods are delivered as fast as the server takes them, and lookups go on.
    pub(super) async fn flood(&mut self, pods: u64) -> anyhow::Result<Flooded> {
        self.screen
            .say(&format!("\nA runaway ReplicaSet: {} pods that fail at once.", count(pods)))?;
        let feeding = feed(self.server.deliveries(), self.cluster.junk(pods));
        let mut times = Times::default();
        let mut pace = self.pace();
        let mut shown = Instant::now();
        while !feeding.is_finished() {
            let authority = self.cluster.large(times.len() as u64);
            times.lookup(&mut self.client, &authority).await?;
            if shown.elapsed() >= self.screen.interval() {
                shown = Instant::now();
                self.live("flooded ", &mut pace, &times)?;
            }
        }
        feeding.await??;
        self.live("flooded ", &mut pace, &times)?;
        self.screen.keep()?;
        Ok(Flooded { pods, times, rss_bytes: rss_bytes() })
    }

    fn live(&mut self, act: &str, pace: &mut Pace, times: &Times) -> anyhow::Result<()> {
        let streams = self.server.hub().stream_count();
        let line =
            format!("{act} {}  {streams} streams  first Add {}", self.disk(pace), ms(times.last()));
        self.screen.show(&line)
    }

    /// What is on disk, how fast it comes, and what it costs.
    fn disk(&self, pace: &mut Pace) -> String {
        let reader = self.server.reader();
        let now = self.pace();
        let seconds = (now.at - pace.at).as_secs_f64().max(0.001);
        let per_s = now.rows.abs_diff(pace.rows) as f64 / seconds;
        *pace = now;
        format!(
            "{} endpoints  {} rows/s  file {}  RSS {}",
            count(reader.stats().endpoints),
            count(per_s as u64),
            mib(reader.file_bytes()),
            rss_bytes().map_or("?".to_owned(), mib),
        )
    }

    fn pace(&self) -> Pace {
        let stats = self.server.reader().stats();
        Pace { rows: stats.endpoints + stats.objects.values().sum::<u64>(), at: Instant::now() }
    }
}

/// Delivers as fast as the server takes it, until the last of it is on disk. Making it takes time, so that is
/// done on a thread that may.
fn feed(
    to: mpsc::Sender<Delivery>,
    deliveries: impl Iterator<Item = Delivery> + Send + 'static,
) -> JoinHandle<anyhow::Result<()>> {
    tokio::task::spawn_blocking(move || {
        for delivery in deliveries {
            to.blocking_send(delivery)?;
        }
        let (done, committed) = oneshot::channel();
        to.blocking_send(Delivery::told(Vec::new(), done))?;
        Ok(committed.blocking_recv().map(drop)?)
    })
}

/// Changes a little of the cluster, again and again.
async fn churn(
    to: mpsc::Sender<Delivery>,
    changes: impl Iterator<Item = Delivery>,
    until: Instant,
) -> anyhow::Result<()> {
    for change in changes {
        if Instant::now() >= until {
            break;
        }
        to.send(change).await?;
        tokio::time::sleep(CHURN_INTERVAL).await;
    }
    Ok(())
}
