//! A load is what it says to be, to the API server and to ours: tests of large clusters stand on it.

use anyhow::{Result, ensure};
use harness::apiserver::{INJECTED_BYTES, Load, User};
use model::Kind;

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn a_load_is_served_and_goes_again_by_its_name() -> Result<()> {
    let mut rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    rig.start(User::Admin).await?;
    let shops = Load { name: "shop", services: 2, pods: 300, first: 1_000, ..Load::default() };
    let junk = Load { name: "junk", phase: "Failed", pods: 100, ..Load::default() };
    let junk = Load { first: 2_000, bytes: INJECTED_BYTES, per_second: Some(1_000), ..junk };
    rig.api.load(shops).await?;
    rig.api.load(junk).await?;
    // With those of the rig: two pods, a Service, and its slice.
    ensure!(counts(&rig).await? == [402, 3 + 1, 5], "{:?}", counts(&rig).await?);
    rig.equal().await?;
    let web = rig.open().await?;
    web.until_pods(&[1, 2]).await?;

    rig.api.unload(junk).await?;
    ensure!(counts(&rig).await? == [302, 3 + 1, 5], "{:?}", counts(&rig).await?);
    rig.equal().await?;
    rig.api.unload(shops).await?;
    ensure!(counts(&rig).await? == [2, 1 + 1, 1], "{:?}", counts(&rig).await?);
    rig.equal().await?;
    rig.stop().await
}

/// Pods, Services with the API server's own, and slices.
async fn counts(rig: &Rig) -> Result<[usize; 3]> {
    let mut counts = [0; 3];
    for (count, kind) in counts.iter_mut().zip([Kind::Pod, Kind::Service, Kind::EndpointSlice]) {
        *count = rig.objects.list(kind).await?.len();
    }
    Ok(counts)
}
