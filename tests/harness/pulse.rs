//! A Service whose endpoints leave and come back one by one, and streams that see it: how soon each does, and that
//! none is ever told anything else.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use crate::apiserver::{Load, Objects};
use crate::client::{Client, Question, Stream};
use crate::shown::Said;

/// How long anything may take to reach a stream.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at a stream. When a message came is known regardless.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The Service, and the streams.
pub struct Pulse {
    objects: Arc<Objects>,
    /// The slice that changes, with all of its endpoints.
    slice: Value,
    /// All addresses of the Service.
    all: BTreeSet<SocketAddr>,
    streams: Vec<Stream>,
    _client: Client,
    beats: usize,
}

impl Pulse {
    /// Opens streams of a name at a server, which shall show one of the Services of a load, and returns when they do.
    pub async fn open(
        server: SocketAddr,
        path: &str,
        streams: usize,
        objects: &Arc<Objects>,
        (load, service): (Load<'_>, usize),
    ) -> Result<Pulse> {
        let client = Client::connect(server).await?;
        let question = Question { path: path.to_owned(), ..Question::default() };
        let opened = (0..streams).map(|_| client.open(question.clone(), false));
        let streams = futures::future::join_all(opened).await;
        let slice = objects.get(&load.slice(service)).await?;
        let (objects, all) = (Arc::clone(objects), load.addresses(service));
        let mut pulse = Pulse { objects, slice, all, streams, _client: client, beats: 0 };
        pulse.settle(None).await.with_context(|| format!("opening {path}"))?;
        Ok(pulse)
    }

    /// Lets all endpoints come back, and returns when all streams show it.
    pub async fn rest(&mut self) -> Result<()> {
        self.objects.apply(std::slice::from_ref(&self.slice)).await?;
        self.settle(None).await.map(drop)
    }

    /// Lets one endpoint leave, and the one before come back. Returns when all streams show it, with when each was told,
    /// from the moment on that the API server had taken it.
    async fn beat(&mut self) -> Result<Vec<Duration>> {
        let mut slice = self.slice.clone();
        let endpoints = slice["endpoints"].as_array_mut().context("a slice without endpoints")?;
        let left = endpoints.remove(self.beats % endpoints.len());
        self.beats += 1;
        let ip = left["addresses"][0].as_str().context("an endpoint without address")?;
        let port = slice["ports"][0]["port"].as_u64().context("a slice without port")?;
        let left = SocketAddr::new(ip.parse()?, u16::try_from(port)?);
        self.objects.apply(&[slice]).await?;
        let taken = Instant::now();
        let told = self.settle(Some(left)).await?;
        Ok(told.into_iter().map(|at| at.saturating_duration_since(taken)).collect())
    }

    /// Returns when all streams show the Service without this one, with when each was told that it left.
    async fn settle(&mut self, left: Option<SocketAddr>) -> Result<Vec<Instant>> {
        let mut expected = self.all.clone();
        expected.retain(|address| Some(*address) != left);
        let mut told = Vec::new();
        for stream in &self.streams {
            let settled = timeout(PATIENCE, self.settled(stream, &expected, left)).await;
            told.extend(
                settled.with_context(|| format!("a stream stays at {:?}", stream.seen()))??,
            );
        }
        Ok(told)
    }

    async fn settled(
        &self,
        stream: &Stream,
        expected: &BTreeSet<SocketAddr>,
        left: Option<SocketAddr>,
    ) -> Result<Option<Instant>> {
        let mut told = None;
        loop {
            for (at, said) in stream.arrivals() {
                match said {
                    Said::Add(shown) => {
                        let other = shown.keys().find(|address| !self.all.contains(address));
                        ensure!(other.is_none(), "it was told of {other:?}");
                    }
                    Said::Remove(addresses) if left.is_some_and(|left| addresses == [left]) => {
                        told = Some(at);
                    }
                    said => bail!("it was told {said:?}, while {left:?} left"),
                }
            }
            ensure!(stream.is_open(), "{:?} {:?}", stream.seen(), stream.status_message());
            let faults = stream.faults();
            ensure!(faults.is_empty(), "{faults:?}");
            if stream.holds(expected) && told.is_some() == left.is_some() {
                return Ok(told);
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    async fn run(
        mut self,
        first: Duration,
        every: Duration,
        mut over: watch::Receiver<bool>,
    ) -> Result<(Pulse, Vec<Duration>)> {
        let mut times = Vec::new();
        let mut due = interval_at(Instant::now() + first, every);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = over.changed() => return Ok((self, times)),
                _ = due.tick() => times.extend(self.beat().await?),
            }
        }
    }
}

/// Lets Services change while something is done, each once in this time.
pub async fn during<T>(
    pulses: &mut Vec<Pulse>,
    every: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, Times)> {
    let over = watch::Sender::new(false);
    let (mut beating, count) = (JoinSet::new(), pulses.len());
    for (index, pulse) in pulses.drain(..).enumerate() {
        // One after another, not all at the same moment.
        let first = every.mul_f64(index as f64 / count as f64);
        beating.spawn(pulse.run(first, every, over.subscribe()));
    }
    let mut times = Vec::new();
    let done = tokio::select! {
        done = work => done?,
        Some(ended) = beating.join_next() => match ended? {
            Err(error) => return Err(error),
            Ok(_) => bail!("a Service changes no more"),
        },
    };
    over.send_replace(true);
    while let Some(ended) = beating.join_next().await {
        let (pulse, took) = ended??;
        pulses.push(pulse);
        times.extend(took);
    }
    Ok((done, Times::new(times)))
}

/// How long changes took, from when the API server had taken them to when a stream was told.
pub struct Times(Vec<Duration>);

impl Times {
    fn new(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        Times(times)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// So many percent took no longer.
    pub fn percentile(&self, percent: usize) -> Duration {
        let index = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(index).copied().unwrap_or_default()
    }
}
