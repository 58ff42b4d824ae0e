//! Finding whose an address is, in a small store and in a large one.

use std::path::Path;
use std::sync::atomic::Ordering;

use ::ingest::synthetic::Cluster;
use data::ingest::{config, ours};
use data::say;
use model::{ClusterId, WorkloadKind};
use serde_json::json;
use store::Owned;

use crate::reads::counting;

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
        let (cold, warm) = (cold?, warm?);
        let first = *smallest.get_or_insert((cold, warm));
        let ratio = |now: f64, then: f64| now / then;
        let [owner, reads] = [cold.owner_reads, cold.reads];
        let by_reads = [ratio(owner, first.0.owner_reads), ratio(reads, first.0.reads)];
        let by_time =
            [ratio(cold.median_us, first.0.median_us), ratio(warm.median_us, first.1.median_us)];
        say(&format!(
            "{endpoints} endpoints: whose an address is, found in {owner:.1} reads of the file ({:.2} of the smallest), with what \
             is known of it in {reads:.1} ({:.2}), {:.1} us ({:.2}); with a cache of 2 MiB {:.1} us ({:.2}; p99 {:.0})",
            by_reads[0],
            by_reads[1],
            cold.median_us,
            by_time[0],
            warm.median_us,
            by_time[1],
            warm.p99_us,
        ));
        data::result(&json!({"bench": "profile", "case": "lookup", "endpoints": endpoints,
            "owner_reads": owner, "owner_reads_vs_smallest": by_reads[0],
            "reads": reads, "reads_vs_smallest": by_reads[1],
            "median_us": cold.median_us, "vs_smallest": by_time[0],
            "cached_median_us": warm.median_us, "cached_p99_us": warm.p99_us,
            "cached_vs_smallest": by_time[1]}));
    }
    Ok(())
}

/// What a lookup costs.
#[derive(Clone, Copy)]
struct Cost {
    /// Reads of the file to find the owner, on average.
    owner_reads: f64,
    /// The same, with what clients see of it.
    reads: f64,
    median_us: f64,
    p99_us: f64,
}

fn measure(folder: &Path, cache: usize, endpoints: u64) -> anyhow::Result<Cost> {
    let (volume, reads) = counting(folder)?;
    let (_writer, reader, _) = store::open_on(volume, config(cache))?;
    let count = || reads.load(Ordering::Relaxed);
    let (mut times, mut owner_reads) = (Vec::new(), 0);
    let before = count();
    for number in 0..LOOKUPS {
        let endpoint = usize::try_from(number * 7_919 % endpoints)?;
        let ip = data::address(endpoint).into();
        let (begun, reads_before) = (data::now(), count());
        let snapshot = reader.snapshot()?;
        let Owned::Workload(kind, name) = snapshot.owner(ClusterId::LOCAL, ip, 80)? else {
            anyhow::bail!("{ip} is nobody's")
        };
        owner_reads += count() - reads_before;
        let standing = snapshot.workload(ClusterId::LOCAL, kind, &name)?;
        times.push(begun.elapsed());
        anyhow::ensure!(kind == WorkloadKind::Pod && standing.is_some(), "{name}");
    }
    let each = |count: u64| count as f64 / LOOKUPS as f64;
    times.sort_unstable();
    let [median_us, p99_us] =
        [50, 99].map(|percent| times[times.len() * percent / 100].as_secs_f64() * 1e6);
    let reads = each(count() - before);
    Ok(Cost { owner_reads: each(owner_reads), reads, median_us, p99_us })
}
