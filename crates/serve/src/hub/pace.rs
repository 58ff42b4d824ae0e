//! How fast changes are told: the first at once, and those that follow it closely together.
//!
//! Each key has a window, in which it is told of once. It is nothing while the key is quiet, doubles while changes go on
//! coming within a few windows of each other, and is forgotten when they don't.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::Revision;
use store::WakeKey;
use tokio::time::Instant;

/// The first window.
const WINDOW_MIN: Duration = Duration::from_millis(5);

/// A key is quiet when it has not been told of for so many windows, or for so long.
const QUIET_WINDOWS: u32 = 3;
const QUIET_MIN: Duration = Duration::from_millis(50);

/// What is to be told of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// The first commit that is not told yet.
    pub(super) first: Revision,
    /// The number of the last one.
    pub(super) commit: u64,
}

/// A key that was told of a moment ago.
#[derive(Debug)]
struct Recent {
    /// It is told of once in so long.
    window: Duration,
    told: Instant,
    pending: Option<Pending>,
}

/// The keys that were told of a moment ago. Those that are quiet are dropped whenever one is told of, so there are as
/// many as can change within a few windows.
#[derive(Debug)]
pub(super) struct Pace {
    window_max: Duration,
    recent: BTreeMap<WakeKey, Recent>,
    /// When each of those is due that something is pending for.
    due: BTreeSet<(Instant, WakeKey)>,
    /// When each of the others is quiet.
    quiet: BTreeSet<(Instant, WakeKey)>,
    begun: usize,
    /// Changes that were told together with an earlier one.
    coalesced: u64,
}

impl Pace {
    pub(super) fn new(window_max: Duration) -> Pace {
        let (recent, due, quiet) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Pace { window_max, recent, due, quiet, begun: 0, coalesced: 0 }
    }

    /// A key has changed: gives what to tell now, if anything.
    pub(super) fn changed(&mut self, key: WakeKey, news: Pending) -> Option<Pending> {
        if self.window_max.is_zero() {
            return Some(news);
        }
        self.changed_at(key, news, Instant::now())
    }

    fn changed_at(&mut self, key: WakeKey, news: Pending, now: Instant) -> Option<Pending> {
        self.forget_quiet(now);
        let window_max = self.window_max;
        let Some(recent) = self.recent.get_mut(&key) else {
            let recent = Recent { window: WINDOW_MIN.min(window_max), told: now, pending: None };
            self.quiet.insert((recent.quiet_at(), key));
            self.recent.insert(key, recent);
            return Some(news);
        };
        if let Some(pending) = &mut recent.pending {
            pending.commit = news.commit;
            self.coalesced += 1;
            return None;
        }
        self.quiet.remove(&(recent.quiet_at(), key));
        let due = recent.told + recent.window;
        if now < due {
            recent.pending = Some(news);
            self.due.insert((due, key));
            self.begun += 1;
            return None;
        }
        recent.tell(now, window_max);
        self.quiet.insert((recent.quiet_at(), key));
        Some(news)
    }

    /// What is to be told by now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(WakeKey, Pending)> {
        let mut taken = Vec::new();
        while let Some((at, key)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, key));
            let Some(recent) = self.recent.get_mut(&key) else { continue };
            taken.extend(recent.pending.take().map(|news| (key, news)));
            recent.tell(now, self.window_max);
            self.quiet.insert((recent.quiet_at(), key));
        }
        self.forget_quiet(now);
        taken
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Keys for which something is pending since this was last asked.
    pub(super) fn take_begun(&mut self) -> usize {
        std::mem::take(&mut self.begun)
    }

    /// Changes that were told together with an earlier one, so far.
    pub(super) fn coalesced(&self) -> u64 {
        self.coalesced
    }

    fn forget_quiet(&mut self, now: Instant) {
        while let Some((at, key)) = self.quiet.first().copied().filter(|(at, _)| *at <= now) {
            self.quiet.remove(&(at, key));
            self.recent.remove(&key);
        }
    }
}

impl Recent {
    fn tell(&mut self, now: Instant, window_max: Duration) {
        self.told = now;
        self.window = (self.window * 2).min(window_max);
    }

    fn quiet_at(&self) -> Instant {
        self.told + (self.window * QUIET_WINDOWS).max(QUIET_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(500);

    fn news(commit: u64) -> Pending {
        Pending { first: Revision(commit), commit }
    }

    /// Tells of changes at these times (ms), and gives when something was told (ms), with the commits.
    fn told(changes: impl IntoIterator<Item = u64>) -> Vec<(u64, u64, u64)> {
        let (mut pace, key, begun) = (Pace::new(MAX), WakeKey(1), Instant::now());
        let mut told = Vec::new();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let due = |pace: &mut Pace, until: Instant, told: &mut Vec<(u64, u64, u64)>| {
            while let Some(next) = pace.next_due().filter(|next| *next <= until) {
                for (_, news) in pace.take_due(next) {
                    let ms = (next - begun).as_millis() as u64;
                    told.push((ms, news.first.0, news.commit));
                }
            }
        };
        for (commit, ms) in (1..).zip(changes) {
            due(&mut pace, at(ms), &mut told);
            if let Some(news) = pace.changed_at(key, news(commit), at(ms)) {
                told.push((ms, news.first.0, news.commit));
            }
        }
        due(&mut pace, at(1 << 30), &mut told);
        pace.forget_quiet(at(1 << 31));
        assert!(pace.recent.is_empty() && pace.due.is_empty() && pace.quiet.is_empty());
        told
    }

    #[test]
    fn the_first_change_after_quiet_is_told_at_once() {
        assert_eq!(told([0, 100, 200]), [(0, 1, 1), (100, 2, 2), (200, 3, 3)]);
    }

    #[test]
    fn what_follows_closely_is_told_together() {
        assert_eq!(told([0, 1, 2, 3]), [(0, 1, 1), (5, 2, 4)]);
    }

    #[test]
    fn the_window_widens_with_the_rate_and_has_a_limit() {
        // A rolling restart: ten thousand changes within ten seconds.
        let told = told(0..10_000);
        assert!(told.len() < 40, "{} times", told.len());
        let longest = told.windows(2).map(|pair| pair[1].0 - pair[0].0).max();
        assert_eq!(longest, Some(500));
        // Nothing is left out, and nothing is told twice.
        assert!(told.windows(2).all(|pair| pair[1].1 == pair[0].2 + 1));
        assert_eq!(told.last().map(|(_, _, commit)| *commit), Some(10_000));
    }

    #[test]
    fn a_key_that_was_busy_and_is_quiet_again_is_told_at_once() {
        let mut changes: Vec<u64> = (0..2_000).collect();
        changes.push(5_000);
        assert_eq!(told(changes).last(), Some(&(5_000, 2_001, 2_001)));
    }
}
