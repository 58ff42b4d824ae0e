//! The real volume: a folder.

use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;

use super::{Disk, Volume};

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Takes a folder, which is made if it isn't there.
    pub fn make(path: &Path) -> io::Result<Folder> {
        if path.is_file() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a file, not a folder"));
        }
        fs::create_dir_all(path)?;
        Ok(Folder(path.to_owned()))
    }

    /// Makes names durable: those that came, and that others went.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}

impl Volume for Folder {
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(create).truncate(false);
        let file = FileBackend::new(file.open(self.path(name))?)
            .map_err(|error| io::Error::other(error.to_string()))?;
        // `spillway.lock` keeps out our own; this keeps out whoever opens the file with redb's tools.
        match file.try_lock_range(Bound::Unbounded, Bound::Unbounded) {
            Ok(false) => {
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process has it open"))
            }
            // Some file systems have no locks.
            Ok(true) | Err(_) => Ok(Box::new(file)),
        }
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.path(name).try_exists()
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path(name))?.len())
    }

    fn allocated(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path(name))?.blocks() * 512)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))?;
        self.sync()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => self.sync(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}
