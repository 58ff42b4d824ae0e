//! After a commit that failed: the file is closed and opened again, as a new process would, while readers wait.
//!
//! Readers may have seen commits that were not durable yet, and of which nothing is left then. Their revisions are never
//! given again, and a cursor at one of them has to begin anew; all others go on.

use model::{Revision, Time};

use crate::Error;
use crate::birth;
use crate::read::Lost;
use crate::write::{State, Writer};

impl Writer {
    /// Closes the store and opens it again: afterwards it is as the disk has it, and can be written. What has been
    /// written and isn't in it is to be said again by the sources, from their checkpoints. Gives the revisions that
    /// were taken back.
    ///
    /// If it can't be opened, neither can it be read any more.
    pub fn reopen(&mut self) -> Result<Lost, Error> {
        self.poisoned = true;
        self.compaction = None;
        // The commit that failed may have been seen, and is not counted.
        let seen = Revision(self.shared.stats().revision.0 + 1);
        let paused = self.shared.pause();
        let (file, revision) = birth::open_again(&self.volume, &self.config)?;
        let lost = Lost { after: revision, upto: seen.max(revision) };
        self.shared.resume(file, lost);
        drop(paused);
        self.state = State::new();
        self.compaction_failed = false;
        // The first revision after them is what is left, so that what comes next has one before it.
        self.write(Time::default(), |work| {
            work.meta.revision = lost.upto.0 + 1;
            Ok(())
        })?;
        Ok(lost)
    }
}
