//! What a cluster may bring at once, and at all.

use std::time::Duration;

use store::{Admission, Surge};

use super::values;

/// Flood control: `docs/flood.md`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Flood control (0: no limit)")]
pub(super) struct FloodArgs {
    /// Endpoints that a Service may gain in each --surge-window, or as many as it ever had if that is more. More are let in
    /// as time goes; what they had before comes back at once, and nothing that goes is ever held up.
    #[arg(long, value_name = "N", default_value = "10000")]
    surge_endpoints: u64,
    /// See --surge-endpoints.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = values::wait)]
    surge_window: Duration,
    /// Endpoints of a Service. More are refused until others go.
    #[arg(long, value_name = "N", default_value = "100000")]
    quota_service: u64,
    /// Endpoints of all Services of a namespace.
    #[arg(long, value_name = "N", default_value = "2000000")]
    quota_namespace: u64,
    /// Endpoints of all Services of a cluster, linked or this one.
    #[arg(long, value_name = "N", default_value = "20000000")]
    quota_cluster: u64,
    /// What the objects of each linked cluster may take on disk. There, new ones are not stored until there is room again.
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = values::bytes)]
    linked_disk_quota: usize,
}

impl FloodArgs {
    pub(super) fn meaning(&self) -> Admission {
        let limit = |max: u64| (max > 0).then_some(max);
        let window_ms = u64::try_from(self.surge_window.as_millis()).unwrap_or(u64::MAX);
        Admission {
            surge: limit(self.surge_endpoints).map(|targets| Surge { targets, window_ms }),
            service_max: limit(self.quota_service),
            namespace_max: limit(self.quota_namespace),
            cluster_max: limit(self.quota_cluster),
            linked_bytes_max: limit(self.linked_disk_quota as u64),
        }
    }
}
