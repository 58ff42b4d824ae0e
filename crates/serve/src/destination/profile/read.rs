//! From the store to what a client is told: a function of the records, and of what the client's stream is attached to.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use model::{
    EndpointsFrom, Key, Kind, ObjectName, Phase, Service, ServiceName, ServiceProfile, Source,
    WorkloadKind,
};
use siphasher::sip::SipHasher13;
use store::{Backing, Claimants, Instance, Owned, Snapshot, WakeKey};
use tonic::Status;

use super::question::{Attached, Question, Subject};
use super::{Held, LOCAL, wire};
use crate::destination::delta::Answers;
use crate::destination::shared::Shared;
use crate::destination::wire::Message;

/// What there is to say.
#[derive(Clone, Debug)]
pub(in super::super) enum Outcome {
    /// This; no message, if there is nothing to say of what it is attached to.
    Said(Arc<Held>, Option<Message>),
    /// Nothing, and why.
    Refused(Refusal),
}

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Refusal {
    /// The Service isn't there.
    NoService(ObjectName),
    /// The Service stands for a name elsewhere.
    ExternalName(ObjectName),
    /// Several claim the address.
    Several(Claimants, u64, IpAddr, u16),
    /// No endpoint of the Service has the hostname, or none that is a pod.
    NoInstance(ObjectName, String),
    /// The same in Endpoints mode, where there are no Endpoints at all.
    NoEndpoints(ObjectName),
    /// The endpoint's pod isn't there.
    NoPod(ObjectName),
}

impl Refusal {
    /// The status of spec §1.5.
    pub(super) fn status(&self, path: &str) -> Status {
        let text = self.to_string();
        match self {
            Refusal::NoService(_) | Refusal::NoEndpoints(_) | Refusal::NoPod(_) => {
                Status::unknown(text)
            }
            Refusal::ExternalName(_) => {
                Status::invalid_argument(format!("Invalid authority: {path}"))
            }
            Refusal::Several(..) => Status::failed_precondition(text),
            Refusal::NoInstance(..) => Status::not_found(text),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoService(name) => write!(f, "service {:?} not found", name.name()),
            Refusal::ExternalName(name) => write!(f, "Service {name} is an ExternalName"),
            Refusal::Several(claimants, count, ip, port) => match claimants {
                Claimants::Services => {
                    write!(f, "found {count} services with conflicting cluster IP {ip}")
                }
                Claimants::Pods => {
                    write!(f, "found {count} pods with a conflicting pod network IP {ip}")
                }
                Claimants::HostPorts => {
                    write!(
                        f,
                        "found {count} pods with a conflicting host network endpoint {ip}:{port}"
                    )
                }
                Claimants::ExternalWorkloads => {
                    write!(f, "found {count} externalworkloads with a conflicting ip {ip}:{port}")
                }
            },
            Refusal::NoInstance(service, hostname) => write!(
                f,
                "no pod found in EndpointSlices of Service {service} for hostname {hostname}"
            ),
            Refusal::NoEndpoints(name) => write!(f, "endpoints {:?} not found", name.name()),
            Refusal::NoPod(name) => write!(f, "pod {:?} not found", name.name()),
        }
    }
}

/// The pod that has a hostname in a Service, with its first address (spec §3.4.2).
pub(super) fn instance(
    snapshot: &Snapshot,
    endpoints: EndpointsFrom,
    service: ObjectName,
    hostname: &str,
) -> Result<Result<(Option<IpAddr>, ObjectName), Refusal>, store::Error> {
    let name = ServiceName { cluster: LOCAL, object: service.clone() };
    let Some(Instance::Pod(pod)) = snapshot.instance(&name, hostname)? else {
        let source = Source { cluster: LOCAL, kind: Kind::Endpoints };
        let there = endpoints == EndpointsFrom::Slices
            || snapshot.has(&Key { source, name: service.clone() })?;
        return Ok(Err(match there {
            true => Refusal::NoInstance(service, hostname.to_owned()),
            false => Refusal::NoEndpoints(service),
        }));
    };
    Ok(match snapshot.workload(LOCAL, WorkloadKind::Pod, &pod)? {
        Some(standing) => Ok((standing.ips.first().map(IpAddr::to_canonical), pod)),
        None => Err(Refusal::NoPod(pod)),
    })
}

/// What there is to say.
pub(super) fn outcome(
    snapshot: &Snapshot,
    question: &Question,
    attached: &Attached,
    answers: &Answers,
) -> Result<Outcome, store::Error> {
    let looking = Looking { snapshot, question, answers };
    match &question.subject {
        Subject::Service(service, fqn) => looking.by_name(attached, service, fqn),
        Subject::Address(Some(ip)) => looking.by_address(attached, *ip),
        Subject::Address(None) => Ok(looking.said(attached.clone(), None, None, None)),
    }
}

struct Looking<'l> {
    snapshot: &'l Snapshot,
    question: &'l Question,
    answers: &'l Answers,
}

impl Looking<'_> {
    fn by_name(
        &self,
        attached: &Attached,
        service: &ObjectName,
        fqn: &str,
    ) -> Result<Outcome, store::Error> {
        let object = self.service(service)?;
        // What a stream was once told of a Service it goes on being told, whatever becomes of that.
        match (attached, object) {
            (Attached::Undefined(_), _) => Ok(self.undefined(service)),
            (Attached::Service(_), object) => self.profile(service, fqn, object.as_ref()),
            (_, None) => Ok(Outcome::Refused(Refusal::NoService(service.clone()))),
            (_, Some(object)) if !object.ports.iter().any(|it| it.port == self.question.port) => {
                Ok(self.undefined(service))
            }
            (_, Some(object)) if object.external_name => {
                Ok(Outcome::Refused(Refusal::ExternalName(service.clone())))
            }
            (_, Some(object)) => self.profile(service, fqn, Some(&object)),
        }
    }

    fn by_address(&self, attached: &Attached, ip: IpAddr) -> Result<Outcome, store::Error> {
        let port = self.question.port;
        let owned = self.snapshot.owner(LOCAL, ip, port)?;
        match (&owned, attached) {
            (Owned::Service(service), _) => return self.of_service(attached, service),
            (
                Owned::Several(Claimants::Services, _),
                Attached::Service(service) | Attached::Undefined(service),
            ) if self.service(service)?.is_some_and(|it| it.cluster_ips.contains(&ip)) => {
                return self.of_service(attached, service);
            }
            _ => {}
        }
        let standing = match &owned {
            Owned::Workload(kind, name) => self.snapshot.workload(LOCAL, *kind, name)?,
            _ => None,
        };
        if let Some(standing) = standing.filter(|standing| standing.phase == Phase::Running) {
            return Ok(self.endpoint(ip, Some(standing)));
        }
        // A pod that is about to be over stays for as long as it runs and nobody else does.
        if let Attached::Workload(kind, name) = attached
            && let Some(standing) = self.snapshot.workload(LOCAL, *kind, name)?
            && standing.phase == Phase::Running
            && standing.has(ip, port)
        {
            return Ok(self.endpoint(ip, Some(standing)));
        }
        Ok(match owned {
            Owned::Several(claimants, count) => {
                Outcome::Refused(Refusal::Several(claimants, count, ip, port))
            }
            _ => self.endpoint(ip, None),
        })
    }

    /// As if the Service whose address it is had been asked for by its name.
    fn of_service(
        &self,
        attached: &Attached,
        service: &ObjectName,
    ) -> Result<Outcome, store::Error> {
        let same =
            matches!(attached, Attached::Service(it) | Attached::Undefined(it) if it == service);
        let attached = if same { attached } else { &Attached::Nothing };
        let fqn = resolve::fqn(service, &self.answers.settings.cluster_domain);
        self.by_name(attached, service, &fqn)
    }

    fn service(&self, name: &ObjectName) -> Result<Option<Service>, store::Error> {
        self.snapshot.service_object(&ServiceName { cluster: LOCAL, object: name.clone() })
    }

    /// The profile of a Service, which perhaps isn't there any more (spec §3.3).
    fn profile(
        &self,
        service: &ObjectName,
        fqn: &str,
        object: Option<&Service>,
    ) -> Result<Outcome, store::Error> {
        let settings = &self.answers.settings;
        let mut profile = None;
        for name in self.question.profiles(service, &settings.cluster_domain) {
            if let Some(found) = self.snapshot.profile(LOCAL, &name)? {
                profile = found.map(|found| (name, found));
                break;
            }
        }
        let opaque = object.and_then(|object| object.opaque.as_ref());
        let opaque = opaque.unwrap_or(&settings.default_opaque).contains(self.question.port);
        let found = profile.as_ref().map(|(name, profile)| (name, profile));
        let message = self.service_message(service, fqn, opaque, found);
        Ok(self.said(Attached::Service(service.clone()), Some(message), Some(service), None))
    }

    fn service_message(
        &self,
        service: &ObjectName,
        fqn: &str,
        opaque: bool,
        profile: Option<(&ObjectName, &ServiceProfile)>,
    ) -> Message {
        let of = wire::OfService { service, fqn, port: self.question.port, opaque };
        let message = wire::service_profile(&of, profile);
        let (bytes, bytes_max) = (message.bytes().len(), self.answers.message_bytes_max);
        match profile {
            Some((name, _)) if bytes > bytes_max => {
                tracing::warn!(%name, bytes, bytes_max, "a ServiceProfile is too large for a message; the default stands for it");
                wire::service_profile(&of, None)
            }
            _ => message,
        }
    }

    /// The Service has no such port: a proxy asks for its policy instead (spec §3.3.1).
    fn undefined(&self, service: &ObjectName) -> Outcome {
        let attached = Attached::Undefined(service.clone());
        self.said(attached, Some(wire::empty()), Some(service), None)
    }

    /// The profile of an address, and of what owns it (spec §3.4).
    fn endpoint(&self, ip: IpAddr, standing: Option<Backing>) -> Outcome {
        let (port, settings) = (self.question.port, &self.answers.settings);
        let workload = standing.as_ref().map(|it| (it.name.name(), &*it.metadata));
        let endpoint = resolve::endpoint(settings, ip, port, workload);
        let message = endpoint.map(|it| wire::endpoint_profile(&it, self.answers.http2.as_ref()));
        let attached = standing.as_ref().map_or(Attached::Nothing, |standing| {
            Attached::Workload(standing.metadata.kind, standing.name.clone())
        });
        self.said(attached, message, None, standing.map(|standing| standing.wake))
    }

    fn said(
        &self,
        attached: Attached,
        message: Option<Message>,
        service: Option<&ObjectName>,
        other: Option<WakeKey>,
    ) -> Outcome {
        let domain = &self.answers.settings.cluster_domain;
        let mut wakes = self.question.wakes(domain);
        if let (Subject::Address(_), Some(service)) = (&self.question.subject, service) {
            wakes.extend(self.question.wakes_of(service, domain));
        }
        wakes.extend(other);
        let digest = message.as_ref().map_or(0, |message| digest(&message.frame));
        Outcome::Said(Arc::new(Held { attached, wakes: wakes.into(), digest }), message)
    }
}

/// A number for a message, by which it is known again. Not 0.
fn digest(frame: &[u8]) -> u64 {
    SipHasher13::new().hash(frame).max(1)
}

impl Outcome {
    /// Bytes that it takes, about.
    pub(in super::super) fn bytes(&self) -> usize {
        match self {
            Outcome::Said(_, Some(message)) => message.frame.len(),
            Outcome::Said(_, None) | Outcome::Refused(_) => 0,
        }
    }

    /// The same, counted as made and among what is in memory.
    pub(super) fn counted(self, shared: &Shared) -> Outcome {
        let Outcome::Said(held, Some(mut message)) = self else { return self };
        shared.metrics.encoded(message.frame.len());
        message.frame = shared.afloat.count(message.frame);
        Outcome::Said(held, Some(message))
    }
}
