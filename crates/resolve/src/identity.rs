//! The TLS identity of an endpoint: whom its proxy proves to be.

use model::{MeshTls, Metadata};

use crate::Settings;

/// A TLS identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity<'c> {
    /// A name in the form of a DNS name, which is also what to ask for in the handshake.
    Dns(String),
    /// As such a name. What to ask for in the handshake is the client's to choose: it is the Service behind.
    Gateway(&'c str),
    /// A SPIFFE URI.
    Uri {
        /// The URI.
        uri: &'c str,
        /// What to ask for in the handshake.
        server_name: &'c str,
    },
}

/// The identity of a pod that this control plane has meshed.
pub(crate) fn of_pod(settings: &Settings, pod: &Metadata) -> Option<Identity<'static>> {
    let control_plane = pod.control_plane_ns.as_deref()?;
    if settings.trust_domain.is_empty() || control_plane != settings.controller_namespace {
        return None;
    }
    Some(Identity::Dns(format!(
        "{}.{}.serviceaccount.identity.{control_plane}.{}",
        pod.service_account, pod.namespace, settings.trust_domain
    )))
}

/// The identity of an ExternalWorkload, which always has one, be it empty.
pub(crate) fn of_external(workload: &Metadata) -> Identity<'_> {
    let (uri, server_name) = match &workload.mesh_tls {
        Some(MeshTls { identity, server_name }) => (identity.as_str(), server_name.as_str()),
        None => Default::default(),
    };
    Identity::Uri { uri, server_name }
}
