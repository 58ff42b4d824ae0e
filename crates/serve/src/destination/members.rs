//! Whose endpoints a Get is answered with: those of the Service that it names, of one in a linked cluster, or of several in
//! several clusters (spec §1.6, §2.10, §2.11).

use std::collections::BTreeSet;

use model::{ClusterId, EndpointsFrom, Flow, Remote, ServiceName, StoredPart};
use store::{Snapshot, WakeKey};

/// What is asked for, as far as it decides who answers: the Service, and the flow that its requests took when the stream was
/// opened. A stream keeps its flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Asked {
    pub(super) service: ServiceName,
    pub(super) flow: Flow,
}

/// Those whose endpoints answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) state: State,
    pub(super) list: Vec<Member>,
    /// What this depends on, and what their answers do; each key once.
    pub(super) wakes: Vec<WakeKey>,
}

/// A Service whose endpoints answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) service: ServiceName,
    /// The trust domain of its cluster, if that is a linked one.
    pub(super) linked: Option<String>,
}

/// Can there be an answer?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Yes, from those who are there.
    #[default]
    Open,
    /// Not yet: nobody who could answer has been listed.
    Loading,
    /// No: the cluster isn't linked.
    NotLinked,
    /// No: the federated Service isn't there.
    Gone,
    /// Not this one any more: the Service is not federated now, so it is to be asked for anew.
    Changed,
}

impl Members {
    /// The Service itself.
    pub(super) fn own(service: &ServiceName) -> Members {
        let member = Member { service: service.clone(), linked: None };
        Members { state: State::Open, list: vec![member], wakes: vec![WakeKey::service(service)] }
    }

    /// What is known to matter before anything was read.
    pub(super) fn unread(asked: &Asked) -> Members {
        let wakes = match &asked.flow {
            Flow::Own => return Members::own(&asked.service),
            Flow::Mirror(cluster, _) => vec![WakeKey::link(cluster)],
            Flow::Federated => vec![WakeKey::service_object(&asked.service)],
        };
        Members { state: State::Loading, list: Vec::new(), wakes }
    }

    /// Those that there are, with the links that Secrets of this namespace declare.
    pub(super) fn read(
        asked: &Asked,
        snapshot: &Snapshot,
        controller_namespace: &str,
        endpoints: EndpointsFrom,
    ) -> Result<Members, store::Error> {
        let namespace = asked.service.object.namespace();
        let (remotes, local) = match &asked.flow {
            Flow::Own => return Ok(Members::own(&asked.service)),
            Flow::Mirror(cluster, service) => {
                let service = service.as_deref().unwrap_or_default();
                let service = model::ObjectName::new(namespace, service).ok();
                let remote = service.map(|service| Remote { cluster: cluster.clone(), service });
                (remote.into_iter().collect(), None)
            }
            Flow::Federated => {
                let rows = snapshot.service(&asked.service)?;
                let object = rows.object(snapshot.revision())?;
                let discovery = object.service().map(|service| &service.discovery);
                match discovery {
                    None => return Ok(Members { state: State::Gone, ..Members::unread(asked) }),
                    Some(it) if it.flow() != Flow::Federated => {
                        return Ok(Members { state: State::Changed, ..Members::unread(asked) });
                    }
                    Some(it) => (it.remotes(namespace), it.local_member(namespace)),
                }
            }
        };
        let mut links = BTreeSet::new();
        snapshot.links(controller_namespace, &mut |_, link| {
            links.extend(link.map(|link| link.cluster));
        })?;
        let mut members = Members::unread(asked);
        let (mut linked, mut loading) = (false, false);
        for remote in remotes {
            members.depends_on(WakeKey::link(&remote.cluster));
            if !links.contains(&remote.cluster) {
                continue;
            }
            linked = true;
            let part = snapshot.part_with(&remote.cluster, namespace)?;
            match part {
                Some(part) if snapshot.is_listed(part.id, endpoints)? => {
                    members.add(remote, part);
                }
                _ => loading = true,
            }
        }
        if let Some(object) = local {
            let service = ServiceName { cluster: ClusterId::LOCAL, object };
            members.depends_on(WakeKey::service(&service));
            members.list.push(Member { service, linked: None });
        }
        members.state = match &asked.flow {
            Flow::Mirror(..) if !linked => State::NotLinked,
            _ if members.list.is_empty() && loading => State::Loading,
            _ => State::Open,
        };
        Ok(members)
    }

    fn add(&mut self, remote: Remote, part: StoredPart) {
        let service = ServiceName { cluster: part.id, object: remote.service };
        self.depends_on(WakeKey::service(&service));
        self.list.push(Member { service, linked: Some(part.origin.trust_domain) });
    }

    fn depends_on(&mut self, key: WakeKey) {
        if !self.wakes.contains(&key) {
            self.wakes.push(key);
        }
    }
}
