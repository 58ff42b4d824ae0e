//! The objects of a made-up cluster, each by its number.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use model::limits::{PAGE_CHANGES_MAX, PAGE_ENDPOINTS_MAX};
use model::{
    Change, ClusterId, ContainerPort, Discovery, EndpointsFrom, Family, Key, Kind, Object,
    ObjectName, OwnerRef, Phase, PortSet, ProxyPorts, ResourceVersion, Service, ServicePort, Slice,
    SliceEndpoint, SliceMeta, SlicePort, Source, Target, Template, Workload, WorkloadKind,
};

use super::Spec;
use crate::Delivery;

/// Endpoints of a slice, as Kubernetes' own controller fills them.
pub(super) const SLICE_ENDPOINTS: u64 = 100;

/// The port that the Services have.
const SERVICE_PORT: u16 = 80;

/// The port that the pods listen on.
const POD_PORT: u16 = 8080;

/// The version of junk.
const JUNK_VERSION: u64 = 1;

/// A made-up cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cluster {
    spec: Arc<Spec>,
}

/// A Service, by its number: small ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    service: u64,
    /// The number of its first endpoint among all.
    first: u64,
    /// How many it has.
    endpoints: u64,
}

impl Cluster {
    /// The cluster of a description.
    pub fn new(spec: Spec) -> Cluster {
        Cluster { spec: Arc::new(spec) }
    }

    /// All Services.
    pub fn services(&self) -> u64 {
        self.spec.services + self.spec.big_services
    }

    /// All endpoints.
    pub fn endpoints(&self) -> u64 {
        self.spec.services * self.spec.endpoints + self.spec.big_services * self.spec.big_endpoints
    }

    /// How it was described.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The version of everything that has not changed since the listing. A restart with the same cluster
    /// rewrites nothing, and one with another cluster all that may differ.
    pub(super) fn version(&self) -> u64 {
        let shape = Spec { churn: 0, flood: 0, seed: 0, ..(*self.spec).clone() };
        let mut hasher = DefaultHasher::new();
        shape.hash(&mut hasher);
        1 + (hasher.finish() >> 32)
    }

    /// The name and namespace of a Service: `cart-3` in `shop`, or `stock-3` in `depot`.
    pub fn service_name(&self, service: u64) -> ObjectName {
        let name = match service.checked_sub(self.spec.services) {
            None => ObjectName::new("shop", format!("cart-{service}")),
            Some(big) => ObjectName::new("depot", format!("stock-{big}")),
        };
        name.expect("a made-up name is short and has no NUL")
    }

    /// The port that clients ask for.
    pub fn service_port(&self) -> u16 {
        SERVICE_PORT
    }

    /// All objects, as a watch lists them: kind after kind, each in deliveries of a few hundred.
    pub fn listing(&self) -> impl Iterator<Item = Delivery> + Send + use<> {
        let cluster = self.clone();
        EndpointsFrom::Slices.kinds().flat_map(move |kind| cluster.clone().listing_of(kind))
    }

    fn listing_of(self, kind: Kind) -> impl Iterator<Item = Delivery> + Send {
        let source = Source { cluster: ClusterId::LOCAL, kind };
        let begin = Delivery::new(vec![Change::Begin { source }]);
        let version = ResourceVersion(self.version().to_string());
        let end = Delivery::new(vec![Change::End { source, version }]);
        let count = match kind {
            Kind::Node => self.spec.nodes,
            Kind::Service | Kind::ReplicaSet => self.services(),
            Kind::Pod => self.endpoints(),
            Kind::EndpointSlice => self.slices(),
            Kind::Job | Kind::Server | Kind::ServiceProfile | Kind::Secret => 0,
            Kind::ExternalWorkload | Kind::Endpoints => 0,
        };
        // A slice weighs as many changes as it has endpoints.
        let step = match kind {
            Kind::EndpointSlice => PAGE_ENDPOINTS_MAX as u64 / SLICE_ENDPOINTS,
            _ => PAGE_CHANGES_MAX as u64,
        };
        let deliveries = (0..count.div_ceil(step)).map(move |delivery| {
            let numbers = delivery * step..((delivery + 1) * step).min(count);
            Delivery::new(numbers.map(|number| self.object(kind, number)).collect())
        });
        std::iter::once(begin).chain(deliveries).chain(std::iter::once(end))
    }

    fn object(&self, kind: Kind, number: u64) -> Change {
        match kind {
            Kind::Node => self.node(number),
            Kind::Service => self.service(number),
            Kind::ReplicaSet => self.replica_set(number),
            Kind::EndpointSlice => self.slice(number, self.version(), &BTreeMap::new()),
            _ => self.pod(number, 0, self.version()),
        }
    }

    fn node(&self, node: u64) -> Change {
        let zone = Some(format!("zone-{}", node % self.spec.zones));
        put(Kind::Node, "", &format!("node-{node}"), self.version(), Object::Node { zone })
    }

    fn service(&self, service: u64) -> Change {
        let name = self.service_name(service);
        let object = Service {
            ports: vec![ServicePort { name: "http".to_owned(), port: SERVICE_PORT, tcp: true }],
            external_name: false,
            local_traffic: false,
            cluster_ips: vec![address(0xac14_0000, service)],
            opaque: None,
            discovery: Discovery::default(),
        };
        put(Kind::Service, name.namespace(), name.name(), self.version(), Object::Service(object))
    }

    fn replica_set(&self, service: u64) -> Change {
        let name = self.service_name(service);
        let owner = OwnerRef { kind: "Deployment".to_owned(), name: name.name().to_owned() };
        let replica_set = replica_set_name(&name);
        let object = Object::Owned { owner: Some(owner) };
        put(Kind::ReplicaSet, name.namespace(), &replica_set, self.version(), object)
    }

    fn place_of_endpoint(&self, endpoint: u64) -> Place {
        let Spec { services, endpoints, big_endpoints, .. } = *self.spec;
        let small = services * endpoints;
        if endpoint < small {
            let service = endpoint / endpoints;
            return Place { service, first: service * endpoints, endpoints };
        }
        let big = (endpoint - small) / big_endpoints;
        let first = small + big * big_endpoints;
        Place { service: services + big, first, endpoints: big_endpoints }
    }

    /// All slices.
    fn slices(&self) -> u64 {
        let Spec { services, endpoints, big_services, big_endpoints, .. } = *self.spec;
        services * endpoints.div_ceil(SLICE_ENDPOINTS)
            + big_services * big_endpoints.div_ceil(SLICE_ENDPOINTS)
    }

    /// The slice that an endpoint is in.
    pub(super) fn slice_of_endpoint(&self, endpoint: u64) -> u64 {
        let Spec { services, endpoints, big_endpoints, .. } = *self.spec;
        let place = self.place_of_endpoint(endpoint);
        let within = (endpoint - place.first) / SLICE_ENDPOINTS;
        match place.service.checked_sub(services) {
            None => place.service * endpoints.div_ceil(SLICE_ENDPOINTS) + within,
            Some(big) => {
                services * endpoints.div_ceil(SLICE_ENDPOINTS)
                    + big * big_endpoints.div_ceil(SLICE_ENDPOINTS)
                    + within
            }
        }
    }

    /// The Service of a slice, and which of its slices it is.
    fn place_of_slice(&self, slice: u64) -> (Place, u64) {
        let Spec { services, endpoints, big_endpoints, .. } = *self.spec;
        let each = endpoints.div_ceil(SLICE_ENDPOINTS);
        if slice < services * each {
            let service = slice / each;
            return (Place { service, first: service * endpoints, endpoints }, slice % each);
        }
        let (big, each) = (slice - services * each, big_endpoints.div_ceil(SLICE_ENDPOINTS));
        let first = services * endpoints + big / each * big_endpoints;
        let service = services + big / each;
        (Place { service, first, endpoints: big_endpoints }, big % each)
    }

    /// A slice. `changed` says which endpoints are other than at first, and how.
    pub(super) fn slice(
        &self,
        slice: u64,
        version: u64,
        changed: &BTreeMap<u64, Variant>,
    ) -> Change {
        let (place, within) = self.place_of_slice(slice);
        let service = self.service_name(place.service);
        let from = place.first + within * SLICE_ENDPOINTS;
        let to = (from + SLICE_ENDPOINTS).min(place.first + place.endpoints);
        let endpoints = (from..to).map(|endpoint| {
            let variant = changed.get(&endpoint).copied().unwrap_or_default();
            SliceEndpoint {
                ip: pod_ip(endpoint, variant.generation),
                ready: !variant.unready,
                target: Target::Pod(self.pod_name(endpoint, variant.generation)),
                hostname: None,
                zone: Some(format!("zone-{}", endpoint % self.spec.nodes % self.spec.zones)),
                hints: Vec::new(),
            }
        });
        let port = SlicePort { name: "http".to_owned(), port: Some(POD_PORT) };
        let object = Slice {
            endpoints: endpoints.collect(),
            family: Family::V4,
            meta: SliceMeta { ports: Some(vec![port]), ..SliceMeta::default() },
            service: Some(service.clone()),
        };
        let name = format!("{}-{within:05x}", service.name());
        put(Kind::EndpointSlice, service.namespace(), &name, version, Object::Slice(object))
    }

    /// The name of the pod behind an endpoint. Each replacement has a name, and an address, of its own.
    pub(super) fn pod_name(&self, endpoint: u64, generation: u64) -> ObjectName {
        let service = self.service_name(self.place_of_endpoint(endpoint).service);
        let suffix = if generation == 0 { String::new() } else { format!("r{generation:x}") };
        let name = format!("{}-{endpoint:06x}{suffix}", replica_set_name(&service));
        ObjectName::new(service.namespace(), name).expect("a made-up name is short and has no NUL")
    }

    /// The pod behind an endpoint.
    pub(super) fn pod(&self, endpoint: u64, generation: u64, version: u64) -> Change {
        let service = self.service_name(self.place_of_endpoint(endpoint).service);
        let name = self.pod_name(endpoint, generation);
        let workload = Workload {
            template: self.template(&service),
            node: Some(format!("node-{}", endpoint % self.spec.nodes)),
            phase: Phase::Running,
            deleting: false,
            host_network: false,
            ips: vec![pod_ip(endpoint, generation)],
            host_ips: vec![address(0xc000_0200, endpoint % self.spec.nodes)],
        };
        put(Kind::Pod, name.namespace(), name.name(), version, Object::Workload(workload))
    }

    fn template(&self, service: &ObjectName) -> Template {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut labels =
            BTreeMap::from([label("app", service.name()), label("pod-template-hash", HASH)]);
        if self.spec.meshed {
            labels.extend([label("linkerd.io/control-plane-ns", "linkerd")]);
        }
        let proxy = || ProxyPorts { inbound: Some(4143), admin: Some(4191), control: Some(4190) };
        Template {
            kind: WorkloadKind::Pod,
            namespace: service.namespace().to_owned(),
            labels,
            owner: Some(OwnerRef {
                kind: "ReplicaSet".to_owned(),
                name: replica_set_name(service),
            }),
            name_prefix: format!("{}-", replica_set_name(service)),
            service_account: service.name().to_owned(),
            ports: vec![ContainerPort { name: "http".to_owned(), port: POD_PORT, host_port: None }],
            opaque: None,
            skip_inbound: PortSet::default(),
            proxy: self.spec.meshed.then(proxy),
            mesh_tls: None,
        }
    }

    /// Pods of a ReplicaSet that has run away: they failed, and have no address.
    pub fn junk(&self, count: u64) -> impl Iterator<Item = Delivery> + Send + use<> {
        (0..count.div_ceil(PAGE_CHANGES_MAX as u64)).map(move |delivery| {
            let from = delivery * PAGE_CHANGES_MAX as u64;
            let pods = from..(from + PAGE_CHANGES_MAX as u64).min(count);
            Delivery::new(pods.map(junk_pod).collect())
        })
    }
}

fn junk_pod(number: u64) -> Change {
    let template = Template {
        kind: WorkloadKind::Pod,
        namespace: "junk".to_owned(),
        labels: BTreeMap::from([("app".to_owned(), "runaway".to_owned())]),
        owner: Some(OwnerRef { kind: "ReplicaSet".to_owned(), name: format!("runaway-{HASH}") }),
        name_prefix: format!("runaway-{HASH}-"),
        service_account: "default".to_owned(),
        ports: Vec::new(),
        opaque: None,
        skip_inbound: PortSet::default(),
        proxy: None,
        mesh_tls: None,
    };
    let workload = Workload {
        template,
        node: None,
        phase: Phase::Finished,
        deleting: false,
        host_network: false,
        ips: Vec::new(),
        host_ips: Vec::new(),
    };
    let name = format!("runaway-{HASH}-{number:07x}");
    put(Kind::Pod, "junk", &name, JUNK_VERSION, Object::Workload(workload))
}

/// How an endpoint differs from what it was at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Variant {
    /// Its pod isn't ready.
    pub(super) unready: bool,
    /// How often its pod has been replaced; 0 is the first.
    pub(super) generation: u64,
}

const HASH: &str = "7d9f6c5b8";

fn replica_set_name(service: &ObjectName) -> String {
    format!("{}-{HASH}", service.name())
}

/// Pods have addresses from 10.0.1.0 up; replacements, which are few at a time, from 100.64.0.0 up.
fn pod_ip(endpoint: u64, generation: u64) -> IpAddr {
    match generation {
        0 => address(0x0a00_0100, endpoint),
        replaced => address(0x6440_0000, replaced % (1 << 22)),
    }
}

fn address(base: u32, number: u64) -> IpAddr {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    IpAddr::V4(Ipv4Addr::from(base.wrapping_add(number)))
}

/// The key of an object.
pub(super) fn key(kind: Kind, name: ObjectName) -> Key {
    Key { source: Source { cluster: ClusterId::LOCAL, kind }, name }
}

fn put(kind: Kind, namespace: &str, name: &str, version: u64, object: Object) -> Change {
    let name = ObjectName::new(namespace, name).expect("a made-up name is short and has no NUL");
    Change::Put { key: key(kind, name), version: ResourceVersion(version.to_string()), object }
}
