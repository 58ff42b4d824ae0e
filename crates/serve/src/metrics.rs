//! Numbers for operators: what streams do is counted here, what others know is asked for when it is scraped.

mod flood;
mod links;
mod page;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{ClusterId, Source, Time};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use store::Limit;
use tonic::Code;

use crate::destination::{StreamEnd, UpdateKind};
use crate::{Destination, Hub};
pub use links::LinkStatus;
use page::{Labels, Page, labels};

/// What the binary knows and this crate doesn't; asked at each scrape or probe.
pub trait Situation: Send + Sync + 'static {
    /// What answers proxies; `None` before the store is open.
    fn destination(&self) -> Option<Destination>;
    /// What the store holds.
    fn store(&self) -> store::Stats;
    /// Bytes of the store's file.
    fn file_bytes(&self) -> u64;
    /// How memory is divided, and used.
    fn memory(&self) -> Vec<MemoryPart>;
    /// Resident memory of the process, bytes; `None` where the system doesn't say.
    fn rss_bytes(&self) -> Option<u64>;
    /// Why the store's disk doesn't take writes, in a sentence; `None` if it does.
    fn disk_failing(&self) -> Option<String>;
    /// How large the store's file may become, if there is a limit.
    fn disk_quota_bytes(&self) -> Option<u64>;
    /// The sources that are watched.
    fn sources(&self) -> Vec<SourceStatus>;
    /// The linked clusters.
    fn links(&self) -> Vec<LinkStatus>;
    /// How many Secrets are to declare a link and don't.
    fn link_faults(&self) -> usize;
    /// The parts of linked clusters that are stored, each with the name of its cluster.
    fn parts(&self) -> BTreeMap<ClusterId, String>;
    /// When all that a source had said was last stored, of each that is stored.
    fn synced(&self) -> BTreeMap<Source, Time>;
    /// How much there is of each cluster, and what of it is not let in.
    fn sizes(&self) -> Vec<store::ClusterSize>;
    /// What keeps the server from being ready, one sentence each; empty when it is.
    fn waits_for(&self) -> Vec<String>;
}

/// A part of the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// Whose.
    pub name: &'static str,
    /// How many bytes it may take, if that is limited by itself.
    pub budget: Option<u64>,
    /// How many it takes, if that is known.
    pub used: Option<u64>,
}

/// How a source is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// Which one.
    pub source: Source,
    /// It delivers changes as they happen.
    pub live: bool,
    /// How often its watch began again.
    pub restarts: u64,
    /// Objects that could not be read.
    pub decode_failures: u64,
    /// Objects of which a part was skipped or makes no sense, such as a list of ports that is none.
    pub partial_objects: u64,
}

/// Where what a stream says is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFrom {
    /// It was made for this stream.
    Store,
    /// It was just being made for another stream.
    Shared,
    /// It had been made for another stream, and was kept.
    Hot,
}

impl AnswerFrom {
    pub(crate) const ALL: [AnswerFrom; 3] =
        [AnswerFrom::Store, AnswerFrom::Shared, AnswerFrom::Hot];

    pub(crate) fn name(self) -> &'static str {
        match self {
            AnswerFrom::Store => "store",
            AnswerFrom::Shared => "shared",
            AnswerFrom::Hot => "hot_set",
        }
    }
}

/// What the streams and the writer count.
#[derive(Debug)]
pub struct Metrics {
    /// By method and status code.
    requests: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    /// By `UpdateKind`.
    updates: [AtomicU64; UpdateKind::ALL.len()],
    /// Bytes of these.
    sent_bytes: AtomicU64,
    encoded_bytes: AtomicU64,
    told_seconds: Histogram,
    /// By `AnswerFrom`.
    answers: [AtomicU64; AnswerFrom::ALL.len()],
    /// First answers that were a part of what there is, and that were in several messages.
    subsets: AtomicU64,
    chunked: AtomicU64,
    /// By `StreamEnd`.
    ends: [AtomicU64; StreamEnd::ALL.len()],
    reopened: AtomicU64,
    connections_refused: AtomicU64,
    /// By `Claimants`.
    conflicts: Mutex<BTreeMap<&'static str, u64>>,
    /// By `Limit`: targets that had to wait.
    held: [AtomicU64; Limit::ALL.len()],
    refused: AtomicU64,
    commit_seconds: Histogram,
    commit_changes: Histogram,
    sync_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Metrics {
        // From a change that finds its pages in memory to a disk that has trouble.
        let seconds = || Histogram::new(exponential_buckets(0.000_1, 4.0, 9));
        Metrics {
            requests: Mutex::default(),
            updates: Default::default(),
            sent_bytes: AtomicU64::new(0),
            encoded_bytes: AtomicU64::new(0),
            told_seconds: seconds(),
            answers: Default::default(),
            subsets: AtomicU64::new(0),
            chunked: AtomicU64::new(0),
            ends: Default::default(),
            reopened: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            conflicts: Mutex::default(),
            held: Default::default(),
            refused: AtomicU64::new(0),
            commit_seconds: seconds(),
            commit_changes: Histogram::new(exponential_buckets(1.0, 4.0, 7)),
            sync_seconds: seconds(),
        }
    }
}

impl Metrics {
    /// All zero.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// A commit of this many changes has become visible.
    pub fn committed(&self, changes: usize, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.commit_changes.observe(changes as f64);
    }

    /// The commits since the last time have become durable.
    pub fn synced(&self, took: Duration) {
        self.sync_seconds.observe(took.as_secs_f64());
    }

    /// The writer failed, and the store was opened again.
    pub fn reopened(&self) {
        self.reopened.fetch_add(1, Ordering::Relaxed);
    }

    /// So many targets have to wait from now on.
    pub fn held(&self, limit: Limit, count: u64) {
        self.held[limit as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// So many objects of linked clusters were refused.
    pub fn refused(&self, count: u64) {
        self.refused.fetch_add(count, Ordering::Relaxed);
    }

    /// Messages of all streams that were handed to HTTP/2.
    pub fn messages_sent(&self) -> u64 {
        self.updates.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// A request was answered with a stream (`None`), or refused.
    pub(crate) fn answered(&self, method: &'static str, refused: Option<Code>) {
        let code = code_name(refused.unwrap_or(Code::Ok));
        *self.requests.lock().entry((method, code)).or_default() += 1;
    }

    /// A message was handed to HTTP/2, so long after its stream was woken for it.
    pub(crate) fn sent(&self, kind: UpdateKind, bytes: usize, woken_for: Option<Duration>) {
        self.updates[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(time) = woken_for {
            self.told_seconds.observe(time.as_secs_f64());
        }
    }

    /// A message was made.
    pub(crate) fn encoded(&self, bytes: usize) {
        self.encoded_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A stream has something to say.
    pub(crate) fn answer(&self, from: AnswerFrom) {
        self.answers[from as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Several of a kind claim an address that somebody dials.
    pub(crate) fn conflict(&self, claimants: &'static str) {
        *self.conflicts.lock().entry(claimants).or_default() += 1;
    }

    /// A connection was closed at once, since there are too many.
    pub(crate) fn connection_refused(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers that were made from the store.
    pub fn answers_made(&self) -> u64 {
        self.answers(AnswerFrom::Store)
    }

    /// How often streams had something to say that was from there.
    pub(crate) fn answers(&self, from: AnswerFrom) -> u64 {
        self.answers[from as usize].load(Ordering::Relaxed)
    }

    /// What a client is told at first was made.
    pub(crate) fn first_answer(&self, subset: bool, chunked: bool) {
        self.subsets.fetch_add(u64::from(subset), Ordering::Relaxed);
        self.chunked.fetch_add(u64::from(chunked), Ordering::Relaxed);
    }

    pub(crate) fn ended(&self, end: StreamEnd) {
        self.ends[end as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// All metrics of a server, in Prometheus' text format.
pub(crate) fn scrape(
    metrics: &Arc<Metrics>,
    hub: &Arc<Hub>,
    situation: &Arc<dyn Situation>,
) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("spillway");
    registry.register_collector(Box::new(Scrape {
        metrics: Arc::clone(metrics),
        hub: Arc::clone(hub),
        situation: Arc::clone(situation),
    }));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

struct Scrape {
    metrics: Arc<Metrics>,
    hub: Arc<Hub>,
    situation: Arc<dyn Situation>,
}

impl std::fmt::Debug for Scrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrape").finish_non_exhaustive()
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut page = Page { encoder };
        self.store(&mut page)?;
        self.streams(&mut page)?;
        self.sources(&mut page)?;
        links::of_clusters(&mut page, &*self.situation)?;
        flood::admission(&mut page, &self.metrics, &*self.situation)?;
        let memory = self.situation.memory();
        let parts = |bytes: fn(&MemoryPart) -> Option<u64>| {
            let one = move |part: &MemoryPart| Some((labels([("part", part.name)]), bytes(part)?));
            memory.iter().filter_map(one).collect::<Vec<_>>()
        };
        let help = "Bytes of memory that each part may take";
        page.gauges("memory_budget_bytes", help, parts(|part| part.budget))?;
        let help = "Bytes of memory that each part takes; total is what is allocated";
        page.gauges("memory_used_bytes", help, parts(|part| part.used))?;
        if let Some(bytes) = self.situation.rss_bytes() {
            page.gauge("rss_bytes", "Resident memory of the process", bytes)?;
        }
        Ok(())
    }
}

impl Scrape {
    fn store(&self, page: &mut Page<'_>) -> std::fmt::Result {
        let store = self.situation.store();
        let objects =
            store.objects.iter().map(|(kind, count)| (labels([("kind", kind.name())]), *count));
        page.gauges("objects", "Objects stored", objects)?;
        page.gauge("endpoints", "Endpoints stored that clients may see", store.endpoints)?;
        page.gauge("revision", "Newest revision of the store", store.revision.0)?;
        page.gauge("undo_entries", "Entries of the undo log", store.undo_entries)?;
        page.gauge("store_file_bytes", "Bytes of the store on disk", self.situation.file_bytes())?;
        let failing = u64::from(self.situation.disk_failing().is_some());
        page.gauge("disk_failing", "The disk does not take writes; answers go on", failing)?;
        if let Some(bytes) = self.situation.disk_quota_bytes() {
            page.gauge("disk_quota_bytes", "Bytes that the store may take on disk", bytes)?;
        }
        page.gauge("undo_bytes", "Bytes of the undo log's entries", store.undo_bytes)?;
        page.counter("commits", "Commits since the start", self.hub.commit_count())?;
        let reopened = self.metrics.reopened.load(Ordering::Relaxed);
        page.counter(
            "store_reopened",
            "How often the writer failed and went on from disk",
            reopened,
        )?;
        let Metrics { commit_seconds, commit_changes, sync_seconds, .. } = &*self.metrics;
        page.histogram("commit_seconds", "Time until a commit was visible", commit_seconds)?;
        page.histogram("commit_changes", "Changes that a commit took together", commit_changes)?;
        page.histogram("sync_seconds", "Time until commits were durable", sync_seconds)
    }

    fn streams(&self, page: &mut Page<'_>) -> std::fmt::Result {
        let metrics = &self.metrics;
        page.gauge("streams", "Open streams", self.hub.stream_count() as u64)?;
        let sent = UpdateKind::ALL.map(|kind| {
            let count = metrics.updates[kind as usize].load(Ordering::Relaxed);
            (labels([("kind", kind.name())]), count)
        });
        page.counters("updates_sent", "Messages handed to HTTP/2", sent)?;
        let refused = metrics.connections_refused.load(Ordering::Relaxed);
        page.counter(
            "connections_refused",
            "Connections closed since there were too many",
            refused,
        )?;
        let conflicts = metrics.conflicts.lock().clone();
        let help = "GetProfile of an address that several claim, refused or ended";
        let claimants = |(of, count)| (labels([("claimants", of)]), count);
        page.counters("address_conflicts", help, conflicts.into_iter().map(claimants))?;
        let (watched, lag) = self.hub.watched();
        page.gauge(
            "watched",
            "Services, nodes, addresses and others that streams wait for",
            watched as u64,
        )?;
        let help = "How long the slowest stream has had something to say, in whole milliseconds";
        page.gauge(
            "slowest_stream_lag_ms",
            help,
            u64::try_from(lag.as_millis()).unwrap_or(u64::MAX),
        )?;
        let bytes = metrics.sent_bytes.load(Ordering::Relaxed);
        page.counter("sent_bytes", "Bytes of the messages handed to HTTP/2", bytes)?;
        let bytes = metrics.encoded_bytes.load(Ordering::Relaxed);
        page.counter("encoded_bytes", "Bytes of the messages that were made", bytes)?;
        let help = "Time from when a stream was woken until its message was handed to HTTP/2";
        page.histogram("told_seconds", help, &metrics.told_seconds)?;
        let answers = AnswerFrom::ALL.map(|from| {
            let count = metrics.answers[from as usize].load(Ordering::Relaxed);
            (labels([("from", from.name())]), count)
        });
        let help = "Answers of streams by where they were from: made from the store, or what others were told";
        page.counters("answers", help, answers)?;
        let oversize = [("subset", &metrics.subsets), ("chunk", &metrics.chunked)];
        let oversize = oversize.map(|(decision, count)| {
            (labels([("decision", decision)]), count.load(Ordering::Relaxed))
        });
        let help = "First answers of Services that are too large, by what was done";
        page.counters("oversized", help, oversize)?;
        let coalesced = self.hub.coalesced_count();
        page.counter(
            "coalesced",
            "Changes that were told together with an earlier one",
            coalesced,
        )?;
        let ended = StreamEnd::ALL.map(|end| {
            let count = metrics.ends[end as usize].load(Ordering::Relaxed);
            (labels([("reason", end.name())]), count)
        });
        page.counters("streams_ended", "Streams that the server ended", ended)?;
        let requests = metrics.requests.lock().clone();
        let requests = requests
            .into_iter()
            .map(|((method, code), count)| (labels([("method", method), ("code", code)]), count));
        page.counters("requests", "Requests by the status they were answered with", requests)
    }

    fn sources(&self, page: &mut Page<'_>) -> std::fmt::Result {
        let sources = self.situation.sources();
        let each = |value: fn(&SourceStatus) -> u64| {
            let one = move |status: &SourceStatus| (of_source(status.source), value(status));
            sources.iter().map(one).collect::<Vec<_>>()
        };
        let live = each(|status| u64::from(status.live));
        page.gauges("source_live", "The source delivers changes as they happen", live)?;
        let restarts = each(|status| status.restarts);
        page.counters("watch_restarts", "How often a watch began again", restarts)?;
        let failures = each(|status| status.decode_failures);
        page.counters("decode_failures", "Objects that could not be read", failures)?;
        let partial = each(|status| status.partial_objects);
        page.counters(
            "partial_objects",
            "Objects of which a part could not be read, or makes no sense",
            partial,
        )?;
        let parts = self.situation.parts();
        let synced = self.situation.synced();
        let local = synced.iter().filter(|(source, _)| links::is_local(source));
        let local = local.map(|(source, at)| (of_source(*source), at.0 / 1_000));
        let help = "When all that a source had said was last stored, in seconds since 1970";
        page.gauges("source_synced_timestamp_seconds", help, local)?;
        links::synced(page, &synced, &parts)
    }
}

/// Sources that are told one by one are the local cluster's, which Linkerd calls so.
fn of_source(source: Source) -> Labels {
    labels([("cluster", "local"), ("kind", source.kind.name())])
}

/// Status codes as gRPC's documents spell them.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
