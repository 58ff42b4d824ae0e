//! A folder that counts how often it is read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use store::{Disk, Folder, Volume};

/// The reads so far, of all its files.
pub(super) type Reads = Arc<AtomicU64>;

#[derive(Debug)]
struct Counting {
    folder: Folder,
    reads: Reads,
}

/// A folder, and how often it is read.
pub(super) fn counting(path: &Path) -> io::Result<(Arc<dyn Volume>, Reads)> {
    let reads = Reads::default();
    let volume = Counting { folder: Folder::make(path)?, reads: Arc::clone(&reads) };
    Ok((Arc::new(volume), reads))
}

impl Volume for Counting {
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>> {
        let file = self.folder.open(name, create)?;
        Ok(Box::new(Counted { file, reads: Arc::clone(&self.reads) }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.folder.exists(name)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.folder.len(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }
}

#[derive(Debug)]
struct Counted {
    file: Box<dyn Disk>,
    reads: Reads,
}

impl Disk for Counted {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}
