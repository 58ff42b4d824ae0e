//! The memory budget: how much the process may take, who gets which part of it, and what is really used.
//!
//! The parts are enforced where the memory is: the store's cache in bytes, deliveries and reads by how many there
//! may be at a time. What is left over is for connections, the allocator, and what all of these forgot.

use std::path::{Path, PathBuf};

use model::limits::DELIVERIES_WAITING_MAX;

/// Of a cgroup's limit, what is ours if nothing else is said: page cache is in the limit as well.
const CGROUP_SHARE_PERCENT: u64 = 60;

/// Without a limit, and without being told.
const TOTAL_BYTES: u64 = 64 << 20;

/// Less than this is no budget.
pub const TOTAL_BYTES_MIN: u64 = 16 << 20;

/// A limit as large as this is none: cgroup v1 writes the largest page-aligned number.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// What a waiting delivery may take: a page of pods with long names and many labels, decoded.
const DELIVERY_BYTES: u64 = 512 << 10;

/// What one read of the store may take: a message of 4 MiB, and the addresses that it is made of.
const READ_BYTES: u64 = 8 << 20;

/// What an open stream takes and what a connection does besides its streams, all told; the benchmark `fanout` says 3.3
/// KiB for a stream, and 22 for a connection.
const STREAM_BYTES: u64 = 4 << 10;
const CONNECTION_BYTES: u64 = 24 << 10;

/// Streams and connections where memory has no limit.
const STREAMS_MAX: usize = 100_000;
const CONNECTIONS_MAX: usize = 20_000;

/// How the memory of a process is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// All of it.
    pub total_bytes: u64,
    /// The store's page cache. The kernel caches the file as well, and gives that back when memory is short.
    pub cache_bytes: usize,
    /// What rows refer to, decoded: what workloads show, names of zones and nodes.
    pub hot_bytes: usize,
    /// Answers, encoded, for those who ask the same.
    pub answers_bytes: usize,
    /// Answers besides these, on their way to clients that take them slowly.
    pub sending_bytes: usize,
    /// Deliveries that wait for the writer, of all sources.
    pub deliveries_max: usize,
    /// Streams that read the store at the same time.
    pub reads_max: usize,
    /// Open streams.
    pub streams_max: usize,
    /// Open connections.
    pub connections_max: usize,
}

impl Budget {
    /// Divides this much: a thirty-second each for the cache and what is kept decoded, a sixteenth each for answers and
    /// for what comes in, an eighth each for what goes out and for connections, a quarter each for what is read and for
    /// streams.
    pub fn of(total_bytes: u64) -> Budget {
        let part = |parts: u64| usize::try_from(total_bytes / parts).unwrap_or(usize::MAX);
        let count = |bytes: u64, each: u64, max: usize| {
            usize::try_from(bytes / each).unwrap_or(max).clamp(1, max)
        };
        Budget {
            total_bytes,
            cache_bytes: part(32),
            hot_bytes: part(32),
            answers_bytes: part(16),
            sending_bytes: part(8),
            deliveries_max: count(total_bytes / 16, DELIVERY_BYTES, DELIVERIES_WAITING_MAX),
            reads_max: count(total_bytes / 4, READ_BYTES, serve::READS_MAX),
            streams_max: count(total_bytes / 4, STREAM_BYTES, usize::MAX),
            connections_max: count(total_bytes / 8, CONNECTION_BYTES, usize::MAX),
        }
    }

    /// What the cgroup of this process allows, or else a modest amount.
    pub fn of_cgroup() -> Budget {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limit = cgroup_limit(Path::new("/sys/fs/cgroup"), &own);
        match limit {
            Some(limit) => Budget::of((limit / 100 * CGROUP_SHARE_PERCENT).max(TOTAL_BYTES_MIN)),
            None => Budget {
                streams_max: STREAMS_MAX,
                connections_max: CONNECTIONS_MAX,
                ..Budget::of(TOTAL_BYTES)
            },
        }
    }

    /// Its parts by name, in bytes.
    pub fn parts(&self) -> [(&'static str, u64); 9] {
        [
            ("total", self.total_bytes),
            ("store_cache", self.cache_bytes as u64),
            ("hot_set", self.hot_bytes as u64),
            ("answers", self.answers_bytes as u64),
            ("sending", self.sending_bytes as u64),
            ("ingest", self.deliveries_max as u64 * DELIVERY_BYTES),
            ("reads", self.reads_max as u64 * READ_BYTES),
            ("streams", self.streams_max as u64 * STREAM_BYTES),
            ("connections", self.connections_max as u64 * CONNECTION_BYTES),
        ]
    }
}

/// The smallest memory limit of a process's cgroup and of those above it. `own` is its `/proc/self/cgroup`: lines of
/// hierarchy, controllers and path, where cgroup v2 is hierarchy 0.
fn cgroup_limit(root: &Path, own: &str) -> Option<u64> {
    let mut limits = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let v1 = controllers.split(',').any(|controller| controller == "memory");
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if v1 => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        // In a container the path is often that of the host, and what is seen is below it: then the root counts.
        let path = PathBuf::from(path.trim_start_matches('/'));
        let folders = path.ancestors().map(|ancestor| root.join(ancestor).join(file));
        limits.extend(folders.filter_map(|file| {
            let text = std::fs::read_to_string(file).ok()?;
            text.trim().parse::<u64>().ok().filter(|limit| *limit < UNLIMITED_BYTES)
        }));
    }
    limits.into_iter().min()
}

/// What the allocator says: bytes that are in use, and bytes that are mapped for them. Zero where another allocator
/// is in use.
pub(crate) fn allocated_and_resident() -> (u64, u64) {
    use tikv_jemalloc_ctl::{epoch, stats};
    // Its counters stand still until they are told to look.
    if epoch::advance().is_err() {
        return (0, 0);
    }
    let bytes = |read: Result<usize, _>| read.map_or(0, |bytes| bytes as u64);
    (bytes(stats::allocated::read()), bytes(stats::resident::read()))
}

/// Resident memory of this process, bytes; `None` where there is no `/proc`.
pub fn rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_some_memory() {
        assert!(rss_bytes().unwrap() > 1 << 20);
    }

    #[test]
    fn small_budgets_are_divided_too() {
        let budget = Budget::of(32 << 20);
        assert_eq!((budget.cache_bytes, budget.deliveries_max, budget.reads_max), (1 << 20, 4, 1));
        let budget = Budget::of(64 << 30);
        assert_eq!((budget.deliveries_max, budget.reads_max), (DELIVERIES_WAITING_MAX, 4));
        assert_eq!((budget.streams_max, budget.connections_max), (4 << 20, 349_525));
        let spent: u64 = Budget::of(64 << 20).parts()[1..].iter().map(|(_, bytes)| bytes).sum();
        assert!(spent <= 64 << 20, "{spent}");
    }

    #[test]
    fn the_smallest_limit_of_either_cgroup_version() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let limit = |own| cgroup_limit(root.path(), own);
        assert_eq!(limit("0::/\n"), None);
        write("memory.max", "max\n");
        assert_eq!(limit("0::/\n"), None);
        write("a/memory.max", "400\n");
        write("a/b/memory.max", "900\n");
        assert_eq!(limit("0::/a/b\n"), Some(400));
        write("memory/c/memory.limit_in_bytes", "300\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("4:memory:/c\n2:cpu:/a\n0::/\n"), Some(300));
        assert_eq!(limit("4:cpu,memory:/gone\n"), None);
        assert_eq!(limit("nonsense\n"), None);
    }
}
