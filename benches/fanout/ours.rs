//! Our server, which is told what changes.

use ::ingest::synthetic::Cluster;
use anyhow::Context as _;
use data::fed::Fed;
use data::say;
use model::limits::COMMIT_ENDPOINTS_MAX;
use model::{Change, Object, ResourceVersion};
use spillway::Options;
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

/// Slices that are handed in at a time: as many as go into one commit. What waits to be handed in is in the memory of this
/// process, too.
const DELIVERY_SLICES: usize = COMMIT_ENDPOINTS_MAX / 100;

/// A server with a cluster, and the slices of its first Service.
pub(crate) struct Ours {
    pub(crate) fed: Fed,
    slices: Vec<Change>,
    versions: u64,
}

impl Ours {
    pub(crate) async fn start(spec: &str) -> anyhow::Result<Ours> {
        let cluster = Cluster::new(spec.parse()?);
        let is_slice =
            |change: &Change| matches!(change, Change::Put { object: Object::Slice(_), .. });
        let slices = cluster.listing().flat_map(|it| it.changes).filter(is_slice).collect();
        // Each change is told by itself.
        let at_once = |options: &mut Options| options.coalesce_max = std::time::Duration::ZERO;
        let fed = Fed::start(&cluster, at_once).await?;
        Ok(Ours { fed, slices, versions: 1_000_000_000_000 })
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
        self.fed.deliver(vec![change]).await?;
        Ok(begun)
    }

    /// What a change costs of the processors, told ten milliseconds after the one before, over so many: the writer's
    /// part, and that of all others.
    async fn cost(&mut self, count: usize) -> anyhow::Result<[u64; 2]> {
        let before = cpu_ns()?;
        for number in 0..count {
            self.flipped(number).await?;
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let after = cpu_ns()?;
        Ok([0, 1].map(|of| (after[of] - before[of]) / count.max(1) as u64))
    }

    async fn flood(&mut self, count: usize) -> anyhow::Result<()> {
        for from in (0..count).step_by(DELIVERY_SLICES) {
            let to = (from + DELIVERY_SLICES).min(count);
            let changes = (from..to).map(|number| self.flip(2 * number));
            let changes = changes.collect::<anyhow::Result<_>>()?;
            self.fed.deliver(changes).await?;
        }
        Ok(())
    }
}

pub(crate) fn run(spec: &str, _: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut ours = Ours::start(spec).await?;
        say(&format!("ready {}", ours.fed.running.addr()));
        let mut lines = BufReader::new(stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, "0"));
            let answer = match word {
                "rss" => crate::rss()?,
                "cost" => {
                    let [writer, others] = ours.cost(rest.parse()?).await?;
                    say(&format!("cost {writer} {others}"));
                    continue;
                }
                "sent" => ours.fed.running.messages_sent(),
                "made" => ours.fed.running.answers_made(),
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

/// The time that this process has spent on processors: its writer, and all others but the main thread, which is this
/// bench. That of a thread that has ended is not in it; few do.
fn cpu_ns() -> anyhow::Result<[u64; 2]> {
    let main = std::process::id().to_string();
    let mut ns = [0, 0];
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?;
        let read = |file| std::fs::read_to_string(task.path().join(file));
        let (Ok(name), Ok(stat)) = (read("comm"), read("schedstat")) else { continue };
        if *task.file_name() != *main {
            let of = usize::from(name.trim() != "writer");
            ns[of] += stat.split(' ').next().context("no time")?.parse::<u64>()?;
        }
    }
    Ok(ns)
}
