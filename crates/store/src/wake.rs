//! What a commit wakes: Services, Nodes, addresses and others, each as a number.

use std::hash::Hasher;
use std::net::IpAddr;

use model::{ClusterId, ObjectName, ServiceName};
use siphasher::sip::SipHasher13;

use crate::key;

/// Stands for what an answer depends on in wake-ups. Two may share one: a wake-up says "look again", no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WakeKey(pub u64);

impl WakeKey {
    /// The number of a Service and all of its endpoints, whether it exists or not.
    pub fn service(name: &ServiceName) -> WakeKey {
        let source = model::Source { cluster: name.cluster, kind: model::Kind::Service };
        WakeKey::object(&key::object(source, &name.object))
    }

    /// The number of a Node.
    pub fn node(cluster: ClusterId, node: &str) -> WakeKey {
        let prefix = key::object_namespace(cluster, model::Kind::Node, "");
        WakeKey::object(&[prefix.as_slice(), node.as_bytes()].concat())
    }

    /// The number of a Service object, without its endpoints.
    pub fn service_object(name: &ServiceName) -> WakeKey {
        let source = model::Source { cluster: name.cluster, kind: model::Kind::Service };
        WakeKey::only_object(&key::object(source, &name.object))
    }

    /// The number of a ServiceProfile, whether it exists or not.
    pub fn profile(cluster: ClusterId, name: &ObjectName) -> WakeKey {
        let source = model::Source { cluster, kind: model::Kind::ServiceProfile };
        WakeKey::object(&key::object(source, name))
    }

    /// The number of a link to a cluster: of what declares it, and of which parts of the cluster are stored and listed.
    pub fn link(cluster: &str) -> WakeKey {
        WakeKey(hash(&[b"link".as_slice(), cluster.as_bytes()].concat()))
    }

    /// The number of all links, and of the Services that use them.
    pub fn links() -> WakeKey {
        WakeKey(hash(b"links"))
    }

    /// The number of an address: of who owns it, whether anybody does or not.
    pub fn address(cluster: ClusterId, ip: IpAddr) -> WakeKey {
        WakeKey(hash(&[b"address".as_slice(), &key::address(cluster, ip)].concat()))
    }

    /// The number of what a template joins to.
    pub(crate) fn template(id: u32) -> WakeKey {
        WakeKey(hash(&[b"template".as_slice(), &key::id(id)].concat()))
    }

    pub(crate) fn only_object(key: &[u8]) -> WakeKey {
        WakeKey(hash(&[b"object".as_slice(), key].concat()))
    }

    pub(crate) fn object(key: &[u8]) -> WakeKey {
        WakeKey(hash(key))
    }
}

/// A hash that is the same in every build, since it is on disk too.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish()
}
