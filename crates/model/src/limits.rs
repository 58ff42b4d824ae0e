//! Every structural limit, with its reason. What an operator may set is an argument of the server instead.

/// Bytes of a namespace or name: Kubernetes allows 253 (a DNS subdomain).
pub const NAME_BYTES_MAX: usize = 253;

/// Endpoints of one EndpointSlice: the API server refuses more than 1,000.
pub const SLICE_ENDPOINTS_MAX: usize = 1_000;

/// Addresses of one Endpoints object: Kubernetes itself stops at 1,000, and what is written by hand is limited by the size
/// of an object only.
pub const ENDPOINTS_ADDRESSES_MAX: usize = 20_000;

/// Values that the JSON of an object is made of: some thirty times as many as a large pod has, and three times as many as the
/// largest EndpointSlice. Each takes up to some hundred bytes while the object is read.
pub const OBJECT_VALUES_MAX: usize = 64 * 1024;

/// The same of an Endpoints object, each of whose addresses has up to eight.
pub const ENDPOINTS_VALUES_MAX: usize = 8 * ENDPOINTS_ADDRESSES_MAX;

/// Bytes of a resourceVersion: Kubernetes gives 64-bit numbers, and asks everyone not to rely on that.
pub const VERSION_BYTES_MAX: usize = 64;

/// Changes in one commit. Bounds what the writer holds in memory, and how long readers wait for a revision.
pub const COMMIT_CHANGES_MAX: usize = 2_048;

/// Endpoints in the EndpointSlices of one commit; a slice weighs as many changes as it has endpoints.
pub const COMMIT_ENDPOINTS_MAX: usize = 4_096;

/// Deliveries waiting between a source and the writer. A full channel stops reading that source.
pub const DELIVERIES_WAITING_MAX: usize = 32;

/// Bytes of one message to a proxy: its limit is 4 MiB, fixed (spec/proxy.md 0.2); 64 KiB are left for framing.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024 - 64 * 1024;

/// Addresses of one service that a delta looks at in one pass; more than these are read in several passes.
pub const DELTA_PASS_ADDRESSES_MAX: usize = 8_192;

/// Rows of a Service, of its undo log and of what its targets have in common, up to which a change is read at once
/// instead of on another thread.
pub const FEW_ROWS_MAX: usize = 64;

/// Objects deleted in one transaction at the end of a listing.
pub const SWEEP_CHANGES_MAX: usize = 1_024;

/// Bytes of an opaque-ports or skip-inbound-ports list that are looked at; annotations may be 256 KiB.
pub const PORT_LIST_BYTES_MAX: usize = 64 * 1024;

/// Changes in one delivery of a listing that comes from no API server. As many as may wait take some 10 MiB.
pub const PAGE_CHANGES_MAX: usize = 128;

/// Endpoints in the EndpointSlices of such a delivery.
pub const PAGE_ENDPOINTS_MAX: usize = 512;

/// Bytes of one file of manifests; one is in memory at a time.
pub const MANIFEST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Files in a folder of manifests.
pub const MANIFEST_FILES_MAX: usize = 10_000;

/// Folders within folders of manifests that are looked into. Bounds a symlink that leads back up.
pub const MANIFEST_DEPTH_MAX: usize = 8;

/// Problems that are kept in words, of one file of manifests and of all; the others are only counted.
pub const MANIFEST_PROBLEMS_MAX: usize = 32;

/// Endpoints of a synthetic cluster, as many as its addresses can tell apart.
pub const SYNTHETIC_ENDPOINTS_MAX: u64 = 10_000_000;

/// Conditions of a ServiceProfile within each other. Each is two messages within each other for a proxy, which reads no
/// more than a hundred.
pub const CONDITION_DEPTH_MAX: usize = 32;

/// Members of a federated Service in other clusters: each client of it follows as many.
pub const MEMBERS_MAX: usize = 128;

/// Secrets that declare links. Each link that is used has watches, and a connection.
pub const LINKS_MAX: usize = 256;
