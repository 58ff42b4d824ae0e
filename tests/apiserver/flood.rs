//! What is not let in, from a real API server to a client.

use anyhow::{Result, ensure};
use harness::apiserver::User;
use serde_json::Value;
use store::Admission;

use crate::links::until_metrics_say;
use crate::rig::{Rig, pod, slice};

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
