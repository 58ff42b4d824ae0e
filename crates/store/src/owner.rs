//! Who owns an address, and what stands behind it.

use std::net::IpAddr;
use std::sync::Arc;

use model::{
    ClusterId, Key, Kind, Metadata, ObjectName, Phase, Service, ServiceName, ServiceProfile,
    Source, Template, WorkloadKind,
};

use crate::key::{self, KeyReader, NAME_WHOLE, Named, Owner};
use crate::record::{convert, v3};
use crate::slices::workload_key;
use crate::template::template_key;
use crate::{Error, Snapshot, WakeKey, record};

/// Whose an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owned {
    /// Nobody's that is known.
    Nobody,
    /// A Service's: it is a ClusterIP.
    Service(ObjectName),
    /// A pod's or an ExternalWorkload's.
    Workload(WorkloadKind, ObjectName),
    /// That of several of a kind.
    Several(Claimants, u64),
}

/// Of what kind those are that claim an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimants {
    /// Services, with it as their ClusterIP.
    Services,
    /// Pods, with it as their own.
    Pods,
    /// Pods, with it as the host's, and a port of the host.
    HostPorts,
    /// ExternalWorkloads.
    ExternalWorkloads,
}

/// What an EndpointSlice says of a hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instance {
    /// It is a pod's.
    Pod(ObjectName),
    /// It is that of something else.
    Other,
}

/// A pod or an ExternalWorkload, with what clients see of it.
#[derive(Clone, Debug)]
pub struct Backing {
    /// Its name.
    pub name: ObjectName,
    /// `status.phase`.
    pub phase: Phase,
    /// Its own addresses, in their order.
    pub ips: Vec<IpAddr>,
    /// What clients see of it.
    pub metadata: Arc<Metadata>,
    /// What is touched when they see something else.
    pub wake: WakeKey,
    host_network: bool,
    host_ips: Vec<IpAddr>,
    template: Arc<Template>,
}

impl Backing {
    /// Is an address with a port its own, by one of its own or by the host's? It may be over, or about to be.
    pub fn has(&self, ip: IpAddr, port: u16) -> bool {
        let among = |ips: &[IpAddr]| ips.iter().any(|it| it.to_canonical() == ip.to_canonical());
        let ports = &self.template.ports;
        match self.template.kind {
            WorkloadKind::External => among(&self.ips) && ports.iter().any(|it| it.port == port),
            WorkloadKind::Pod => {
                let on_host = ports.iter().any(|it| it.host_port == Some(port));
                (!self.host_network && among(&self.ips)) || (on_host && among(&self.host_ips))
            }
        }
    }
}

impl Snapshot {
    /// Whose an address with a port is (spec §3.2, §3.4.1): a Service's; a pod's by its own address, whatever its ports; a
    /// pod's by the host's address and port; an ExternalWorkload's by address and port. Pods that are over, or about to
    /// be, don't count.
    pub fn owner(&self, cluster: ClusterId, ip: IpAddr, port: u16) -> Result<Owned, Error> {
        let prefix = key::address(cluster, ip);
        let end = key::prefix_end(&prefix);
        let mut first: Option<(Claimants, Owned)> = None;
        let mut count = 0;
        for entry in self.tables.addresses()?.range(prefix.as_slice()..end.as_slice())? {
            let entry = entry?.0;
            let rest = key::rest(entry.value(), prefix.len());
            let damaged = || Error::Damaged { what: "addresses key", reason: format!("{rest:?}") };
            let owner = Owner::read(rest).ok_or_else(damaged)?;
            let claimants = Claimants::of(&owner);
            if first.as_ref().is_some_and(|(of, _)| *of != claimants) {
                break;
            }
            let owned = match owner {
                Owner::Service { namespace, name } => {
                    Owned::Service(ObjectName::new(namespace, name).map_err(|_| damaged())?)
                }
                Owner::HostPort(there, _) if there != port => continue,
                Owner::Pod(named) | Owner::HostPort(_, named) => {
                    owned_by(&*self.hot().template(self, named.template)?, &named)?
                }
                Owner::External(named) => {
                    let template = self.hot().template(self, named.template)?;
                    if template.ports.iter().all(|there| there.port != port) {
                        continue;
                    }
                    owned_by(&template, &named)?
                }
            };
            count += 1;
            first.get_or_insert((claimants, owned));
        }
        Ok(match first {
            None => Owned::Nobody,
            Some((_, owned)) if count == 1 => owned,
            Some((claimants, _)) => Owned::Several(claimants, count),
        })
    }

    /// A pod or an ExternalWorkload; `None` if it isn't there.
    pub fn workload(
        &self,
        cluster: ClusterId,
        kind: WorkloadKind,
        name: &ObjectName,
    ) -> Result<Option<Backing>, Error> {
        let kind = match kind {
            WorkloadKind::Pod => Kind::Pod,
            WorkloadKind::External => Kind::ExternalWorkload,
        };
        let object = self.object(&key::object(Source { cluster, kind }, name))?;
        let Some(v3::Body::Workload(workload)) = object.and_then(|object| object.body) else {
            return Ok(None);
        };
        let id = workload.template;
        let template = self.hot().template(self, id)?;
        let joined =
            self.tables.templates()?.get(template_key(cluster, &template, id).as_slice())?;
        let metadata = joined.and_then(|bytes| KeyReader(bytes.value()).u32());
        let missing =
            || Error::Damaged { what: "template", reason: format!("{id} joins to nothing") };
        let metadata = self.hot().metadata(self, metadata.ok_or_else(missing)?)?;
        let host_network = workload.is_on_host_network();
        let ips = |ips: Vec<v3::Ip>| ips.into_iter().map(IpAddr::from).collect();
        Ok(Some(Backing {
            name: name.clone(),
            phase: convert::phase_of(workload.phase()),
            ips: ips(workload.ips),
            metadata,
            wake: WakeKey::template(id),
            host_network,
            host_ips: ips(workload.host_ips),
            template,
        }))
    }

    /// Is there such an object?
    pub fn has(&self, key: &Key) -> Result<bool, Error> {
        let object = self.object(&key::object(key.source, &key.name))?;
        Ok(object.is_some_and(|object| object.body.is_some()))
    }

    /// A Service object; `None` if it isn't there.
    pub fn service_object(&self, name: &ServiceName) -> Result<Option<Service>, Error> {
        let source = Source { cluster: name.cluster, kind: Kind::Service };
        match self.object(&key::object(source, &name.object))?.and_then(|object| object.body) {
            Some(v3::Body::Service(service)) => Ok(Some(service.into())),
            _ => Ok(None),
        }
    }

    /// A ServiceProfile. `None`: it isn't there; `Some(None)`: it says nothing that holds.
    pub fn profile(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
    ) -> Result<Option<Option<ServiceProfile>>, Error> {
        let source = Source { cluster, kind: Kind::ServiceProfile };
        match self.object(&key::object(source, name))?.and_then(|object| object.body) {
            Some(v3::Body::Profile(profile)) => {
                Ok(Some(profile.map(ServiceProfile::try_from).transpose()?))
            }
            _ => Ok(None),
        }
    }

    /// Who has a hostname among the endpoints of a Service, ready or not: a pod, if there is one. `None`: nobody has it.
    /// The Service itself need not be there.
    pub fn instance(
        &self,
        service: &ServiceName,
        hostname: &str,
    ) -> Result<Option<Instance>, Error> {
        let Some(id) = self.service(service)?.id() else { return Ok(None) };
        let prefix = key::hostname_prefix(id, hostname);
        let end = key::prefix_end(&prefix);
        let mut found = None;
        for entry in self.tables.instances()?.range(prefix.as_slice()..end.as_slice())? {
            let slice = key::rest(entry?.0.value(), prefix.len()).to_vec();
            let Some(bytes) = self.tables.slices()?.get(slice.as_slice())? else { continue };
            let slice: v3::Slice = record::decode(bytes.value())?;
            let named = |it: &&v3::SliceEndpoint| it.hostname.as_deref() == Some(hostname);
            let pod = slice.endpoints.iter().filter(named).find(|it| it.target == 1);
            found = Some(Instance::Other);
            if let Some(pod) = pod {
                let pod = key::object_name(&workload_key(&slice, pod)?);
                let damaged =
                    || Error::Damaged { what: "slice", reason: "a pod has no name".to_owned() };
                return Ok(Some(Instance::Pod(pod.ok_or_else(damaged)?)));
            }
        }
        Ok(found)
    }
}

/// The workload of this template and name.
fn owned_by(template: &Template, named: &Named<'_>) -> Result<Owned, Error> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let name = match named.name.split_first() {
        Some((&NAME_WHOLE, whole)) => text(whole),
        _ => template.name_prefix.clone() + &text(named.name),
    };
    let damaged = |error: model::NameError| Error::Damaged {
        what: "addresses key",
        reason: error.to_string(),
    };
    let name = ObjectName::new(template.namespace.as_str(), name).map_err(damaged)?;
    Ok(Owned::Workload(template.kind, name))
}

impl Claimants {
    /// As metrics name them.
    pub fn name(self) -> &'static str {
        match self {
            Claimants::Services => "services",
            Claimants::Pods => "pods",
            Claimants::HostPorts => "host_ports",
            Claimants::ExternalWorkloads => "external_workloads",
        }
    }

    fn of(owner: &Owner<'_>) -> Claimants {
        match owner {
            Owner::Service { .. } => Claimants::Services,
            Owner::Pod(_) => Claimants::Pods,
            Owner::HostPort(..) => Claimants::HostPorts,
            Owner::External(_) => Claimants::ExternalWorkloads,
        }
    }
}
