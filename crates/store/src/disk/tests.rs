//! The layers, each on a disk that does as it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::overlay::Overlay;
use super::sums::Sums;
use super::*;
use crate::tests::fixture::Random;

const ENOSPC: i32 = 28;

/// Files in memory: what is zero takes no room.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, (u64, BTreeMap<u64, Vec<u8>>)>,
    /// Files that cannot be written.
    full: BTreeSet<String>,
    /// Files cannot be removed.
    stuck: bool,
    log: Vec<String>,
}

#[derive(Debug)]
struct MemoryDisk(Memory, String);

impl Memory {
    fn full(&self, names: &[&str]) {
        self.0.lock().full = names.iter().map(|name| (*name).to_owned()).collect();
    }

    fn flip(&self, name: &str, at: u64) {
        let mut state = self.0.lock();
        let block = state.files.get_mut(name).unwrap().1.get_mut(&(at / BLOCK)).unwrap();
        block[(at % BLOCK) as usize] ^= 1;
    }

    fn disk(&self, name: &str) -> Box<dyn Disk> {
        self.open(name, true).unwrap()
    }
}

impl Volume for Memory {
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>> {
        let mut state = self.0.lock();
        if !create && !state.files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.files.entry(name.to_owned()).or_default();
        Ok(Box::new(MemoryDisk(self.clone(), name.to_owned())))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.0.lock().files.contains_key(name))
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        Ok(self.0.lock().files[name].0)
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        unreachable!("layers rename nothing")
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.stuck {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        state.files.remove(name);
        Ok(())
    }
}

impl Disk for MemoryDisk {
    fn len(&self) -> io::Result<u64> {
        self.0.len(&self.1)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.0.lock();
        let (len, blocks) = &state.files[&self.1];
        if offset + out.len() as u64 > *len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (at, byte) in (offset..).zip(out) {
            *byte = blocks.get(&(at / BLOCK)).map_or(0, |block| block[(at % BLOCK) as usize]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.0.0.lock();
        if state.full.contains(&self.1) {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        state.log.push(format!("{} bytes", len));
        let file = state.files.get_mut(&self.1).unwrap();
        file.0 = len;
        drop(file.1.split_off(&len.div_ceil(BLOCK)));
        if let Some(last) = file.1.get_mut(&(len / BLOCK)) {
            last[(len % BLOCK) as usize..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.0.lock().log.push("sync".to_owned());
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.0.lock();
        if state.full.contains(&self.1) {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        state.log.push(format!("block {}", offset / BLOCK));
        let file = state.files.get_mut(&self.1).unwrap();
        for (at, byte) in (offset..).zip(data) {
            let block = file.1.entry(at / BLOCK).or_insert_with(|| vec![0; BLOCK_BYTES]);
            block[(at % BLOCK) as usize] = *byte;
        }
        file.0 = file.0.max(offset + data.len() as u64);
        Ok(())
    }
}

fn bytes(disk: &dyn Disk) -> Vec<u8> {
    let mut bytes = vec![0; disk.len().unwrap() as usize];
    disk.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn an_overlay_is_what_the_file_would_be_and_the_file_becomes_it() {
    for seed in 1..60 {
        let mut random = Random(seed * 0x9e37_79b9);
        let memory = Memory::default();
        let file = memory.disk("main");
        file.set_len(6 * BLOCK).unwrap();
        file.write(0, &[7; 6 * BLOCK_BYTES]).unwrap();
        let mut oracle = bytes(&*file);
        let mut overlay = Overlay::new(oracle.len() as u64);
        for _ in 0..30 {
            match random.below(4) {
                0 => {
                    let len = random.below(9) * BLOCK + random.below(2) * 100;
                    overlay.set_len(len);
                    oracle.resize(len as usize, 0);
                }
                1 => overlay.sync(),
                _ if oracle.is_empty() => {}
                _ => {
                    let at = random.below(oracle.len() as u64) as usize;
                    let at = if random.chance(50) { at / BLOCK_BYTES * BLOCK_BYTES } else { at };
                    let len = (random.below(2 * BLOCK) as usize).min(oracle.len() - at);
                    let data = vec![random.below(256) as u8; len];
                    overlay.write(&*file, at as u64, &data).unwrap();
                    oracle[at..at + len].copy_from_slice(&data);
                }
            }
            let mut read = vec![0; oracle.len()];
            overlay.read(&*file, 0, &mut read).unwrap();
            assert!(read == oracle, "seed {seed}: the overlay differs");
        }
        assert_eq!(bytes(&*file), [7; 6 * BLOCK_BYTES], "the file is left alone");
        // A disk that fails half-way, and takes it all at the next try.
        memory.full(&["main"]);
        drop(overlay.write_to(&*file));
        memory.full(&[]);
        assert!(overlay.write_to(&*file).is_ok());
        assert!(bytes(&*file) == oracle, "seed {seed}: the file differs");
    }
}

#[test]
fn what_was_said_before_a_sync_is_durable_before_what_was_said_after() {
    let memory = Memory::default();
    let file = memory.disk("main");
    file.set_len(4 * BLOCK).unwrap();
    let mut overlay = Overlay::new(4 * BLOCK);
    for block in [0, 2, 1] {
        overlay.write(&*file, block * BLOCK, &[1; BLOCK_BYTES]).unwrap();
    }
    overlay.sync();
    overlay.set_len(2 * BLOCK);
    overlay.write(&*file, BLOCK, &[2; BLOCK_BYTES]).unwrap();
    memory.0.lock().log.clear();
    assert!(overlay.write_to(&*file).is_ok());
    let log = memory.0.lock().log.join(", ");
    assert_eq!(log, "block 1, block 2, sync, block 0, sync, 8192 bytes, block 1, sync");
}

fn opened(memory: &Memory) -> (Sums, Arc<DiskHealth>, Trust) {
    let volume: Arc<dyn Volume> = Arc::new(memory.clone());
    open(&volume, Names { main: "main", sums: "sums" }, None).unwrap()
}

/// Writes these blocks, each with its number in it.
fn written(disk: &Sums, blocks: impl IntoIterator<Item = u64>) {
    for block in blocks {
        disk.write(block * BLOCK, &[block as u8 + 1; BLOCK_BYTES]).unwrap();
    }
    disk.sync_data().unwrap();
}

fn read(disk: &Sums, block: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; BLOCK_BYTES];
    disk.read(block * BLOCK, &mut bytes)?;
    Ok(bytes)
}

#[test]
fn a_block_that_is_not_what_was_written_is_an_error_and_the_next_process_knows() {
    let memory = Memory::default();
    let (disk, _, trust) = opened(&memory);
    assert_eq!(trust, Trust::Unknown);
    disk.set_len(8 * BLOCK).unwrap();
    written(&disk, 0..8);
    disk.write(3 * BLOCK + 100, b"part of a block").unwrap();
    disk.sync_data().unwrap();
    disk.close().unwrap();
    memory.flip("main", 5 * BLOCK + 9);

    let (disk, health, trust) = opened(&memory);
    assert_eq!(trust, Trust::Sealed);
    assert_eq!(&read(&disk, 3).unwrap()[100..115], b"part of a block");
    let mut part = [0; 4];
    let error = disk.read(5 * BLOCK, &mut part).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().contains("the page at byte 20480"), "{error}");
    assert_eq!(health.lost(), Some(error.to_string()));
    drop(disk);
    assert_eq!(opened(&memory).2, Trust::Condemned(error.to_string()));
}

#[test]
fn sums_are_trusted_after_a_close_of_what_was_synced_only() {
    let memory = Memory::default();
    let (disk, ..) = opened(&memory);
    disk.set_len(4 * BLOCK).unwrap();
    written(&disk, 0..4);
    // Not closed: as after a crash.
    drop(disk);
    let (disk, health, trust) = opened(&memory);
    assert_eq!(trust, Trust::Unknown);
    written(&disk, 0..4);
    disk.close().unwrap();
    assert_eq!(opened(&memory).2, Trust::Unknown, "nobody has verified the file");
    drop(health);

    let (disk, health, _) = opened(&memory);
    health.vouch();
    written(&disk, 0..4);
    disk.close().unwrap();
    let (disk, _, trust) = opened(&memory);
    assert_eq!(trust, Trust::Sealed);
    disk.write(0, &[9; BLOCK_BYTES]).unwrap();
    disk.close().unwrap();
    assert_eq!(opened(&memory).2, Trust::Unknown, "a write was not synced");
}

#[test]
fn more_sums_than_are_held_in_memory_and_a_file_that_shrinks() {
    const APART: u64 = 1024;
    let memory = Memory::default();
    let (disk, ..) = opened(&memory);
    disk.set_len(80 * APART * BLOCK).unwrap();
    written(&disk, (0..80).map(|n| n * APART));
    assert_eq!(read(&disk, 3 * APART).unwrap(), read(&disk, 3 * APART).unwrap());
    disk.set_len(70 * APART * BLOCK).unwrap();
    disk.set_len(80 * APART * BLOCK).unwrap();
    assert_eq!(read(&disk, 75 * APART).unwrap(), [0; BLOCK_BYTES]);
    disk.sync_data().unwrap();
    disk.close().unwrap();
    memory.flip("main", 2 * APART * BLOCK);
    let (disk, _, trust) = opened(&memory);
    assert_eq!(trust, Trust::Sealed);
    for n in (0..70).filter(|n| *n != 2) {
        assert_eq!(read(&disk, n * APART).unwrap()[0], (n * APART) as u8 + 1);
    }
    assert!(read(&disk, 2 * APART).is_err());
}

#[test]
fn sums_that_cannot_be_written_are_no_fault() {
    let memory = Memory::default();
    memory.full(&["sums"]);
    let (disk, health, trust) = opened(&memory);
    assert_eq!(trust, Trust::Unknown);
    disk.set_len(4 * BLOCK).unwrap();
    written(&disk, 0..4);
    assert_eq!(read(&disk, 2).unwrap(), [3; BLOCK_BYTES]);
    assert_eq!(health.failing(), None);
    disk.close().unwrap();
    memory.full(&[]);
    assert_eq!(opened(&memory).2, Trust::Unknown);
}

#[test]
fn a_file_whose_sums_still_say_sealed_is_not_written() {
    let memory = Memory::default();
    let (disk, ..) = opened(&memory);
    disk.set_len(4 * BLOCK).unwrap();
    written(&disk, 0..4);
    disk.close().unwrap();

    let (disk, health, trust) = opened(&memory);
    assert_eq!(trust, Trust::Sealed);
    memory.full(&["sums"]);
    memory.0.lock().stuck = true;
    written(&disk, [2, 3, 2]);
    disk.write(BLOCK, &[99; BLOCK_BYTES]).unwrap();
    assert_eq!(read(&disk, 1).unwrap(), [99; BLOCK_BYTES], "it is read all the same");
    assert_eq!(bytes(&*memory.disk("main"))[BLOCK_BYTES], 2, "the file is as it was");
    assert!(health.failing().is_some());
    assert!(health.heal().is_err());
    memory.0.lock().stuck = false;
    assert!(health.heal().is_ok());
    assert_eq!(health.failing(), None);
    assert_eq!(bytes(&*memory.disk("main"))[BLOCK_BYTES], 99);
    assert!(!memory.exists("sums").unwrap(), "they can't be changed, so they are gone");
}

#[test]
fn a_quota_counts_what_grows_and_not_what_is_there() {
    let memory = Memory::default();
    memory.disk("main").set_len(4 * BLOCK).unwrap();
    let volume: Arc<dyn Volume> = Arc::new(memory.clone());
    let names = Names { main: "main", sums: "sums" };
    let (disk, health, _) = open(&volume, names, Some(2 * BLOCK)).unwrap();
    written(&disk, 0..4);
    disk.set_len(3 * BLOCK).unwrap();
    assert_eq!(health.failing(), None, "what is there may be written, and become less");
    disk.set_len(4 * BLOCK).unwrap();
    disk.write(3 * BLOCK, &[5; BLOCK_BYTES]).unwrap();
    assert!(health.failing().unwrap().contains("the disk quota of 0 MiB is used up"));
    assert!(health.heal().is_err());
    assert_eq!(read(&disk, 3).unwrap(), [5; BLOCK_BYTES]);
    disk.set_len(3 * BLOCK).unwrap();
    assert!(health.heal().is_ok());
    assert_eq!(bytes(&*memory.disk("main")).len(), 3 * BLOCK_BYTES);
}
