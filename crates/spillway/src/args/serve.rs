//! `spillway serve`: what was typed, and what it means.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::{EndpointsFrom, PortSet};
use resolve::Settings;
use serve::{DoorLimits, Oversize};
use spillway::{Budget, Options, RemoteScope, SourceOptions};
use store::Undo;

use super::flood::FloodArgs;
use super::{refuse, values};

/// Arguments of `spillway serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where proxies ask (gRPC); `:PORT` is all interfaces, IPv4 and IPv6.
    #[arg(long, value_name = "ADDR", default_value = ":8086", value_parser = values::listen)]
    addr: SocketAddr,
    /// Where /live, /ready and /metrics are.
    #[arg(long, visible_alias = "metrics-addr", value_name = "ADDR", default_value = ":9996", value_parser = values::listen)]
    admin_addr: SocketAddr,
    /// Where the data is kept. It is a cache: removing it costs a new listing, nothing else.
    #[arg(long, value_name = "DIR", default_value = "spillway-data")]
    data: PathBuf,
    /// How much memory to take [default: 60 % of the cgroup's limit, or 64MiB without one].
    #[arg(long, value_name = "BYTES", value_parser = values::memory)]
    memory: Option<u64>,
    /// How much of the store is held in memory [default: 1/32 of --memory]. The kernel caches the file as
    /// well, so more saves little.
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    cache_bytes: Option<usize>,
    /// When commits reach the disk: `commit`, each before it is visible, or `interval=TIME`, visible at once and
    /// durable together.
    #[arg(long, value_name = "WHEN", default_value = "interval=200ms", value_parser = values::fsync)]
    fsync: values::Fsync,
    /// How large the store's file may become. There, nothing more is learnt until there is room; answers go on.
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    disk_quota: Option<usize>,
    /// How far back the undo log reaches: streams further behind begin anew.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = values::duration)]
    undo_age: Duration,
    /// How large the undo log may be.
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = values::bytes)]
    undo_bytes: usize,
    /// How long streams may take to end once a signal says so: they end one after the other, so that proxies don't all
    /// go elsewhere at once. A second signal ends everything now.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub(crate) drain: Duration,
    #[command(flatten)]
    stream: StreamArgs,
    #[command(flatten)]
    flood: FloodArgs,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    answer: AnswerArgs,
    /// How much is logged, and how.
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What proxies may take.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Streams")]
struct StreamArgs {
    /// Connections that may be open; one more is closed at once [default: 1/8 of --memory, at 24 KiB each, or 20000 where
    /// memory has no limit].
    #[arg(long, value_name = "N", value_parser = values::count)]
    max_connections: Option<usize>,
    /// Streams that may be open; more are refused with ResourceExhausted [default: 1/4 of --memory, at 4 KiB each, or
    /// 100000 where memory has no limit].
    #[arg(long, value_name = "N", value_parser = values::count)]
    max_streams: Option<usize>,
    /// Of these, on one connection.
    #[arg(long, value_name = "N", default_value = "20000", value_parser = values::count)]
    max_streams_per_connection: usize,
    /// A stream whose client takes nothing for so long is ended.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = values::wait)]
    stream_stall: Duration,
    /// What to do with a Service that doesn't fit into a message of 4 MiB: give each proxy a part of it, the same for as
    /// long as it can be, or tell it all, in several messages.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = OversizeBy::Subset)]
    oversize: OversizeBy,
    /// How many endpoints a proxy gets of a Service at most; more are told in parts [default: what a message holds].
    #[arg(long, value_name = "N", value_parser = values::count)]
    max_endpoints_per_stream: Option<usize>,
    /// How long changes of a Service wait for each other at most, when they come fast. The first is never delayed.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = values::duration)]
    coalesce_max: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OversizeBy {
    /// A proxy gets a part. Who doesn't say which pod it is gets all, in several messages.
    Subset,
    /// All, in several messages. A proxy that comes back drops its connections to what isn't in the first.
    Chunk,
}

/// Where the cluster's objects come from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Source (default: Kubernetes, in-cluster or ~/.kube/config)")]
struct SourceArgs {
    /// The kubeconfig of the cluster.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["manifests", "synthetic"])]
    kubeconfig: Option<PathBuf>,
    /// The context within the kubeconfig [default: its current one].
    #[arg(long, value_name = "NAME", conflicts_with_all = ["manifests", "synthetic"])]
    context: Option<String>,
    /// A folder of YAML and JSON manifests instead of a cluster; edits are seen.
    #[arg(long, value_name = "DIR", conflicts_with = "synthetic")]
    manifests: Option<PathBuf>,
    /// What is watched of linked clusters: the namespaces of Services that local ones stand for, or all.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = RemoteScopeArg::Mirrored)]
    pub(crate) remote_scope: RemoteScopeArg,
    /// A made-up cluster instead, such as `services=20,endpoints=50,big=250x1000,churn=10` (docs/synthetic.md).
    #[arg(long, value_name = "SPEC")]
    synthetic: Option<String>,
}

/// What is watched of linked clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RemoteScopeArg {
    /// Namespaces that hold a Service which is mirrored or federated here.
    Mirrored,
    /// All namespaces.
    All,
}

/// What an answer depends on besides the cluster: the settings of Linkerd's own destination service.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Answers (as Linkerd's destination service)")]
struct AnswerArgs {
    /// The DNS domain of the cluster.
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local", value_parser = values::domain)]
    cluster_domain: String,
    /// The trust domain of identities.
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local", value_parser = values::domain)]
    identity_trust_domain: String,
    /// The namespace of Linkerd's control plane.
    #[arg(long, value_name = "NAMESPACE", default_value = "linkerd")]
    controller_namespace: String,
    /// How meshed connections are carried.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = TransportMode::Transparent)]
    outbound_transport_mode: TransportMode,
    /// Hint to proxies that meshed pods speak HTTP/2.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    enable_h2_upgrade: bool,
    /// Learn endpoints from EndpointSlices; if not, from Endpoints, which know no zones, hints, IPv6 preference or
    /// ExternalWorkloads.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    enable_endpoint_slices: bool,
    /// Answer with IPv6 addresses, and prefer them.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    enable_ipv6: bool,
    /// Ports that are opaque unless a pod or Service says otherwise, such as 25,587,3306,5432.
    #[arg(long, value_name = "PORTS", default_value = "", value_parser = values::ports, hide_default_value = true)]
    default_opaque_ports: PortSet,
    /// Weigh endpoints of the client's zone ten times.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    ext_endpoint_zone_weights: bool,
    /// Tell who asks for a Service without endpoints that it has none; Linkerd's own service says nothing.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    send_no_endpoints: bool,
    /// HTTP/2 parameters for meshed endpoints, as JSON.
    #[arg(long, value_name = "JSON", default_value = "", hide_default_value = true)]
    meshed_http2_client_params: String,
}

/// How much is logged, and how.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logs (standard error)")]
pub(crate) struct LogArgs {
    /// How much.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// In which form.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Plain)]
    pub(crate) log_format: LogFormat,
}

/// Linkerd's levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogLevel {
    #[value(alias = "panic", alias = "fatal")]
    Error,
    #[value(alias = "warning")]
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Plain,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum TransportMode {
    /// To the port that the application listens on.
    Transparent,
    /// To the proxy's own port, with a header.
    TransportHeader,
}

impl ServeArgs {
    /// What was meant.
    pub(crate) fn meaning(self) -> Result<Options, clap::Error> {
        let remote_scope = match self.source.remote_scope {
            RemoteScopeArg::Mirrored => RemoteScope::Mirrored,
            RemoteScopeArg::All => RemoteScope::All,
        };
        let source = self.source.meaning()?;
        let http2_params = http2_params(&self.answer.meshed_http2_client_params)?;
        let endpoints = self.answer.endpoints(&source)?;
        let no_endpoints = self.answer.send_no_endpoints;
        let mut memory = self.memory.map_or_else(Budget::of_cgroup, Budget::of);
        memory.cache_bytes = self.cache_bytes.unwrap_or(memory.cache_bytes);
        memory.streams_max = self.stream.max_streams.unwrap_or(memory.streams_max);
        memory.connections_max = self.stream.max_connections.unwrap_or(memory.connections_max);
        Ok(Options {
            addr: self.addr,
            admission: self.flood.meaning(),
            admin_addr: Some(self.admin_addr),
            memory,
            door: DoorLimits {
                connections_max: memory.connections_max,
                streams_max: memory.streams_max,
                streams_per_connection_max: self.stream.max_streams_per_connection,
                stall: self.stream.stream_stall,
            },
            oversize: Oversize {
                subset: self.stream.oversize == OversizeBy::Subset,
                endpoints_max: self.stream.max_endpoints_per_stream,
            },
            coalesce_max: self.stream.coalesce_max,
            fsync_interval: self.fsync.interval,
            disk_quota_bytes: self.disk_quota.map(|bytes| bytes as u64),
            undo: Undo {
                bytes_max: self.undo_bytes as u64,
                age_max: u64::try_from(self.undo_age.as_millis()).unwrap_or(u64::MAX),
            },
            settings: self.answer.settings(http2_params.is_some()),
            http2_params,
            remote_scope,
            endpoints,
            no_endpoints,
            ..Options::new(self.data, source)
        })
    }
}

impl SourceArgs {
    fn meaning(self) -> Result<SourceOptions, clap::Error> {
        Ok(match (self.manifests, self.synthetic) {
            (Some(folder), _) => SourceOptions::Manifests(folder),
            (None, Some(spec)) => {
                let wrong = |error| refuse(format!("--synthetic {spec:?}: {error}"));
                SourceOptions::Synthetic(spec.parse().map_err(wrong)?)
            }
            (None, None) => {
                SourceOptions::Kubernetes { kubeconfig: self.kubeconfig, context: self.context }
            }
        })
    }
}

/// Parameters for HTTP/2, as JSON; empty: none.
pub(super) fn http2_params(json: &str) -> Result<Option<serve::Http2ClientParams>, clap::Error> {
    let wrong = |error| refuse(format!("--meshed-http2-client-params {json:?}: {error}"));
    (!json.is_empty()).then(|| serve::parse_http2_params(json).map_err(wrong)).transpose()
}

impl AnswerArgs {
    fn endpoints(&self, source: &SourceOptions) -> Result<EndpointsFrom, clap::Error> {
        if self.enable_endpoint_slices {
            return Ok(EndpointsFrom::Slices);
        }
        if self.enable_ipv6 {
            return Err(refuse("--enable-endpoint-slices=false needs --enable-ipv6=false"));
        }
        if let SourceOptions::Synthetic(_) = source {
            return Err(refuse("--synthetic makes EndpointSlices, and no Endpoints"));
        }
        Ok(EndpointsFrom::Endpoints)
    }

    fn settings(self, http2: bool) -> Settings {
        Settings {
            cluster_domain: self.cluster_domain,
            trust_domain: self.identity_trust_domain,
            controller_namespace: self.controller_namespace,
            transport_header: self.outbound_transport_mode == TransportMode::TransportHeader,
            h2_upgrade: self.enable_h2_upgrade,
            ipv6: self.enable_ipv6,
            default_opaque: self.default_opaque_ports,
            zone_weights: self.ext_endpoint_zone_weights,
            http2,
        }
    }
}
