//! What a commit wakes: Services and Nodes, each as a number.

use std::hash::Hasher;

use model::{ClusterId, ServiceName};
use siphasher::sip::SipHasher13;

use crate::key;

/// Stands for a Service or a Node in wake-ups. Two may share one: a wake-up says "look again", no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WakeKey(pub u64);

impl WakeKey {
    /// The number of a Service, whether it exists or not.
    pub fn service(name: &ServiceName) -> WakeKey {
        let source = model::Source { cluster: name.cluster, kind: model::Kind::Service };
        WakeKey::object(&key::object(source, &name.object))
    }

    /// The number of a Node.
    pub fn node(cluster: ClusterId, node: &str) -> WakeKey {
        let prefix = key::object_namespace(cluster, model::Kind::Node, "");
        WakeKey::object(&[prefix.as_slice(), node.as_bytes()].concat())
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
