//! For a disk that cannot take writes: what would be written is held in memory, on top of the file.
//!
//! redb takes any error of its file for the end: it refuses reads too until the file is opened again. A full disk
//! is no reason to stop answering. So from the first write that fails, writes go to an [`Overlay`], and the file
//! stays as a power cut at that moment would have left it. [`DiskHealth`] tells the writer, which begins no more
//! transactions until the overlay could be written to the file.
//!
//! A sync that fails is handed on: the kernel may have dropped what it could not write, so nothing is known.
//! So is a read that fails, for which nothing can stand in.

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::Disk;
use super::overlay::{Overlay, Unwritten};

/// What has to be done before a file is written for the first time.
pub(super) type Prelude = Box<dyn Fn() -> io::Result<()> + Send>;

/// How the disk of a store is doing.
pub struct DiskHealth {
    file: Box<dyn Disk>,
    quota_bytes: Option<u64>,
    /// `None` once it has been done.
    prelude: Mutex<Option<Prelude>>,
    /// There is one as long as the disk doesn't take writes.
    overlay: RwLock<Option<Overlay>>,
    /// Why there is an overlay. Apart from it, so that nobody who asks waits for a disk that has trouble.
    failing: Mutex<Option<String>>,
    /// What is on disk can't be relied on: why.
    lost: Mutex<Option<String>>,
    /// All that will be read of the file has been verified, or has been written by this process.
    vouched: Mutex<bool>,
}

/// Why nothing can be written.
pub(crate) enum Trouble {
    /// The disk doesn't take writes; later it may.
    Failing(String),
    /// What is on disk can't be relied on. The process must come back from disk.
    Lost(String),
}

impl DiskHealth {
    pub(super) fn new(
        file: Box<dyn Disk>,
        quota_bytes: Option<u64>,
        prelude: Prelude,
        vouched: bool,
    ) -> DiskHealth {
        DiskHealth {
            file,
            quota_bytes,
            prelude: Mutex::new(Some(prelude)),
            overlay: RwLock::new(None),
            failing: Mutex::new(None),
            lost: Mutex::new(None),
            vouched: Mutex::new(vouched),
        }
    }

    /// Why the disk doesn't take writes, in a sentence; `None` if it does.
    pub fn failing(&self) -> Option<String> {
        self.failing.lock().clone()
    }

    /// How large the store's file may become, if there is a limit.
    pub fn quota_bytes(&self) -> Option<u64> {
        self.quota_bytes
    }

    /// Why what is on disk can't be relied on, if so.
    pub(crate) fn lost(&self) -> Option<String> {
        self.lost.lock().clone()
    }

    pub(super) fn lose(&self, reason: &str) {
        self.lost.lock().get_or_insert_with(|| reason.to_owned());
    }

    /// What will be read has been verified: its sums may be kept for the next process.
    pub(crate) fn vouch(&self) {
        *self.vouched.lock() = true;
    }

    /// Is the file what it should be, as far as anybody here knows?
    pub(super) fn is_sound(&self) -> bool {
        *self.vouched.lock() && self.failing().is_none() && self.lost().is_none()
    }

    /// If there is something that the disk didn't take, tries to write it now.
    pub(crate) fn heal(&self) -> Result<(), Trouble> {
        if let Some(reason) = self.lost() {
            return Err(Trouble::Lost(reason));
        }
        let mut guard = self.overlay.write();
        let Some(overlay) = &mut *guard else { return Ok(()) };
        let file_len = self.file.len().map_err(|error| self.still(sentence(&error)))?;
        if let Some(reason) = self.over_quota(overlay.len, file_len) {
            return Err(self.still(reason));
        }
        let written = match self.begin_writing() {
            Ok(()) => overlay.write_to(&*self.file),
            Err(error) => Err(Unwritten::Still(error)),
        };
        match written {
            Ok(()) => {
                *guard = None;
                *self.failing.lock() = None;
                Ok(())
            }
            Err(Unwritten::Still(error)) => Err(self.still(sentence(&error))),
            Err(Unwritten::Lost(error)) => {
                let reason = format!("the disk could not be synced: {error}");
                self.lose(&reason);
                Err(Trouble::Lost(reason))
            }
        }
    }

    /// There is still an overlay, for this reason.
    fn still(&self, reason: String) -> Trouble {
        *self.failing.lock() = Some(reason.clone());
        Trouble::Failing(reason)
    }

    fn over_quota(&self, len: u64, len_now: u64) -> Option<String> {
        let quota = self.quota_bytes.filter(|quota| len > *quota && len > len_now)?;
        Some(format!("the disk quota of {} MiB is used up", quota >> 20))
    }

    fn begin_writing(&self) -> io::Result<()> {
        let mut prelude = self.prelude.lock();
        if let Some(todo) = &*prelude {
            todo()?;
            *prelude = None;
        }
        Ok(())
    }

    /// Writes to the file, or if the disk doesn't take it, from now on to an overlay.
    fn change(
        &self,
        through: impl FnOnce(&dyn Disk) -> io::Result<()>,
        over: impl FnOnce(&mut Overlay, &dyn Disk) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut overlay = self.overlay.write();
        if let Some(overlay) = &mut *overlay {
            return over(overlay, &*self.file);
        }
        match self.begin_writing().and_then(|()| through(&*self.file)) {
            Err(error) if is_of_the_disk(&error) => {
                let new = Overlay::new(self.file.len()?);
                *self.failing.lock() = Some(sentence(&error));
                over(overlay.insert(new), &*self.file)
            }
            written => written,
        }
    }
}

impl fmt::Debug for DiskHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiskHealth { file, quota_bytes, .. } = self;
        f.debug_struct("DiskHealth")
            .field("file", file)
            .field("quota_bytes", quota_bytes)
            .finish_non_exhaustive()
    }
}

/// An error that says nothing of what is on disk already, only that no more can be put there.
fn is_of_the_disk(error: &io::Error) -> bool {
    /// Linux's number; there is no [`io::ErrorKind`] for it.
    const EIO: i32 = 5;
    let kinds = [
        io::ErrorKind::StorageFull,
        io::ErrorKind::QuotaExceeded,
        io::ErrorKind::ReadOnlyFilesystem,
        io::ErrorKind::FileTooLarge,
    ];
    kinds.contains(&error.kind()) || error.raw_os_error() == Some(EIO)
}

fn sentence(error: &io::Error) -> String {
    // A quota of ours is a sentence already.
    match error.raw_os_error() {
        Some(_) => format!("the disk does not take writes: {error}"),
        None => error.to_string(),
    }
}

/// The layer itself.
#[derive(Debug)]
pub(super) struct Absorb(pub(super) Arc<DiskHealth>);

impl Disk for Absorb {
    fn len(&self) -> io::Result<u64> {
        match &*self.0.overlay.read() {
            Some(overlay) => Ok(overlay.len),
            None => self.0.file.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match &*self.0.overlay.read() {
            Some(overlay) => overlay.read(&*self.0.file, offset, out),
            None => self.0.file.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let through = |file: &dyn Disk| match self.0.over_quota(len, file.len()?) {
            Some(reason) => Err(io::Error::new(io::ErrorKind::QuotaExceeded, reason)),
            None => file.set_len(len),
        };
        self.0.change(through, |overlay, _| {
            overlay.set_len(len);
            Ok(())
        })
    }

    /// With an overlay, this returns and nothing is durable: the writer, who asks before each transaction, knows.
    fn sync_data(&self) -> io::Result<()> {
        if let Some(overlay) = &mut *self.0.overlay.write() {
            overlay.sync();
            return Ok(());
        }
        let synced = self.0.file.sync_data();
        if let Err(error) = &synced {
            self.0.lose(&format!("the disk could not be synced: {error}"));
        }
        synced
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.change(
            |file| file.write(offset, data),
            |overlay, file| overlay.write(file, offset, data),
        )
    }

    fn close(&self) -> io::Result<()> {
        self.0.file.close()
    }
}
