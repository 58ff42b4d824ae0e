//! The sums of a file's blocks, in a file beside it.
//!
//! ```text
//! first block   magic, version, state, length of the main file, reason, CRC of all this
//! block 1 + k   the CRC32 of blocks 1024 k … 1024 k + 1023 of the main file, little-endian; 0: unknown
//! ```
//!
//! The sums are good for the next process only if this one *sealed* them: so nothing here needs to survive a crash,
//! and the sums may be written late and in any order.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;

use super::{BLOCK, BLOCK_BYTES, Disk, Volume};

const MAGIC: [u8; 8] = *b"spillsum";
const VERSION: u32 = 1;

/// Sums in a block of them.
const SUMS_PER_PAGE: u64 = BLOCK / 4;

/// Blocks of sums held in memory, 256 KiB: they have the sums of 256 MiB of the main file.
const PAGES_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 512;

/// May the sums that were found be relied on?
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The process before wrote them last of all.
    Sealed,
    /// There are none, or of a file that was not closed: they are learnt from what is read.
    Unknown,
    /// A block was not what had been written.
    Condemned(String),
}

/// What the first block says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Open,
    Sealed { main_len: u64 },
    Condemned { reason: String },
}

/// The sums of one file.
#[derive(Debug)]
pub(super) struct Sidecar {
    volume: Arc<dyn Volume>,
    name: String,
    /// `None`: it could not be read or written, and is of no use any more.
    file: Option<Box<dyn Disk>>,
    /// What its first block says; `None`: not what it should, and it could not be changed.
    state: Option<State>,
    pages: LruCache<u64, Page>,
}

#[derive(Debug)]
struct Page {
    bytes: Box<[u8]>,
    dirty: bool,
}

impl Sidecar {
    /// Opens the sums of a file of this length, or begins anew.
    pub(super) fn open(volume: &Arc<dyn Volume>, name: &str, main_len: u64) -> (Sidecar, Trust) {
        let mut sidecar = Sidecar {
            volume: Arc::clone(volume),
            name: name.to_owned(),
            file: None,
            state: None,
            pages: LruCache::new(PAGES_MAX),
        };
        match volume.open(name, true) {
            Ok(file) => sidecar.file = Some(file),
            Err(error) => sidecar.give_up(&error),
        }
        let pages = main_len.div_ceil(BLOCK).div_ceil(SUMS_PER_PAGE);
        match sidecar.read_state() {
            Some((state @ State::Sealed { main_len: len }, sums_len))
                if len == main_len && sums_len >= (1 + pages) * BLOCK =>
            {
                sidecar.state = Some(state);
                (sidecar, Trust::Sealed)
            }
            Some((State::Condemned { reason }, _)) => (sidecar, Trust::Condemned(reason)),
            _ => {
                sidecar.begin_anew();
                (sidecar, Trust::Unknown)
            }
        }
    }

    fn read_state(&self) -> Option<(State, u64)> {
        let file = self.file.as_ref()?;
        let len = file.len().ok()?;
        let mut block = vec![0; BLOCK_BYTES];
        if len < BLOCK || file.read(0, &mut block).is_err() {
            return None;
        }
        Some((decode(&block)?, len))
    }

    fn begin_anew(&mut self) {
        let Some(file) = &self.file else { return };
        match file.set_len(0).and_then(|()| file.set_len(BLOCK)) {
            Ok(()) => self.write_state(State::Open),
            Err(error) => self.give_up(&error),
        }
    }

    /// The main file will be written: from now on it and the sums differ on disk. If that can't be said, the main
    /// file must not be written.
    pub(super) fn unseal(&mut self) -> io::Result<()> {
        if matches!(self.state, Some(State::Sealed { .. })) {
            self.write_state(State::Open);
        }
        if self.file.is_none() && self.state.is_none() {
            self.volume.remove(&self.name)?;
            self.state = Some(State::Open);
        }
        Ok(())
    }

    /// The sum of a block; 0 if it is unknown.
    pub(super) fn get(&mut self, block: u64) -> u32 {
        let at = (block % SUMS_PER_PAGE) as usize * 4;
        let bytes = &self.page(block / SUMS_PER_PAGE).bytes[at..at + 4];
        bytes.try_into().map_or(0, u32::from_le_bytes)
    }

    pub(super) fn set(&mut self, block: u64, sum: u32) {
        let at = (block % SUMS_PER_PAGE) as usize * 4;
        let page = self.page(block / SUMS_PER_PAGE);
        page.bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        page.dirty = true;
    }

    /// The main file ends before this block.
    pub(super) fn forget_from(&mut self, block: u64) {
        let (page, at) = (block / SUMS_PER_PAGE, (block % SUMS_PER_PAGE) as usize * 4);
        if at > 0 {
            let page = self.page(page);
            page.bytes[at..].fill(0);
            page.dirty = true;
        }
        let kept = page + u64::from(at > 0);
        let beyond: Vec<u64> =
            self.pages.iter().map(|(page, _)| *page).filter(|page| *page >= kept).collect();
        for page in beyond {
            self.pages.pop(&page);
        }
        let Some(file) = &self.file else { return };
        let end = (1 + kept) * BLOCK;
        let cut = file.len().and_then(|len| if len > end { file.set_len(end) } else { Ok(()) });
        if let Err(error) = cut {
            self.give_up(&error);
        }
    }

    fn page(&mut self, page: u64) -> &mut Page {
        if !self.pages.contains(&page) {
            let read = self.read_page(page);
            let bytes = read.unwrap_or_else(|error| {
                self.give_up(&error);
                vec![0; BLOCK_BYTES]
            });
            let new = Page { bytes: bytes.into(), dirty: false };
            if let Some((evicted, old)) = self.pages.push(page, new)
                && old.dirty
            {
                self.write_page(evicted, &old.bytes);
            }
        }
        self.pages.get_or_insert_mut(page, || Page { bytes: [0; BLOCK_BYTES].into(), dirty: false })
    }

    fn read_page(&self, page: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; BLOCK_BYTES];
        if let Some(file) = &self.file {
            let at = (1 + page) * BLOCK;
            if at + BLOCK <= file.len()? {
                file.read(at, &mut bytes)?;
            }
        }
        Ok(bytes)
    }

    fn write_page(&mut self, page: u64, bytes: &[u8]) {
        let Some(file) = &self.file else { return };
        let at = (1 + page) * BLOCK;
        let longer = file
            .len()
            .and_then(|len| if len < at + BLOCK { file.set_len(at + BLOCK) } else { Ok(()) });
        if let Err(error) = longer.and_then(|()| file.write(at, bytes)) {
            self.give_up(&error);
        }
    }

    /// All that was written is durable: the next process may rely on the sums.
    pub(super) fn seal(&mut self, main_len: u64) {
        if self.state != Some(State::Open) {
            return;
        }
        let pages: Vec<u64> = self.pages.iter().map(|(page, _)| *page).collect();
        for page in pages {
            if let Some(Page { bytes, dirty: true }) = self.pages.pop(&page) {
                self.write_page(page, &bytes);
            }
        }
        let Some(file) = &self.file else { return };
        // Blocks that nobody asked for have no sums; the length still says that none is missing.
        let end = (1 + main_len.div_ceil(BLOCK).div_ceil(SUMS_PER_PAGE)) * BLOCK;
        match file.set_len(end).and_then(|()| file.sync_data()) {
            Ok(()) => self.write_state(State::Sealed { main_len }),
            Err(error) => self.give_up(&error),
        }
    }

    /// The main file isn't what was written: whoever opens it next must know.
    pub(super) fn condemn(&mut self, reason: &str) {
        if !matches!(self.state, Some(State::Condemned { .. })) {
            self.write_state(State::Condemned { reason: reason.to_owned() });
        }
    }

    fn write_state(&mut self, state: State) {
        let Some(file) = &self.file else { return };
        match file.write(0, &encode(&state)).and_then(|()| file.sync_data()) {
            Ok(()) => self.state = Some(state),
            Err(error) => self.give_up(&error),
        }
    }

    /// The sums are there to find faults, not to be one.
    fn give_up(&mut self, error: &io::Error) {
        if matches!(self.state, Some(State::Sealed { .. })) {
            self.state = None;
        }
        let path = self.volume.path(&self.name);
        tracing::warn!(path = %path.display(), %error, "pages are not verified any more");
        self.close();
        self.file = None;
        self.pages.clear();
    }

    pub(super) fn close(&self) {
        if let Some(Err(error)) = self.file.as_ref().map(|file| file.close()) {
            tracing::debug!(%error, "closing the sums");
        }
    }
}

fn encode(state: &State) -> Vec<u8> {
    let (tag, main_len, reason) = match state {
        State::Open => (1, 0, ""),
        State::Sealed { main_len } => (2, *main_len, ""),
        State::Condemned { reason } => {
            (3, 0, &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)])
        }
    };
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    block.extend(MAGIC);
    block.extend(VERSION.to_le_bytes());
    block.extend(u32::to_le_bytes(tag));
    block.extend(main_len.to_le_bytes());
    block.extend((reason.len() as u64).to_le_bytes());
    block.extend(reason.as_bytes());
    block.resize(BLOCK_BYTES - 4, 0);
    block.extend(crc32fast::hash(&block).to_le_bytes());
    block
}

fn decode(block: &[u8]) -> Option<State> {
    let (said, sum) = block.split_last_chunk()?;
    if crc32fast::hash(said) != u32::from_le_bytes(*sum) {
        return None;
    }
    let rest = said.strip_prefix(&MAGIC)?.strip_prefix(&VERSION.to_le_bytes())?;
    let (tag, rest) = rest.split_first_chunk()?;
    let (main_len, rest) = rest.split_first_chunk()?;
    let (reason_len, rest) = rest.split_first_chunk()?;
    match u32::from_le_bytes(*tag) {
        1 => Some(State::Open),
        2 => Some(State::Sealed { main_len: u64::from_le_bytes(*main_len) }),
        3 => {
            let reason = rest.get(..usize::try_from(u64::from_le_bytes(*reason_len)).ok()?)?;
            Some(State::Condemned { reason: String::from_utf8_lossy(reason).into_owned() })
        }
        _ => None,
    }
}
