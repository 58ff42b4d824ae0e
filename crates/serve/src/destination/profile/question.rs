//! What a GetProfile asks for, and what it found.

use std::net::{IpAddr, Ipv4Addr};

use model::{ObjectName, ServiceName, WorkloadKind};
use store::WakeKey;

use super::LOCAL;

/// What a GetProfile asks for, as long as it lasts. Equal questions get equal answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) struct Question {
    pub(super) subject: Subject,
    pub(super) port: u16,
    /// The client's namespace, whose ServiceProfiles come first.
    pub(super) client: Option<String>,
}

/// Of what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Subject {
    /// A Service, by the name that was sent.
    Service(ObjectName, String),
    /// An address; `None`: that of a pod that has none yet, and then none is ever looked for (spec §3.4.2).
    Address(Option<IpAddr>),
}

/// What an answer is attached to: it stays there for as long as it may, so what it says depends on it, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) enum Attached {
    /// Nothing, or nothing yet.
    #[default]
    Nothing,
    /// A Service.
    Service(ObjectName),
    /// A Service that had no such port when it was asked for (spec §3.3.1).
    Undefined(ObjectName),
    /// What owns the address.
    Workload(WorkloadKind, ObjectName),
}

impl Question {
    pub(super) fn new(subject: Subject, port: u16, client: Option<String>) -> Question {
        // What can't be a namespace's name isn't kept: a stream is to stay small.
        let client = client.filter(|namespace| ObjectName::new(namespace.as_str(), "x").is_ok());
        Question { subject, port, client }
    }

    /// The ServiceProfiles of a Service, named by its own name: the client's own, and that beside the Service.
    pub(super) fn profiles(&self, service: &ObjectName, domain: &str) -> Vec<ObjectName> {
        let name = resolve::fqn(service, domain);
        let mut namespaces = vec![service.namespace()];
        namespaces.extend(self.client.as_deref().filter(|it| *it != service.namespace()));
        // A namespace that none can have has no ServiceProfiles.
        namespaces
            .into_iter()
            .rev()
            .filter_map(|it| ObjectName::new(it, name.as_str()).ok())
            .collect()
    }

    /// What an answer depends on, as far as that is known before it is looked for.
    pub(super) fn wakes(&self, domain: &str) -> Vec<WakeKey> {
        match &self.subject {
            Subject::Service(service, _) => self.wakes_of(service, domain),
            // Nothing ever owns the unspecified address, but a stream has a place at the hub.
            Subject::Address(ip) => {
                vec![WakeKey::address(LOCAL, ip.unwrap_or(Ipv4Addr::UNSPECIFIED.into()))]
            }
        }
    }

    /// What the answer depends on when it is a Service's.
    pub(super) fn wakes_of(&self, service: &ObjectName, domain: &str) -> Vec<WakeKey> {
        let service_name = ServiceName { cluster: LOCAL, object: service.clone() };
        let profiles = self.profiles(service, domain).into_iter();
        let mut wakes = vec![WakeKey::service_object(&service_name)];
        wakes.extend(profiles.map(|name| WakeKey::profile(LOCAL, &name)));
        wakes
    }
}
