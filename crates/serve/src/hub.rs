//! Who waits for what: a commit wakes the streams whose answer may differ now.
//!
//! A wake-up says "look again", no more. A stream subscribes before it reads the store, so that a commit is
//! either in what it reads or in its next wake-up. Where changes come fast they are told together
//! ([`pace`]): all streams of a Service at the same moment, so that they go on sharing their answers.

mod pace;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use model::Revision;
use parking_lot::Mutex;
use store::{Commit, WakeKey};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use pace::{Pace, Pending};

/// The meeting point of the writer and all streams.
#[derive(Debug)]
pub struct Hub {
    /// One entry for each key of each open stream, so as large as the streams that clients hold open.
    slots: Mutex<BTreeMap<(WakeKey, u64), Slot>>,
    /// Keys that changed a moment ago.
    pace: Mutex<Pace>,
    /// Something has to be told later.
    later: Notify,
    /// Commits so far, the one included that is being told of.
    commits: AtomicU64,
    subscriptions_ever: AtomicU64,
    streams: AtomicUsize,
    /// Streams that have not looked at their latest wake-up yet, and keys that are to be told of one.
    busy: AtomicUsize,
    settled: Notify,
    advanced: watch::Sender<Advanced>,
    /// All streams are to end.
    ending: AtomicBool,
    /// Turns so far.
    turn: AtomicU64,
}

/// How far the writer has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advanced {
    /// The newest revision.
    pub(crate) revision: Revision,
    /// Commits so far; also those that changed no object, such as the end of a listing.
    pub(crate) commits: u64,
}

/// Why a stream is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A key has changed. It is the *first* commit since the stream was last woken: between what it has read and that
    /// one, nothing changed for it.
    Changed(Revision),
    /// It has been quiet for long, and is to show that it is alive.
    KeepAlive,
    /// It is to end: the server does.
    End,
}

/// Turns in which all streams come once, so that not all do the same at once.
const TURNS: u64 = 240;

/// The shortest time between two turns.
const TICK_MIN: Duration = Duration::from_millis(1);

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

    /// The same, where changes that come fast wait for each other this long at most.
    pub fn paced(coalesce_max: Duration) -> Hub {
        Hub { pace: Mutex::new(Pace::new(coalesce_max)), ..Hub::new() }
    }

    /// A hub that nobody waits at, of a store that is at this revision.
    pub fn starting_at(revision: Revision) -> Hub {
        Hub {
            slots: Mutex::default(),
            pace: Mutex::new(Pace::new(Duration::ZERO)),
            later: Notify::new(),
            commits: AtomicU64::new(0),
            subscriptions_ever: AtomicU64::new(0),
            streams: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            settled: Notify::new(),
            advanced: watch::Sender::new(Advanced { revision, commits: 0 }),
            ending: AtomicBool::new(false),
            turn: AtomicU64::new(0),
        }
    }

    /// Tells of a commit that readers can see already: every one, in their order.
    pub fn advance(&self, commit: &Commit) {
        let commits = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        {
            let (slots, mut pace) = (self.slots.lock(), self.pace.lock());
            for key in &commit.touched {
                if slots.range((*key, 0)..=(*key, u64::MAX)).next().is_none() {
                    continue;
                }
                let news = Pending { first: commit.revision, commit: commits };
                match pace.changed(*key, news) {
                    Some(news) => self.tell(&slots, *key, news),
                    // Who waits until all are told waits for this, too.
                    None => self.later.notify_one(),
                }
            }
            self.count_pending(&mut pace);
        }
        self.advanced.send_modify(|advanced| {
            advanced.revision = advanced.revision.max(commit.revision);
            advanced.commits = commits;
        });
    }

    fn tell(&self, slots: &BTreeMap<(WakeKey, u64), Slot>, key: WakeKey, news: Pending) {
        let now = Instant::now();
        for slot in slots.range((key, 0)..=(key, u64::MAX)).map(|(_, slot)| slot) {
            slot.waiter.touch(self, slot.place, (news.first, news.commit), now);
        }
    }

    /// Keys that are still to be told of something count as busy.
    fn count_pending(&self, pace: &mut Pace) {
        for _ in 0..pace.take_begun() {
            self.one_more_busy();
        }
    }

    /// Tells what waits long enough, and every stream that was quiet for `keep_alive`, or up to a quarter less, to show
    /// that it is alive. Runs as long as the hub is used.
    pub async fn run(&self, keep_alive: Duration) {
        let mut tick = tokio::time::interval(keep_alive.div_f64(TURNS as f64).max(TICK_MIN));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let due = self.pace.lock().next_due();
            let is_due = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = is_due => self.tell_due(Instant::now()),
                // It may be due before the others.
                () = self.later.notified() => {}
                _ = tick.tick() => self.keep_alive(),
            }
        }
    }

    /// Tells of the changes that were to wait until now.
    fn tell_due(&self, now: Instant) {
        let (slots, mut pace) = (self.slots.lock(), self.pace.lock());
        let due = pace.take_due(now);
        for (key, news) in &due {
            self.tell(&slots, *key, *news);
        }
        drop((slots, pace));
        for _ in due {
            self.one_less_busy();
        }
    }

    /// Ends all streams, spread over a while; those that are opened from now on at once.
    pub async fn end_all(&self, over: Duration) {
        self.ending.store(true, Ordering::SeqCst);
        for turn in 0..TURNS {
            self.end(turn);
            if self.stream_count() == 0 {
                return;
            }
            tokio::time::sleep(over.div_f64(TURNS as f64)).await;
        }
    }

    /// Are all streams to end?
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Ends the streams whose turn it is.
    fn end(&self, turn: u64) {
        let slots = self.slots.lock();
        for ((_, id), slot) in &*slots {
            if slot.place == 0 && mixed(*id) % TURNS == turn {
                slot.waiter.call(self, Woken::End);
            }
        }
    }

    /// Lets a turn pass, and wakes the streams that were quiet for long.
    fn keep_alive(&self) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) + 1;
        let slots = self.slots.lock();
        for ((_, id), slot) in &*slots {
            let quiet_max = TURNS - mixed(*id) % (TURNS / 4);
            if slot.place == 0 && slot.waiter.was_quiet(turn, quiet_max) {
                slot.waiter.call(self, Woken::KeepAlive);
            }
        }
    }

    /// Tells all streams to look again: the store is at `now`, and of what was visible from `first` on nothing may be
    /// left.
    pub fn look_again(&self, first: Revision, now: Revision) {
        let commits = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        {
            let slots = self.slots.lock();
            let now = Instant::now();
            for slot in slots.values() {
                slot.waiter.touch(self, slot.place, (first, commits), now);
            }
        }
        self.advanced.send_modify(|advanced| {
            advanced.revision = advanced.revision.max(now);
            advanced.commits = commits;
        });
    }

    /// Tells the streams of a key to look again, though nothing has changed up to this revision.
    pub(crate) fn look_again_at(&self, key: WakeKey, unchanged_until: Revision) {
        let news = Pending { first: Revision(unchanged_until.0 + 1), commit: self.commit_count() };
        self.tell(&self.slots.lock(), key, news);
    }

    /// From here on the subscription is told of every commit that touches one of the keys. It counts as busy
    /// until it first waits.
    pub fn subscribe(self: &Arc<Hub>, keys: &[WakeKey]) -> Subscription {
        let id = self.subscriptions_ever.fetch_add(1, Ordering::Relaxed);
        self.streams.fetch_add(1, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::SeqCst);
        let mut slots = self.slots.lock();
        let waiter = Waiter::of(keys.len(), self.commit_count(), self.turn.load(Ordering::Relaxed));
        let waiter = Arc::new(waiter);
        if self.is_ending() {
            waiter.call(self, Woken::End);
        }
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

    /// Services and nodes that streams wait for, and how long the slowest of them has had something to say.
    pub fn watched(&self) -> (usize, Duration) {
        let slots = self.slots.lock();
        let (mut keys, mut last, mut lag) = (0, None, Duration::ZERO);
        for ((key, _), slot) in &*slots {
            keys += usize::from(last != Some(*key));
            last = Some(*key);
            let woken_at = slot.waiter.state.lock().woken_at;
            lag = lag.max(woken_at.map_or(Duration::ZERO, |at| at.elapsed()));
        }
        (keys, lag)
    }

    /// Changes that were told together with an earlier one.
    pub fn coalesced_count(&self) -> u64 {
        self.pace.lock().coalesced()
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
    /// What else it is to do.
    call: Option<Woken>,
    /// The turn in which it began to wait.
    quiet_since: u64,
    /// When it was first woken for what it has not said yet.
    woken_at: Option<Instant>,
}

/// A number's bits, mixed: streams are opened in bursts, and their turns are not to be.
fn mixed(id: u64) -> u64 {
    id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl Waiter {
    fn of(keys: usize, commits: u64, turn: u64) -> Waiter {
        let last = std::iter::repeat_n(commits, keys).collect();
        let state = WaiterState {
            touched: None,
            last,
            idle: false,
            call: None,
            quiet_since: turn,
            woken_at: None,
        };
        Waiter { state: Mutex::new(state), wake: Notify::new() }
    }

    fn touch(&self, hub: &Hub, place: usize, (revision, commit): (Revision, u64), now: Instant) {
        {
            let mut state = self.state.lock();
            state.touched.get_or_insert(revision);
            state.woken_at.get_or_insert(now);
            state.last[place] = commit;
            if std::mem::take(&mut state.idle) {
                hub.one_more_busy();
            }
        }
        self.wake.notify_one();
    }

    fn was_quiet(&self, turn: u64, quiet_max: u64) -> bool {
        let state = self.state.lock();
        state.idle && turn.saturating_sub(state.quiet_since) >= quiet_max
    }

    fn call(&self, hub: &Hub, call: Woken) {
        {
            let mut state = self.state.lock();
            if call == Woken::KeepAlive && (!state.idle || state.call.is_some()) {
                // It has something to say anyway.
                return;
            }
            state.call = Some(call);
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
    /// Waits until there is something to do. Loses nothing when it is dropped before it returns.
    pub async fn woken(&self) -> Woken {
        loop {
            {
                let mut state = self.waiter.state.lock();
                if let Some(Woken::End) = state.call {
                    return Woken::End;
                }
                if let Some(revision) = state.touched.take() {
                    return Woken::Changed(revision);
                }
                if let Some(call) = state.call.take() {
                    return call;
                }
                if !std::mem::replace(&mut state.idle, true) {
                    state.quiet_since = self.hub.turn.load(Ordering::Relaxed);
                    state.woken_at = None;
                    self.hub.one_less_busy();
                }
            }
            self.waiter.wake.notified().await;
        }
    }
}

impl Subscription {
    /// From here on it is told of these keys instead, of commits that are yet to come. It must not wait meanwhile.
    pub(crate) fn resubscribe(&mut self, keys: &[WakeKey]) {
        let mut slots = self.hub.slots.lock();
        for key in &self.keys {
            slots.remove(&(*key, self.id));
        }
        let commits = self.hub.commit_count();
        self.waiter.state.lock().last = std::iter::repeat_n(commits, keys.len()).collect();
        for (place, key) in keys.iter().enumerate() {
            slots.insert((*key, self.id), Slot { place, waiter: Arc::clone(&self.waiter) });
        }
        self.keys = keys.into();
    }

    /// The number of the last commit that touched any of the keys, or of the last one before.
    pub(crate) fn newest_commit(&self) -> u64 {
        self.waiter.state.lock().last.iter().copied().max().unwrap_or_default()
    }

    /// How long ago the stream was woken for what it says now; `None` if it speaks for another reason.
    pub(crate) fn woken_for(&self) -> Option<Duration> {
        self.waiter.state.lock().woken_at.map(|at| at.elapsed())
    }

    /// The number of the last commit that touched a key among those subscribed to, or of the last one before: what is
    /// read after it is what the stream is to know. `None`: there is no such key.
    pub(crate) fn last_commit_of(&self, key: WakeKey) -> Option<u64> {
        let place = self.keys.iter().position(|it| *it == key)?;
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
mod tests;
