//! Bytes of answers that are in memory, for whomever: kept for those who ask the same, or on their way to clients. They
//! have a limit, or clients that read slowly could each hold another version of a large answer.
//!
//! Over the limit, those who have waited longest for their client to take something are given up: all that hold the
//! same message together, since only then is it gone. Their clients ask again, and share what is newest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// What is afloat, and who waits with it.
#[derive(Debug)]
pub(crate) struct Afloat {
    bytes: AtomicUsize,
    bytes_max: usize,
    /// By how long they wait.
    waiting: Mutex<BTreeMap<u64, Held>>,
    waited_ever: AtomicU64,
}

#[derive(Debug)]
struct Held {
    /// Where the message ends in memory: what is left of it does, too.
    end: usize,
    bytes: usize,
    give_up: CancellationToken,
}

/// A message, counted for as long as anybody has a part of it.
struct Counted {
    frame: Bytes,
    afloat: Arc<Afloat>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.afloat.bytes.fetch_sub(self.frame.len(), Ordering::Relaxed);
    }
}

impl Afloat {
    pub(crate) fn new(bytes_max: usize) -> Arc<Afloat> {
        Arc::new(Afloat {
            bytes: AtomicUsize::new(0),
            bytes_max,
            waiting: Mutex::default(),
            waited_ever: AtomicU64::new(0),
        })
    }

    /// Bytes that are afloat.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The same bytes, counted from now on.
    pub(crate) fn count(self: &Arc<Afloat>, frame: Bytes) -> Bytes {
        let bytes = self.bytes.fetch_add(frame.len(), Ordering::Relaxed) + frame.len();
        if let Some(over) = bytes.checked_sub(self.bytes_max).filter(|over| *over > 0) {
            self.give_up(over);
        }
        Bytes::from_owner(Counted { frame, afloat: Arc::clone(self) })
    }

    /// Gives up who has waited longest, until this much will be free.
    fn give_up(&self, over: usize) {
        let waiting = self.waiting.lock();
        let (mut messages, mut freed) = (BTreeSet::new(), 0);
        for held in waiting.values() {
            if freed >= over {
                break;
            }
            if messages.insert(held.end) {
                freed += held.bytes;
            }
        }
        for held in waiting.values().filter(|held| messages.contains(&held.end)) {
            held.give_up.cancel();
        }
    }

    /// Somebody waits until the client takes more of this.
    pub(crate) fn wait(self: &Arc<Afloat>, frame: &Bytes) -> Waiting {
        let id = self.waited_ever.fetch_add(1, Ordering::Relaxed);
        let give_up = CancellationToken::new();
        let end = frame.as_ptr() as usize + frame.len();
        let held = Held { end, bytes: frame.len(), give_up: give_up.clone() };
        self.waiting.lock().insert(id, held);
        Waiting { afloat: Arc::clone(self), id, give_up }
    }
}

/// Somebody's wait.
pub(crate) struct Waiting {
    afloat: Arc<Afloat>,
    id: u64,
    give_up: CancellationToken,
}

impl Waiting {
    /// Returns when the memory is needed for others.
    pub(crate) async fn given_up(&self) {
        self.give_up.cancelled().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.afloat.waiting.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(afloat: &Arc<Afloat>, bytes: usize) -> Bytes {
        afloat.count(Bytes::from(vec![0; bytes]))
    }

    #[test]
    fn a_message_counts_once_until_its_last_part_is_gone() {
        let afloat = Afloat::new(100);
        let whole = message(&afloat, 80);
        let (same, mut rest) = (whole.clone(), whole);
        drop(rest.split_to(50));
        drop(same);
        assert_eq!(afloat.bytes(), 80);
        drop(rest);
        assert_eq!(afloat.bytes(), 0);
    }

    #[test]
    fn over_the_limit_the_oldest_are_given_up_and_no_more_than_needed() {
        let afloat = Afloat::new(300);
        let [one, two, three] = [(); 3].map(|()| message(&afloat, 100));
        let wait = |message: &Bytes| afloat.wait(message);
        let (fast, oldest, second, same) = (wait(&three), wait(&one), wait(&two), wait(&one));
        // Whoever's client took something waits anew, and is the youngest.
        drop(fast);
        let fast = afloat.wait(&three.slice(60..));
        let given_up = |waiting: &Waiting| waiting.give_up.is_cancelled();
        let fourth = message(&afloat, 50);
        assert!(given_up(&oldest) && given_up(&same), "all that hold the message go together");
        assert!(!given_up(&second) && !given_up(&fast));
        drop((oldest, same, one));
        let _fifth = message(&afloat, 60);
        assert!(given_up(&second) && !given_up(&fast));
        drop((second, fast, fourth));
        assert!(afloat.waiting.lock().is_empty());
    }
}
