//! Finding whose an address is, in a small store and in a large one.

use std::path::Path;

use ::ingest::synthetic::Cluster;
use data::ingest::{config, ours};
use data::say;
use model::{ClusterId, WorkloadKind};
use serde_json::json;
use store::Owned;

/// redb's part of a budget of 64 MiB.
const CACHE: usize = 2 << 20;

/// Addresses that are looked for, all over the store.
const LOOKUPS: u64 = 20_000;

/// Hardly any, so that each page comes from the kernel, in a small store as in a large one.
const NO_CACHE: usize = 64 << 10;

pub(super) fn run(sizes: &[u64]) -> anyhow::Result<()> {
    let mut smallest = None;
    for &endpoints in sizes {
        let folder = data::folder()?;
        let services = (endpoints / 500).max(1);
        let spec = format!("services=0,big={services}x{},nodes=1000,churn=0", endpoints / services);
        {
            let (mut writer, ..) = store::open(folder.path(), config(CACHE))?;
            ours(&mut writer, Cluster::new(spec.parse()?).listing())?;
            writer.sync()?;
        }
        let [cold, warm] = [NO_CACHE, CACHE].map(|cache| measure(folder.path(), cache, endpoints));
        let ([cold, _], [warm, p99]) = (cold?, warm?);
        let first = *smallest.get_or_insert([cold, warm]);
        say(&format!(
            "{endpoints} endpoints: whose an address is, found in {cold:.1} us without a cache, {:.2} of the smallest; in {warm:.1} us \
             with one of 2 MiB, {:.2} (p99 {p99:.0} us)",
            cold / first[0],
            warm / first[1],
        ));
        data::result(&json!({"bench": "profile", "case": "lookup", "endpoints": endpoints,
            "median_us": cold, "vs_smallest": cold / first[0],
            "cached_median_us": warm, "cached_p99_us": p99, "cached_vs_smallest": warm / first[1]}));
    }
    Ok(())
}

/// The median and the 99th percentile, in microseconds.
fn measure(folder: &Path, cache: usize, endpoints: u64) -> anyhow::Result<[f64; 2]> {
    let (_writer, reader, _) = store::open(folder, config(cache))?;
    let mut times = Vec::new();
    for number in 0..LOOKUPS {
        let endpoint = usize::try_from(number * 7_919 % endpoints)?;
        let ip = data::address(endpoint).into();
        let begun = data::now();
        let snapshot = reader.snapshot()?;
        let Owned::Workload(kind, name) = snapshot.owner(ClusterId::LOCAL, ip, 80)? else {
            anyhow::bail!("{ip} is nobody's")
        };
        let standing = snapshot.workload(ClusterId::LOCAL, kind, &name)?;
        times.push(begun.elapsed());
        anyhow::ensure!(kind == WorkloadKind::Pod && standing.is_some(), "{name}");
    }
    times.sort_unstable();
    Ok([50, 99].map(|percent| times[times.len() * percent / 100].as_secs_f64() * 1e6))
}
