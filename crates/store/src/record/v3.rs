//! Version 3 of all records. Frozen: a change of meaning is a new file beside this one. (Versions 1 and 2 were never
//! released; their numbers stay taken.)

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
    /// A ServiceProfile; `None`: what it says doesn't hold.
    Profile(Option<Profile>),
    /// A Secret that declares a link, or why it doesn't.
    Link(Result<Link, String>),
}

/// A link, without its credentials.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Link {
    pub(crate) cluster: String,
    pub(crate) trust_domain: String,
    pub(crate) cluster_domain: String,
}

/// parts: a part of a linked cluster that is stored.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Part {
    pub(crate) id: u16,
    pub(crate) uid: String,
    pub(crate) trust_domain: String,
}

/// part_ids: whose a number is or was.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct PartId {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    /// The revision in which it left.
    pub(crate) left: Option<u64>,
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

/// undo: a Service object before a revision.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) enum Presence {
    /// Nobody had seen it.
    Unseen,
    /// It had been deleted.
    Gone,
    There(Service),
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

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Profile {
    pub(crate) routes: Vec<Route>,
    pub(crate) retry_budget: Option<RetryBudget>,
    /// Authority, weight.
    pub(crate) dst_overrides: Vec<(String, u32)>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Route {
    pub(crate) name: String,
    pub(crate) condition: Vec<RequestPart>,
    /// Condition, whether it is a failure.
    pub(crate) responses: Vec<(Vec<ResponsePart>, bool)>,
    pub(crate) retryable: bool,
    pub(crate) timeout_ns: i64,
}

/// A part of a condition; what it is made of follows it. (A record within itself could be as deep as damage makes it.)
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) enum RequestPart {
    /// Of so many.
    All(u32),
    Any(u32),
    Not,
    Path(String),
    Method(String),
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) enum ResponsePart {
    /// Of so many.
    All(u32),
    Any(u32),
    Not,
    Status {
        min: u32,
        max: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct RetryBudget {
    /// The bits of an IEEE 754 number.
    pub(crate) ratio: u32,
    pub(crate) min_retries_per_second: u32,
    pub(crate) ttl_ns: i64,
}

/// A Pod or ExternalWorkload; what its siblings share is interned.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Workload {
    /// An interned [`Template`].
    pub(crate) template: u32,
    /// An interned text; 0: none.
    pub(crate) node: u32,
    /// See [`Workload::state`].
    pub(crate) state: u8,
    pub(crate) ips: Vec<Ip>,
    /// Only kept if it has host ports.
    pub(crate) host_ips: Vec<Ip>,
}

impl Workload {
    pub(crate) const PENDING: u8 = 0;
    pub(crate) const RUNNING: u8 = 1;
    pub(crate) const FINISHED: u8 = 2;
    const PHASES: u8 = 4;
    const DELETING: u8 = 4;
    const HOST_NETWORK: u8 = 8;

    /// Phase, whether it has a deletionTimestamp, and whether it is on the host's network, in one byte.
    pub(crate) fn state(phase: u8, deleting: bool, host_network: bool) -> u8 {
        phase + u8::from(deleting) * Self::DELETING + u8::from(host_network) * Self::HOST_NETWORK
    }

    pub(crate) fn phase(&self) -> u8 {
        self.state % Self::PHASES
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.state & Self::DELETING != 0
    }

    pub(crate) fn is_on_host_network(&self) -> bool {
        self.state & Self::HOST_NETWORK != 0
    }
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

/// At most one for each workload, and one bare one for each address. It is written by [`super::endpoint`]: there are as many as
/// of anything, and a hundred of them are to leave room for another slice on a page of 4 KiB.
#[derive(Clone, Debug, PartialEq)]
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
    /// When it was stored: milliseconds since 1970.
    pub(crate) at: u64,
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

/// sizes: how much there is of a Service, a namespace or a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Size {
    /// Targets with rows.
    pub(crate) targets: u64,
    /// The most that there were (Services only).
    pub(crate) peak: u64,
    /// Targets that wait.
    pub(crate) waiting: u64,
    /// What objects take, about (linked clusters only).
    pub(crate) bytes: u64,
    /// Objects that were refused (linked clusters only).
    pub(crate) refused: u64,
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
