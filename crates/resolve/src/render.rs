//! One address as a client gets it (spec §2.9).

use std::borrow::Cow;
use std::net::IpAddr;

use model::{Claim, Metadata, OwnerRef, WorkloadKind};

use crate::lens::Lens;
use crate::mirror::{Mirror, MirrorLabels};
use crate::protocol::ProxyUnknown;
use crate::{Hint, Identity, Settings, identity, protocol};

const WEIGHT: u32 = 10_000;
/// With zone weights on, what an endpoint in the client's zone weighs.
const WEIGHT_LOCAL: u32 = 100_000;

/// As many labels as an address mostly has.
const LABELS_USUAL: usize = 8;

/// Labels for a client's metrics, each key once, in an order that depends on nothing but what they are of. There are
/// many addresses, so they borrow what they can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels<'c>(Vec<(Cow<'static, str>, Cow<'c, str>)>);

impl<'c> Labels<'c> {
    /// Sets a label, or sets it anew.
    pub fn set(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Cow<'c, str>>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some(known) => known.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// The labels in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// An endpoint, and what a client should know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address<'c> {
    /// Where it is.
    pub ip: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its weight among the others.
    pub weight: u32,
    /// Labels for the client's metrics, besides those of the set.
    pub labels: Labels<'c>,
    /// Whom its proxy proves to be.
    pub identity: Option<Identity<'c>>,
    /// How to speak to it; `None` if it has no proxy to speak to.
    pub hint: Option<Hint>,
    /// The authority to put in place of the client's.
    pub authority_override: Option<String>,
    /// The configured parameters for HTTP/2 go with it.
    pub http2: bool,
}

impl Lens {
    /// The address of a claim, unless it can't be reached as it should be (spec §2.9.3).
    pub(crate) fn render<'c>(
        &'c self,
        claim: &'c Claim,
        port: u16,
    ) -> Result<Address<'c>, ProxyUnknown> {
        let rendering = Rendering { settings: &self.settings, ip: claim.ip, port };
        let mut address = match &claim.workload {
            None => self.render_bare(claim, rendering),
            Some(workload) => {
                let mut address = match workload.kind {
                    WorkloadKind::Pod => rendering.pod(&claim.name, workload)?,
                    WorkloadKind::External => rendering.external(&claim.name, workload),
                };
                let locality = self.locality(claim);
                if self.settings.zone_weights && locality == Locality::Local {
                    address.weight = WEIGHT_LOCAL;
                }
                address.labels.set("zone", claim.zone.as_deref().unwrap_or_default());
                address.labels.set("zone_locality", locality.name());
                address
            }
        };
        if let Some(member) = &self.member {
            address.labels.set("service", member.object.name());
            address.labels.set("namespace", member.object.namespace());
        }
        if self.mirror_labels == MirrorLabels::OnAddresses
            && let Some(mirror) = Mirror::of(&claim.slice)
        {
            mirror.labels().for_each(|(key, value)| address.labels.set(key, value));
        }
        Ok(address)
    }

    /// A bare address may be a gateway's: then its slice says so.
    fn render_bare<'c>(&'c self, claim: &'c Claim, rendering: Rendering<'c>) -> Address<'c> {
        let mut address = rendering.blank();
        address.labels.set("zone_locality", Locality::Unknown.name());
        if let Some(gateway) = &claim.slice.gateway_identity {
            address.identity = Some(Identity::Gateway(gateway));
            address.hint = protocol::of_gateway(&self.settings);
            address.http2 = self.settings.http2;
        }
        let remote = claim.slice.remote_service.as_ref();
        address.authority_override = remote.map(|name| format!("{name}:{}", self.requested));
        address
    }

    /// Where the endpoint is, seen from the client. An empty zone is a zone, and nobody's.
    fn locality(&self, claim: &Claim) -> Locality {
        match (&self.zone, &claim.zone) {
            (Some(here), Some(there)) if **here == **there => Locality::Local,
            (Some(_), Some(_)) => Locality::Remote,
            _ => Locality::Unknown,
        }
    }
}

/// An address that is being rendered.
#[derive(Clone, Copy)]
pub(crate) struct Rendering<'c> {
    pub(crate) settings: &'c Settings,
    pub(crate) ip: IpAddr,
    pub(crate) port: u16,
}

impl<'c> Rendering<'c> {
    /// A pod's (spec §2.9.2), without where it is.
    pub(crate) fn pod(self, name: &'c str, pod: &'c Metadata) -> Result<Address<'c>, ProxyUnknown> {
        let Rendering { settings, port, .. } = self;
        let meshed = pod.control_plane_ns.is_some() && !pod.skip_inbound.contains(port);
        let hint = match meshed {
            true => Some(protocol::of_pod(settings, pod, port)?),
            false => None,
        };
        let mut address = self.blank();
        let labels = &mut address.labels;
        labels.set("pod", name);
        if let Some(owner) = &pod.owner {
            labels.set(owner_label(owner), &owner.name);
        }
        labels.set("serviceaccount", &pod.service_account);
        if let Some(control_plane) = &pod.control_plane_ns {
            labels.set("control_plane_ns", control_plane);
        }
        if let Some(hash) = &pod.pod_template_hash {
            labels.set("pod_template_hash", hash);
        }
        address.identity = meshed.then(|| identity::of_pod(settings, pod)).flatten();
        address.hint = hint;
        address.http2 = meshed && settings.http2;
        Ok(address)
    }

    /// An ExternalWorkload's (spec §2.9.5), without where it is.
    pub(crate) fn external(self, name: &'c str, workload: &'c Metadata) -> Address<'c> {
        let mut address = self.blank();
        if let Some(owner) = &workload.owner {
            address.labels.set(lower_case(&owner.kind), &owner.name);
        }
        address.labels.set("external_workload", name);
        address.identity = Some(identity::of_external(workload));
        address.hint = Some(protocol::of_external(self.settings, workload, self.port));
        address.http2 = self.settings.http2;
        address
    }

    /// That of who knows nothing of it.
    pub(crate) fn blank(self) -> Address<'c> {
        Address {
            ip: self.ip,
            port: self.port,
            weight: WEIGHT,
            labels: Labels(Vec::with_capacity(LABELS_USUAL)),
            identity: None,
            hint: None,
            authority_override: None,
            http2: false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Locality {
    Local,
    Remote,
    Unknown,
}

impl Locality {
    fn name(self) -> &'static str {
        match self {
            Locality::Local => "local",
            Locality::Remote => "remote",
            Locality::Unknown => "unknown",
        }
    }
}

/// The label of a pod's owner is its kind; `job` is what Prometheus calls a scrape's own.
fn owner_label(owner: &OwnerRef) -> Cow<'static, str> {
    match lower_case(&owner.kind) {
        kind if kind == "job" => "k8s_job".into(),
        kind => kind,
    }
}

fn lower_case(kind: &str) -> Cow<'static, str> {
    let usual = match kind {
        "Deployment" => "deployment",
        "ReplicaSet" => "replicaset",
        "StatefulSet" => "statefulset",
        "DaemonSet" => "daemonset",
        _ => return kind.to_lowercase().into(),
    };
    usual.into()
}
