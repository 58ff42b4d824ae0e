//! How many subsets a Service is told in: one, unless what it has is too much for a message, or for a client.

use std::num::NonZeroUsize;

use lru::LruCache;
use model::ServiceName;
use parking_lot::Mutex;

/// Services whose size is remembered.
const SERVICES_MAX: usize = 4_096;

/// Buckets are not equally full, and the next change is to fit as well: so much of a limit is used.
const FULL: f64 = 0.85;

/// There are half as many buckets once these would be no fuller than this.
const RELAXED: f64 = 0.7;

/// Of at most so many bits.
const BITS_MAX: u8 = 16;

/// What to do with a Service that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversize {
    /// Clients that say who they are get a subset each; otherwise all, in several messages.
    pub subset: bool,
    /// Endpoints that a client gets of a Service at most; `None`: as many as a message holds.
    pub endpoints_max: Option<usize>,
}

/// What is known of large Services.
pub(super) struct Levels {
    oversize: Oversize,
    message_bytes_max: usize,
    known: Mutex<LruCache<ServiceName, Known>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Bytes of an address, as they were in the last large message.
    address_bytes: usize,
    bits: u8,
}

impl Levels {
    pub(super) fn new(oversize: Oversize, message_bytes_max: usize) -> Levels {
        let services_max = NonZeroUsize::new(SERVICES_MAX).unwrap_or(NonZeroUsize::MIN);
        Levels { oversize, message_bytes_max, known: Mutex::new(LruCache::new(services_max)) }
    }

    /// In how many buckets, as a power of two, a Service with so many targets is told now. It stays so until there is
    /// clearly more or less.
    pub(super) fn bits(&self, service: &ServiceName, targets: u64) -> u8 {
        if !self.oversize.subset {
            return 0;
        }
        let mut known = self.known.lock();
        let Some(mut level) = known.get(service).copied().or_else(|| self.unknown(targets)) else {
            return 0;
        };
        while level.bits < BITS_MAX && self.used(level, targets) > 1.0 {
            level.bits += 1;
        }
        while level.bits > 0
            && self.used(Known { bits: level.bits - 1, ..level }, targets) <= RELAXED
        {
            level.bits -= 1;
        }
        known.put(service.clone(), level);
        level.bits
    }

    /// A Service that nothing is known of is looked at only if it may have too many endpoints.
    fn unknown(&self, targets: u64) -> Option<Known> {
        let many = self.oversize.endpoints_max.is_some_and(|max| targets > max as u64);
        many.then(Known::default)
    }

    /// How full a bucket is, of the limit that is reached first: 1 is full.
    fn used(&self, level: Known, targets: u64) -> f64 {
        let each = targets as f64 / f64::from(1_u32 << level.bits);
        let part = |used: f64, of: usize| used / of.max(1) as f64;
        let bytes = part(each * level.address_bytes as f64, self.message_bytes_max) / FULL;
        let endpoints = self.oversize.endpoints_max.map_or(0.0, |max| part(each, max));
        // All of them are exactly as many as there are; parts are not equal.
        bytes.max(if level.bits == 0 { endpoints } else { endpoints / FULL })
    }

    /// A message of the Service can't have more than these addresses, of so many bytes, or will not. Is it told in more
    /// subsets than before?
    pub(super) fn overflowed(
        &self,
        service: &ServiceName,
        targets: u64,
        (addresses, bytes): (usize, usize),
    ) -> bool {
        if !self.oversize.subset {
            return false;
        }
        let before = self.bits(service, targets);
        {
            let mut known = self.known.lock();
            let mut level = known.get(service).copied().unwrap_or_default();
            // The largest that was seen: smaller ones in between are no reason to go back and forth.
            let bytes = bytes / addresses.max(1) + 1;
            level.address_bytes = level.address_bytes.max(bytes);
            known.put(service.clone(), level);
        }
        self.bits(service, targets) > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ClusterId, ObjectName};

    fn web() -> ServiceName {
        ServiceName { cluster: ClusterId::LOCAL, object: ObjectName::new("shop", "web").unwrap() }
    }

    #[test]
    fn a_service_has_subsets_once_it_has_overflowed() {
        let levels = Levels::new(Oversize { subset: true, endpoints_max: None }, 4_000_000);
        assert_eq!(levels.bits(&web(), 50_000), 0, "nobody knows how large it is");
        assert!(levels.overflowed(&web(), 50_000, (13_000, 4_000_000)));
        assert_eq!(levels.bits(&web(), 50_000), 3);
        // A little less changes nothing, and neither does a little more.
        assert_eq!([48_000, 56_000, 52_000].map(|targets| levels.bits(&web(), targets)), [3; 3]);
        assert_eq!([90_000, 64_000, 40_000].map(|it| levels.bits(&web(), it)), [4, 4, 3]);
        assert_eq!(levels.bits(&web(), 7_000), 0);
    }

    #[test]
    fn a_limit_of_endpoints_needs_no_overflow() {
        let levels = Levels::new(Oversize { subset: true, endpoints_max: Some(1_000) }, 4_000_000);
        let bits = [1_000, 1_001, 1_500, 1_300, 650, 8_000];
        assert_eq!(bits.map(|targets| levels.bits(&web(), targets)), [0, 1, 1, 1, 0, 4]);
        let chunks = Levels::new(Oversize { subset: false, endpoints_max: Some(10) }, 4_000_000);
        assert_eq!(chunks.bits(&web(), 1 << 20), 0);
    }
}
