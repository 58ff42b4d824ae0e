//! A full relist of a million objects that have not changed: hardly a row is written.

use data::ingest::{config, ours};
use data::say;
use serde_json::json;

/// Endpoints of the cluster; with their slices, Services and so on there are some more objects.
const ENDPOINTS: u64 = 1_000_000;

pub(crate) fn run() -> anyhow::Result<()> {
    let folder = data::folder()?;
    let (mut writer, reader, _) = store::open(folder.path(), config(32 << 20))?;
    let first = ours(&mut writer, data::deliveries(ENDPOINTS)?)?;
    let before = reader.stats();
    let (mut put, mut unchanged) = (0, 0);
    let begun = data::now();
    for delivery in data::deliveries(ENDPOINTS)? {
        let commit = writer.commit(model::Time(0), delivery.changes)?;
        (put, unchanged) = (put + commit.put, unchanged + commit.unchanged);
    }
    while let Some(commit) = writer.tick(model::Time(0))? {
        put += commit.put + commit.deleted;
    }
    writer.sync()?;
    let time = begun.elapsed().as_secs_f64();
    anyhow::ensure!(reader.stats() == before, "the relist changed something");
    say(&format!(
        "a relist of {unchanged} unchanged objects: {put} written, {time:.1} s (the first listing: {:.1} s)",
        first.time.as_secs_f64()
    ));
    data::result(&json!({
        "bench": "store_scale",
        "part": "relist",
        "objects": unchanged,
        "written": put,
        "written_share": put as f64 / unchanged as f64,
        "time_s": time,
    }));
    Ok(())
}
