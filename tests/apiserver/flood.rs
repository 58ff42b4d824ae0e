//! What is not let in, from a real API server to a client.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use harness::apiserver::{Load, User};
use model::{Kind, Source};
use serde_json::Value;
use store::Admission;

use crate::links::{Far, MIRROR, mirror, objects, open, parts, until_metrics_say};
use crate::rig::{PATIENCE, Rig, pod, slice};

fn pods(numbers: std::ops::RangeInclusive<u8>) -> Vec<Value> {
    numbers.map(|number| pod(&format!("w{number}"), number)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_its_quota_a_service_keeps_who_is_in_and_fills_the_room_that_they_leave()
-> Result<()> {
    let mut rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    rig.admission = Some(Admission { service_max: Some(2), ..Admission::default() });
    rig.start(User::Admin).await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    let stream = rig.open().await?;
    stream.until_pods(&[1, 2]).await?;
    rig.objects.apply(&pods(3..=4)).await?;
    rig.objects.apply(&[slice("web", &[1, 2, 3, 4])]).await?;
    until_metrics_say(&rig, "spillway_targets_waiting{cluster=\"local\"} 2").await?;
    until_metrics_say(&rig, "spillway_targets_held_total{limit=\"service\"} 2").await?;
    let path = "/explain?authority=web.shop.svc.cluster.local:80&address=10.1.0.4";
    let (_, why) = rig.admin(path).await?;
    ensure!(why.contains("it waits to be let in") && why.contains("docs/flood.md"), "{why}");
    ensure!(stream.stream.seen().held().len() == 2, "{:?}", stream.stream.seen());
    // Nothing is told of the Service from now on but that one of those who are in has gone.
    let listings = rig.api.listings("pods")?;
    rig.objects.apply(&[slice("web", &[2, 3, 4])]).await?;
    stream.until_pods(&[2, 3]).await?;
    rig.objects.apply(&[slice("web", &[2])]).await?;
    stream.until_pods(&[2]).await?;
    until_metrics_say(&rig, "spillway_targets_waiting{cluster=\"local\"} 0").await?;
    ensure!(rig.api.listings("pods")? == listings, "it was listed for that");
    rig.stop().await
}

/// A number from the page of metrics.
async fn metric(rig: &Rig, name: &str) -> Result<u64> {
    let (_, page) = rig.admin("/metrics").await?;
    let mut lines = page.lines().filter_map(|line| line.strip_prefix(name));
    Ok(lines.next().with_context(|| format!("no {name} in {page}"))?.trim().parse()?)
}

const BYTES: &str = "spillway_link_bytes{cluster=\"far\"}";
const REFUSED: &str = "spillway_link_objects_refused{cluster=\"far\"}";

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_cluster_that_takes_too_much_of_the_disk_is_cut_short_and_later_made_whole()
-> Result<()> {
    const MAX: u64 = 8_000;
    let far = Far::start(&[3]).await?;
    let mut rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    rig.admission = Some(Admission { linked_bytes_max: Some(MAX), ..Admission::default() });
    rig.objects.apply(&[mirror("shop"), far.secret(User::Admin)]).await?;
    rig.start(User::Admin).await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    let stream = open(&rig, MIRROR).await?;
    stream.until_pods(&[3]).await?;
    let junk = Load { name: "junk", pods: 300, ..Load::default() };
    far.api.load(junk).await?;
    let pods = Source { cluster: parts(&rig)?[0].id, kind: Kind::Pod };
    // It is known that something is missing, and nothing more comes in.
    until_metrics_say(&rig, &format!("{BYTES} 7")).await?;
    let cut_short = async {
        let mut seen = 0;
        while metric(&rig, REFUSED).await? == 0 || seen != objects(&rig, pods)? {
            seen = objects(&rig, pods)?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        anyhow::Ok(seen)
    };
    let stored = tokio::time::timeout(PATIENCE / 4, cut_short).await.context("no limit")??;
    ensure!((1..300).contains(&stored), "{stored} of 301 are stored");
    ensure!(metric(&rig, BYTES).await? <= MAX);
    // What is there is kept current; the slice is replaced, the new pod is not stored.
    far.has(&[3, 4]).await?;
    far.objects.apply(&[slice("web", &[4])]).await?;
    stream.until(|held| held.is_empty()).await?;
    far.api.unload(junk).await?;
    stream.until_pods(&[4]).await?;
    until_metrics_say(&rig, &format!("{REFUSED} 0")).await?;
    rig.stop().await
}
