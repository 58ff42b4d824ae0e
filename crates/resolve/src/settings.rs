//! What an operator sets, as far as it decides answers.

use model::PortSet;

/// The settings that answers depend on (spec §5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The suffix of Service names after `svc`, usually `cluster.local`.
    pub cluster_domain: String,
    /// The last part of a pod's identity; with an empty one no pod has an identity.
    pub trust_domain: String,
    /// The namespace of the control plane whose pods have an identity here.
    pub controller_namespace: String,
    /// Connections to meshed endpoints go through the proxy's own port, opaque or not.
    pub transport_header: bool,
    /// Meshed pods may be spoken to in HTTP/2.
    pub h2_upgrade: bool,
    /// IPv6 addresses of pods are served, and preferred.
    pub ipv6: bool,
    /// The opaque ports of a workload that does not say.
    pub default_opaque: PortSet,
    /// Endpoints in the client's zone weigh ten times as much.
    pub zone_weights: bool,
    /// Parameters for HTTP/2 to meshed endpoints are configured.
    pub http2: bool,
}
