//! Kinds that the API server doesn't have, and objects that we can't read.

use anyhow::{Result, ensure};
use harness::apiserver::{User, equal};
use harness::shown::{PROFILE, Shown};
use model::EndpointsFrom;
use serde_json::json;

use crate::rig::{Rig, all_opaque, dial, pod, server, slice};

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_comes_later_is_found() -> Result<()> {
    let mut rig = Rig::new(&[]).await?;
    rig.start(User::Admin).await?;
    rig.equal().await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    let web = rig.open().await?;
    web.until_pods(&[1, 2]).await?;
    rig.objects.define(&["Server"]).await?;
    rig.objects.apply(&[server("web", json!(8080))]).await?;
    web.until(all_opaque).await?;
    rig.equal().await?;
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn service_profiles_come_and_go_with_their_kind() -> Result<()> {
    let mut rig = Rig::new(&[]).await?;
    rig.start(User::Admin).await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    let web = dial(rig.running()?.addr()).await?;
    let routes = |held: &Shown| {
        let profile = held.get(&PROFILE)?;
        Some(profile["routes"].as_array().map_or(0, Vec::len))
    };
    web.until(|held| routes(held) == Some(0)).await?;
    let profile = json!({
        "apiVersion": "linkerd.io/v1alpha2", "kind": "ServiceProfile",
        "metadata": {"name": "web.shop.svc.cluster.local", "namespace": "shop"},
        "spec": {"routes": [{"name": "a", "condition": {"pathRegex": "/a"}}]},
    });
    for _ in 0..2 {
        rig.objects.define(&["ServiceProfile"]).await?;
        rig.objects.apply(std::slice::from_ref(&profile)).await?;
        web.until(|held| routes(held) == Some(1)).await?;
        let definition = "CustomResourceDefinition/serviceprofiles.linkerd.io".to_owned();
        rig.objects.delete(&[definition]).await?;
        web.until(|held| routes(held) == Some(0)).await?;
    }
    ensure!(web.stream.is_open());
    rig.equal().await?;
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_object_that_cannot_be_read_stops_nothing() -> Result<()> {
    let mut rig = Rig::new(&["Server"]).await?;
    rig.objects.apply(&[server("bad", json!([8080]))]).await?;
    rig.start(User::Admin).await?;
    let reader = rig.running()?.reader();
    equal(&rig.objects, &reader, EndpointsFrom::Slices, Some("bad")).await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    let web = rig.open().await?;
    web.until(|held| held.len() == 2 && !all_opaque(held)).await?;

    // Both in what is listed and in what is heard later.
    rig.objects.apply(&[server("bad", json!({"n": 1})), server("good", json!(8080))]).await?;
    web.until(all_opaque).await?;
    rig.objects.apply(&[pod("w3", 3), slice("web", &[3])]).await?;
    web.until_pods(&[3]).await?;
    equal(&rig.objects, &reader, EndpointsFrom::Slices, Some("bad")).await?;
    let (_, metrics) = rig.admin("/metrics").await?;
    let line = metrics
        .lines()
        .find(|line| line.starts_with("spillway_decode_failures_total") && line.contains("Server"));
    ensure!(line.is_some_and(|line| !line.ends_with(" 0")), "it is not counted: {line:?}");

    // Once it is mended, it is an object like any other.
    rig.objects.apply(&[server("bad", json!(1))]).await?;
    rig.equal().await?;
    rig.stop().await
}
