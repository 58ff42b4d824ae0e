//! Sets of ports, as annotations and flags list them (spec §2.8).

use crate::limits::PORT_LIST_BYTES_MAX;

/// A set of ports as sorted, disjoint, inclusive ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSet {
    ranges: Vec<(u16, u16)>,
}

/// An item of a port list that is no port, no range and no known name; it is skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{item:?} is neither a port, a range of ports, nor the name of a port here")]
pub struct PortSetError {
    /// The item as it was written, trimmed.
    pub item: String,
}

impl PortSet {
    /// The set of these ranges; empty ones (low > high) are left out.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (u16, u16)>) -> PortSet {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|(low, high)| low <= high).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if u32::from(low) <= u32::from(last.1) + 1 => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        PortSet { ranges: merged }
    }

    /// Parses a list such as `25, 4143,8000-8100,db,`. `named` gives the port of a name, and is asked before
    /// numbers are tried (`80-90` may be a name). Bad items are reported and skipped; the rest stays valid.
    /// Blank items are no names (Q44).
    pub fn parse(list: &str, named: impl Fn(&str) -> Option<u16>) -> (PortSet, Vec<PortSetError>) {
        let mut end = list.len().min(PORT_LIST_BYTES_MAX);
        while !list.is_char_boundary(end) {
            end -= 1;
        }
        let list = &list[..end];
        let list = list.strip_suffix(',').unwrap_or(list);
        let (mut ranges, mut errors) = (Vec::new(), Vec::new());
        for item in list.split(',').map(str::trim) {
            let found = match item {
                "" => None,
                name => named(name).map(|port| (port, port)).or_else(|| parse_range(name)),
            };
            match found {
                Some(range) => ranges.push(range),
                None if item.is_empty() => {}
                None => errors.push(PortSetError { item: item.to_owned() }),
            }
        }
        (PortSet::from_ranges(ranges), errors)
    }

    /// Is the port in the set?
    pub fn contains(&self, port: u16) -> bool {
        let after = self.ranges.partition_point(|(low, _)| *low <= port);
        after > 0 && self.ranges[after - 1].1 >= port
    }

    /// Does the set hold nothing?
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Its ranges, sorted and disjoint.
    pub fn ranges(&self) -> &[(u16, u16)] {
        &self.ranges
    }
}

/// One port, or `low-high`. Numbers are as Go's `Atoi` reads them: a sign and leading zeros are fine.
fn parse_range(item: &str) -> Option<(u16, u16)> {
    match item.split_once('-') {
        None => parse_port(item).map(|port| (port, port)),
        Some((low, high)) => {
            let range = (parse_port(low)?, parse_port(high)?);
            (range.0 <= range.1).then_some(range)
        }
    }
}

fn parse_port(digits: &str) -> Option<u16> {
    let digits = digits.trim();
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    all_digits.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ports(list: &str) -> PortSet {
        PortSet::parse(list, |name| (name == "sidecar").then_some(8081)).0
    }

    #[test]
    fn lists_of_spec_f18_to_f20() {
        assert_eq!(ports("sidecar, 80-82,").ranges(), [(80, 82), (8081, 8081)]);
        let all = ports("25,440-443,3306,7000-7002");
        assert_eq!(all.ranges(), [(25, 25), (440, 443), (3306, 3306), (7000, 7002)]);
        for bad in ["", "abc", "ab-cd", "-30-35", "-30", "35-30", "65536-65540", "30-abc", "--1"] {
            assert!(ports(bad).is_empty(), "{bad}");
        }
        assert_eq!(ports("30-30,+30,0044").ranges(), [(30, 30), (44, 44)]);
        assert_eq!(ports("0-65535").ranges(), [(0, 65535)]);
    }

    #[test]
    fn a_bad_item_is_named_and_the_rest_stays() {
        let (set, errors) = PortSet::parse("80,nope,,443", |_| None);
        assert_eq!(set.ranges(), [(80, 80), (443, 443)]);
        assert_eq!(errors, [PortSetError { item: "nope".to_owned() }]);
    }

    proptest! {
        #[test]
        fn holds_what_its_ranges_hold(
            ranges in proptest::collection::vec((any::<u16>(), any::<u16>()), 0..8),
            port in any::<u16>(),
        ) {
            let set = PortSet::from_ranges(ranges.clone());
            let expected = ranges.iter().any(|(low, high)| (*low..=*high).contains(&port));
            prop_assert_eq!(set.contains(port), expected);
            let disjoint = set.ranges().windows(2).all(|pair| {
                u32::from(pair[0].1) + 1 < u32::from(pair[1].0)
            });
            prop_assert!(disjoint);
        }
    }
}
