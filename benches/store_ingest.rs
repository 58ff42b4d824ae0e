//! Synthetic endpoints through the whole path, admission → commit, against raw redb that writes as many rows
//! of the same sizes into as many tables in as many transactions. At least 0.4 of its rows a second.

use data::ingest::{config, ours, raw, tables};
use data::{mib, say};
use serde_json::json;

/// As the server has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const CACHE_BYTES: usize = 32 << 20;

fn main() -> anyhow::Result<()> {
    for endpoints in data::sizes(&[500_000]) {
        let folder = data::folder()?;
        let (mut writer, reader, _) =
            store::open(&folder.path().join("ours"), config(CACHE_BYTES))?;
        let ours = ours(&mut writer, data::deliveries(endpoints)?)?;
        anyhow::ensure!(reader.stats().endpoints >= endpoints, "{:?}", reader.stats());
        let (tables, rows, bytes) = tables(&reader)?;
        let raw = raw(&folder.path().join("raw.redb"), CACHE_BYTES, &tables, ours.commits)?;
        let ratio = ours.per_s(rows) / raw.per_s(rows);
        say(&format!(
            "{endpoints} endpoints: {rows} rows of {} MiB in {} tables, {} commits",
            mib(bytes),
            tables.len(),
            ours.commits
        ));
        for (name, run) in [("admission and commit", &ours), ("raw redb", &raw)] {
            let seconds = run.time.as_secs_f64();
            say(&format!("{name:<21} {seconds:6.2} s  {:>9} rows/s", run.per_s(rows)));
        }
        say(&format!("ratio                 {ratio:6.2}    (at least 0.4)"));
        data::result(&json!({
            "bench": "store_ingest",
            "endpoints": endpoints,
            "endpoints_per_s": ours.per_s(endpoints),
            "rows": rows,
            "row_mib": mib(bytes),
            "rows_per_s": ours.per_s(rows),
            "raw_rows_per_s": raw.per_s(rows),
            "ratio": (ratio * 1_000.0).round() / 1_000.0,
            "ratio_min": 0.4,
        }));
    }
    Ok(())
}
