//! How fast Services may grow: a bucket for each that does.

use std::num::NonZeroUsize;

use lru::LruCache;
use model::Time;

use super::Surge;
use crate::key::ServiceId;

/// Services whose growth is remembered. Of one that is forgotten the window begins anew.
const BUCKETS_MAX: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();

/// What Services have gained of late.
pub(crate) struct Buckets(LruCache<ServiceId, Bucket>);

/// What a Service has gained, less what time has given back.
#[derive(Clone, Copy)]
struct Bucket {
    /// The most that it had when it began to grow.
    peak: u64,
    /// Thousandths of a target.
    gained: u64,
    at: Time,
}

impl Bucket {
    fn capacity(&self, surge: Surge) -> u64 {
        surge.targets.max(self.peak)
    }

    /// As it is now. When all of it was given back, it begins with what the Service has become.
    fn at(self, now: Time, peak: u64, surge: Surge) -> Bucket {
        let elapsed = now.0.saturating_sub(self.at.0);
        let back = u128::from(elapsed) * u128::from(self.capacity(surge)) * 1_000
            / u128::from(surge.window_ms.max(1));
        let gained = self.gained.saturating_sub(u64::try_from(back).unwrap_or(u64::MAX));
        let peak = if gained == 0 { peak } else { self.peak };
        Bucket { peak, gained, at: now }
    }

    fn left(&self, surge: Surge) -> u64 {
        self.capacity(surge).saturating_sub(self.gained.div_ceil(1_000))
    }
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets(LruCache::new(BUCKETS_MAX))
    }
}

impl Buckets {
    /// Takes one target of what a Service may gain that had `peak` at most. Was there any?
    pub(super) fn take(&mut self, service: ServiceId, peak: u64, surge: Surge, now: Time) -> bool {
        let mut bucket = self.bucket(service, peak, surge, now);
        let any = bucket.left(surge) > 0;
        if any {
            bucket.gained += 1_000;
        }
        self.0.put(service, bucket);
        any
    }

    /// How many targets a Service may gain now.
    pub(super) fn left(&self, service: ServiceId, peak: u64, surge: Surge, now: Time) -> u64 {
        self.bucket(service, peak, surge, now).left(surge)
    }

    fn bucket(&self, service: ServiceId, peak: u64, surge: Surge, now: Time) -> Bucket {
        let known = self.0.peek(&service).copied();
        known.unwrap_or(Bucket { peak, gained: 0, at: now }).at(now, peak, surge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURGE: Surge = Surge { targets: 100, window_ms: 1_000 };

    fn taken(buckets: &mut Buckets, peak: u64, now: u64) -> usize {
        (0..10_000).take_while(|_| buckets.take(1, peak, SURGE, Time(now))).count()
    }

    #[test]
    fn a_small_service_gains_the_number_and_then_as_time_goes() {
        let mut buckets = Buckets::default();
        assert_eq!(taken(&mut buckets, 3, 5_000), 100);
        assert_eq!(taken(&mut buckets, 103, 5_000), 0);
        assert_eq!(taken(&mut buckets, 103, 5_500), 50);
        assert_eq!(taken(&mut buckets, 153, 5_505), 0, "half a target");
        assert_eq!(taken(&mut buckets, 153, 5_510), 1, "and another half");
        assert_eq!(buckets.left(1, 153, SURGE, Time(9_000)), 153, "the window is over");
    }

    #[test]
    fn a_large_service_may_double() {
        let mut buckets = Buckets::default();
        assert_eq!(taken(&mut buckets, 700, 0), 700);
        assert_eq!(taken(&mut buckets, 1_400, 100), 70);
        assert_eq!(taken(&mut buckets, 1_400, 1_000), 630, "of what it had when it began");
        assert_eq!(taken(&mut buckets, 1_400, 2_000), 1_400, "it has stood still for a window");
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_and_takes_nothing() {
        let mut buckets = Buckets::default();
        assert_eq!(taken(&mut buckets, 0, 5_000), 100);
        assert_eq!(taken(&mut buckets, 100, 1_000), 0);
        assert_eq!(taken(&mut buckets, 100, 1_500), 50);
    }
}
