//! One change, and one snapshot, of Services of 50 and of 50,000 endpoints: from the commit to the message that a
//! stream would send.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use data::ingest::{config, ours};
use data::{ms, say};
use linkerd2_proxy_api::destination as pb;
use model::{Change, Key, Kind, Object, Time};
use prost::Message as _;
use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::json;
use serve::{
    Answer, Destination, Hub, Message, Metrics, Needed, Oversize, Setup, StreamLimits, Turn,
};
use store::{Reader, Writer};
use tokio_util::sync::CancellationToken;

/// Flips of a Service that are timed, and how many in a row.
const FLIPS: usize = 2_000;
const TURN: usize = 20;

/// Times that the snapshot is taken.
const SNAPSHOTS: usize = 9;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

pub(crate) fn run() -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut stores = [Store::new(50)?, Store::new(50_000)?];
    let flips = runtime.block_on(flips(&mut stores))?;
    for (store, Flip { commit_ms, delta_ms }) in stores.iter().zip(&flips) {
        let (endpoints, smallest) = (store.endpoints, flips[0].delta_ms);
        say(&format!(
            "a pod's readiness, Service of {endpoints}: {commit_ms:.3} ms for the commit, then {delta_ms:.3} ms to the \
             message, {:.2} of the smallest",
            delta_ms / smallest
        ));
        data::result(&json!({
            "bench": "store_scale",
            "part": "flip",
            "service_endpoints": endpoints,
            "commit_ms": commit_ms,
            "median_ms": delta_ms,
            "vs_smallest": delta_ms / smallest,
        }));
    }
    for store in &stores {
        let endpoints = store.endpoints;
        let (ours, raw) = runtime.block_on(store.snapshots())?;
        say(&format!(
            "a snapshot of {endpoints}, encoded: {:.2} ms, {:.2} of reading and encoding it raw",
            ms(ours),
            ours.as_secs_f64() / raw.as_secs_f64()
        ));
        data::result(&json!({
            "bench": "store_scale",
            "part": "snapshot",
            "service_endpoints": endpoints,
            "median_ms": ms(ours),
            "raw_ms": ms(raw),
            "vs_raw_redb": ours.as_secs_f64() / raw.as_secs_f64(),
        }));
    }
    Ok(())
}

/// What a change of one endpoint's readiness takes.
struct Flip {
    commit_ms: f64,
    delta_ms: f64,
}

/// The medians of each store. They take turns, so that whatever else the machine does is shared.
async fn flips(stores: &mut [Store]) -> anyhow::Result<Vec<Flip>> {
    let mut streams = Vec::new();
    for store in &mut *stores {
        streams.push((store.opened().await?, Vec::new(), Vec::new()));
    }
    for turn in 0..FLIPS / TURN {
        for (store, (stream, commits, deltas)) in stores.iter_mut().zip(&mut streams) {
            for number in turn * TURN..(turn + 1) * TURN {
                let (committed, told) = store.timed_flip(number, stream).await?;
                commits.push(committed);
                deltas.push(told);
            }
        }
    }
    let ms = |times| median(times).as_secs_f64() * 1_000.0;
    let flip = |(_, commits, deltas)| Flip { commit_ms: ms(commits), delta_ms: ms(deltas) };
    Ok(streams.into_iter().map(flip).collect())
}

/// A store with one Service, and the service that answers from it.
struct Store {
    folder: tempfile::TempDir,
    writer: Writer,
    reader: Reader,
    hub: Arc<Hub>,
    destination: Destination,
    /// The changes of the listing that are slices.
    slices: Vec<Change>,
    endpoints: usize,
    /// Messages that a new stream is told at first.
    first_messages: usize,
}

impl Store {
    fn new(endpoints: usize) -> anyhow::Result<Store> {
        let folder = data::folder()?;
        let spec = format!("services=0,big=1x{endpoints},churn=0").parse()?;
        let cluster = ::ingest::synthetic::Cluster::new(spec);
        let (mut writer, reader, _) = store::open(folder.path(), config(16 << 20))?;
        ours(&mut writer, cluster.listing())?;
        let is_slice =
            |change: &Change| matches!(change, Change::Put { object: Object::Slice(_), .. });
        let slices = cluster.listing().flat_map(|it| it.changes).filter(is_slice).collect();
        let hub = Arc::new(Hub::new());
        let settings =
            spillway::Options::new(folder.path().to_owned(), spillway::SourceOptions::Fed).settings;
        let setup = Setup {
            reader: reader.clone(),
            hub: Arc::clone(&hub),
            settings,
            http2: None,
            no_endpoints: true,
            metrics: Arc::new(Metrics::new()),
            // Nothing is kept: what is measured is the making of answers.
            oversize: Oversize { subset: true, endpoints_max: None },
            limits: StreamLimits {
                reads_max: serve::READS_MAX,
                hot_bytes: 0,
                sending_bytes: 16 << 20,
            },
            needed: Needed { kinds: Vec::new(), refused: Arc::new(|_| false) },
        };
        let destination = Destination::new(setup, CancellationToken::new());
        let first_messages = 0;
        Ok(Store { folder, writer, reader, hub, destination, slices, endpoints, first_messages })
    }

    async fn open(&self) -> anyhow::Result<Answer> {
        Ok(self.destination.get(&data::authority(0), "", &Turn::default()).await?)
    }

    /// A slice in which one endpoint is ready, or not.
    fn flip(&self, number: usize) -> anyhow::Result<Change> {
        let place = number / 2 % self.slices.len();
        let Change::Put { key, object: Object::Slice(slice), .. } = &self.slices[place] else {
            anyhow::bail!("no slice")
        };
        let mut slice = slice.clone();
        let endpoint = slice.endpoints.len() / 2;
        slice.endpoints[endpoint].ready = number % 2 == 1;
        let key: Key = key.clone();
        anyhow::ensure!(key.source.kind == Kind::EndpointSlice, "{key:?}");
        let version = model::ResourceVersion((1_000_000_000_000 + number).to_string());
        Ok(Change::Put { key, version, object: Object::Slice(slice) })
    }

    /// A stream that has been told all.
    async fn opened(&mut self) -> anyhow::Result<Answer> {
        let mut stream = self.open().await?;
        let mut told = 0;
        while told < self.endpoints {
            self.first_messages += 1;
            told += added(&decoded(&stream.next().await.context("the stream ended")??)?);
        }
        Ok(stream)
    }

    /// The times of a change's commit, without fsync, and from there to its message.
    async fn timed_flip(
        &mut self,
        number: usize,
        stream: &mut Answer,
    ) -> anyhow::Result<(Duration, Duration)> {
        let change = self.flip(number)?;
        let begun = data::now();
        let commit = self.writer.commit(Time(0), vec![change])?;
        let committed = begun.elapsed();
        let begun = data::now();
        self.hub.advance(&commit);
        stream.next().await.context("the stream ended")??;
        let told = begun.elapsed();
        if number.is_multiple_of(200) {
            self.writer.sync()?;
        }
        Ok((committed, told))
    }

    /// The median times of a snapshot, encoded, and of reading as many bytes of rows and encoding the same messages.
    async fn snapshots(&self) -> anyhow::Result<(Duration, Duration)> {
        let raw = self.raw()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..SNAPSHOTS {
            let begun = data::now();
            let mut messages = Vec::with_capacity(self.first_messages);
            let mut stream = self.open().await?;
            while messages.len() < self.first_messages {
                messages.push(stream.next().await.context("the stream ended")??);
            }
            ours.push(begun.elapsed());
            let bytes: usize = messages.iter().map(|message| message.bytes().len()).sum();
            let updates: Vec<_> = messages.iter().map(decoded).collect::<anyhow::Result<_>>()?;
            let addresses: usize = updates.iter().map(added).sum();
            anyhow::ensure!(addresses + 1 >= self.endpoints, "{addresses} addresses");
            let begun = data::now();
            let txn = raw.begin_read()?;
            let mut read = 0;
            for row in txn.open_table(TABLE)?.iter()? {
                let (key, value) = row?;
                read += key.value().len() + value.value().len();
            }
            let encoded: usize = updates.iter().map(|update| update.encode_to_vec().len()).sum();
            theirs.push(begun.elapsed());
            anyhow::ensure!(encoded == bytes && read > 0, "{encoded} of {bytes} bytes");
        }
        Ok((median(ours), median(theirs)))
    }

    /// As many rows of the same sizes, in redb.
    fn raw(&self) -> anyhow::Result<redb::Database> {
        let (tables, ..) = data::ingest::tables(&self.reader)?;
        let table = tables.iter().find(|table| table.name.starts_with("endpoints"));
        let table = table.context("no endpoints")?;
        let raw = redb::Database::create(self.folder.path().join("raw"))?;
        let txn = raw.begin_write()?;
        let mut rows = txn.open_table(TABLE)?;
        for row in 0..table.rows {
            let key = data::ingest::filled(row, table.key_bytes / table.rows);
            let value = data::ingest::filled(row, table.value_bytes / table.rows);
            rows.insert(key.as_slice(), value.as_slice())?;
        }
        drop(rows);
        txn.commit()?;
        Ok(raw)
    }
}

fn decoded(message: &Message) -> anyhow::Result<pb::Update> {
    Ok(pb::Update::decode(message.bytes())?)
}

fn added(update: &pb::Update) -> usize {
    match &update.update {
        Some(pb::update::Update::Add(set)) => set.addrs.len(),
        _ => 0,
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
