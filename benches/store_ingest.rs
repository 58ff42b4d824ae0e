//! Synthetic endpoints through the whole path, admission → commit, against raw redb that writes as many rows
//! of the same sizes into as many tables in as many transactions. At least 0.4 of its rows a second.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use data::{mib, say};
use ingest::batch::Batch;
use redb::{Database, TableDefinition};
use serde_json::json;
use store::TableStats;

/// As the server has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const CACHE_BYTES: usize = 32 << 20;

/// What one side did.
struct Run {
    time: Duration,
    commits: u64,
}

fn main() -> anyhow::Result<()> {
    for endpoints in data::sizes(&[500_000]) {
        let folder = data::folder()?;
        let (ours, tables) = ours(&folder.path().join("ours"), endpoints)?;
        let rows: u64 = tables.iter().map(|table| table.rows).sum();
        let bytes: u64 = tables.iter().map(|table| table.key_bytes + table.value_bytes).sum();
        let raw = raw(&folder.path().join("raw.redb"), &tables, ours.commits)?;
        let per_s = |count: u64, run: &Run| (count as f64 / run.time.as_secs_f64()).round();
        let ratio = per_s(rows, &ours) / per_s(rows, &raw);
        say(&format!(
            "{endpoints} endpoints: {rows} rows of {} MiB in {} tables, {} commits",
            mib(bytes),
            tables.len(),
            ours.commits
        ));
        for (name, run) in [("admission and commit", &ours), ("raw redb", &raw)] {
            let seconds = run.time.as_secs_f64();
            say(&format!("{name:<21} {seconds:6.2} s  {:>9} rows/s", per_s(rows, run)));
        }
        say(&format!("ratio                 {ratio:6.2}    (at least 0.4)"));
        data::result(&json!({
            "bench": "store_ingest",
            "endpoints": endpoints,
            "endpoints_per_s": per_s(endpoints, &ours),
            "rows": rows,
            "row_mib": mib(bytes),
            "rows_per_s": per_s(rows, &ours),
            "raw_rows_per_s": per_s(rows, &raw),
            "ratio": (ratio * 1_000.0).round() / 1_000.0,
            "ratio_min": 0.4,
        }));
    }
    Ok(())
}

/// The whole path, without the making of the changes: that is the source's work.
fn ours(folder: &Path, endpoints: u64) -> anyhow::Result<(Run, Vec<TableStats>)> {
    let config = store::Config {
        cache_bytes: CACHE_BYTES,
        join: resolve::join,
        join_version: resolve::JOIN_VERSION,
        undo: store::Undo { bytes_max: 256 << 20, age_max: u64::MAX },
        fsync: store::Fsync::Commit,
    };
    let (mut writer, reader, _) = store::open(folder, config)?;
    let mut run = Run { time: Duration::ZERO, commits: 0 };
    let mut made = data::deliveries(endpoints)?;
    let mut too_much = None;
    while let Some(first) = too_much.take().or_else(|| made.next()) {
        // As many as can wait in the server, so that the making is not part of the time.
        let waiting: Vec<_> = made.by_ref().take(model::limits::DELIVERIES_WAITING_MAX).collect();
        let mut waiting = waiting.into_iter();
        let mut first = Some(first);
        let begun = data::now();
        while let Some(delivery) = first {
            let (batch, rest) = Batch::collect(delivery, || waiting.next());
            writer.commit(model::Time(0), batch.into_parts().0)?;
            run.commits += 1;
            first = rest.or_else(|| waiting.next());
        }
        run.time += begun.elapsed();
    }
    let begun = data::now();
    while writer.tick(model::Time(0))?.is_some() {
        run.commits += 1;
    }
    run.time += begun.elapsed();
    anyhow::ensure!(reader.stats().endpoints >= endpoints, "{:?}", reader.stats());
    Ok((run, reader.table_stats()?))
}

/// Raw redb. Keys are in order, which is the best that can happen to it.
fn raw(path: &Path, tables: &[TableStats], commits: u64) -> anyhow::Result<Run> {
    let mut builder = Database::builder();
    let database = builder.set_cache_size(CACHE_BYTES).create(path).context("raw redb")?;
    let begun = data::now();
    for commit in 0..commits {
        let txn = database.begin_write()?;
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
fn filled(number: u64, bytes: u64) -> Vec<u8> {
    let mut filled = number.to_be_bytes().to_vec();
    filled.resize(usize::try_from(bytes).unwrap_or(0).max(8), 0x5a);
    filled
}
