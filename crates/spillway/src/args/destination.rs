//! `spillway destination`: the command line of Linkerd's own destination service (spec §5.2), so that its container's
//! arguments do as they are. What has no meaning here is taken and said to have none.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ArgAction::Set;
use model::{EndpointsFrom, PortSet};
use resolve::Settings;
use spillway::{Options, SourceOptions};

use super::serve::LogArgs;
use super::{go, refuse, values};

/// What stands for an empty domain.
const DOMAIN: &str = "cluster.local";

/// Arguments of `spillway destination`, in Go's style.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true, disable_version_flag = true)]
pub(crate) struct DestinationArgs {
    /// Where proxies ask (gRPC).
    #[arg(long, value_name = "ADDR", default_value = ":8086", value_parser = values::listen)]
    addr: SocketAddr,
    /// Where /live, /ready, /ping and /metrics are.
    #[arg(long, value_name = "ADDR", default_value = ":9996", value_parser = values::listen)]
    metrics_addr: SocketAddr,
    /// The kubeconfig; empty: in-cluster, or ~/.kube/config.
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    kubeconfig: String,
    /// The namespace of Linkerd's control plane.
    #[arg(long, value_name = "NAMESPACE", default_value = "linkerd")]
    controller_namespace: String,
    /// How meshed connections are carried: `transparent` or `transport-header`.
    #[arg(long, value_name = "MODE", default_value = "transparent")]
    outbound_transport_mode: String,
    /// Hint to proxies that meshed pods speak HTTP/2.
    #[arg(long, value_name = "BOOL", default_value = "true", action = Set, value_parser = go::boolean)]
    enable_h2_upgrade: bool,
    /// Learn endpoints from EndpointSlices, not from Endpoints.
    #[arg(long, value_name = "BOOL", default_value = "true", action = Set, value_parser = go::boolean)]
    enable_endpoint_slices: bool,
    /// Answer with IPv6 addresses, and prefer them.
    #[arg(long, value_name = "BOOL", default_value = "true", action = Set, value_parser = go::boolean)]
    enable_ipv6: bool,
    /// The trust domain of identities.
    #[arg(long, value_name = "DOMAIN", default_value = "", hide_default_value = true)]
    identity_trust_domain: String,
    /// The DNS domain of the cluster.
    #[arg(long, value_name = "DOMAIN", default_value = "", hide_default_value = true)]
    cluster_domain: String,
    /// Ports that are opaque unless a pod or Service says otherwise.
    #[arg(long, value_name = "PORTS", default_value = "", hide_default_value = true)]
    default_opaque_ports: String,
    /// Weigh endpoints of the client's zone ten times.
    #[arg(long, value_name = "BOOL", default_value = "false", action = Set, value_parser = go::boolean)]
    ext_endpoint_zone_weights: bool,
    /// HTTP/2 parameters for meshed endpoints, as JSON.
    #[arg(long, value_name = "JSON", default_value = "", hide_default_value = true)]
    meshed_http2_client_params: String,
    /// Checked, and without meaning: there are no queues.
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(i64).range(1..))]
    stream_queue_capacity: i64,
    /// Without meaning: there are no such queues.
    #[arg(long, value_name = "BOOL", default_value = "true", action = Set, value_parser = go::boolean)]
    export_queue_metrics: bool,
    /// Without meaning.
    #[arg(long, value_name = "BOOL", default_value = "false", action = Set, value_parser = go::boolean)]
    enable_pprof: bool,
    /// Without meaning.
    #[arg(long, value_name = "ADDR", default_value = "", hide_default_value = true)]
    trace_collector: String,
    /// Print the version, and end.
    #[arg(long, value_name = "BOOL", default_value = "false", action = Set, value_parser = go::boolean)]
    pub(crate) version: bool,
    /// Where the data is kept [default: a temporary folder].
    #[arg(long, env = "SPILLWAY_DATA", value_name = "DIR", hide = true)]
    data: Option<PathBuf>,
    /// How much is logged, and how.
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What was meant, and what of it there is to say once there is a log.
pub(crate) struct Meaning {
    /// How the server runs. Its data folder is empty if none was given.
    pub(crate) options: Options,
    /// What was given and counts for nothing, or not as it was given.
    pub(crate) warnings: Vec<String>,
}

impl DestinationArgs {
    /// What was meant.
    pub(crate) fn meaning(self) -> Result<Meaning, clap::Error> {
        if !self.enable_endpoint_slices && self.enable_ipv6 {
            return Err(refuse("-enable-ipv6=true needs -enable-endpoint-slices=true"));
        }
        let mut warnings = self.without_meaning();
        let http2_params = super::serve::http2_params(&self.meshed_http2_client_params)?;
        let source = SourceOptions::Kubernetes {
            kubeconfig: Some(self.kubeconfig).filter(|path| !path.is_empty()).map(PathBuf::from),
            context: None,
        };
        let settings = Settings {
            cluster_domain: domain("cluster-domain", self.cluster_domain, &mut warnings),
            trust_domain: domain(
                "identity-trust-domain",
                self.identity_trust_domain,
                &mut warnings,
            ),
            controller_namespace: self.controller_namespace,
            transport_header: transport_header(&self.outbound_transport_mode, &mut warnings),
            h2_upgrade: self.enable_h2_upgrade,
            ipv6: self.enable_ipv6,
            default_opaque: opaque(&self.default_opaque_ports, &mut warnings),
            zone_weights: self.ext_endpoint_zone_weights,
            http2: http2_params.is_some(),
        };
        let options = Options {
            addr: self.addr,
            admin_addr: Some(self.metrics_addr),
            settings,
            http2_params,
            endpoints: match self.enable_endpoint_slices {
                true => EndpointsFrom::Slices,
                false => EndpointsFrom::Endpoints,
            },
            ..Options::new(self.data.unwrap_or_default(), source)
        };
        Ok(Meaning { options, warnings })
    }

    fn without_meaning(&self) -> Vec<String> {
        let given = [
            ("stream-queue-capacity", self.stream_queue_capacity != 100),
            ("export-queue-metrics", !self.export_queue_metrics),
            ("enable-pprof", self.enable_pprof),
            ("trace-collector", !self.trace_collector.is_empty()),
        ];
        let given = given.into_iter().filter(|(_, given)| *given);
        given.map(|(name, _)| format!("-{name} has no meaning here")).collect()
    }
}

fn domain(name: &str, given: String, warnings: &mut Vec<String>) -> String {
    if !given.is_empty() {
        return given;
    }
    warnings.push(format!("-{name} is empty: it is {DOMAIN}"));
    DOMAIN.to_owned()
}

fn transport_header(mode: &str, warnings: &mut Vec<String>) -> bool {
    if !matches!(mode, "transparent" | "transport-header") {
        warnings.push(format!("-outbound-transport-mode={mode} is unknown: it is transparent"));
    }
    mode == "transport-header"
}

fn opaque(list: &str, warnings: &mut Vec<String>) -> PortSet {
    let (ports, errors) = PortSet::parse(list, |_| None);
    warnings.extend(errors.iter().map(|error| format!("-default-opaque-ports: {error}")));
    ports
}
