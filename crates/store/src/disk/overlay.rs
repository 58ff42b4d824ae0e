//! What a disk that takes no writes was told: blocks on top of the file, and the order in which to write them to it.
//!
//! redb relies on order only where it syncs. So what it says between two syncs is an *epoch*, and epochs are
//! written to the file one after the other, each as if redb were writing it just then.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use super::{BLOCK, BLOCK_BYTES, Disk};

/// What may be held in memory until the disk takes it. A commit of `model::limits::COMMIT_ENDPOINTS_MAX`
/// endpoints fits several times.
const OVERLAY_BYTES_MAX: usize = 64 << 20;

type Block = Arc<[u8]>;

/// A file as it would be.
#[derive(Debug)]
pub(super) struct Overlay {
    /// How long the file would be.
    pub(super) len: u64,
    /// Below this, what has no block is as the file has it; above, it is zero.
    floor: u64,
    /// The newest version of each block.
    latest: BTreeMap<u64, Block>,
    /// Never empty: the last is the one that is being said.
    epochs: VecDeque<Epoch>,
}

/// What was said between two syncs.
#[derive(Debug)]
struct Epoch {
    blocks: BTreeMap<u64, Block>,
    /// How short the file was meanwhile: a file cut off and made longer again has zeros there.
    shortest: u64,
    len: u64,
}

impl Epoch {
    fn new(len: u64) -> Epoch {
        Epoch { blocks: BTreeMap::new(), shortest: len, len }
    }
}

/// Why the file isn't yet as it would be.
pub(super) enum Unwritten {
    /// The disk still doesn't take it.
    Still(io::Error),
    /// After a sync that failed, nothing is known of what was written before.
    Lost(io::Error),
}

impl Overlay {
    pub(super) fn new(len: u64) -> Overlay {
        let epochs = [Epoch::new(len)].into();
        Overlay { len, floor: len, latest: BTreeMap::new(), epochs }
    }

    pub(super) fn read(&self, file: &dyn Disk, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset + out.len() as u64 > self.len {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the file"));
        }
        for (at, part) in parts(offset, out.len()) {
            let out = &mut out[part];
            let within = (at % BLOCK) as usize;
            if let Some(block) = self.latest.get(&(at / BLOCK)) {
                out.copy_from_slice(&block[within..within + out.len()]);
                continue;
            }
            let there = self.floor.saturating_sub(at).min(out.len() as u64) as usize;
            if there > 0 {
                file.read(at, &mut out[..there])?;
            }
            out[there..].fill(0);
        }
        Ok(())
    }

    pub(super) fn write(&mut self, file: &dyn Disk, offset: u64, data: &[u8]) -> io::Result<()> {
        let held: usize = self.epochs.iter().map(|epoch| epoch.blocks.len() * BLOCK_BYTES).sum();
        if held + data.len() > OVERLAY_BYTES_MAX {
            let reason = "the disk takes no writes, and no more can be held in memory";
            return Err(io::Error::new(io::ErrorKind::StorageFull, reason));
        }
        for (at, part) in parts(offset, data.len()) {
            let (block, within) = (at / BLOCK, (at % BLOCK) as usize);
            let mut bytes = vec![0; BLOCK_BYTES];
            if part.len() < BLOCK_BYTES {
                let there = self.len.saturating_sub(block * BLOCK).min(BLOCK) as usize;
                self.read(file, block * BLOCK, &mut bytes[..there])?;
            }
            bytes[within..within + part.len()].copy_from_slice(&data[part]);
            let bytes = Block::from(bytes);
            self.latest.insert(block, Arc::clone(&bytes));
            self.said().blocks.insert(block, bytes);
        }
        let end = self.len.max(offset + data.len() as u64);
        self.len = end;
        self.said().len = end;
        Ok(())
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let last = len / BLOCK;
            drop(self.latest.split_off(&len.div_ceil(BLOCK)));
            drop(self.said().blocks.split_off(&len.div_ceil(BLOCK)));
            if let Some(block) = self.latest.get(&last) {
                let mut bytes = block.to_vec();
                bytes[(len % BLOCK) as usize..].fill(0);
                let bytes = Block::from(bytes);
                self.latest.insert(last, Arc::clone(&bytes));
                self.said().blocks.insert(last, bytes);
            }
            self.floor = self.floor.min(len);
        }
        self.len = len;
        let said = self.said();
        said.shortest = said.shortest.min(len);
        said.len = len;
    }

    /// A sync: what comes later must not reach the file before what came earlier.
    pub(super) fn sync(&mut self) {
        let said = self.said();
        if !said.blocks.is_empty() || said.shortest != said.len {
            self.epochs.push_back(Epoch::new(self.len));
        }
    }

    fn said(&mut self) -> &mut Epoch {
        if self.epochs.is_empty() {
            self.epochs.push_back(Epoch::new(self.len));
        }
        let last = self.epochs.len() - 1;
        &mut self.epochs[last]
    }

    /// Makes the file as it would be, and durable. After an error, another try goes on with the epoch that failed.
    pub(super) fn write_to(&mut self, file: &dyn Disk) -> Result<(), Unwritten> {
        while let Some(epoch) = self.epochs.front() {
            epoch.write_to(file)?;
            self.epochs.pop_front();
        }
        Ok(())
    }
}

impl Epoch {
    fn write_to(&self, file: &dyn Disk) -> Result<(), Unwritten> {
        use Unwritten::{Lost, Still};
        if self.shortest < file.len().map_err(Still)? {
            file.set_len(self.shortest).map_err(Still)?;
        }
        if self.len != file.len().map_err(Still)? {
            file.set_len(self.len).map_err(Still)?;
        }
        let write = |block: &u64, bytes: &[u8]| {
            let at = block * BLOCK;
            let there = self.len.saturating_sub(at).min(BLOCK) as usize;
            file.write(at, &bytes[..there]).map_err(Still)
        };
        for (block, bytes) in self.blocks.range(1..) {
            write(block, bytes)?;
        }
        file.sync_data().map_err(Lost)?;
        // The header says which commit is the newest, so it must not be there before what it speaks of.
        if let Some(header) = self.blocks.get(&0) {
            write(&0, header)?;
            file.sync_data().map_err(Lost)?;
        }
        Ok(())
    }
}

/// Cuts a range of a file at the edges of blocks: where each part is in the file, and in the buffer.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let part = (BLOCK_BYTES - (at % BLOCK) as usize).min(len - done);
        let range = done..done + part;
        done += part;
        (part > 0).then_some((at, range))
    })
}
