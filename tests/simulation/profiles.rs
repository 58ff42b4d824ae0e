//! Profiles: what a client should be told, from nothing but the objects and what its stream showed before (spec part 3);
//! and a client that holds what it was told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use harness::shown::Said;
use linkerd2_proxy_api::destination as pb;
use model::{
    Kind, Object, Phase, RequestMatch, ResponseMatch, Revision, Route, Service, ServiceProfile,
    Target, Workload, WorkloadKind,
};
use prost::Message as _;
use resolve::Settings;
use serde_json::{Map, Value, json};
use serve::{Message, ProfileAnswer, Turn};
use tonic::Code;

use crate::oracle::{external, is_opaque, pod};
use crate::world::{NAMESPACE, World};
use crate::{Door, Server};

/// What a client dials.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dialed {
    Service(&'static str),
    Instance(&'static str, &'static str),
    Ip([u8; 4]),
}

/// What a stream showed last, as far as it decides what it shows next.
#[derive(Clone, Debug, PartialEq)]
enum Shows {
    Nothing,
    Service(String),
    /// One without the port.
    Undefined(String),
    Workload(WorkloadKind, String),
}

/// What a client should be told.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Profile(Value),
    /// Nothing new.
    Silence,
    Refused(Code),
}

struct Rules<'r> {
    world: &'r World,
    settings: &'r Settings,
    client: Option<&'static str>,
    port: u16,
}

impl Rules<'_> {
    fn of_service(&self, name: &str, shows: &Shows) -> (Told, Shows) {
        let undefined = || (Told::Profile(json!({})), Shows::Undefined(name.to_owned()));
        match (shows, self.world.service(name)) {
            (Shows::Undefined(before), _) if before == name => undefined(),
            (Shows::Service(before), service) if before == name => self.profile(name, service),
            (_, None) => (Told::Refused(Code::Unknown), Shows::Nothing),
            (_, Some(it)) if it.ports.iter().all(|port| port.port != self.port) => undefined(),
            (_, Some(service)) => self.profile(name, Some(service)),
        }
    }

    /// The client's namespace before the Service's; for what is invalid, and where there is none, the default.
    fn profile(&self, name: &str, service: Option<&Service>) -> (Told, Shows) {
        let own = self.client.and_then(|namespace| self.world.profile(namespace, name));
        let found = own.or_else(|| self.world.profile(NAMESPACE, name));
        let default = ServiceProfile::default();
        let profile = match found {
            Some(Object::Profile(Some(profile))) => profile,
            _ => &default,
        };
        let opaque = service.and_then(|service| service.opaque.as_ref());
        let opaque = opaque.unwrap_or(&self.settings.default_opaque).contains(self.port);
        let mut told = Map::new();
        told.insert("fully_qualified_name".to_owned(), json!(format!("{name}.shop.svc.k.test")));
        if opaque {
            told.insert("opaque_protocol".to_owned(), json!(true));
        }
        let parent = json!({"group": "core", "kind": "Service", "name": name,
            "namespace": NAMESPACE, "port": self.port});
        told.insert("parent_ref".to_owned(), json!({"resource": parent}));
        let budget = profile.retry_budget.as_ref();
        let budget = budget.map(|it| (it.ratio.0, it.min_retries_per_second, it.ttl_ns));
        let (ratio, min, ttl) = budget.unwrap_or((0.2, 10, 10_000_000_000));
        let mut budget = Map::new();
        if ratio != 0.0 {
            budget
                .insert("retry_ratio".to_owned(), json!((f64::from(ratio) * 10.0).round() / 10.0));
        }
        if min != 0 {
            budget.insert("min_retries_per_second".to_owned(), json!(min));
        }
        if ttl != 0 {
            budget.insert("ttl".to_owned(), json!(time(ttl)));
        }
        told.insert("retry_budget".to_owned(), Value::Object(budget));
        if !profile.routes.is_empty() {
            let routes: Vec<_> = profile.routes.iter().map(route).collect();
            told.insert("routes".to_owned(), json!(routes));
        }
        let overrides = profile.dst_overrides.iter().map(|to| {
            let authority = match to.authority.as_str() {
                "fd00::1" => format!("[fd00::1]:{}", self.port),
                with_port if with_port.contains(':') => with_port.to_owned(),
                without => format!("{without}:{}", self.port),
            };
            match to.weight {
                0 => json!({"authority": authority}),
                weight => json!({"authority": authority, "weight": weight}),
            }
        });
        let overrides: Vec<_> = overrides.collect();
        if !overrides.is_empty() {
            told.insert("dst_overrides".to_owned(), json!(overrides));
        }
        (Told::Profile(Value::Object(told)), Shows::Service(name.to_owned()))
    }

    fn workloads(&self, kind: Kind) -> impl Iterator<Item = (&str, &Workload)> {
        self.world.all(kind).filter_map(|(name, _, object)| match object {
            Object::Workload(workload) => Some((name, workload)),
            _ => None,
        })
    }

    /// Is the address this pod's, by its own or by the host's?
    fn owns(&self, workload: &Workload, ip: IpAddr, by_host: bool) -> bool {
        let among = |ips: &[IpAddr]| ips.iter().any(|it| it.to_canonical() == ip);
        let on_host = workload.template.ports.iter().any(|it| it.host_port == Some(self.port));
        match by_host {
            false => !workload.host_network && among(&workload.ips),
            true => on_host && among(&workload.host_ips),
        }
    }

    fn of_address(&self, ip: IpAddr, shows: &Shows) -> (Told, Shows) {
        let services: Vec<_> = ["api", "web"]
            .into_iter()
            .filter(|name| self.world.service(name).is_some_and(|it| it.cluster_ips.contains(&ip)))
            .collect();
        match (services.as_slice(), shows) {
            ([], _) => {}
            ([name], _) => return self.of_service(name, shows),
            (several, Shows::Service(before) | Shows::Undefined(before))
                if several.contains(&before.as_str()) =>
            {
                return self.of_service(before, shows);
            }
            _ => return (Told::Refused(Code::FailedPrecondition), Shows::Nothing),
        }
        let live = |it: &Workload| it.phase != Phase::Finished && !it.deleting;
        let pods = |by_host| {
            let pods = self.workloads(Kind::Pod);
            let owners = pods.filter(move |(_, it)| live(it) && self.owns(it, ip, by_host));
            owners.map(|(name, it)| (name.to_owned(), it)).collect::<Vec<_>>()
        };
        let declared = |it: &Workload| {
            it.ips.iter().any(|own| own.to_canonical() == ip)
                && it.template.ports.iter().any(|port| port.port == self.port)
        };
        let external = self.workloads(Kind::ExternalWorkload).filter(|(_, it)| declared(it));
        let external = external.map(|(name, it)| (name.to_owned(), it)).collect::<Vec<_>>();
        let found = [pods(false), pods(true), external].into_iter().find(|it| !it.is_empty());
        let found = found.unwrap_or_default();
        if let [(name, workload)] = found.as_slice()
            && workload.phase == Phase::Running
        {
            return self.endpoint(ip, Some((name, workload)));
        }
        if let Shows::Workload(kind, name) = shows {
            let kind = match kind {
                WorkloadKind::Pod => Kind::Pod,
                WorkloadKind::External => Kind::ExternalWorkload,
            };
            if let Some(Object::Workload(workload)) = self.world.get(kind, name)
                && workload.phase == Phase::Running
                && match kind {
                    Kind::Pod => self.owns(workload, ip, false) || self.owns(workload, ip, true),
                    _ => declared(workload),
                }
            {
                return self.endpoint(ip, Some((name, workload)));
            }
        }
        match found.len() {
            0 | 1 => self.endpoint(ip, None),
            _ => (Told::Refused(Code::FailedPrecondition), Shows::Nothing),
        }
    }

    fn endpoint(&self, ip: IpAddr, workload: Option<(&str, &Workload)>) -> (Told, Shows) {
        let IpAddr::V4(v4) = ip else { unreachable!("only IPv4 addresses are dialled here") };
        let addr = json!({"ip": {"ipv4": u32::from(v4)}, "port": self.port});
        let mut endpoint = Map::new();
        let mut shows = Shows::Nothing;
        let mut opaque = self.settings.default_opaque.contains(self.port);
        let mut is_told = true;
        if let Some((name, workload)) = workload {
            let mut labels = BTreeMap::new();
            let (world, settings, named) = (self.world, self.settings, (name, self.port));
            match workload.template.kind {
                WorkloadKind::Pod => {
                    let told = pod(world, settings, named, workload, &mut labels, &mut endpoint);
                    is_told = told.is_some();
                }
                WorkloadKind::External => {
                    external(world, settings, named, workload, &mut labels, &mut endpoint);
                }
            }
            labels.insert("zone".to_owned(), String::new());
            labels.insert("namespace".to_owned(), NAMESPACE.to_owned());
            endpoint.insert("metric_labels".to_owned(), json!(labels));
            opaque = is_opaque(world, settings, workload, self.port);
            shows = Shows::Workload(workload.template.kind, name.to_owned());
        }
        if !is_told {
            return (Told::Silence, shows);
        }
        endpoint.insert("addr".to_owned(), addr);
        endpoint.insert("weight".to_owned(), json!(10_000));
        let budget = json!({"retry_ratio": 0.2, "min_retries_per_second": 10, "ttl": "10s"});
        let mut told = json!({"endpoint": endpoint, "retry_budget": budget});
        if opaque {
            told["opaque_protocol"] = json!(true);
        }
        (Told::Profile(told), shows)
    }

    /// The pod of a hostname, and its address.
    fn instance(&self, service: &str, hostname: &str) -> Result<(String, Option<IpAddr>), Code> {
        let pods = pods_of(self.world, service, hostname);
        // Which of several is taken is nobody's business; that one of them is, is.
        let (1, Some(pod)) = (pods.len(), pods.first()) else { return Err(Code::NotFound) };
        match self.world.get(Kind::Pod, pod) {
            Some(Object::Workload(workload)) => {
                Ok((pod.clone(), workload.ips.first().map(IpAddr::to_canonical)))
            }
            _ => Err(Code::Unknown),
        }
    }
}

/// The pods that endpoints of a Service with a hostname are of.
fn pods_of(world: &World, service: &str, hostname: &str) -> BTreeSet<String> {
    let mut pods = BTreeSet::new();
    for (_, _, object) in world.all(Kind::EndpointSlice) {
        let Object::Slice(slice) = object else { continue };
        if slice.service.as_ref().is_none_or(|name| name.name() != service) {
            continue;
        }
        let named = slice.endpoints.iter().filter(|it| it.hostname.as_deref() == Some(hostname));
        pods.extend(named.filter_map(|it| match &it.target {
            Target::Pod(name) => Some(name.name().to_owned()),
            _ => None,
        }));
    }
    pods
}

fn time(ns: i64) -> String {
    match ns % 1_000_000_000 / 1_000_000 {
        0 => format!("{}s", ns / 1_000_000_000),
        ms => format!("{}.{ms:03}s", ns / 1_000_000_000),
    }
}

fn route(route: &Route) -> Value {
    let mut told = json!({
        "condition": request(&route.condition), "metrics_labels": {"route": route.name},
    });
    let classes = route.responses.iter().map(|class| match class.failure {
        true => json!({"condition": response(&class.condition), "is_failure": true}),
        false => json!({"condition": response(&class.condition)}),
    });
    let classes: Vec<_> = classes.collect();
    if !classes.is_empty() {
        told["response_classes"] = json!(classes);
    }
    if route.retryable {
        told["is_retryable"] = json!(true);
    }
    if route.timeout_ns != 0 {
        told["timeout"] = json!(time(route.timeout_ns));
    }
    told
}

fn matches(all: Vec<Value>) -> Value {
    if all.is_empty() { json!({}) } else { json!({"matches": all}) }
}

fn request(condition: &RequestMatch) -> Value {
    match condition {
        RequestMatch::All(all) => json!({"all": matches(all.iter().map(request).collect())}),
        RequestMatch::Any(any) => json!({"any": matches(any.iter().map(request).collect())}),
        RequestMatch::Not(not) => json!({"not": request(not)}),
        RequestMatch::Path(regex) => json!({"path": {"regex": regex}}),
        RequestMatch::Method(name) if name == "GET" => json!({"method": {"registered": "GET"}}),
        RequestMatch::Method(name) => json!({"method": {"unregistered": name}}),
    }
}

fn response(condition: &ResponseMatch) -> Value {
    match condition {
        ResponseMatch::All(all) => json!({"all": matches(all.iter().map(response).collect())}),
        ResponseMatch::Any(any) => json!({"any": matches(any.iter().map(response).collect())}),
        ResponseMatch::Not(not) => json!({"not": response(not)}),
        ResponseMatch::Status { min: 0, max } => json!({"status": {"max": max}}),
        ResponseMatch::Status { min, max } => json!({"status": {"min": min, "max": max}}),
    }
}

/// A client of GetProfile.
pub(crate) struct ProfileClient {
    dialed: Dialed,
    port: u16,
    client: Option<&'static str>,
    pub(crate) slow: bool,
    pub(crate) stream: Option<ProfileAnswer>,
    /// The status that refused it.
    refused: Option<Code>,
    held: Option<Value>,
    /// What it was told last on this stream.
    last: Option<bytes::Bytes>,
    /// What its stream shows, by the rules; and the address that was dialled, if it was found by a hostname.
    shows: Shows,
    found: Option<Option<IpAddr>>,
    /// The seed and the step, for whoever has to look for a fault.
    pub(crate) at: (u64, u64),
}

pub(crate) fn clients() -> Vec<ProfileClient> {
    let dialed = [
        (Dialed::Service("web"), 80, Some("team")),
        (Dialed::Service("web"), 81, None),
        (Dialed::Service("api"), 80, Some("shop")),
        (Dialed::Ip([10, 9, 0, 0]), 80, Some("team")),
        (Dialed::Ip([10, 9, 0, 1]), 81, None),
        (Dialed::Ip([10, 0, 0, 0]), 8_080, None),
        (Dialed::Ip([10, 0, 0, 1]), 8_081, None),
        (Dialed::Ip([10, 1, 0, 2]), 8_082, None),
        (Dialed::Ip([10, 0, 0, 3]), 9_999, None),
        (Dialed::Instance("web", "h0"), 8_080, None),
    ];
    let client = |(index, (dialed, port, client))| ProfileClient {
        dialed,
        port,
        client,
        slow: index % 4 == 3,
        stream: None,
        refused: None,
        held: None,
        last: None,
        shows: Shows::Nothing,
        found: None,
        at: (0, 0),
    };
    dialed.into_iter().enumerate().map(client).collect()
}

impl ProfileClient {
    fn path(&self) -> String {
        let port = self.port;
        match self.dialed {
            Dialed::Service(name) => format!("{name}.shop.svc.k.test:{port}"),
            Dialed::Instance(service, name) => format!("{name}.{service}.shop.svc.k.test:{port}"),
            Dialed::Ip(ip) => format!("{}:{port}", IpAddr::from(ip)),
        }
    }

    fn told(&mut self, world: &World, settings: &Settings) -> Told {
        let rules = Rules { world, settings, client: self.client, port: self.port };
        let (told, shows) = match (self.dialed, self.found) {
            (Dialed::Service(name), _) => rules.of_service(name, &self.shows),
            (Dialed::Ip(ip), _) => rules.of_address(ip.into(), &self.shows),
            (_, Some(Some(ip))) => rules.of_address(ip, &self.shows),
            (_, Some(None)) => (Told::Silence, self.shows.clone()),
            (Dialed::Instance(service, name), None) => match rules.instance(service, name) {
                Ok((pod, ip)) => {
                    self.found = Some(ip);
                    self.shows = Shows::Workload(WorkloadKind::Pod, pod);
                    return self.told(world, settings);
                }
                Err(code) => (Told::Refused(code), Shows::Nothing),
            },
        };
        self.shows = shows;
        told
    }

    /// Is what it asks for decided by the rules? Of several pods with one hostname any may be taken.
    fn is_decided(&self, world: &World) -> bool {
        let Dialed::Instance(service, hostname) = self.dialed else { return true };
        pods_of(world, service, hostname).len() < 2
    }

    async fn open(&mut self, server: &Server) {
        let token = format!("ns:{}", self.client.unwrap_or_default());
        let destination = &server.door(self.slow).destination;
        self.last = None;
        self.stream = None;
        match destination.get_profile(&self.path(), &token, &Turn::default()).await {
            Ok(stream) => (self.stream, self.refused) = (Some(stream), None),
            Err(status) => self.refused = Some(status.code()),
        }
    }

    /// Takes all that there is to take, and compares it with what the rules say.
    pub(crate) async fn settle(&mut self, server: &Server, world: &World, revision: Revision) {
        if self.stream.is_none() {
            (self.shows, self.found, self.held) = (Shows::Nothing, None, None);
            if !self.is_decided(world) {
                return;
            }
            self.open(server).await;
        }
        self.take_all(server.door(self.slow), revision).await;
        let mut told = self.told(world, &server.settings);
        if let (Told::Refused(_), None, None) = (&told, &self.stream, self.refused) {
            // It had been told otherwise, and asks again.
            (self.shows, self.found, self.held) = (Shows::Nothing, None, None);
            if !self.is_decided(world) {
                return;
            }
            self.open(server).await;
            self.take_all(server.door(self.slow), revision).await;
            told = self.told(world, &server.settings);
        }
        let ((seed, step), path) = (self.at, self.path());
        let case = format!("seed {seed}, step {step}, {path}, {:?}", self.shows);
        match told {
            Told::Refused(code) => assert_eq!(self.refused, Some(code), "{case}"),
            told => {
                assert!(self.stream.is_some(), "{case}: refused with {:?}", self.refused);
                if let Told::Profile(profile) = told {
                    let held = self.held.clone().unwrap_or_default();
                    assert_eq!(held, profile, "{case}\nheld {held:#}\nnot {profile:#}");
                }
            }
        }
    }

    async fn take_all(&mut self, door: &Door, revision: Revision) {
        while let Some(mut stream) = self.stream.take() {
            tokio::select! {
                biased;
                message = stream.next() => match message {
                    Some(Ok(message)) => {
                        self.take(&message);
                        self.stream = Some(stream);
                    }
                    // What was asked for is gone.
                    Some(Err(status)) => assert_eq!(status.code(), Code::Unavailable, "{status}"),
                    None => panic!("the stream ended"),
                },
                () = door.hub.settled(revision) => {
                    self.stream = Some(stream);
                    return;
                }
            }
        }
    }

    fn take(&mut self, message: &Message) {
        let profile = pb::DestinationProfile::decode(message.bytes()).expect("a message");
        let Ok(Said::Profile(profile)) = Said::profile(&profile) else { panic!("no profile") };
        let bytes = message.bytes();
        assert_ne!(self.last.as_ref(), Some(&bytes), "{:?}: an equal message", self.at);
        self.last = Some(bytes);
        self.held = Some(profile);
    }
}
