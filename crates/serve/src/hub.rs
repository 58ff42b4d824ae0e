//! Who waits for what: a commit wakes the streams whose answer may differ now.
//!
//! A wake-up says "look again", no more. A stream subscribes before it reads the store, so that a commit is
//! either in what it reads or in its next wake-up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use model::Revision;
use parking_lot::Mutex;
use store::{Commit, WakeKey};
use tokio::sync::{Notify, watch};

/// The meeting point of the writer and all streams.
#[derive(Debug)]
pub struct Hub {
    /// One entry for each key of each open stream, so as large as the streams that clients hold open.
    slots: Mutex<BTreeMap<(WakeKey, u64), Slot>>,
    /// Commits so far, the one included that is being told of.
    commits: AtomicU64,
    subscriptions_ever: AtomicU64,
    streams: AtomicUsize,
    /// Streams that have not looked at their latest wake-up yet.
    busy: AtomicUsize,
    settled: Notify,
    advanced: watch::Sender<Advanced>,
}

/// How far the writer has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advanced {
    /// The newest revision.
    pub(crate) revision: Revision,
    /// Commits so far; also those that changed no object, such as the end of a listing.
    pub(crate) commits: u64,
}

impl Default for Hub {
    fn default() -> Hub {
        Hub::new()
    }
}

impl Hub {
    /// A hub that nobody waits at, of a store that holds nothing yet.
    pub fn new() -> Hub {
        Hub::starting_at(Revision(0))
    }

    /// A hub that nobody waits at, of a store that is at this revision.
    pub fn starting_at(revision: Revision) -> Hub {
        Hub {
            slots: Mutex::default(),
            commits: AtomicU64::new(0),
            subscriptions_ever: AtomicU64::new(0),
            streams: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            settled: Notify::new(),
            advanced: watch::Sender::new(Advanced { revision, commits: 0 }),
        }
    }

    /// Tells of a commit that readers can see already: every one, in their order.
    pub fn advance(&self, commit: &Commit) {
        let commits = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        {
            let slots = self.slots.lock();
            for key in &commit.touched {
                for slot in slots.range((*key, 0)..=(*key, u64::MAX)).map(|(_, slot)| slot) {
                    slot.waiter.touch(self, slot.place, commits, commit.revision);
                }
            }
        }
        self.advanced.send_modify(|advanced| {
            advanced.revision = advanced.revision.max(commit.revision);
            advanced.commits = commits;
        });
    }

    /// Tells all streams to look again: the store is at `now`, and of what was visible from `first` on nothing may be
    /// left.
    pub fn look_again(&self, first: Revision, now: Revision) {
        let commits = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        {
            let slots = self.slots.lock();
            for slot in slots.values() {
                slot.waiter.touch(self, slot.place, commits, first);
            }
        }
        self.advanced.send_modify(|advanced| {
            advanced.revision = advanced.revision.max(now);
            advanced.commits = commits;
        });
    }

    /// From here on the subscription is told of every commit that touches one of the keys. It counts as busy
    /// until it first waits.
    pub fn subscribe(self: &Arc<Hub>, keys: &[WakeKey]) -> Subscription {
        let id = self.subscriptions_ever.fetch_add(1, Ordering::Relaxed);
        self.streams.fetch_add(1, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::SeqCst);
        let mut slots = self.slots.lock();
        let waiter = Arc::new(Waiter::of(keys.len(), self.commit_count()));
        for (place, key) in keys.iter().enumerate() {
            slots.insert((*key, id), Slot { place, waiter: Arc::clone(&waiter) });
        }
        drop(slots);
        Subscription { hub: Arc::clone(self), keys: keys.into(), id, waiter }
    }

    /// Open streams.
    pub fn stream_count(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Places at which streams wait, each stream's counted by itself.
    pub fn key_count(&self) -> usize {
        self.slots.lock().len()
    }

    /// Commits so far. Whoever reads the store from now on sees what they did.
    pub fn commit_count(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// Returns when the hub has advanced to `revision` and no stream has anything left to look at: each has
    /// handed its message to HTTP/2 and waits. A client that takes nothing keeps its stream from that.
    pub async fn settled(&self, revision: Revision) {
        let mut advanced = self.advances();
        if advanced.wait_for(|advanced| advanced.revision >= revision).await.is_err() {
            return; // Never: the sender lives as long as `self`.
        }
        loop {
            let idle = self.settled.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.busy.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Sees every commit, for what no key stands for.
    pub(crate) fn advances(&self) -> watch::Receiver<Advanced> {
        self.advanced.subscribe()
    }

    fn one_more_busy(&self) {
        self.busy.fetch_add(1, Ordering::SeqCst);
    }

    fn one_less_busy(&self) {
        if self.busy.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.settled.notify_waiters();
        }
    }
}

/// One of a stream's keys.
#[derive(Debug)]
struct Slot {
    /// Which of them.
    place: usize,
    waiter: Arc<Waiter>,
}

/// One stream's place at the hub.
#[derive(Debug)]
struct Waiter {
    state: Mutex<WaiterState>,
    wake: Notify,
}

#[derive(Debug)]
struct WaiterState {
    /// The first commit that touched a key since the stream was last told.
    touched: Option<Revision>,
    /// For each key the number of the last commit that touched it, or of the last one before the subscription.
    last: Box<[u64]>,
    /// The stream has looked at all that it was told, and waits.
    idle: bool,
}

impl Waiter {
    fn of(keys: usize, commits: u64) -> Waiter {
        let last = std::iter::repeat_n(commits, keys).collect();
        let state = WaiterState { touched: None, last, idle: false };
        Waiter { state: Mutex::new(state), wake: Notify::new() }
    }

    fn touch(&self, hub: &Hub, place: usize, commit: u64, revision: Revision) {
        {
            let mut state = self.state.lock();
            state.touched.get_or_insert(revision);
            state.last[place] = commit;
            if std::mem::take(&mut state.idle) {
                hub.one_more_busy();
            }
        }
        self.wake.notify_one();
    }
}

/// A stream's subscription; dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    keys: Box<[WakeKey]>,
    id: u64,
    waiter: Arc<Waiter>,
}

impl Subscription {
    /// Waits for a commit that touches a key, and gives the *first* one since it last returned: between what the
    /// stream has read and that one, nothing changed for it. Loses nothing when it is dropped before it returns.
    pub async fn changed(&self) -> Revision {
        loop {
            {
                let mut state = self.waiter.state.lock();
                if let Some(revision) = state.touched.take() {
                    return revision;
                }
                if !std::mem::replace(&mut state.idle, true) {
                    self.hub.one_less_busy();
                }
            }
            self.waiter.wake.notified().await;
        }
    }
}

impl Subscription {
    /// The number of the last commit that touched the key at this place among those subscribed to, or of the last
    /// one before: what is read after it is what the stream is to know. `None`: there is no such key.
    pub(crate) fn last_commit(&self, place: usize) -> Option<u64> {
        self.waiter.state.lock().last.get(place).copied()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut slots = self.hub.slots.lock();
        for key in &self.keys {
            slots.remove(&(*key, self.id));
        }
        drop(slots);
        self.hub.streams.fetch_sub(1, Ordering::Relaxed);
        if !self.waiter.state.lock().idle {
            self.hub.one_less_busy();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn commit(revision: u64, touched: &[u64]) -> Commit {
        let touched = touched.iter().map(|key| WakeKey(*key)).collect();
        Commit { revision: Revision(revision), touched, ..Commit::default() }
    }

    #[test]
    fn a_commit_between_subscribing_and_waiting_is_not_lost() {
        let hub = Arc::new(Hub::new());
        let web = hub.subscribe(&[WakeKey(1), WakeKey(9)]);
        let api = hub.subscribe(&[WakeKey(2)]);
        hub.advance(&commit(5, &[1, 3]));
        hub.advance(&commit(6, &[9]));
        assert_eq!(web.changed().now_or_never(), Some(Revision(5)), "the first of two");
        assert_eq!(web.changed().now_or_never(), None, "both were told at once");
        assert_eq!(api.changed().now_or_never(), None);
        hub.advance(&commit(7, &[9]));
        assert_eq!(web.changed().now_or_never(), Some(Revision(7)));
    }

    #[test]
    fn a_wait_that_is_given_up_loses_nothing() {
        let hub = Arc::new(Hub::new());
        let web = hub.subscribe(&[WakeKey(1)]);
        let mut wait = Box::pin(web.changed());
        assert_eq!((&mut wait).now_or_never(), None);
        hub.advance(&commit(1, &[1]));
        drop(wait);
        assert_eq!(web.changed().now_or_never(), Some(Revision(1)));
    }

    #[test]
    fn the_last_subscription_takes_its_slots_away() {
        let hub = Arc::new(Hub::new());
        let (one, two) = (hub.subscribe(&[WakeKey(1)]), hub.subscribe(&[WakeKey(1), WakeKey(1)]));
        assert_eq!((hub.stream_count(), hub.slots.lock().len()), (2, 2));
        drop(one);
        assert_eq!((hub.stream_count(), hub.slots.lock().len()), (1, 1));
        drop(two);
        assert_eq!((hub.stream_count(), hub.slots.lock().len()), (0, 0));
        assert_eq!(hub.settled(Revision(0)).now_or_never(), Some(()));
    }

    #[test]
    fn all_can_be_told_to_look_again() {
        let hub = Arc::new(Hub::new());
        let streams = [hub.subscribe(&[WakeKey(1)]), hub.subscribe(&[WakeKey(2), WakeKey(3)])];
        hub.look_again(Revision(7), Revision(9));
        for (stream, last) in streams.iter().zip([[Some(1), None], [Some(1), Some(1)]]) {
            assert_eq!(stream.changed().now_or_never(), Some(Revision(7)));
            assert_eq!([0, 1].map(|place| stream.last_commit(place)), last);
        }
    }

    #[test]
    fn settled_waits_for_the_revision_and_for_each_stream() {
        let hub = Arc::new(Hub::new());
        let web = hub.subscribe(&[WakeKey(1)]);
        let mut settled = Box::pin(hub.settled(Revision(3)));
        assert_eq!((&mut settled).now_or_never(), None, "not there yet");
        hub.advance(&commit(3, &[1]));
        assert_eq!((&mut settled).now_or_never(), None, "the stream has not looked");
        assert_eq!(web.changed().now_or_never(), Some(Revision(3)));
        assert_eq!((&mut settled).now_or_never(), None, "the stream is looking");
        assert_eq!(web.changed().now_or_never(), None);
        assert_eq!((&mut settled).now_or_never(), Some(()));
        hub.advance(&commit(4, &[2]));
        assert_eq!(hub.settled(Revision(4)).now_or_never(), Some(()), "not this stream's");
    }
}
