//! What is not let in, told: always in the metrics, and in the log once in a while for each cause.

use std::collections::BTreeMap;
use std::time::Duration;

use serve::Metrics;
use store::{Commit, HeldBack, Limit};
use tokio::time::Instant;

/// The log has a line of each cause at most this often.
const TOLD_INTERVAL: Duration = Duration::from_secs(10);

/// Who was told of in the log, and when. Causes are limits, and clusters that are linked.
#[derive(Debug, Default)]
pub(super) struct Flood {
    held: BTreeMap<Limit, Cause>,
    refused: BTreeMap<String, Cause>,
}

/// What has happened for one cause since it was last told of.
#[derive(Debug, Default)]
struct Cause {
    told: Option<Instant>,
    count: u64,
}

impl Flood {
    /// Tells of what a commit did not let in.
    pub(super) fn tell(&mut self, commit: &Commit, metrics: &Metrics) {
        for (limit, HeldBack { count, service, cluster }) in &commit.held {
            metrics.held(*limit, *count);
            if let Some(count) = self.held.entry(*limit).or_default().due(*count) {
                tracing::warn!(
                    count, cluster, %service, limit = limit.name(),
                    "endpoints have to wait, of this Service and perhaps others; see docs/flood.md"
                );
            }
        }
        for (cluster, count) in &commit.refused {
            metrics.refused(*count);
            if let Some(count) = self.refused.entry(cluster.clone()).or_default().due(*count) {
                tracing::warn!(
                    count,
                    cluster,
                    "objects of a linked cluster are refused: it takes as much of the disk as it may; see docs/flood.md"
                );
            }
        }
        self.refused.retain(|_, cause| cause.told.is_some_and(|at| at.elapsed() < TOLD_INTERVAL));
    }
}

impl Cause {
    /// Counts so many more, and gives all that have not been told of, if it is time to.
    fn due(&mut self, more: u64) -> Option<u64> {
        self.count += more;
        let is_due = self.told.is_none_or(|at| at.elapsed() >= TOLD_INTERVAL);
        is_due.then(|| {
            self.told = Some(Instant::now());
            std::mem::take(&mut self.count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cause_is_told_at_once_and_then_now_and_then_with_all_that_happened_meanwhile() {
        let mut cause = Cause::default();
        assert_eq!(cause.due(3), Some(3));
        assert_eq!(cause.due(4), None);
        tokio::time::advance(TOLD_INTERVAL / 2).await;
        assert_eq!(cause.due(5), None);
        tokio::time::advance(TOLD_INTERVAL / 2).await;
        assert_eq!(cause.due(6), Some(15));
        assert_eq!(cause.due(1), None);
    }
}
