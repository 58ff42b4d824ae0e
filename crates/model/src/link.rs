//! Links to other clusters, as Secrets declare them (spec §2.12), and the parts of these that are watched.

use crate::{ClusterId, ObjectName};

/// A link to another cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Label `multicluster.linkerd.io/cluster-name`: how Services name the cluster.
    pub cluster: String,
    /// Annotation `multicluster.linkerd.io/trust-domain`: that of the identities there.
    pub trust_domain: String,
    /// Annotation `multicluster.linkerd.io/cluster-domain`.
    pub cluster_domain: String,
    /// How to reach its API server. It is not stored.
    pub credentials: Credentials,
}

/// The text of a kubeconfig. It is a secret, so it is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials(pub std::sync::Arc<str>);

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// What is watched of a linked cluster as one, and stored under one number: a namespace, or all of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The cluster's name.
    pub cluster: String,
    /// The namespace; empty: all.
    pub namespace: String,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "cluster {}", self.cluster),
            namespace => write!(f, "namespace {namespace} of cluster {}", self.cluster),
        }
    }
}

/// A part that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPart {
    /// Which it is.
    pub part: Part,
    /// The number that its objects have.
    pub id: ClusterId,
    /// Which cluster it is of.
    pub origin: Origin,
}

/// What is known of a linked cluster by who has reached it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// What tells it from others: the uid of its Service `default/kubernetes`. Empty: it is not to be seen.
    pub uid: String,
    /// The trust domain of the identities there.
    pub trust_domain: String,
}

/// A Service of another cluster that a local one stands for, alone or among others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Remote {
    /// The cluster's name.
    pub cluster: String,
    /// The Service there.
    pub service: ObjectName,
}
