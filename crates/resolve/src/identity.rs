//! The TLS identity of an endpoint: whom its proxy proves to be.

use model::{MeshTls, Metadata};

use crate::Settings;

/// A TLS identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A name in the form of a DNS name.
    Dns {
        /// The name.
        name: String,
        /// What to ask for in the handshake.
        server_name: Option<String>,
    },
    /// A SPIFFE URI.
    Uri {
        /// The URI.
        uri: String,
        /// What to ask for in the handshake.
        server_name: String,
    },
}

/// The identity of a pod that this control plane has meshed.
pub(crate) fn of_pod(settings: &Settings, pod: &Metadata) -> Option<Identity> {
    let control_plane = pod.control_plane_ns.as_deref()?;
    if settings.trust_domain.is_empty() || control_plane != settings.controller_namespace {
        return None;
    }
    let name = format!(
        "{}.{}.serviceaccount.identity.{control_plane}.{}",
        pod.service_account, pod.namespace, settings.trust_domain
    );
    Some(Identity::Dns { server_name: Some(name.clone()), name })
}

/// The identity of an ExternalWorkload, which always has one, be it empty.
pub(crate) fn of_external(workload: &Metadata) -> Identity {
    let (uri, server_name) = match &workload.mesh_tls {
        Some(MeshTls { identity, server_name }) => (identity.clone(), server_name.clone()),
        None => Default::default(),
    };
    Identity::Uri { uri, server_name }
}

/// The identity of a gateway. The server name is the client's to choose: it is that of the Service behind.
pub(crate) fn of_gateway(name: &str) -> Identity {
    Identity::Dns { name: name.to_owned(), server_name: None }
}
