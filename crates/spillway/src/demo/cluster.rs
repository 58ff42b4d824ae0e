//! The demo's cluster: a few small Services, and as many large ones as its endpoints fill.

use ingest::Delivery;
use ingest::synthetic::{Churn, Cluster as Synthetic, Spec};

/// Endpoints of a large Service.
const LARGE: u64 = 1_000;

/// Small Services, and the endpoints of each.
const SMALL: (u64, u64) = (10, 20);

/// The cluster. Cheap to clone: its objects are made when they are asked for.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    made: Synthetic,
}

impl Cluster {
    /// A cluster of about this many endpoints.
    pub(super) fn new(endpoints: u64) -> Cluster {
        let spec = Spec {
            services: SMALL.0,
            endpoints: SMALL.1,
            big_services: (endpoints / LARGE).max(1),
            big_endpoints: LARGE,
            ..Spec::DEFAULT
        };
        Cluster { made: Synthetic::new(spec) }
    }

    /// All endpoints.
    pub(super) fn endpoints(&self) -> u64 {
        self.made.endpoints()
    }

    /// What it consists of, in words.
    pub(super) fn words(&self) -> String {
        let Spec { services, endpoints, big_services, big_endpoints, .. } = self.made.spec();
        format!(
            "{big_services} Services of {big_endpoints} endpoints, {services} of {endpoints}, \
             a pod behind each endpoint"
        )
    }

    /// The authority of a small Service.
    pub(super) fn small(&self) -> String {
        self.authority(0)
    }

    /// The authority of a large Service; there are finitely many, so these repeat.
    pub(super) fn large(&self, at: u64) -> String {
        let Spec { services, big_services, .. } = self.made.spec();
        self.authority(services + at % big_services)
    }

    fn authority(&self, service: u64) -> String {
        let (name, port) = (self.made.service_name(service), self.made.service_port());
        format!("{}.{}.svc.cluster.local:{port}", name.name(), name.namespace())
    }

    /// All objects, as a watch lists them.
    pub(super) fn listing(&self) -> impl Iterator<Item = Delivery> + Send + use<> {
        self.made.listing()
    }

    /// Pods that failed and have no address.
    pub(super) fn junk(&self, pods: u64) -> impl Iterator<Item = Delivery> + Send + use<> {
        self.made.junk(pods)
    }

    /// Endpoints that lose their readiness and get it back, pods that are replaced, for ever.
    pub(super) fn changes(&self) -> Churn {
        Churn::new(self.made.clone())
    }
}
