//! The labels and annotations that mean something (spec §4.5), each named once.

use serde::Deserialize;

use super::nullable;

/// On a Node: the zone that it is in.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// On an EndpointSlice: the Service that it belongs to.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// On an EndpointSlice: the cluster that a gateway mirror leads to.
pub(super) const MIRROR_CLUSTER: &str = "mirror.linkerd.io/cluster-name";

/// On a Service: the cluster of a mirrored Service. The annotation of the same name lists the members of a
/// federated one.
pub(super) const REMOTE_DISCOVERY: &str = "multicluster.linkerd.io/remote-discovery";

/// On a Service: the name of a mirrored Service in its cluster.
pub(super) const REMOTE_SERVICE: &str = "multicluster.linkerd.io/remote-service";

/// On a Secret: the cluster that it leads to.
pub(super) const CLUSTER_NAME: &str = "multicluster.linkerd.io/cluster-name";

/// The annotations that are read. A struct and no map, so that the others are skipped without being copied:
/// `last-applied-configuration` alone can be 256 KiB.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Annotations {
    /// Pod, ExternalWorkload, Service: opaque ports.
    #[serde(rename = "config.linkerd.io/opaque-ports", deserialize_with = "nullable::present")]
    pub(super) opaque_ports: Option<String>,
    /// Pod: ports that bypass the proxy.
    #[serde(
        rename = "config.linkerd.io/skip-inbound-ports",
        deserialize_with = "nullable::present"
    )]
    pub(super) skip_inbound_ports: Option<String>,
    /// EndpointSlice: the full name of the Service behind a gateway.
    #[serde(
        rename = "mirror.linkerd.io/remote-svc-fq-name",
        deserialize_with = "nullable::present"
    )]
    pub(super) remote_service: Option<String>,
    /// EndpointSlice: whom a gateway must prove to be.
    #[serde(
        rename = "mirror.linkerd.io/remote-gateway-identity",
        deserialize_with = "nullable::present"
    )]
    pub(super) gateway_identity: Option<String>,
    /// Service: the remote members of a federated Service.
    #[serde(
        rename = "multicluster.linkerd.io/remote-discovery",
        deserialize_with = "nullable::present"
    )]
    pub(super) remote_discovery: Option<String>,
    /// Service: the local member of a federated Service.
    #[serde(
        rename = "multicluster.linkerd.io/local-discovery",
        deserialize_with = "nullable::present"
    )]
    pub(super) local_discovery: Option<String>,
    /// Secret: the trust domain of the linked cluster.
    #[serde(
        rename = "multicluster.linkerd.io/trust-domain",
        deserialize_with = "nullable::present"
    )]
    pub(super) trust_domain: Option<String>,
    /// Secret: the domain of the linked cluster's Services.
    #[serde(
        rename = "multicluster.linkerd.io/cluster-domain",
        deserialize_with = "nullable::present"
    )]
    pub(super) cluster_domain: Option<String>,
}
