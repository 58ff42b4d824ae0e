//! What a server is told at its start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{EndpointsFrom, PortSet};
use resolve::Settings;
use serve::{DoorLimits, Oversize};
use store::{Admission, Surge, Undo, Volume};

use crate::Budget;

/// The undo log's size and age: a stream may be this far behind before it has to begin anew.
const UNDO: Undo = Undo { bytes_max: 256 << 20, age_max: 60 * 60 * 1_000 };

/// How long commits wait to be made durable together. A crash takes back that much, and the watches say it again.
const FSYNC_INTERVAL: Duration = Duration::from_millis(200);

/// Streams of one connection; and how long a client may take nothing of one, which is as long as a proxy waits on a stream
/// that is silent.
const STREAMS_PER_CONNECTION_MAX: usize = 20_000;
const STREAM_STALL: Duration = Duration::from_secs(5 * 60);

/// Beyond this, a change is late for those who wait for it.
const COALESCE_MAX: Duration = Duration::from_millis(500);

/// What no cluster meets that is as it should be: Kubernetes itself is made for 150,000 pods, and for some hundred new ones
/// in a second (docs/flood.md).
const ADMISSION: Admission = Admission {
    surge: Some(Surge { targets: 10_000, window_ms: 60_000 }),
    service_max: Some(100_000),
    namespace_max: Some(2_000_000),
    cluster_max: Some(20_000_000),
    linked_bytes_max: Some(512 << 20),
};

/// Proxies open a stream anew on which nothing came for 5 minutes (spec/proxy.md).
const KEEP_ALIVE: Duration = Duration::from_secs(4 * 60);

/// How a server runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the store.
    pub data: PathBuf,
    /// Where the store's files are instead, for tests of what a disk can do.
    pub volume: Option<Arc<dyn Volume>>,
    /// Where proxies ask. `[::]` is all interfaces, those of IPv4 too.
    pub addr: SocketAddr,
    /// Where health and metrics are, if anywhere.
    pub admin_addr: Option<SocketAddr>,
    /// What answers depend on besides the cluster.
    pub settings: Settings,
    /// HTTP/2 parameters for meshed endpoints; they decide `settings.http2`.
    pub http2_params: Option<serve::Http2ClientParams>,
    /// Say that there is no endpoint to who asks when there is none; the original says nothing.
    pub no_endpoints: bool,
    /// Where the cluster's objects come from.
    pub source: SourceOptions,
    /// What is watched of linked clusters.
    pub remote_scope: RemoteScope,
    /// What of it all is let in.
    pub admission: Admission,
    /// Which of them say where endpoints are.
    pub endpoints: EndpointsFrom,
    /// The memory that it may take.
    pub memory: Budget,
    /// How much of the past the undo log keeps.
    pub undo: Undo,
    /// What proxies may take of it.
    pub door: DoorLimits,
    /// What to do with a Service that is too large for a message, or a proxy.
    pub oversize: Oversize,
    /// How long changes of a Service wait for each other at most, when they come fast.
    pub coalesce_max: Duration,
    /// About how often a stream that has nothing to say shows that it is alive.
    pub keep_alive: Duration,
    /// How long commits may wait until they are durable together; `None`: each is durable before it is visible.
    pub fsync_interval: Option<Duration>,
    /// How large the store's file may become; there, nothing more is written, and answers go on.
    pub disk_quota_bytes: Option<u64>,
}

/// What is watched of a linked cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteScope {
    /// The namespaces of Services that local ones stand for.
    #[default]
    Mirrored,
    /// All namespaces.
    All,
}

/// Where a cluster's objects come from.
#[derive(Clone, Debug)]
pub enum SourceOptions {
    /// A Kubernetes API server.
    Kubernetes {
        /// The kubeconfig; else in-cluster, else `~/.kube/config`.
        kubeconfig: Option<PathBuf>,
        /// The context in it; else its current one.
        context: Option<String>,
    },
    /// A folder of manifests.
    Manifests(PathBuf),
    /// A made-up cluster.
    Synthetic(ingest::synthetic::Spec),
    /// Whoever started the server sends the deliveries.
    Fed,
}

impl Options {
    /// A server on a free port of the loopback interface, without an admin address, with Linkerd's settings.
    pub fn new(data: PathBuf, source: SourceOptions) -> Options {
        let memory = Budget::of_cgroup();
        let door = DoorLimits {
            connections_max: memory.connections_max,
            streams_max: memory.streams_max,
            streams_per_connection_max: STREAMS_PER_CONNECTION_MAX,
            stall: STREAM_STALL,
        };
        Options {
            data,
            volume: None,
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            admin_addr: None,
            settings: settings(),
            http2_params: None,
            no_endpoints: true,
            source,
            remote_scope: RemoteScope::default(),
            admission: ADMISSION,
            endpoints: EndpointsFrom::default(),
            memory,
            undo: UNDO,
            door,
            oversize: Oversize { subset: true, endpoints_max: None },
            coalesce_max: COALESCE_MAX,
            keep_alive: KEEP_ALIVE,
            fsync_interval: Some(FSYNC_INTERVAL),
            disk_quota_bytes: None,
        }
    }
}

fn settings() -> Settings {
    Settings {
        cluster_domain: "cluster.local".to_owned(),
        trust_domain: "cluster.local".to_owned(),
        controller_namespace: "linkerd".to_owned(),
        transport_header: false,
        h2_upgrade: true,
        ipv6: true,
        default_opaque: PortSet::default(),
        zone_weights: false,
        http2: false,
    }
}
