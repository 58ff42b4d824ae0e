//! Ingest: how fast, against raw redb with the same tables and bytes; how much memory; how many bytes on disk; how
//! long it takes to open. And the same within a small memory cgroup.

use std::path::{Path, PathBuf};

use data::{mib, say};
use serde_json::{Value, json};

use crate::child::spawn;

/// redb's part of a budget of 64 MiB, what a server without a limit takes.
const CACHE: &str = "2097152";

/// What a small node gives.
const CGROUP_BYTES: u64 = 128 << 20;

/// Endpoints that are written within the cgroup, if there are as many.
const CGROUP_ENDPOINTS_MAX: u64 = 10_000_000;

pub(crate) fn run(sizes: &[u64]) -> anyhow::Result<()> {
    let mut smallest: Option<(f64, f64)> = None;
    for &endpoints in sizes {
        let folder = data::folder()?;
        let result = measure(folder.path(), endpoints)?;
        let mib = |name: &str| result[name].as_f64().unwrap_or(0.0);
        let (rss, peak) = (mib("rss_mib"), mib("rss_peak_mib"));
        let first = *smallest.get_or_insert((rss, peak));
        say(&format!(
            "{endpoints} endpoints: {} of raw redb, RSS {rss} MiB ({:.2} of the smallest), at most {peak} ({:.2})",
            result["vs_raw_redb"],
            rss / first.0,
            peak / first.1,
        ));
        say(&format!(
            "  {} B each on disk, {} before a compaction of {} s (RSS {} MiB); open in {} ms, and in {} ms \
             after a kill: then the whole file is read and compared with its checksums",
            result["bytes_per_endpoint"],
            result["loose_bytes_per_endpoint"],
            result["compacted_s"],
            result["rss_compacted_peak_mib"],
            result["open_ms"],
            result["open_after_kill_ms"],
        ));
        data::result(&result);
    }
    match sizes.iter().max() {
        Some(endpoints) => in_cgroup((*endpoints).min(CGROUP_ENDPOINTS_MAX)),
        None => Ok(()),
    }
}

/// A cluster of at most 20,000 Services.
fn spec(endpoints: u64) -> String {
    let services = (endpoints / 500).clamp(1, 20_000);
    format!("services=0,big={services}x{},nodes=1000,churn=0", endpoints / services)
}

fn measure(folder: &Path, endpoints: u64) -> anyhow::Result<Value> {
    let store = folder.join("store");
    let path = store.to_string_lossy();
    let ours = spawn(&["ours", &path, &spec(endpoints), CACHE], None)?;
    let raw = spawn(&["raw", &folder.to_string_lossy(), &ours.to_string(), CACHE], None)?;
    let open = spawn(&["open", &path, CACHE], None)?;
    spawn(&["killed", &path, CACHE], None)?;
    let torn = spawn(&["open", &path, CACHE], None)?;
    for table in ours["tables"].as_array().into_iter().flatten() {
        say(&format!("  {table}"));
    }
    let time = |run: &Value| run["time_s"].as_f64().unwrap_or(0.0);
    let each = |bytes: &Value| (bytes.as_f64().unwrap_or(0.0) / endpoints as f64).round();
    let rounded = |number: f64| (number * 1_000.0).round() / 1_000.0;
    Ok(json!({
        "bench": "store_scale",
        "part": "ingest",
        "endpoints": ours["endpoints"],
        "endpoints_per_s": (endpoints as f64 / time(&ours)).round(),
        "vs_raw_redb": rounded(time(&raw) / time(&ours)),
        "rss_mib": ours["rss_mib"],
        "rss_peak_mib": ours["rss_peak_mib"],
        "rss_compacted_peak_mib": ours["rss_compacted_peak_mib"],
        "row_bytes_per_endpoint": ours["bytes"].as_f64().unwrap_or(0.0) / endpoints as f64,
        "bytes_per_endpoint": each(&ours["compacted_bytes"]),
        "loose_bytes_per_endpoint": each(&ours["file_bytes"]),
        "compacted_s": rounded(ours["compacted_s"].as_f64().unwrap_or(0.0)),
        "open_ms": open["open_ms"],
        "open_after_kill_ms": torn["open_ms"],
        "open_rss_mib": open["rss_mib"],
    }))
}

/// The same where the kernel kills what takes more than 128 MiB, page cache included.
fn in_cgroup(endpoints: u64) -> anyhow::Result<()> {
    let Some(cgroup) = Cgroup::new(CGROUP_BYTES) else {
        say("cgroup: skipped, memory cgroups can't be made here");
        return Ok(());
    };
    let folder = data::folder()?;
    let path = folder.path().join("store");
    let ours =
        spawn(&["ours", &path.to_string_lossy(), &spec(endpoints), CACHE], Some(&cgroup.path))?;
    let seconds = ours["time_s"].as_f64().unwrap_or(0.0);
    let (rss, peak) = (&ours["rss_mib"], &ours["rss_peak_mib"]);
    say(&format!("cgroup of 128 MiB: {endpoints} endpoints in {seconds:.0} s, RSS {rss} MiB"));
    data::result(&json!({
        "bench": "store_scale",
        "part": "cgroup",
        "endpoints": ours["endpoints"],
        "cgroup_mib": mib(CGROUP_BYTES),
        "endpoints_per_s": (endpoints as f64 / seconds).round(),
        "rss_mib": rss,
        "rss_peak_mib": peak,
    }));
    Ok(())
}

/// A memory cgroup of our own, removed when dropped.
struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// `None` where it can't be made: that takes rights, and a hierarchy that has the memory controller.
    fn new(bytes: u64) -> Option<Cgroup> {
        let name = format!("spillway-bench-{}", std::process::id());
        let (v1, v2) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
        let (parent, limit) = match v1.is_dir() {
            true => (v1, "memory.limit_in_bytes"),
            false => (v2, "memory.max"),
        };
        let cgroup = Cgroup { path: parent.join(name) };
        std::fs::create_dir(&cgroup.path).ok()?;
        std::fs::write(cgroup.path.join(limit), bytes.to_string()).ok()?;
        Some(cgroup)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Best effort: an empty cgroup costs nothing.
        std::fs::remove_dir(&self.path).ok();
    }
}
