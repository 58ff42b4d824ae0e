//! What a stream sees through: a client's view at one revision, reduced to what decides how claims project.

use model::{PortKey, Service, ServiceName, Signature};

use crate::hints::zone_filter;
use crate::mirror::{MirrorLabels, mirrors};
use crate::port::port_key;
use crate::{Bucket, Labels, Settings};

/// What a Get asks for, and of its caller what the answer may depend on. Streams with equal views get equal
/// answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View {
    /// The Service.
    pub service: ServiceName,
    /// The requested port.
    pub port: u16,
    /// The hostname that endpoints must have, if any.
    pub hostname: Option<String>,
    /// The zone of the client's node.
    pub zone: Option<String>,
    /// The client's node. It matters under local traffic policy only; elsewhere it may be left out, so that
    /// the clients of a zone share their view.
    pub node: Option<String>,
    /// The part of a Service that is too large; `None`: all of it.
    pub bucket: Option<Bucket>,
    /// The trust domain of the linked cluster whose Service it is; `None`: it is the client's own cluster. Of another
    /// cluster a client sees all there is, wherever it is itself (spec §2.10).
    pub linked: Option<String>,
    /// The Service is one of several that are seen as one, so each address says whose it is (spec §2.11).
    pub member: bool,
}

/// A view at one revision. Equal lenses project equal claims to equal addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    pub(crate) settings: Settings,
    /// `None`: there is no Service, and nothing projects.
    pub(crate) key: Option<PortKey>,
    /// The requested port, which gateways are told.
    pub(crate) requested: u16,
    pub(crate) hostname: Option<String>,
    pub(crate) zone: Option<String>,
    pub(crate) filter: Filter,
    pub(crate) bucket: Option<Bucket>,
    pub(crate) mirror_labels: MirrorLabels,
    /// What each address says of its Service.
    pub(crate) member: Option<ServiceName>,
    set_labels: Labels<'static>,
}

/// Which claims a client may use (spec §2.5), before one family of each target is picked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// All.
    All,
    /// Those with a hint for this zone. All have hints, and one at least has this.
    Zone(String),
    /// Pods on this node; without a node, pods that have none.
    Node(Option<String>),
}

impl Lens {
    /// A view of a Service, `None` if it doesn't exist: then nothing projects. `signatures` are all of the
    /// Service, or for a view with a hostname those of [`hostname_signatures`](crate::hostname_signatures) over all its addresses.
    pub fn new(
        settings: &Settings,
        view: &View,
        service: Option<&Service>,
        signatures: &[(Signature, u64)],
    ) -> Lens {
        let key = service.map(|service| port_key(service, view.port));
        let zone = view.zone.clone().filter(|zone| !zone.is_empty());
        let mut settings = settings.clone();
        if let Some(trust_domain) = &view.linked {
            settings.trust_domain.clone_from(trust_domain);
        }
        let present = || signatures.iter().filter(|(_, count)| *count > 0).map(|(it, _)| it);
        let filter = match (&key, service) {
            _ if view.linked.is_some() => Filter::All,
            (Some(_), Some(service)) if service.local_traffic => Filter::Node(view.node.clone()),
            (Some(key), _) => zone_filter(&settings, key, zone.as_deref(), present()),
            (None, _) => Filter::All,
        };
        let mut set_labels = Labels::default();
        let member = view.member.then(|| view.service.clone());
        if member.is_none() {
            set_labels.set("service", view.service.object.name().to_owned());
            set_labels.set("namespace", view.service.object.namespace().to_owned());
        }
        let mut mirrors = key.as_ref().map(|key| mirrors(key, present())).unwrap_or_default();
        let mirror_labels = match mirrors.len() {
            0 | 1 if member.is_none() => MirrorLabels::OnSet,
            _ => MirrorLabels::OnAddresses,
        };
        if let (MirrorLabels::OnSet, Some(Some(mirror))) = (mirror_labels, mirrors.pop_first()) {
            for (key, value) in mirror.labels() {
                set_labels.set(key, value.to_owned());
            }
        }
        Lens {
            settings,
            key,
            requested: view.port,
            hostname: view.hostname.clone(),
            zone,
            filter,
            bucket: view.bucket,
            mirror_labels,
            member,
            set_labels,
        }
    }

    /// The part of the Service that the view is of; `None`: all of it.
    pub fn bucket(&self) -> Option<Bucket> {
        self.bucket
    }

    /// The hostname that endpoints must have, if any.
    pub fn hostname(&self) -> Option<&str> {
        self.hostname.as_deref()
    }

    /// The labels that all addresses share (spec §2.9.1).
    pub fn set_labels(&self) -> &Labels<'static> {
        &self.set_labels
    }
}
