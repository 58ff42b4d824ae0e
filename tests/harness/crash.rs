//! A volume in memory that writes down all that is done to it, and gives what a power cut would have left.
//!
//! What was written since a file's last sync may be there or not, each write for itself, and torn between two
//! pages; so may a name that came or went and was not yet made durable with its folder. [`Volume`] promises that
//! renaming and removing are durable when they return, so they end with a sync of the folder; it is cut off, and it
//! fails, as anything else.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use store::{Disk, Volume};

/// What a disk writes at once.
const SECTOR_BYTES: usize = 4096;

/// One thing that was done. Files have numbers, since their names change.
#[derive(Clone, Debug)]
pub enum Op {
    /// Bytes were written, at an offset.
    Write(usize, u64, Arc<[u8]>),
    /// The length was set.
    SetLen(usize, u64),
    /// All before was made durable.
    Sync(usize),
    /// A file was made.
    Create(String, usize),
    /// A file got another name.
    Rename(String, String),
    /// A file was removed.
    Remove(String),
    /// All names before were made durable.
    SyncFolder,
}

/// The contents of files, by their names.
pub type Image = BTreeMap<String, Vec<u8>>;

/// Why an operation fails, given its number and what it is.
pub type Fault = Box<dyn Fn(usize, &Op) -> Option<io::Error> + Send>;

#[derive(Default)]
struct Inner {
    names: BTreeMap<String, usize>,
    files: Vec<Vec<u8>>,
    log: Option<Vec<Op>>,
    count: usize,
    fault: Option<Fault>,
    /// The files as they were when they were last synced. A sync that fails leaves that.
    synced: Option<Vec<Vec<u8>>>,
    waste_bytes: u64,
}

/// The volume. Its clones are the same one.
#[derive(Clone)]
pub struct CrashVolume(Arc<Mutex<Inner>>);

impl std::fmt::Debug for CrashVolume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CrashVolume")
    }
}

impl CrashVolume {
    /// One with these files that writes everything down.
    pub fn logged(image: Image) -> CrashVolume {
        let volume = CrashVolume::of(image);
        volume.0.lock().log = Some(Vec::new());
        volume
    }

    /// One with these files.
    pub fn of(image: Image) -> CrashVolume {
        let mut inner = Inner::default();
        for (name, bytes) in image {
            inner.names.insert(name, inner.files.len());
            inner.files.push(bytes);
        }
        CrashVolume(Arc::new(Mutex::new(inner)))
    }

    /// One without files. What a sync that fails was to make durable is lost there and then.
    pub fn forgetful() -> CrashVolume {
        let volume = CrashVolume::of(Image::new());
        volume.0.lock().synced = Some(Vec::new());
        volume
    }

    /// From now on operations fail when this says so; the numbers begin at 0.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut inner = self.0.lock();
        inner.fault = fault;
        inner.count = 0;
    }

    /// How many operations there have been, since the beginning or since [`CrashVolume::set_fault`].
    pub fn count(&self) -> usize {
        self.0.lock().count
    }

    /// From now on each file is said to take this much more, as if that much of it had become free.
    pub fn set_waste(&self, bytes: u64) {
        self.0.lock().waste_bytes = bytes;
    }

    /// The number of the file that has this name.
    pub fn file(&self, name: &str) -> Option<usize> {
        self.0.lock().names.get(name).copied()
    }

    /// All that was done.
    pub fn log(&self) -> Vec<Op> {
        self.0.lock().log.clone().unwrap_or_default()
    }

    /// The files as they are.
    pub fn image(&self) -> Image {
        let inner = self.0.lock();
        inner.names.iter().map(|(name, file)| (name.clone(), inner.files[*file].clone())).collect()
    }
}

impl Inner {
    fn perform(&mut self, op: Op) -> io::Result<()> {
        let number = self.count;
        self.count += 1;
        let fault = self.fault.as_ref().and_then(|fault| fault(number, &op));
        if let (Some(synced), Op::Sync(file)) = (&mut self.synced, &op) {
            synced.resize(self.files.len(), Vec::new());
            match fault {
                Some(_) => self.files[*file].clone_from(&synced[*file]),
                None => synced[*file].clone_from(&self.files[*file]),
            }
        }
        if let Some(error) = fault {
            return Err(error);
        }
        apply(&mut self.names, &mut self.files, &op);
        if let Some(log) = &mut self.log {
            log.push(op);
        }
        Ok(())
    }
}

fn apply(names: &mut BTreeMap<String, usize>, files: &mut Vec<Vec<u8>>, op: &Op) {
    match op {
        Op::Write(file, offset, data) => write(&mut files[*file], *offset as usize, data),
        Op::SetLen(file, len) => files[*file].resize(*len as usize, 0),
        Op::Sync(_) | Op::SyncFolder => {}
        Op::Create(name, file) => {
            names.insert(name.clone(), *file);
            if files.len() <= *file {
                files.resize(*file + 1, Vec::new());
            }
        }
        Op::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Op::Remove(name) => {
            names.remove(name);
        }
    }
}

fn write(file: &mut Vec<u8>, offset: usize, data: &[u8]) {
    file.resize(file.len().max(offset + data.len()), 0);
    file[offset..offset + data.len()].copy_from_slice(data);
}

impl Volume for CrashVolume {
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>> {
        let mut inner = self.0.lock();
        let file = match inner.names.get(name) {
            Some(file) => *file,
            None if create => {
                let file = inner.files.len();
                inner.perform(Op::Create(name.to_owned(), file))?;
                file
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Box::new(CrashFile { volume: self.clone(), file }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.0.lock().names.contains_key(name))
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        let inner = self.0.lock();
        let file = inner.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(inner.files[*file].len() as u64)
    }

    fn allocated(&self, name: &str) -> io::Result<u64> {
        Ok(self.len(name)? + self.0.lock().waste_bytes)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.0.lock();
        if !inner.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        inner.perform(Op::Rename(from.to_owned(), to.to_owned()))?;
        inner.perform(Op::SyncFolder)
    }

    /// As of a real folder: where there is nothing, nothing is synced.
    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.0.lock();
        if !inner.names.contains_key(name) {
            return Ok(());
        }
        inner.perform(Op::Remove(name.to_owned()))?;
        inner.perform(Op::SyncFolder)
    }
}

#[derive(Debug)]
struct CrashFile {
    volume: CrashVolume,
    file: usize,
}

impl Disk for CrashFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.volume.0.lock().files[self.file].len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.volume.0.lock();
        let range = offset as usize..offset as usize + out.len();
        let found = inner.files[self.file].get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.volume.0.lock().perform(Op::SetLen(self.file, len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.volume.0.lock().perform(Op::Sync(self.file))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.volume.0.lock().perform(Op::Write(self.file, offset, data.into()))
    }
}

/// Which of the writes that were not synced survive a power cut.
#[derive(Clone, Copy, Debug)]
pub enum Kept {
    /// None.
    None,
    /// All.
    All,
    /// This one of them, counted from the newest.
    Only(usize),
    /// All but this one.
    But(usize),
    /// Each or not, and each page of it or not, as this number decides.
    Half(u64),
}

/// What is on disk as the log is followed.
pub struct Replay {
    names: BTreeMap<String, usize>,
    files: Vec<Vec<u8>>,
    /// Not durable yet.
    pending: Vec<Op>,
}

impl Replay {
    /// As a volume with these files begins.
    pub fn of(image: &Image) -> Replay {
        let names = image.keys().cloned().zip(0..).collect();
        Replay { names, files: image.values().cloned().collect(), pending: Vec::new() }
    }

    /// One operation further.
    pub fn step(&mut self, op: &Op) {
        match op {
            Op::Sync(synced) => self.settle(|op| match op {
                Op::Write(file, ..) | Op::SetLen(file, _) => file == synced,
                _ => false,
            }),
            Op::SyncFolder => {
                self.settle(|op| matches!(op, Op::Create(..) | Op::Rename(..) | Op::Remove(_)))
            }
            Op::Create(_, file) => {
                self.files.resize(self.files.len().max(*file + 1), Vec::new());
                self.pending.push(op.clone());
            }
            _ => self.pending.push(op.clone()),
        }
    }

    fn settle(&mut self, durable: impl Fn(&Op) -> bool) {
        let (now, later) = std::mem::take(&mut self.pending).into_iter().partition(durable);
        self.pending = later;
        let now: Vec<Op> = now;
        for op in &now {
            apply(&mut self.names, &mut self.files, op);
        }
    }

    /// How many operations are not durable.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// What a power cut leaves now.
    pub fn cut(&self, kept: Kept) -> Image {
        let (mut names, mut files) = (self.names.clone(), self.files.clone());
        let mut random = match kept {
            Kept::Half(seed) => seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            _ => 1,
        };
        let mut coin = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random & 1 == 0
        };
        for (index, op) in self.pending.iter().rev().enumerate().collect::<Vec<_>>().iter().rev() {
            let keep = match kept {
                Kept::None => false,
                Kept::All => true,
                Kept::Only(only) => *index == only,
                Kept::But(but) => *index != but,
                Kept::Half(_) => coin(),
            };
            match (kept, op) {
                (Kept::Half(_), Op::Write(file, offset, data)) if data.len() > SECTOR_BYTES => {
                    for (sector, part) in data.chunks(SECTOR_BYTES).enumerate() {
                        let at = *offset as usize + sector * SECTOR_BYTES;
                        if coin() {
                            write(&mut files[*file], at, part);
                        }
                    }
                }
                _ if keep => apply(&mut names, &mut files, op),
                _ => {}
            }
        }
        names.into_iter().map(|(name, file)| (name, files[file].clone())).collect()
    }
}
