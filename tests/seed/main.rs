//! What the project began with (linkerd2 issue 12608): one cluster is flooded with junk pods, and the destination services
//! of that cluster and of all that are linked to it run out of memory. Here the real program, in the memory of a
//! container of the original, is linked to such a cluster, and serves on. `SPILLWAY_LONG=1` is the full size.

mod report;
mod world;

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::FutureExt as _;
use harness::apiserver::{INJECTED_BYTES, Load};
use harness::pulse::{self, Pulse, Times};

use report::Report;
use world::World;

/// How large it all is.
struct Size {
    /// Pods of the far cluster, in 50 Services, of which one is mirrored.
    far: usize,
    /// Pods that fail there.
    failed: usize,
    /// Pods that run there, and belong to nobody.
    running: usize,
    /// Of the flood in a second.
    per_second: usize,
    /// How long it is quiet before.
    quiet: Duration,
}

const SHORT: Size = Size {
    far: 5_000,
    failed: 2_000,
    running: 5_000,
    per_second: 700,
    quiet: Duration::from_secs(6),
};

const LONG: Size = Size {
    far: 50_000,
    failed: 20_000,
    running: 50_000,
    per_second: 500,
    quiet: Duration::from_secs(60),
};

/// Each local Service changes once in this time, and the mirrored one.
const LOCAL_EVERY: Duration = Duration::from_secs(2);
const FAR_EVERY: Duration = Duration::from_secs(1);

impl Size {
    fn of_far(&self) -> Load<'static> {
        let far = Load { services: 50, pods: self.far, bytes: INJECTED_BYTES, ..Load::default() };
        Load { namespace: "shop", name: "shop", ..far }
    }

    /// Both floods are in the namespace of the mirrored Service: of others nothing would even be asked.
    fn floods(&self) -> [Load<'static>; 2] {
        let junk =
            Load { bytes: INJECTED_BYTES, per_second: Some(self.per_second), ..Load::default() };
        // Addresses of pods that failed are given to others: here to those that are served.
        let failed = Load { name: "failed", phase: "Failed", pods: self.failed, ..junk };
        [failed, Load { name: "junk", pods: self.running, first: self.far, ..junk }]
    }
}

/// Local Services that change, and the mirrored one.
struct Pulses {
    local: Vec<Pulse>,
    far: Vec<Pulse>,
}

impl Pulses {
    /// Lets all of them change while something is done; gives the times of both.
    async fn during(&mut self, work: impl Future<Output = Result<()>>) -> Result<[Times; 2]> {
        let far = pulse::during(&mut self.far, FAR_EVERY, work);
        let (((), far), local) = pulse::during(&mut self.local, LOCAL_EVERY, far).await?;
        Ok([local, far])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_junk_in_a_linked_cluster_is_nothing_to_anybody_else() -> Result<()> {
    let size = if is_long() { LONG } else { SHORT };
    let mut world = World::start(size.of_far()).await?;
    let mut report = Report::new(&world);
    let mut pulses = Pulses { local: world.local().await?, far: vec![world.mirrored().await?] };
    let pods = world.metric("spillway_objects{kind=\"Pod\"}").await?;
    report.count("pods at home and in the linked cluster", pods);
    report.count("streams", world.metric("spillway_streams").await?);
    let quiet = pulses.during(tokio::time::sleep(size.quiet).map(Ok)).await?;
    report.state("before the flood", &world).await?;

    let flood = async {
        for flood in size.floods() {
            world.far.load(flood).await?;
        }
        world.until_pods(pods + (size.failed + size.running) as u64).await
    };
    let flooded = pulses.during(flood).await?;
    report.count("junk pods that appeared", (size.failed + size.running) as u64);
    report.state("after the flood", &world).await?;
    let largest = world.metric(world::FILE).await?;

    let ebb = async {
        for flood in size.floods() {
            world.far.unload(flood).await?;
        }
        world.until_pods(pods).await
    };
    let ebbed = pulses.during(ebb).await?;
    if is_long() {
        world.until_compact().await?;
    }
    report.state("after it is deleted", &world).await?;
    for pulse in pulses.local.iter_mut().chain(&mut pulses.far) {
        pulse.rest().await?;
    }

    let phases = [("quiet", &quiet), ("flood", &flooded), ("deletion", &ebbed)];
    for (phase, [local, far]) in phases {
        report.times(&format!("local change to stream, {phase}"), local);
        report.times(&format!("far change to stream, {phase}"), far);
    }
    report.end(&world)?;
    world.unharmed().await?;
    let [quiet, flooded] = [&quiet, &flooded].map(|[local, _]| local.percentile(99));
    if is_long() {
        ensure!(
            flooded <= quiet * 2,
            "local changes took {flooded:?} in the flood, {quiet:?} before"
        );
        let file = world.metric(world::FILE).await?;
        ensure!(file < largest, "the file was {largest} bytes, and is {file}");
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a test has no args")]
fn is_long() -> bool {
    std::env::var("SPILLWAY_LONG").is_ok_and(|value| value == "1")
}
