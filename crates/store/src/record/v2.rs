//! Version 2 of all records. Frozen: a change of meaning is a new file beside this one. (Version 1 was never
//! released; its number stays taken.)

use bincode::{Decode, Encode};

/// objects: what every object has, whatever its kind.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Object {
    /// Its number among its kind; never used twice.
    pub(crate) id: u32,
    /// Its resourceVersion.
    pub(crate) version: Version,
    /// How many EndpointSlices name it (Services only).
    pub(crate) slices: u32,
    /// Since which revision it has been a Service that neither exists nor is named; only read while it is.
    pub(crate) vacant: u64,
    /// `None` for a stub: others name it, but it isn't there.
    pub(crate) body: Option<Body>,
}

/// A resourceVersion: nearly always a number, which is shorter.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) enum Version {
    Number(u64),
    Text(String),
}

/// What an object says.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) enum Body {
    Service(Service),
    /// The endpoints are in `slices`.
    Slice,
    Workload(Workload),
    Node {
        zone: Option<String>,
    },
    Owned {
        owner: Option<Owner>,
    },
    Server(Server),
    /// Endpoints: the numbers of the slices that its subsets are kept as, in `slices`.
    Subsets(Vec<u32>),
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Service {
    pub(crate) ports: Vec<ServicePort>,
    pub(crate) external_name: bool,
    pub(crate) local_traffic: bool,
    pub(crate) cluster_ips: Vec<Ip>,
    pub(crate) opaque: Option<Ports>,
    pub(crate) discovery: [Option<String>; 4],
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ServicePort {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) tcp: bool,
}

/// Inclusive ranges.
pub(crate) type Ports = Vec<(u16, u16)>;

#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub(crate) enum Ip {
    V4([u8; 4]),
    V6([u8; 16]),
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Server {
    pub(crate) opaque: bool,
    pub(crate) pods: Option<Selector>,
    pub(crate) workloads: Option<Selector>,
    pub(crate) port: ServerPort,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) enum ServerPort {
    Number(u16),
    Name(String),
}

/// Requirements: key, operator (0 In, 1 NotIn, 2 Exists, 3 DoesNotExist), values.
pub(crate) type Selector = Vec<(String, u8, Vec<String>)>;

/// A Pod or ExternalWorkload; what its siblings share is interned.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Workload {
    /// An interned [`Template`].
    pub(crate) template: u32,
    /// An interned text; 0: none.
    pub(crate) node: u32,
    /// 0 pending, 1 running, 2 finished.
    pub(crate) phase: u8,
    pub(crate) deleting: bool,
    pub(crate) host_network: bool,
    pub(crate) ips: Vec<Ip>,
    pub(crate) host_ips: Vec<Ip>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Template {
    /// Its cluster: equal templates of two clusters may join to different things.
    pub(crate) cluster: u16,
    pub(crate) external: bool,
    pub(crate) namespace: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) owner: Option<Owner>,
    pub(crate) name_prefix: String,
    pub(crate) service_account: String,
    pub(crate) ports: Vec<(String, u16, Option<u16>)>,
    pub(crate) opaque: Option<Ports>,
    pub(crate) skip_inbound: Ports,
    /// Inbound, admin, control.
    pub(crate) proxy: Option<[Option<u16>; 3]>,
    /// Identity, server name.
    pub(crate) mesh_tls: Option<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Metadata {
    pub(crate) external: bool,
    pub(crate) namespace: String,
    pub(crate) control_plane_ns: Option<String>,
    pub(crate) owner: Option<Owner>,
    pub(crate) service_account: String,
    pub(crate) pod_template_hash: Option<String>,
    pub(crate) name_prefix: String,
    pub(crate) opaque: Option<Ports>,
    pub(crate) opaque_by_server: Ports,
    pub(crate) skip_inbound: Ports,
    pub(crate) proxy: Option<[Option<u16>; 3]>,
    pub(crate) mesh_tls: Option<(String, String)>,
}

/// slices: what an EndpointSlice says.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Slice {
    /// The key of its object.
    pub(crate) object: Vec<u8>,
    /// Its place among versions.
    pub(crate) order: u64,
    pub(crate) service: Option<u32>,
    pub(crate) v6: bool,
    /// An interned [`SliceMeta`].
    pub(crate) meta: u32,
    /// What the names of all its workloads begin with.
    pub(crate) name_prefix: String,
    pub(crate) endpoints: Vec<SliceEndpoint>,
}

/// At most one for each workload, and one bare one for each address.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct SliceEndpoint {
    pub(crate) ip: Ip,
    pub(crate) ready: bool,
    /// 0: bare.
    pub(crate) workload: u32,
    /// 0 bare, 1 pod, 2 external workload.
    pub(crate) target: u8,
    /// The workload's namespace, empty if it is the slice's.
    pub(crate) namespace: String,
    /// What comes after `name_prefix` in the workload's name; empty for a bare one.
    pub(crate) name: String,
    pub(crate) hostname: Option<String>,
    /// An interned text; 0: none.
    pub(crate) zone: u32,
    /// Interned texts, in the order of the texts.
    pub(crate) hints: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct SliceMeta {
    pub(crate) ports: Option<Vec<(String, Option<u16>)>>,
    pub(crate) mirror_cluster: Option<String>,
    pub(crate) remote_service: Option<String>,
    pub(crate) gateway_identity: Option<String>,
}

/// endpoints: what a client may see of a claim. Its address is in the key.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Row {
    /// 0 bare, 1 pod v4, 2 pod v6, 3 external v4, 4 external v6.
    pub(crate) class: u8,
    pub(crate) name: Name,
    /// An interned [`Metadata`]; 0 for a bare address.
    pub(crate) metadata: u32,
    /// An interned text; 0: none.
    pub(crate) node: u32,
    /// An interned [`SliceMeta`].
    pub(crate) slice: u32,
    pub(crate) hostname: Option<String>,
    /// An interned text; 0: none.
    pub(crate) zone: u32,
    /// Interned texts, in the order of the texts.
    pub(crate) hints: Vec<u32>,
    pub(crate) rank: u16,
    pub(crate) peers: Vec<Peer>,
}

/// The name of a workload: whole, or what comes after the `name_prefix` of its metadata.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) enum Name {
    Whole(String),
    Suffix(String),
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Peer {
    pub(crate) ip: Ip,
    pub(crate) class: u8,
    pub(crate) slice: u32,
    pub(crate) hostname: Option<String>,
    /// Interned texts, in the order of the texts.
    pub(crate) hints: Vec<u32>,
}

/// contexts: class, interned [`SliceMeta`], hints of each claim of a target, in order of rank.
pub(crate) type Signature = Vec<(u8, u32, Vec<u32>)>;

/// undo of an address: slice, workload and row of each claim on it.
pub(crate) type UndoneRows = Vec<(u32, u32, Row)>;

/// checkpoints.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Checkpoint {
    pub(crate) version: String,
}

/// revisions.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub(crate) struct Touched {
    pub(crate) services: Vec<u32>,
    pub(crate) entries: u64,
    /// Bytes of these entries.
    pub(crate) bytes: u64,
    /// When it was made: milliseconds since 1970.
    pub(crate) at: u64,
}

/// interned.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Interned {
    pub(crate) refs: u64,
    /// When the last reference went; only read while there are none.
    pub(crate) freed: u64,
    pub(crate) hash: u64,
    pub(crate) bytes: Vec<u8>,
}

/// meta: what is true of the whole file.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub(crate) struct Meta {
    pub(crate) revision: u64,
    /// Cursors before it are too old.
    pub(crate) trimmed: u64,
    /// The last number given out, by kind; index 0 is for what is interned.
    pub(crate) ids: [u32; 16],
    /// Objects (no stubs), by kind.
    pub(crate) objects: [u64; 16],
    pub(crate) endpoints: u64,
    pub(crate) undo_entries: u64,
    pub(crate) undo_bytes: u64,
    /// When the oldest revision in the undo log was made; only read while there are entries.
    pub(crate) undo_since: u64,
    /// Rows of all tables but meta, and the bytes of their keys and values.
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}
