//! A folder of which only so much can be filled, as of a small file system.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use store::{Disk, Folder, Volume};

/// What a file system gives out at once.
const BLOCK: usize = 4096;

/// Linux's number of "no space left on device".
const ENOSPC: i32 = 28;

/// The volume. Its clones are the same one.
#[derive(Clone, Debug)]
pub struct SmallVolume {
    folder: Folder,
    room: Arc<Mutex<Room>>,
}

#[derive(Debug)]
struct Room {
    bytes_max: u64,
    /// What is written: files by the names that they were opened with, and their blocks.
    filled: BTreeSet<(String, u64)>,
}

impl SmallVolume {
    /// A folder with room for as much as there is.
    pub fn new(folder: Folder) -> SmallVolume {
        let room = Room { bytes_max: u64::MAX, filled: BTreeSet::new() };
        SmallVolume { folder, room: Arc::new(Mutex::new(room)) }
    }

    /// There is room for so much from now on.
    pub fn limit(&self, bytes_max: u64) {
        self.room.lock().bytes_max = bytes_max;
    }

    /// How much is written.
    pub fn filled_bytes(&self) -> u64 {
        (self.room.lock().filled.len() * BLOCK) as u64
    }
}

impl Volume for SmallVolume {
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>> {
        let file = self.folder.open(name, create)?;
        let name = name.trim_end_matches(".new").to_owned();
        Ok(Box::new(SmallFile { file, name, room: Arc::clone(&self.room) }))
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
}

#[derive(Debug)]
struct SmallFile {
    file: Box<dyn Disk>,
    name: String,
    room: Arc<Mutex<Room>>,
}

impl Disk for SmallFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    /// As on most file systems, a longer file takes no room until it is written.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let end = len.div_ceil(BLOCK as u64);
        self.room.lock().filled.retain(|(name, block)| *name != self.name || *block < end);
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// What there is room for is written, and no more: half a write, as a file system does it.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut room = self.room.lock();
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let block = (self.name.clone(), at / BLOCK as u64);
            let full = (room.filled.len() as u64 + 1) * BLOCK as u64 > room.bytes_max;
            if full && !room.filled.contains(&block) {
                return Err(io::Error::from_raw_os_error(ENOSPC));
            }
            room.filled.insert(block);
            let part = (BLOCK - at as usize % BLOCK).min(data.len() - done);
            self.file.write(at, &data[done..done + part])?;
            done += part;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}
