//! Made-up endpoints through the whole path, admission → commit, and raw redb writing as many rows of the same
//! sizes into as many tables in as many transactions.

use std::path::Path;
use std::time::Duration;

use ::ingest::Delivery;
use ::ingest::batch::Batch;
use anyhow::Context as _;
use model::Time;
use redb::{Database, Durability, TableDefinition};
use store::{Config, Fsync, Reader, TableStats, Undo, Writer};

/// Commits made durable together: as many as the server makes in its 200 ms under load.
const COMMITS_EACH_SYNC: u64 = 16;

/// What one side did.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// How long it took, without the making of what was written.
    pub time: Duration,
    /// In how many transactions.
    pub commits: u64,
}

impl Run {
    /// How many of these there were in a second.
    pub fn per_s(&self, count: u64) -> f64 {
        (count as f64 / self.time.as_secs_f64()).round()
    }
}

/// How the benches open a store: as the server does, with this much cache.
pub fn config(cache_bytes: usize) -> Config {
    Config {
        cache_bytes,
        hot_bytes: cache_bytes,
        join: resolve::join,
        join_version: resolve::JOIN_VERSION,
        undo: Undo { bytes_max: 256 << 20, age_max: 60 * 60 * 1_000 },
        fsync: Fsync::Together,
        disk_quota_bytes: None,
        admission: store::Admission::default(),
    }
}

/// Writes all deliveries, and what maintenance they ask for.
pub fn ours(writer: &mut Writer, mut made: impl Iterator<Item = Delivery>) -> anyhow::Result<Run> {
    let mut run = Run { time: Duration::ZERO, commits: 0 };
    let mut too_much = None;
    while let Some(first) = too_much.take().or_else(|| made.next()) {
        // As many as can wait in the server, so that the making is not part of the time.
        let waiting: Vec<_> = made.by_ref().take(model::limits::DELIVERIES_WAITING_MAX).collect();
        let mut waiting = waiting.into_iter();
        let mut first = Some(first);
        let begun = crate::now();
        while let Some(delivery) = first {
            let (batch, rest) = Batch::collect(delivery, || waiting.next());
            writer.commit(Time(0), batch.into_parts().0)?;
            writer.tick(Time(0))?;
            run.commits += 1;
            if run.commits.is_multiple_of(COMMITS_EACH_SYNC) {
                writer.sync()?;
            }
            first = rest.or_else(|| waiting.next());
        }
        run.time += begun.elapsed();
    }
    let begun = crate::now();
    while writer.tick(Time(0))?.is_some() {}
    writer.sync()?;
    run.time += begun.elapsed();
    Ok(run)
}

/// Rows and bytes of a store's tables, and of all of them together.
pub fn tables(reader: &Reader) -> anyhow::Result<(Vec<TableStats>, u64, u64)> {
    let tables = reader.table_stats()?;
    let rows = tables.iter().map(|table| table.rows).sum();
    let bytes = tables.iter().map(|table| table.key_bytes + table.value_bytes).sum();
    Ok((tables, rows, bytes))
}

/// Raw redb, writing as much. Keys are in order, which is the best that can happen to it.
pub fn raw(
    path: &Path,
    cache_bytes: usize,
    tables: &[TableStats],
    commits: u64,
) -> anyhow::Result<Run> {
    let mut builder = Database::builder();
    let database = builder.set_cache_size(cache_bytes).create(path).context("raw redb")?;
    let begun = crate::now();
    for commit in 0..commits {
        let mut txn = database.begin_write()?;
        if !(commit + 1).is_multiple_of(COMMITS_EACH_SYNC) && commit + 1 < commits {
            txn.set_durability(Durability::None)?;
        }
        for table in tables.iter().filter(|table| table.rows > 0) {
            let definition = TableDefinition::<&[u8], &[u8]>::new(table.name);
            let mut opened = txn.open_table(definition)?;
            // Spread so that after the last commit all rows are there.
            let (from, to) = (table.rows * commit / commits, table.rows * (commit + 1) / commits);
            for row in from..to {
                let key = filled(row, table.key_bytes / table.rows);
                let value = filled(row, table.value_bytes / table.rows);
                opened.insert(key.as_slice(), value.as_slice())?;
            }
        }
        txn.commit()?;
    }
    Ok(Run { time: begun.elapsed(), commits })
}

/// This many bytes that begin with a number; room for the number is always there.
pub fn filled(number: u64, bytes: u64) -> Vec<u8> {
    let mut filled = number.to_be_bytes().to_vec();
    filled.resize(usize::try_from(bytes).unwrap_or(0).max(8), 0x5a);
    filled
}
