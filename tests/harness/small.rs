//! A folder of which only so much can be filled, as of a small file system.

use std::collections::{BTreeMap, BTreeSet};
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

#[derive(Debug, Default)]
struct Room {
    bytes_max: u64,
    /// Files have numbers, since their names change.
    names: BTreeMap<String, usize>,
    made: usize,
    /// What is written: blocks of files. Those of a file without a name are free at once.
    filled: BTreeSet<(usize, u64)>,
}

impl Room {
    /// The number of the file with this name.
    fn number(&mut self, name: &str) -> usize {
        let made = &mut self.made;
        *self.names.entry(name.to_owned()).or_insert_with(|| {
            *made += 1;
            *made
        })
    }

    /// Can this block be written?
    fn take(&mut self, file: usize, block: u64) -> bool {
        let full = (self.filled.len() as u64 + 1) * BLOCK as u64 > self.bytes_max;
        if full && !self.filled.contains(&(file, block)) {
            return false;
        }
        if self.names.values().any(|named| *named == file) {
            self.filled.insert((file, block));
        }
        true
    }

    fn forget(&mut self, name: &str) {
        if let Some(gone) = self.names.remove(name) {
            self.filled.retain(|(file, _)| *file != gone);
        }
    }
}

impl SmallVolume {
    /// A folder with room for as much as there is.
    pub fn new(folder: Folder) -> SmallVolume {
        let room = Room { bytes_max: u64::MAX, ..Room::default() };
        SmallVolume { folder, room: Arc::new(Mutex::new(room)) }
    }

    /// There is room for so much from now on.
    pub fn limit(&self, bytes_max: u64) {
        self.room.lock().bytes_max = bytes_max;
    }

    /// The number of the file that has this name.
    pub fn file(&self, name: &str) -> Option<usize> {
        self.room.lock().names.get(name).copied()
    }

    /// How much is written.
    pub fn filled_bytes(&self) -> u64 {
        (self.room.lock().filled.len() * BLOCK) as u64
    }
}

impl Volume for SmallVolume {
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>> {
        let file = self.folder.open(name, create)?;
        let number = self.room.lock().number(name);
        Ok(Box::new(SmallFile { file, number, room: Arc::clone(&self.room) }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.folder.exists(name)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.folder.len(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)?;
        let mut room = self.room.lock();
        room.forget(to);
        if let Some(number) = room.names.remove(from) {
            room.names.insert(to.to_owned(), number);
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)?;
        self.room.lock().forget(name);
        Ok(())
    }
}

#[derive(Debug)]
struct SmallFile {
    file: Box<dyn Disk>,
    number: usize,
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
        self.room.lock().filled.retain(|(file, block)| *file != self.number || *block < end);
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
            if !room.take(self.number, at / BLOCK as u64) {
                return Err(io::Error::from_raw_os_error(ENOSPC));
            }
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
