//! A page that is not what was written is never served.
//!
//! redb knows a sum for each of its pages, and looks at it only when it repairs a file. This layer knows one for
//! each block, and compares it with each read. One that differs is an error, and the [`Sidecar`] says so to whoever
//! opens the file next.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::absorb::{Absorb, DiskHealth, Prelude};
use super::sidecar::{Sidecar, Trust};
use super::{BLOCK, BLOCK_BYTES, Disk, Volume};

/// The two files that belong together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'n> {
    pub(crate) main: &'n str,
    pub(crate) sums: &'n str,
}

/// A disk for redb.
#[derive(Debug)]
pub(crate) struct Sums {
    below: Absorb,
    /// Held alone while a block and its sum change, and together with others while they are compared.
    whole: RwLock<()>,
    sidecar: Arc<Mutex<Sidecar>>,
    len: AtomicU64,
    /// Something was written since the last sync.
    unsynced: AtomicBool,
}

/// Opens a file and its sums, with a handle on how the disk is doing. The file is made if it isn't there.
pub(crate) fn open(
    volume: &Arc<dyn Volume>,
    names: Names<'_>,
    quota_bytes: Option<u64>,
) -> io::Result<(Sums, Arc<DiskHealth>, Trust)> {
    let file = volume.open(names.main, true)?;
    let len = file.len()?;
    let (sidecar, trust) = Sidecar::open(volume, names.sums, len);
    let sidecar = Arc::new(Mutex::new(sidecar));
    let unseal: Prelude = {
        let sidecar = Arc::clone(&sidecar);
        Box::new(move || sidecar.lock().unseal())
    };
    // A file without content has none that could be wrong.
    let vouched = trust == Trust::Sealed || len == 0;
    let health = Arc::new(DiskHealth::new(file, quota_bytes, unseal, vouched));
    let sums = Sums {
        below: Absorb(Arc::clone(&health)),
        whole: RwLock::new(()),
        sidecar,
        len: AtomicU64::new(len),
        unsynced: AtomicBool::new(false),
    };
    Ok((sums, health, trust))
}

/// The sum of a block, or of the last block's beginning: the rest is zero, as if the file were longer.
fn sum_of(bytes: &[u8]) -> u32 {
    const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes);
    hasher.update(&ZEROS[bytes.len()..]);
    // 0 stands for what isn't known.
    hasher.finalize().max(1)
}

impl Sums {
    /// Reads whole blocks and compares them with their sums; `out` may end with the file.
    fn read_blocks(&self, first: u64, out: &mut [u8]) -> io::Result<()> {
        self.below.read(first * BLOCK, out)?;
        let sums: Vec<u32> = out.chunks(BLOCK_BYTES).map(sum_of).collect();
        let mut sidecar = self.sidecar.lock();
        for (block, sum) in (first..).zip(sums) {
            match sidecar.get(block) {
                0 => sidecar.set(block, sum),
                known if known == sum => {}
                known => {
                    let reason = format!(
                        "the page at byte {} is not what was written: its sum is {sum:08x}, not {known:08x}",
                        block * BLOCK
                    );
                    sidecar.condemn(&reason);
                    self.below.0.lose(&reason);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
            }
        }
        Ok(())
    }

    /// The whole blocks that a range touches, as far as there are any.
    fn covering(&self, offset: u64, len: usize) -> (u64, usize) {
        let first = offset / BLOCK;
        let end = (offset + len as u64).next_multiple_of(BLOCK);
        let end = end.min(self.len.load(Ordering::Acquire)).max(first * BLOCK);
        (first, (end - first * BLOCK) as usize)
    }
}

fn is_whole(offset: u64, len: usize) -> bool {
    offset.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK_BYTES)
}

impl Disk for Sums {
    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let _with_others = self.whole.read();
        if is_whole(offset, out.len()) {
            return self.read_blocks(offset / BLOCK, out);
        }
        let (first, len) = self.covering(offset, out.len());
        let mut blocks = vec![0; len];
        self.read_blocks(first, &mut blocks)?;
        let begin = (offset - first * BLOCK) as usize;
        let found = blocks.get(begin..begin + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let _alone = self.whole.write();
        self.unsynced.store(true, Ordering::Release);
        self.below.set_len(len)?;
        if len < self.len.swap(len, Ordering::AcqRel) {
            // A block that was cut within has another sum now, which isn't known.
            self.sidecar.lock().forget_from(len / BLOCK);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let unsynced = self.unsynced.swap(false, Ordering::AcqRel);
        let synced = self.below.sync_data();
        if unsynced && synced.is_err() {
            self.unsynced.store(true, Ordering::Release);
        }
        synced
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let _alone = self.whole.write();
        self.unsynced.store(true, Ordering::Release);
        let first = offset / BLOCK;
        let sums: Vec<u32> = if is_whole(offset, data.len()) {
            data.chunks(BLOCK_BYTES).map(sum_of).collect()
        } else {
            let (first, len) = self.covering(offset, data.len());
            let mut blocks = vec![0; len];
            self.read_blocks(first, &mut blocks)?;
            let begin = (offset - first * BLOCK) as usize;
            blocks.resize(len.max(begin + data.len()), 0);
            blocks[begin..begin + data.len()].copy_from_slice(data);
            blocks.chunks(BLOCK_BYTES).map(sum_of).collect()
        };
        self.below.write(offset, data)?;
        self.len.fetch_max(offset + data.len() as u64, Ordering::AcqRel);
        let mut sidecar = self.sidecar.lock();
        for (block, sum) in (first..).zip(sums) {
            sidecar.set(block, sum);
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        // Asked first: below, the sums are locked after the disk.
        let sound = self.below.0.is_sound() && !self.unsynced.load(Ordering::Acquire);
        let mut sidecar = self.sidecar.lock();
        if sound {
            sidecar.seal(self.len.load(Ordering::Acquire));
        }
        sidecar.close();
        drop(sidecar);
        self.below.close()
    }
}
