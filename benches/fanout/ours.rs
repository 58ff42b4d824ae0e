//! Our server, which is told what changes.

use std::net::{Ipv4Addr, SocketAddr};

use ::ingest::Delivery;
use ::ingest::synthetic::Cluster;
use anyhow::Context as _;
use data::say;
use model::{Change, Object, ResourceVersion};
use spillway::{Options, Running, SourceOptions};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};
use tokio::sync::oneshot;

/// A server with a cluster, and the slices of its first Service.
pub(crate) struct Ours {
    pub(crate) running: Running,
    slices: Vec<Change>,
    versions: u64,
    _folder: tempfile::TempDir,
}

impl Ours {
    pub(crate) async fn start(spec: &str) -> anyhow::Result<Ours> {
        let folder = data::folder()?;
        let mut options = Options::new(folder.path().to_owned(), SourceOptions::Fed);
        options.admin_addr = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        // Each change is told by itself.
        options.coalesce_max = std::time::Duration::ZERO;
        let running = spillway::start(options).await?;
        let cluster = Cluster::new(spec.parse()?);
        let is_slice =
            |change: &Change| matches!(change, Change::Put { object: Object::Slice(_), .. });
        let slices = cluster.listing().flat_map(|it| it.changes).filter(is_slice).collect();
        let mut ours = Ours { running, slices, versions: 1_000_000_000_000, _folder: folder };
        let mut last = None;
        for delivery in cluster.listing() {
            if let Some(before) = last.replace(delivery.changes) {
                ours.running.deliveries().send(Delivery::new(before)).await?;
            }
        }
        ours.deliver(last.unwrap_or_default()).await?;
        Ok(ours)
    }

    /// Hands changes in, and waits until they are visible.
    async fn deliver(&mut self, changes: Vec<Change>) -> anyhow::Result<()> {
        let (done, committed) = oneshot::channel();
        self.running.deliveries().send(Delivery { changes, done: Some(done) }).await?;
        committed.await.context("the commit failed")?;
        Ok(())
    }

    /// A slice in which one endpoint is ready, or not any more.
    fn flip(&mut self, number: usize) -> anyhow::Result<Change> {
        let slices = self.slices.len();
        let Some(Change::Put { key, object: Object::Slice(slice), .. }) =
            self.slices.get_mut(number / 2 % slices)
        else {
            anyhow::bail!("no slice");
        };
        let middle = slice.endpoints.len() / 2;
        slice.endpoints[middle].ready = !slice.endpoints[middle].ready;
        self.versions += 1;
        let version = ResourceVersion(self.versions.to_string());
        Ok(Change::Put { key: key.clone(), version, object: Object::Slice(slice.clone()) })
    }

    /// Changes an endpoint; gives when that began.
    pub(crate) async fn flipped(&mut self, number: usize) -> anyhow::Result<u64> {
        let change = self.flip(number)?;
        let begun = data::wall_ns();
        self.deliver(vec![change]).await?;
        Ok(begun)
    }

    /// What a change costs of the processors, told ten milliseconds after the one before, over so many.
    async fn cost(&mut self, count: usize) -> anyhow::Result<u64> {
        let before = cpu_ns()?;
        for number in 0..count {
            self.flipped(number).await?;
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        Ok((cpu_ns()? - before) / count.max(1) as u64)
    }

    async fn flood(&mut self, count: usize) -> anyhow::Result<()> {
        for from in (0..count).step_by(500) {
            let changes = (from..(from + 500).min(count)).map(|number| self.flip(2 * number));
            let changes = changes.collect::<anyhow::Result<_>>()?;
            self.deliver(changes).await?;
        }
        Ok(())
    }
}

pub(crate) fn run(spec: &str, _: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut ours = Ours::start(spec).await?;
        say(&format!("ready {}", ours.running.addr()));
        let mut lines = BufReader::new(stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, "0"));
            let answer = match word {
                "rss" => crate::rss()?,
                "cost" => ours.cost(rest.parse()?).await?,
                "sent" => ours.running.messages_sent(),
                "made" => ours.running.answers_made(),
                "flip" => ours.flipped(rest.parse()?).await?,
                "flood" => {
                    ours.flood(rest.parse()?).await?;
                    0
                }
                _ => anyhow::bail!("{line:?} is not understood"),
            };
            say(&format!("{word} {answer}"));
        }
        Ok(())
    })
}

/// The time that this process has spent on processors. That of a thread that has ended is not in it; few do.
fn cpu_ns() -> anyhow::Result<u64> {
    let mut ns = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let Ok(stat) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        ns += stat.split(' ').next().context("no time")?.parse::<u64>()?;
    }
    Ok(ns)
}
