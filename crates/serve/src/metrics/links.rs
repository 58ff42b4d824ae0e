//! Linked clusters in the metrics.

use std::collections::BTreeMap;

use model::{ClusterId, Source, Time};

use super::Situation;
use super::page::{Labels, Page, labels};

/// How a linked cluster is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// Its name.
    pub cluster: String,
    /// What the link is about, in a word: `connecting`, `listing`, `live`, `stale` or `refused`.
    pub state: &'static str,
    /// Why, if it isn't live.
    pub reason: Option<String>,
    /// Its watches.
    pub watches: u64,
    /// Those of them that deliver changes as they happen.
    pub live: u64,
    /// How often they began again.
    pub restarts: u64,
    /// Objects that could not be read.
    pub decode_failures: u64,
    /// Objects of which a part was skipped or makes no sense.
    pub partial_objects: u64,
}

/// How each is doing.
pub(super) fn of_clusters(page: &mut Page<'_>, situation: &dyn Situation) -> std::fmt::Result {
    let links = situation.links();
    let each = |value: fn(&LinkStatus) -> u64| {
        let one = move |link: &LinkStatus| (of_cluster(&link.cluster), value(link));
        links.iter().map(one).collect::<Vec<_>>()
    };
    let state = links.iter().map(|link| {
        let labels = labels([("cluster", link.cluster.as_str()), ("state", link.state)]);
        (labels, 1)
    });
    page.gauges("link_state", "What the link to a cluster is about", state)?;
    let watches = each(|link| link.watches);
    page.gauges("link_watches", "Watches of a linked cluster", watches)?;
    let live = each(|link| link.live);
    let help = "Watches of a linked cluster that deliver changes as they happen";
    page.gauges("link_watches_live", help, live)?;
    let restarts = each(|link| link.restarts);
    let help = "How often watches of a linked cluster began again";
    page.counters("link_watch_restarts", help, restarts)?;
    let failures = each(|link| link.decode_failures);
    let help = "Objects of a linked cluster that could not be read";
    page.counters("link_decode_failures", help, failures)?;
    let partial = each(|link| link.partial_objects);
    let help = "Objects of a linked cluster of which a part could not be read, or makes no sense";
    page.counters("link_partial_objects", help, partial)?;
    let faults = situation.link_faults() as u64;
    page.gauge("link_faults", "Secrets that are to declare a link, and don't", faults)
}

/// How old what is stored of each is.
pub(super) fn synced(
    page: &mut Page<'_>,
    synced: &BTreeMap<Source, Time>,
    parts: &BTreeMap<ClusterId, String>,
) -> std::fmt::Result {
    let mut oldest = BTreeMap::<&str, u64>::new();
    for (source, at) in synced {
        let Some(cluster) = parts.get(&source.cluster) else { continue };
        let oldest = oldest.entry(cluster).or_insert(u64::MAX);
        *oldest = at.0.min(*oldest);
    }
    let oldest = oldest.into_iter().map(|(cluster, at)| (of_cluster(cluster), at / 1_000));
    let help = "When all that each source of a linked cluster had said was last stored, in seconds since 1970";
    page.gauges("link_synced_timestamp_seconds", help, oldest)
}

fn of_cluster(cluster: &str) -> Labels {
    labels([("cluster", cluster)])
}

/// Is it one of the local cluster's?
pub(super) fn is_local(source: &Source) -> bool {
    source.cluster == ClusterId::LOCAL
}
