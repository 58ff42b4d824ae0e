//! What is let in, and what isn't, in the metrics.

use std::sync::atomic::Ordering;

use store::{ClusterSize, Limit};

use super::page::{Page, labels};
use super::{Metrics, Situation};

/// How much there is of each cluster, and what had to wait or was refused.
pub(super) fn admission(
    page: &mut Page<'_>,
    metrics: &Metrics,
    situation: &dyn Situation,
) -> std::fmt::Result {
    let sizes = situation.sizes();
    let each = |value: fn(&ClusterSize) -> u64| {
        // Linkerd calls the cluster that it is in so.
        let name = |size: &ClusterSize| match size.cluster.as_str() {
            "" => "local".to_owned(),
            linked => linked.to_owned(),
        };
        let one = move |size: &ClusterSize| (vec![("cluster", name(size))], value(size));
        sizes.iter().map(one).collect::<Vec<_>>()
    };
    let targets = each(|size| size.targets);
    page.gauges("targets", "Workloads and bare addresses of Services, let in", targets)?;
    let waiting = each(|size| size.waiting);
    page.gauges("targets_waiting", "Workloads and bare addresses that wait to be let in", waiting)?;
    let linked = |name: &str| name != "local";
    let bytes = each(|size| size.bytes).into_iter().filter(|(of, _)| linked(&of[0].1));
    let help = "Bytes that the objects of a linked cluster take in the store, about";
    page.gauges("link_bytes", help, bytes)?;
    let refused = each(|size| size.refused).into_iter().filter(|(of, _)| linked(&of[0].1));
    let help = "Times that an object of a linked cluster was refused since it was listed; not 0: some are missing";
    page.gauges("link_objects_refused", help, refused)?;
    let held = Limit::ALL.map(|limit| {
        let count = metrics.held[limit as usize].load(Ordering::Relaxed);
        (labels([("limit", limit.name())]), count)
    });
    page.counters("targets_held", "Targets that had to wait, by which limit", held)?;
    let refused = metrics.refused.load(Ordering::Relaxed);
    page.counter("objects_refused", "Times that objects of linked clusters were refused", refused)
}
