//! One address as a client gets it (spec §2.9).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use model::{Claim, Metadata, OwnerRef, WorkloadKind};

use crate::lens::Lens;
use crate::mirror::{Mirror, MirrorLabels};
use crate::{Hint, Identity, identity, protocol};

const WEIGHT: u32 = 10_000;
/// With zone weights on, what an endpoint in the client's zone weighs.
const WEIGHT_LOCAL: u32 = 100_000;

/// Labels for a client's metrics. Nearly all keys are constants, and there are many addresses.
pub type Labels = BTreeMap<Cow<'static, str>, String>;

/// An endpoint, and what a client should know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Where it is.
    pub ip: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its weight among the others.
    pub weight: u32,
    /// Labels for the client's metrics, besides those of the set.
    pub labels: Labels,
    /// Whom its proxy proves to be.
    pub identity: Option<Identity>,
    /// How to speak to it; `None` if it has no proxy to speak to.
    pub hint: Option<Hint>,
    /// The authority to put in place of the client's.
    pub authority_override: Option<String>,
    /// The configured parameters for HTTP/2 go with it.
    pub http2: bool,
}

impl Lens {
    /// The address of a claim; `None` if it can't be reached as it should be (spec §2.9.3).
    pub(crate) fn render(&self, claim: &Claim, port: u16) -> Option<Address> {
        let mut address = match &claim.workload {
            None => self.render_bare(claim, port),
            Some(pod) if pod.kind == WorkloadKind::Pod => self.render_pod(claim, pod, port)?,
            Some(workload) => self.render_external(claim, workload, port),
        };
        if self.mirror_labels == MirrorLabels::OnAddresses
            && let Some(mirror) = Mirror::of(&claim.slice)
        {
            address.labels.extend(mirror.labels());
        }
        Some(address)
    }

    fn render_pod(&self, claim: &Claim, pod: &Metadata, port: u16) -> Option<Address> {
        let meshed = pod.control_plane_ns.is_some() && !pod.skip_inbound.contains(port);
        let hint = match meshed {
            true => Some(protocol::of_pod(&self.settings, pod, port).ok()?),
            false => None,
        };
        let mut address = self.render_target(claim, port);
        label(&mut address, "pod", &claim.name);
        if let Some(owner) = &pod.owner {
            address.labels.insert(owner_label(owner), owner.name.clone());
        }
        label(&mut address, "serviceaccount", &pod.service_account);
        if let Some(control_plane) = &pod.control_plane_ns {
            label(&mut address, "control_plane_ns", control_plane);
        }
        if let Some(hash) = &pod.pod_template_hash {
            label(&mut address, "pod_template_hash", hash);
        }
        self.label_zone(&mut address, claim);
        address.identity = meshed.then(|| identity::of_pod(&self.settings, pod)).flatten();
        address.hint = hint;
        address.http2 = meshed && self.settings.http2;
        Some(address)
    }

    fn render_external(&self, claim: &Claim, workload: &Metadata, port: u16) -> Address {
        let mut address = self.render_target(claim, port);
        if let Some(owner) = &workload.owner {
            address.labels.insert(lower_case(&owner.kind), owner.name.clone());
        }
        label(&mut address, "external_workload", &claim.name);
        self.label_zone(&mut address, claim);
        address.identity = Some(identity::of_external(workload));
        address.hint = Some(protocol::of_external(&self.settings, workload, port));
        address.http2 = self.settings.http2;
        address
    }

    /// A bare address may be a gateway's: then its slice says so.
    fn render_bare(&self, claim: &Claim, port: u16) -> Address {
        let mut address = self.blank(claim, port);
        label(&mut address, "zone_locality", Locality::Unknown.name());
        if let Some(gateway) = &claim.slice.gateway_identity {
            address.identity = Some(identity::of_gateway(gateway));
            address.hint = protocol::of_gateway(&self.settings);
            address.http2 = self.settings.http2;
        }
        let remote = claim.slice.remote_service.as_ref();
        address.authority_override = remote.map(|name| format!("{name}:{}", self.requested));
        address
    }

    fn render_target(&self, claim: &Claim, port: u16) -> Address {
        let mut address = self.blank(claim, port);
        if self.settings.zone_weights && self.locality(claim) == Locality::Local {
            address.weight = WEIGHT_LOCAL;
        }
        address
    }

    fn blank(&self, claim: &Claim, port: u16) -> Address {
        Address {
            ip: claim.ip,
            port,
            weight: WEIGHT,
            labels: Labels::new(),
            identity: None,
            hint: None,
            authority_override: None,
            http2: false,
        }
    }

    fn label_zone(&self, address: &mut Address, claim: &Claim) {
        label(address, "zone", claim.zone.as_deref().unwrap_or_default());
        label(address, "zone_locality", self.locality(claim).name());
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

fn label(address: &mut Address, key: &'static str, value: &str) {
    address.labels.insert(key.into(), value.to_owned());
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
