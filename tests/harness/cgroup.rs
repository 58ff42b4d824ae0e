//! A memory cgroup, of either version, for a program to run in: its limit is what a container's is.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Where both versions are.
const ROOT: &str = "/sys/fs/cgroup";

/// What the files of a version are called.
struct Names {
    limit: &'static str,
    usage_max: &'static str,
    /// Has a line `oom_kill` and a number.
    ooms: &'static str,
}

const V1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage_max: "memory.max_usage_in_bytes",
    ooms: "memory.oom_control",
};

const V2: Names = Names { limit: "memory.max", usage_max: "memory.peak", ooms: "memory.events" };

/// The cgroup. Dropping it removes it; who ran there must have ended.
pub struct Cgroup {
    folder: PathBuf,
    names: Names,
}

impl Cgroup {
    /// Makes one. Fails where this user may not, or the kernel has none.
    pub fn new(bytes_max: u64) -> Result<Cgroup> {
        let root = Path::new(ROOT);
        let is_v2 = root.join("cgroup.controllers").exists();
        let (root, names) = if is_v2 { (root.to_owned(), V2) } else { (root.join("memory"), V1) };
        let folder = tempfile::Builder::new().prefix("spillway-").tempdir_in(root)?;
        // The kernel removes what is in it, and nobody else can.
        let cgroup = Cgroup { folder: folder.keep(), names };
        std::fs::write(cgroup.folder.join(cgroup.names.limit), bytes_max.to_string())
            .context("limiting the memory of a cgroup")?;
        Ok(cgroup)
    }

    /// The file that takes the processes that shall run here.
    pub(crate) fn procs(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// How much was in use at most, the kernel's cache of files included, which it takes back where it has to.
    pub fn usage_bytes_max(&self) -> Result<u64> {
        Ok(self.read(self.names.usage_max)?.trim().parse()?)
    }

    /// How many processes were killed since there was no more memory.
    pub fn ooms(&self) -> Result<u64> {
        let text = self.read(self.names.ooms)?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        Ok(count.context("a kernel that doesn't count them")?.trim().parse()?)
    }

    fn read(&self, name: &str) -> Result<String> {
        std::fs::read_to_string(self.folder.join(name)).with_context(|| format!("reading {name}"))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // One that stays is empty, and harms nobody.
        std::fs::remove_dir(&self.folder).ok();
    }
}
