//! A cluster that is made up: any size, the same for the same seed, never in memory.
//!
//! Each object is a function of its number, so that ten million endpoints cost nothing to describe. A [`Cluster`]
//! can be listed, changed and flooded; [`run`] does all three as its [`Spec`] says.

mod churn;
mod cluster;
mod spec;

#[cfg(test)]
mod tests;

use std::time::Duration;

use model::ResourceVersion;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

pub use churn::Churn;
pub use cluster::Cluster;
pub use spec::{Spec, SpecError};

use crate::Delivery;

/// Lists the cluster, floods it if that is asked for, then changes it at its rate, until nobody listens. `resume`
/// is the version that was committed last for every kind, if it is one: a cluster that does not change goes on
/// from there without being listed again, as a watch would. One that changes begins anew.
pub async fn run(spec: Spec, resume: Option<ResourceVersion>, to: mpsc::Sender<Delivery>) {
    let cluster = Cluster::new(spec.clone());
    let quiet = spec.churn == 0 && spec.flood == 0;
    if quiet && resume.is_some_and(|version| version.order() == cluster.version()) {
        return to.closed().await;
    }
    for delivery in cluster.listing().chain(cluster.junk(spec.flood)) {
        if to.send(delivery).await.is_err() {
            return;
        }
    }
    if spec.churn == 0 || cluster.endpoints() == 0 {
        // Nothing more will ever be said; the sender stays, as that of a quiet watch does.
        return to.closed().await;
    }
    // A timer is no finer than a millisecond, so fast changes come several at a time.
    let at_once = spec.churn.div_ceil(TICKS_PER_S_MAX);
    let pause = Duration::from_secs(1) * at_once / spec.churn;
    let mut ticks = tokio::time::interval_at(Instant::now() + pause, pause);
    // After a stall the rate goes on; what was missed is not made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut churn = Churn::new(cluster);
    loop {
        ticks.tick().await;
        for delivery in churn.by_ref().take(at_once as usize) {
            if to.send(delivery).await.is_err() {
                return;
            }
        }
    }
}

/// Times a second that changes are sent.
const TICKS_PER_S_MAX: u32 = 100;
