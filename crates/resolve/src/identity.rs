//! The TLS identity of an endpoint: whom its proxy proves to be.

use model::{MeshTls, Metadata};

use crate::Settings;

/// A TLS identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'c> {
    /// A pod's: a name in the form of a DNS name, which is also what to ask for in the handshake.
    ServiceAccount(ServiceAccount<'c>),
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

/// A ServiceAccount that a control plane vouches for. There are many addresses, so its name is made where it is
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceAccount<'c> {
    /// Its name.
    pub name: &'c str,
    /// Its namespace.
    pub namespace: &'c str,
    /// The namespace of the control plane.
    pub control_plane: &'c str,
    /// The trust domain.
    pub trust_domain: &'c str,
}

impl<'c> ServiceAccount<'c> {
    /// What its name consists of, in order.
    pub fn parts(&self) -> [&'c str; 7] {
        let ServiceAccount { name, namespace, control_plane, trust_domain } = *self;
        [name, ".", namespace, ".serviceaccount.identity.", control_plane, ".", trust_domain]
    }
}

/// The identity of a pod that this control plane has meshed.
pub(crate) fn of_pod<'c>(settings: &'c Settings, pod: &'c Metadata) -> Option<Identity<'c>> {
    let control_plane = pod.control_plane_ns.as_deref()?;
    if settings.trust_domain.is_empty() || control_plane != settings.controller_namespace {
        return None;
    }
    Some(Identity::ServiceAccount(ServiceAccount {
        name: &pod.service_account,
        namespace: &pod.namespace,
        control_plane,
        trust_domain: &settings.trust_domain,
    }))
}

/// The identity of an ExternalWorkload, which always has one, be it empty.
pub(crate) fn of_external(workload: &Metadata) -> Identity<'_> {
    let (uri, server_name) = match &workload.mesh_tls {
        Some(MeshTls { identity, server_name }) => (identity.as_str(), server_name.as_str()),
        None => Default::default(),
    };
    Identity::Uri { uri, server_name }
}
