//! What happens to connections and API servers.

use anyhow::{Context as _, Result, ensure};
use harness::apiserver::{Cut, User};
use model::{ClusterId, Kind, Source};

use crate::rig::{Rig, pod, service, slice};

async fn live(kinds: &[&str]) -> Result<Rig> {
    let mut rig = Rig::new(kinds).await?;
    rig.start(User::Admin).await?;
    rig.equal().await?;
    Ok(rig)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_restarts() -> Result<()> {
    let mut rig = live(&["Server", "ExternalWorkload"]).await?;
    let web = rig.open().await?;
    web.until_pods(&[1, 2]).await?;
    for (number, name) in [(3, "w3"), (4, "w4")] {
        rig.api.restart().await?;
        rig.objects.apply(&[pod(name, number), slice("web", &[1, number])]).await?;
        web.until_pods(&[1, number]).await?;
        rig.equal().await?;
    }
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_is_compacted_while_we_are_cut_off() -> Result<()> {
    let mut rig = live(&["Server", "ExternalWorkload"]).await?;
    let web = rig.open().await?;
    web.until_pods(&[1, 2]).await?;
    rig.cut();
    // Gone while nobody watches: only a sweep at the end of a new listing can find out.
    rig.objects.delete(&["Pod/shop/w1".to_owned(), "EndpointSlice/shop/web-1".to_owned()]).await?;
    rig.objects.apply(&[pod("w3", 3), service("api"), slice("api", &[2])]).await?;
    let source = Source { cluster: ClusterId::LOCAL, kind: Kind::Pod };
    let version = rig.running()?.reader().snapshot()?.checkpoint(source)?;
    let version = version.context("the pods were listed")?;
    rig.api.compact().await?;
    rig.api.restart().await?;
    ensure!(rig.objects.is_expired(Kind::Pod, &version).await?, "{version:?} is still good");

    rig.mend();
    web.until_pods(&[]).await?;
    rig.equal().await?;
    ensure!(rig.api.listings("pods")? >= 1, "the pods were not listed again");
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_cut_and_go_silent() -> Result<()> {
    let mut rig = live(&["Server", "ExternalWorkload"]).await?;
    let web = rig.open().await?;
    for round in 0..4 {
        let here = if round % 2 == 0 { [1, 3] } else { [1, 2] };
        // Every other time the line is dead before anybody notices.
        rig.line.set(if round < 2 { Cut::Closed } else { Cut::Silent });
        rig.objects.apply(&[pod("w3", 3), slice("web", &here)]).await?;
        rig.cut();
        rig.mend();
        web.until_pods(&here).await?;
        rig.equal().await?;
    }
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_off_in_the_middle_of_a_listing() -> Result<()> {
    let mut rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    let pods: Vec<_> = (0..400_u16).map(|i| pod(&format!("x{i}"), 9)).collect();
    rig.objects.apply(&pods).await?;
    rig.start(User::Admin).await?;
    for _ in 0..20 {
        rig.cut();
        tokio::task::yield_now().await;
        rig.mend();
        tokio::time::sleep(std::time::Duration::from_millis(15)).await;
    }
    rig.objects.delete(&["Pod/shop/x7".to_owned()]).await?;
    rig.equal().await?;
    rig.stop().await
}
