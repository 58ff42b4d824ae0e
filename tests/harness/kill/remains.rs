//! What a killed process left on disk, looked at by the library in a copy of the folder.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use model::{ClusterId, Kind, Source};
use store::{Birth, Config, Fsync, Undo};

/// The store as it was left.
#[derive(Clone, Copy, Debug)]
pub struct Remains {
    /// The newest revision on disk; 0 if there was no store yet.
    pub revision: u64,
    /// A listing had begun and had not ended.
    pub listing: bool,
    /// redb had marked the file as in use, so that opening it meant a repair.
    pub repaired: bool,
}

impl Remains {
    /// Copies the data folder, opens the copy, and checks all of it. Whatever was there must have been usable.
    pub fn examine(data: &Path) -> Result<Remains> {
        let copy = tempfile::tempdir()?;
        copy_data(data, copy.path())?;
        let had_store = copy.path().join("spillway.redb").try_exists()?;
        let aside = copy.path().join("spillway.redb.damaged").try_exists()?;
        ensure!(!aside, "a store was put aside: {data:?}");
        let repaired = had_store && is_marked(&copy.path().join("spillway.redb"))?;
        let config = Config {
            cache_bytes: 4 << 20,
            hot_bytes: 1 << 20,
            join: resolve::join,
            join_version: resolve::JOIN_VERSION,
            undo: Undo { bytes_max: u64::MAX, age_max: u64::MAX },
            fsync: Fsync::Commit,
            disk_quota_bytes: None,
            admission: store::Admission::default(),
        };
        let (mut writer, reader, birth) = store::open(copy.path(), config)?;
        let revision = match birth {
            Birth::Created if !had_store => 0,
            Birth::Opened(revision) if had_store => revision.0,
            other => bail!("a store was there: {had_store}, and it was {other:?}"),
        };
        let faults = writer.check()?;
        ensure!(faults.is_empty(), "the store contradicts itself: {faults:?}");
        let source = Source { cluster: ClusterId::LOCAL, kind: Kind::EndpointSlice };
        let listing = had_store && reader.snapshot()?.checkpoint(source)?.is_none();
        Ok(Remains { revision, listing, repaired })
    }
}

/// Copies what a process has left, to where nothing is yet.
pub fn copy_data(data: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    if data.try_exists()? {
        for entry in std::fs::read_dir(data)? {
            let entry = entry?;
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The second bit after the magic bytes of a redb file says that nobody has closed it.
fn is_marked(file: &Path) -> Result<bool> {
    let bytes = std::fs::read(file)?;
    let flags = bytes.strip_prefix(b"redb\x1a\x0a\xa9\x0d\x0a").and_then(|rest| rest.first());
    Ok(flags.context("it is no file of redb's")? & 2 != 0)
}
