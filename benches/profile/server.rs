//! The server, which is told what changes, and a client in the same process for what is asked one after the other.

use ::ingest::synthetic::Cluster;
use anyhow::Context as _;
use data::fed::Fed;
use data::say;
use linkerd2_proxy_api::destination::GetDestination;
use linkerd2_proxy_api::destination::destination_client::DestinationClient;
use model::{Change, Object, ResourceVersion};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

struct Server {
    fed: Fed,
    /// The first pods.
    pods: Vec<Change>,
    versions: u64,
}

impl Server {
    async fn start(spec: &str) -> anyhow::Result<Server> {
        let cluster = Cluster::new(spec.parse()?);
        let is_pod =
            |change: &Change| matches!(change, Change::Put { object: Object::Workload(_), .. });
        let pods = cluster.listing().flat_map(|it| it.changes).filter(is_pod);
        let pods = pods.take(super::ADDRESSES).collect();
        let fed = Fed::start(&cluster, |_| ()).await?;
        Ok(Server { fed, pods, versions: 1_000_000_000_000 })
    }

    /// A pod has another label that clients see.
    async fn relabel(&mut self, number: usize) -> anyhow::Result<()> {
        let count = self.pods.len();
        let Some(Change::Put { key, object: Object::Workload(pod), .. }) =
            self.pods.get_mut(number % count)
        else {
            anyhow::bail!("no pod");
        };
        self.versions += 1;
        let hash = format!("h{}", self.versions);
        pod.template.labels.insert("pod-template-hash".to_owned(), hash);
        let version = ResourceVersion(self.versions.to_string());
        let change =
            Change::Put { key: key.clone(), version, object: Object::Workload(pod.clone()) };
        self.fed.deliver(vec![change]).await
    }

    /// The 99th percentile of the time to the first message, one stream after the other.
    async fn first(&self, count: usize) -> anyhow::Result<u64> {
        let url = format!("http://{}", self.fed.running.addr());
        let mut client = DestinationClient::connect(url).await?;
        let mut times = Vec::new();
        for number in 0..count {
            // All over the cluster, each once.
            let path = format!("{}:80", data::address(number * 499 % 1_000_000));
            let begun = data::now();
            let request = GetDestination { path, ..GetDestination::default() };
            let mut stream = client.get_profile(request).await?.into_inner();
            stream.message().await?.context("no message")?;
            times.push(begun.elapsed().as_nanos());
        }
        times.sort_unstable();
        Ok(u64::try_from(times[times.len() * 99 / 100])?)
    }
}

pub(super) fn run(spec: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut server = Server::start(spec).await?;
        say(&format!("ready {}", server.fed.running.addr()));
        let mut lines = BufReader::new(stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, "0"));
            let answer = match word {
                "rss" => data::memory(std::process::id(), "VmRSS")?,
                "sent" => server.fed.running.messages_sent(),
                "made" => server.fed.running.answers_made(),
                "first" => server.first(rest.parse()?).await?,
                "relabel" => {
                    server.relabel(rest.parse()?).await?;
                    0
                }
                _ => anyhow::bail!("{line:?} is not understood"),
            };
            say(&format!("{word} {answer}"));
        }
        Ok(())
    })
}
