//! What may be written: objects, where they come from, and the revisions that they make.

use crate::{
    ClusterId, Link, ObjectName, Origin, OwnerRef, Part, Server, Service, ServiceProfile, Slice,
    Workload,
};

/// A state of the store. Each commit that changes anything makes the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A moment: milliseconds since 1970. Read by those at the edge, and given to those who need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

/// The version of an object or a listing, as its API server gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceVersion(pub String);

impl ResourceVersion {
    /// Its place among versions of one API server: they are decimal numbers (KEP-5504). One that isn't
    /// counts as the oldest.
    pub fn order(&self) -> u64 {
        self.0.parse().unwrap_or(0)
    }
}

/// The kinds of objects that are kept. The numbers are on disk: never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// v1 Service.
    Service = 1,
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice = 2,
    /// v1 Pod.
    Pod = 3,
    /// workload.linkerd.io/v1beta1 ExternalWorkload.
    ExternalWorkload = 4,
    /// v1 Node, its metadata.
    Node = 5,
    /// apps/v1 ReplicaSet, its metadata.
    ReplicaSet = 6,
    /// batch/v1 Job, its metadata.
    Job = 7,
    /// policy.linkerd.io/v1beta3 Server.
    Server = 8,
    /// v1 Endpoints, in Endpoints mode.
    Endpoints = 9,
    /// linkerd.io/v1alpha2 ServiceProfile.
    ServiceProfile = 10,
    /// v1 Secret, those that declare a link to another cluster.
    Secret = 11,
}

/// Which objects say where a cluster's endpoints are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndpointsFrom {
    /// EndpointSlices.
    #[default]
    Slices,
    /// Endpoints, which know no zones, hints, families or ExternalWorkloads (spec §2.1).
    Endpoints,
}

impl EndpointsFrom {
    /// The kind of these objects.
    pub fn kind(self) -> Kind {
        match self {
            EndpointsFrom::Slices => Kind::EndpointSlice,
            EndpointsFrom::Endpoints => Kind::Endpoints,
        }
    }

    /// The kind of the others, which say nothing then.
    pub fn other_kind(self) -> Kind {
        match self {
            EndpointsFrom::Slices => Kind::Endpoints,
            EndpointsFrom::Endpoints => Kind::EndpointSlice,
        }
    }

    /// The kinds that are to be known of a linked cluster, in their order (spec §4.2).
    pub fn kinds_of_linked(self) -> [Kind; 5] {
        [Kind::ReplicaSet, Kind::Server, Kind::Service, Kind::Pod, self.kind()]
    }

    /// All kinds that are to be known of the local cluster, in their order.
    pub fn kinds(self) -> impl Iterator<Item = Kind> + Clone {
        Kind::ALL.into_iter().filter(move |kind| *kind != self.other_kind())
    }
}

impl Kind {
    /// All kinds, in the order in which a cluster is best learnt: what joins into endpoints first.
    pub const ALL: [Kind; 11] = [
        Kind::Secret,
        Kind::Node,
        Kind::ReplicaSet,
        Kind::Job,
        Kind::Server,
        Kind::ServiceProfile,
        Kind::ExternalWorkload,
        Kind::Service,
        Kind::Pod,
        Kind::EndpointSlice,
        Kind::Endpoints,
    ];

    /// The kind as manifests and metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Service => "Service",
            Kind::EndpointSlice => "EndpointSlice",
            Kind::Pod => "Pod",
            Kind::ExternalWorkload => "ExternalWorkload",
            Kind::Node => "Node",
            Kind::ReplicaSet => "ReplicaSet",
            Kind::Job => "Job",
            Kind::Server => "Server",
            Kind::Endpoints => "Endpoints",
            Kind::ServiceProfile => "ServiceProfile",
            Kind::Secret => "Secret",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One kind of objects of one cluster: what one watch delivers, and one checkpoint covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// Whose objects.
    pub cluster: ClusterId,
    /// Which kind.
    pub kind: Kind,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of cluster {}", self.kind, self.cluster.0)
    }
}

/// Names one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its cluster and kind.
    pub source: Source,
    /// Its namespace and name.
    pub name: ObjectName,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.source.kind, self.name)
    }
}

/// An object, reduced to what an answer may depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A Service.
    Service(Service),
    /// An EndpointSlice.
    Slice(Slice),
    /// Endpoints: each subset as if it were an EndpointSlice. Of two that say the same, the later one counts.
    Subsets(Vec<Slice>),
    /// A Pod or an ExternalWorkload.
    Workload(Workload),
    /// A Node: its zone.
    Node {
        /// Label `topology.kubernetes.io/zone`.
        zone: Option<String>,
    },
    /// A ReplicaSet or Job: its only owner, if it has exactly one.
    Owned {
        /// The owner.
        owner: Option<OwnerRef>,
    },
    /// A Server.
    Server(Server),
    /// A ServiceProfile. `None`: it is there, and says nothing that holds (spec Q24).
    Profile(Option<ServiceProfile>),
    /// A Secret that is to declare a link, or why it doesn't.
    Link(Result<Link, String>),
}

impl Object {
    /// The endpoints that it brings.
    pub fn endpoint_count(&self) -> usize {
        match self {
            Object::Slice(slice) => slice.endpoints.len(),
            Object::Subsets(slices) => slices.iter().map(|slice| slice.endpoints.len()).sum(),
            _ => 0,
        }
    }
}

/// A change of what is stored.
#[expect(clippy::large_enum_variant, reason = "nearly all changes are the large one, Put")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A listing begins: from here on, what it mentions is marked. Replaces one that did not end.
    Begin {
        /// What is listed.
        source: Source,
    },
    /// The object is now this.
    Put {
        /// Which object.
        key: Key,
        /// Its version. If the stored object has the same, nothing is written.
        version: ResourceVersion,
        /// What it says.
        object: Object,
    },
    /// The object exists, but could not be read: what is stored of it stays, and a listing does not sweep it.
    Keep {
        /// Which object.
        key: Key,
    },
    /// The object is gone.
    Delete {
        /// Which object.
        key: Key,
    },
    /// The listing is complete: what it did not mention is swept, then the source is known up to `version`.
    End {
        /// What was listed.
        source: Source,
        /// Where its watch goes on.
        version: ResourceVersion,
    },
    /// Nobody watches the source any more: all its objects go, and its checkpoint.
    Forget {
        /// What is forgotten.
        source: Source,
    },
    /// A part of a linked cluster is stored from here on. If it is already, of a cluster of another uid, that leaves.
    Join {
        /// Which part.
        part: Part,
        /// Of which cluster.
        origin: Origin,
    },
    /// A part is not stored any more: all its objects go, and at some time its number.
    Leave {
        /// Its number.
        id: ClusterId,
    },
    /// The source is known up to `version` (a bookmark, or the last event of a batch).
    Checkpoint {
        /// Which source.
        source: Source,
        /// Where its watch goes on.
        version: ResourceVersion,
    },
}

impl Change {
    /// The source that says it, if one does.
    pub fn source(&self) -> Option<Source> {
        match self {
            Change::Begin { source }
            | Change::End { source, .. }
            | Change::Forget { source }
            | Change::Checkpoint { source, .. } => Some(*source),
            Change::Put { key, .. } | Change::Keep { key } | Change::Delete { key } => {
                Some(key.source)
            }
            Change::Join { .. } | Change::Leave { .. } => None,
        }
    }
}
