//! Compares what a stream came to with what it should have come to, and how it got there.

use crate::client::Seen;
use crate::shown::{Said, Shown, differences};

/// How a stream's state differs from the expected one; empty if it does not.
pub(super) fn states(expected: &Seen, found: &Seen) -> Vec<String> {
    match (expected, found) {
        (Seen::Open(expected), Seen::Open(found)) => differences(expected, found),
        _ if expected == found => Vec::new(),
        _ => vec![format!("expected {}, found {}", brief(expected), brief(found))],
    }
}

fn brief(seen: &Seen) -> String {
    match seen {
        Seen::Open(held) => format!("an open stream with {} addresses", held.len()),
        Seen::Ended(code) => format!("its end with {code:?}"),
    }
}

/// What was wrong on the way from one state to the next: an address, as described, that is in neither, or one
/// that is in both and was away in between.
pub(super) fn way(before: &Shown, news: &[Said], after: &Shown) -> Vec<String> {
    let mut faults = Vec::new();
    let mut held = before.clone();
    for said in news {
        said.apply(&mut held);
        for (addr, value) in &held {
            if before.get(addr) != Some(value) && after.get(addr) != Some(value) {
                faults.push(format!("passes through {addr}, in neither state: {value}"));
            }
        }
        let both = before.keys().filter(|addr| after.contains_key(addr));
        let gone = both.filter(|addr| !held.contains_key(addr));
        faults.extend(gone.map(|addr| format!("{addr} is away for a while")));
        if let Said::Remove(addrs) = said {
            let strange =
                addrs.iter().filter(|addr| !before.contains_key(addr) && !after.contains_key(addr));
            faults.extend(strange.map(|addr| format!("removes {addr}, which it never had")));
        }
    }
    faults.dedup();
    faults
}
