//! Why a profile is what it is: for those who look at a server, not for proxies. What a client would be told is asked
//! of the very function that tells it; here is said where that comes from.

mod words;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use model::{ObjectName, Phase, Service, ServiceName, WorkloadKind};
use resolve::Dialed;
use serde::{Deserialize, Serialize};
use store::{Backing, Owned, Snapshot};
use tonic::Status;

use super::question::{Attached, Question, Subject};
use super::read::{self, Outcome};
use super::{LOCAL, wire};
use crate::destination::delta::Answers;
use crate::destination::reads::Reader;
use crate::destination::shared::{Failure, Shared};

/// Why the answer to a GetProfile is what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileExplanation {
    /// What was asked for.
    pub authority: String,
    /// The revision of the store that was looked at.
    pub revision: u64,
    /// What the answer is.
    pub answer: ProfileVerdict,
    /// What it is a profile of, such as `Service shop/web` or `Pod shop/web-0`.
    pub owner: Option<String>,
    /// The ServiceProfile that it is made from.
    pub service_profile: Option<String>,
    /// Connections are not to be looked into.
    pub opaque: bool,
    /// What decides, in the order in which it does.
    pub reasons: Vec<ProfileReason>,
}

/// What the answer to a GetProfile is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileVerdict {
    /// A Service's profile.
    Service,
    /// An address's, and that of what owns it.
    Endpoint,
    /// One that says nothing: a proxy asks for its policy.
    Empty,
    /// Nothing is said for now, and the stream is open.
    Silence,
    /// It is refused.
    Refused,
}

/// One of the things that decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileReason {
    /// What it decides: `owner`, `port`, `service profile`, `opaque` or `answer`.
    pub about: String,
    /// How, and why.
    pub reason: String,
    /// The section of the specification that says so.
    pub rule: String,
}

/// Looks at what is dialled with the eyes of a client that asks for the first time.
pub(in super::super) async fn explain(
    shared: &Arc<Shared>,
    path: &str,
    token: &str,
) -> Result<ProfileExplanation, Status> {
    let (dialed, port) = resolve::dialed(path, &shared.answers.settings.cluster_domain)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let failed = |failure: Failure| Status::unavailable(failure.to_string());
    let synced = shared.synced().await.map_err(failed)?;
    let (authority, client) = (path.to_owned(), resolve::caller(token).namespace);
    let read = move |shared: &Shared, snapshot: &Snapshot, _| {
        let about = ProfileExplanation {
            authority,
            revision: snapshot.revision().0,
            answer: ProfileVerdict::Silence,
            owner: None,
            service_profile: None,
            opaque: false,
            reasons: Vec::new(),
        };
        let question = Question::new(Subject::Address(None), port, client);
        let mut explaining = Explaining { snapshot, answers: &shared.answers, question, about };
        explaining.look(shared, dialed)?;
        if !synced {
            explaining.about.answer = ProfileVerdict::Refused;
            explaining.say("answer", "Unavailable before all is listed once", "spec §1.5");
        }
        Ok(explaining.about)
    };
    shared.read(&Reader::Server, read).await.map_err(failed)
}

/// An explanation in the making.
struct Explaining<'e> {
    snapshot: &'e Snapshot,
    answers: &'e Answers,
    question: Question,
    about: ProfileExplanation,
}

impl Explaining<'_> {
    fn say(&mut self, about: &str, reason: impl Into<String>, rule: &str) {
        let (about, reason, rule) = (about.to_owned(), reason.into(), rule.to_owned());
        self.about.reasons.push(ProfileReason { about, reason, rule });
    }

    fn look(&mut self, shared: &Shared, dialed: Dialed) -> Result<(), store::Error> {
        let mut attached = Attached::Nothing;
        self.question.subject = match dialed {
            Dialed::Service { service, fqn } => Subject::Service(service, fqn),
            Dialed::Ip(ip) => Subject::Address(Some(ip)),
            Dialed::Instance { service, hostname } => {
                let found =
                    read::instance(self.snapshot, shared.endpoints(), service.clone(), &hostname)?;
                match found {
                    Ok((ip, pod)) => {
                        self.instance(&format!("{hostname} of Service {service}"), &pod, ip)?;
                        attached = Attached::Workload(WorkloadKind::Pod, pod);
                        Subject::Address(ip)
                    }
                    Err(refusal) => {
                        self.refused(&refusal);
                        return Ok(());
                    }
                }
            }
        };
        let outcome = read::outcome(self.snapshot, &self.question, &attached, self.answers)?;
        self.about.answer = match &outcome {
            Outcome::Refused(_) => ProfileVerdict::Refused,
            Outcome::Said(_, None) => ProfileVerdict::Silence,
            Outcome::Said(held, Some(_)) => match &held.attached {
                Attached::Service(_) => ProfileVerdict::Service,
                Attached::Undefined(_) => ProfileVerdict::Empty,
                Attached::Workload(..) | Attached::Nothing => ProfileVerdict::Endpoint,
            },
        };
        match self.question.subject.clone() {
            Subject::Service(service, fqn) => {
                self.say("owner", format!("{fqn} names Service {service}"), "spec §1.6");
                self.service(&service, &fqn)?;
            }
            Subject::Address(None) => {
                let reason = "without an address it has no profile, and none is looked for later";
                self.say("answer", reason, "spec §3.4.2");
            }
            Subject::Address(Some(ip)) => self.address(ip, &outcome)?,
        }
        if let Outcome::Refused(refusal) = &outcome {
            self.refused(refusal);
        }
        Ok(())
    }

    fn refused(&mut self, refusal: &read::Refusal) {
        let status = refusal.status(&self.about.authority);
        self.about.answer = ProfileVerdict::Refused;
        self.say("answer", format!("{:?}: {}", status.code(), status.message()), "spec §1.5");
    }

    /// What there is to say of the pod that has a hostname.
    fn instance(
        &mut self,
        hostname: &str,
        pod: &ObjectName,
        ip: Option<IpAddr>,
    ) -> Result<(), store::Error> {
        let at = ip.map_or("without an address".to_owned(), |ip| format!("at {ip}"));
        let standing = self.snapshot.workload(LOCAL, WorkloadKind::Pod, pod)?;
        let phase = match standing.map(|standing| standing.phase) {
            Some(Phase::Pending) => ", which doesn't run yet",
            Some(Phase::Finished) => ", which is finished",
            Some(Phase::Running) | None => "",
        };
        self.say("owner", format!("{hostname} is Pod {pod}, {at}{phase}"), "spec §3.4.2");
        Ok(())
    }

    /// What there is to say of a Service.
    fn service(&mut self, name: &ObjectName, fqn: &str) -> Result<(), store::Error> {
        let of = ServiceName { cluster: LOCAL, object: name.clone() };
        let Some(service) = self.snapshot.service_object(&of)? else { return Ok(()) };
        self.about.owner = Some(format!("Service {name}"));
        let port = self.question.port;
        let ports = words::ports(&service.ports);
        if service.ports.iter().all(|it| it.port != port) {
            let reason = format!(
                "{port} is none of the Service's ports ({ports}): a proxy asks for its policy"
            );
            self.say("port", reason, "spec §3.3.1");
            return Ok(());
        }
        self.say("port", format!("{port} is one of the Service's ports: {ports}"), "spec §3.3.1");
        if service.external_name {
            self.say("owner", "its type is ExternalName", "spec §3.3.1");
            return Ok(());
        }
        self.opaque_service(&service);
        self.service_profile(name, fqn)
    }

    fn opaque_service(&mut self, service: &Service) {
        let port = self.question.port;
        let (opaque, reason) = match &service.opaque {
            Some(ports) => words::annotated("the Service", ports, port),
            None => self.by_default(&words::without_annotation("the Service")),
        };
        self.about.opaque = opaque;
        self.say("opaque", reason, "spec §3.3.4");
    }

    /// Which ServiceProfile is taken: the first of its name that is there, whatever is in it.
    fn service_profile(&mut self, service: &ObjectName, fqn: &str) -> Result<(), store::Error> {
        let domain = &self.answers.settings.cluster_domain;
        for name in self.question.profiles(service, domain) {
            let whose = match name.namespace() == service.namespace() {
                true => "the Service's namespace",
                false => "the client's namespace",
            };
            let Some(found) = self.snapshot.profile(LOCAL, &name)? else {
                let reason = format!("there is no {name}, in {whose}");
                self.say("service profile", reason, "spec §3.3.3");
                continue;
            };
            let Some(profile) = found else {
                let reason = format!("{name}, in {whose}, is invalid: the default stands for it");
                self.say("service profile", reason, "spec Q24");
                return Ok(());
            };
            let (port, opaque, max) =
                (self.question.port, self.about.opaque, self.answers.message_bytes_max);
            let of = wire::OfService { service, fqn, port, opaque };
            if wire::service_profile(&of, Some((&name, &profile))).bytes().len() > max {
                let reason = format!(
                    "{name} is larger than a message of {max} bytes: the default stands for it"
                );
                self.say("service profile", reason, "the limit of a message");
                return Ok(());
            }
            self.about.service_profile = Some(name.to_string());
            self.say("service profile", format!("{name}, in {whose}"), "spec §3.3.3");
            return Ok(());
        }
        if self.question.client.is_none() {
            let reason = "the token names no namespace of the client, where one might be";
            self.say("service profile", reason, "spec §3.3.3");
        }
        self.say("service profile", "there is none, so the default is taken", "spec §3.3.3");
        Ok(())
    }

    /// What there is to say of an address.
    fn address(&mut self, ip: IpAddr, outcome: &Outcome) -> Result<(), store::Error> {
        let port = self.question.port;
        let owned = self.snapshot.owner(LOCAL, ip, port)?;
        if let Owned::Service(service) = &owned {
            self.say("owner", format!("{ip} is a ClusterIP of Service {service}"), "spec §3.2");
            let fqn = resolve::fqn(service, &self.answers.settings.cluster_domain);
            return self.service(service, &fqn);
        }
        match &owned {
            Owned::Workload(kind, name) => {
                if let Some(standing) = self.snapshot.workload(LOCAL, *kind, name)? {
                    let reason = words::has_address(&standing, ip, port);
                    self.say("owner", reason, "spec §3.4.1");
                }
            }
            // A refusal says so; who is attached nevertheless is told of below.
            Owned::Several(..) | Owned::Service(_) => {}
            Owned::Nobody => {
                self.say("owner", words::nobodys(SocketAddr::new(ip, port)), "spec §3.4.1");
            }
        }
        let Outcome::Said(held, message) = outcome else { return Ok(()) };
        let attached = match &held.attached {
            Attached::Workload(kind, name) => {
                if owned != Owned::Workload(*kind, name.clone()) {
                    let reason = format!(
                        "{ip} stays that of Pod {name} while it runs, unless another one that runs has it alone"
                    );
                    self.say("owner", reason, "spec §3.4.2");
                }
                self.snapshot.workload(LOCAL, *kind, name)?
            }
            _ => None,
        };
        self.about.owner = attached.as_ref().map(words::named);
        self.opaque_endpoint(attached.as_ref());
        if message.is_none() {
            let reason =
                "it is meshed, and not all ports of its proxy are known, so nothing is said";
            self.say("answer", reason, "spec §2.9.3");
        }
        Ok(())
    }

    fn opaque_endpoint(&mut self, standing: Option<&Backing>) {
        let port = self.question.port;
        let Some(standing) = standing else {
            let (opaque, reason) = self.by_default("nobody has the address");
            self.about.opaque = opaque;
            return self.say("opaque", reason, "spec §3.4.4");
        };
        let of = words::named(standing);
        let (by_annotation, reason) = match &standing.metadata.opaque {
            Some(ports) => words::annotated(&of, ports, port),
            None => self.by_default(&words::without_annotation(&of)),
        };
        let by_server = standing.metadata.opaque_by_server.contains(port);
        self.about.opaque = by_annotation || by_server;
        self.say("opaque", reason, "spec §2.8");
        if !by_annotation {
            let (word, a) = if by_server { ("yes", "a") } else { ("no", "no") };
            let reason = format!("{word}: {a} Server that selects {of} makes port {port} opaque");
            self.say("opaque", reason, "spec §2.7");
        }
    }

    /// Is the port opaque, for who has no annotation?
    fn by_default(&self, why: &str) -> (bool, String) {
        let ports = &self.answers.settings.default_opaque;
        words::judged(&format!("{why}, and --default-opaque-ports"), ports, self.question.port)
    }
}
