//! How long to wait before the next attempt.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use super::limits::{BACKOFF_MAX, BACKOFF_MIN};

/// Counts failures in a row.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Something succeeded.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Something failed: wait this long, or any time less (full jitter: many clients of one API server that comes back must
    /// not come back together).
    pub fn wait(&mut self) -> Duration {
        self.wait_of(unit())
    }

    fn wait_of(&mut self, unit: f64) -> Duration {
        let most = BACKOFF_MIN.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        most.mul_f64(unit)
    }
}

/// A random number from 0 to 1. Nothing depends on its quality, only on its being another in each process.
pub(super) fn unit() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    bits as f64 / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_begin_anew() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..10).map(|_| backoff.wait_of(1.0).as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        for _ in 0..100 {
            assert_eq!(backoff.wait_of(0.5), Duration::from_secs(15));
        }
        backoff.reset();
        assert_eq!(backoff.wait_of(0.0), Duration::ZERO);
    }

    #[test]
    fn random_numbers_differ_and_stay_between_0_and_1() {
        let units: Vec<_> = (0..100).map(|_| unit()).collect();
        assert!(units.iter().all(|unit| (0.0..=1.0).contains(unit)));
        assert!(units.iter().any(|unit| *unit < 0.5) && units.iter().any(|unit| *unit > 0.5));
    }
}
