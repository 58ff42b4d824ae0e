//! A Service, reduced to what an answer may depend on (spec §4.3).

use std::net::IpAddr;

use crate::limits::MEMBERS_MAX;
use crate::{ObjectName, PortSet, Remote};

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// `spec.ports`, in their order: the first that matches decides.
    pub ports: Vec<ServicePort>,
    /// `spec.type` is `ExternalName`.
    pub external_name: bool,
    /// `spec.internalTrafficPolicy` is `Local`.
    pub local_traffic: bool,
    /// `spec.clusterIPs`, without `None`.
    pub cluster_ips: Vec<IpAddr>,
    /// Annotation `config.linkerd.io/opaque-ports`, its names resolved; `None` if it has none.
    pub opaque: Option<PortSet>,
    /// Where its endpoints are, if not (only) in its own cluster.
    pub discovery: Discovery,
}

/// One port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// The port's name; empty if it has none.
    pub name: String,
    /// The port that clients ask for.
    pub port: u16,
    /// Its protocol is TCP, the default.
    pub tcp: bool,
}

/// The labels and annotations that send a request to other clusters (spec §2.10, §2.11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Label `multicluster.linkerd.io/remote-discovery`: the cluster of a mirrored Service.
    pub cluster: Option<String>,
    /// Label `multicluster.linkerd.io/remote-service`: its name there.
    pub service: Option<String>,
    /// Annotation `multicluster.linkerd.io/remote-discovery`: the remote members of a federated Service.
    pub members: Option<String>,
    /// Annotation `multicluster.linkerd.io/local-discovery`: its local member.
    pub local_member: Option<String>,
}

/// How a Service's requests are answered (spec §1.6).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// With its own endpoints.
    Own,
    /// With those of a Service of another cluster. `None`: it doesn't say which.
    Mirror(String, Option<String>),
    /// With those of all members.
    Federated,
}

impl Discovery {
    /// Which flow the Service's requests take: annotations count before labels.
    pub fn flow(&self) -> Flow {
        match self {
            Discovery { members: Some(_), .. } | Discovery { local_member: Some(_), .. } => {
                Flow::Federated
            }
            Discovery { cluster: Some(cluster), service, .. } => {
                Flow::Mirror(cluster.clone(), service.clone())
            }
            _ => Flow::Own,
        }
    }

    /// The Services of other clusters whose endpoints a Service of this namespace is answered with, each once, in their
    /// order. An item that is no `service@cluster` is none, and neither is one after the first [`MEMBERS_MAX`].
    pub fn remotes(&self, namespace: &str) -> Vec<Remote> {
        let remote = |service: &str, cluster: &str| {
            let service = ObjectName::new(namespace, service).ok()?;
            Some(Remote { cluster: cluster.to_owned(), service })
        };
        match self.flow() {
            Flow::Own | Flow::Mirror(_, None) => Vec::new(),
            Flow::Mirror(cluster, Some(service)) => {
                remote(&service, &cluster).into_iter().collect()
            }
            Flow::Federated => {
                let mut remotes: Vec<Remote> = Vec::new();
                for item in self.members.iter().flat_map(|items| items.split(',')) {
                    let Some((service, cluster)) = item.split_once('@') else { continue };
                    let Some(remote) = remote(service, cluster) else { continue };
                    if !cluster.contains('@') && !remotes.contains(&remote) {
                        remotes.push(remote);
                    }
                    if remotes.len() == MEMBERS_MAX {
                        break;
                    }
                }
                remotes
            }
        }
    }

    /// The Service of its own cluster that is a member of a federated one of this namespace.
    pub fn local_member(&self, namespace: &str) -> Option<ObjectName> {
        let name = self.local_member.as_deref().filter(|name| !name.is_empty())?;
        ObjectName::new(namespace, name).ok()
    }
}

/// What a requested port means for the EndpointSlices of a Service (spec §2.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKey {
    /// The slice port of this name.
    Named(String),
    /// No port of the Service: this number, on every endpoint.
    Numeric(u16),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remotes(members: &str) -> Vec<String> {
        let discovery = Discovery { members: Some(members.to_owned()), ..Discovery::default() };
        let remotes = discovery.remotes("shop").into_iter();
        remotes.map(|remote| format!("{} of {}", remote.service, remote.cluster)).collect()
    }

    #[test]
    fn items_are_taken_as_they_are_n06_n07() {
        assert_eq!(remotes("pay@red, pay@blue"), ["shop/pay of red", "shop/ pay of blue"]);
        assert_eq!(remotes("pay,a@b@c,,@,pay@red"), ["shop/ of ", "shop/pay of red"]);
        assert_eq!(remotes(""), [""; 0]);
        assert_eq!(remotes("pay@red,pay@blue,pay@red"), ["shop/pay of red", "shop/pay of blue"]);
        let many: Vec<_> = (0..2 * MEMBERS_MAX).map(|n| format!("s{n}@red")).collect();
        assert_eq!(remotes(&many.join(",")).len(), MEMBERS_MAX);
    }

    #[test]
    fn annotations_count_before_labels_n09() {
        let some = |text: &str| Some(text.to_owned());
        let label =
            Discovery { cluster: some("red"), service: some("web"), ..Discovery::default() };
        assert_eq!(label.flow(), Flow::Mirror("red".to_owned(), some("web")));
        assert_eq!(label.remotes("shop").len(), 1);
        let both = Discovery { members: some(""), ..label.clone() };
        assert_eq!((both.flow(), both.remotes("shop").len()), (Flow::Federated, 0));
        let local = Discovery { local_member: some(""), ..label };
        assert_eq!((local.flow(), local.local_member("shop")), (Flow::Federated, None));
        assert_eq!(Discovery::default().flow(), Flow::Own);
    }
}
