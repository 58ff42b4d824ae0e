//! What a client should hold, from nothing but the objects: the rules of spec part 2 for a whole Service at once, as
//! slowly as can be.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use harness::shown::Shown;
use model::{
    Family, Kind, Object, OwnerRef, Server, ServerPort, Service, Slice, SliceEndpoint, Target,
    Workload, WorkloadKind,
};
use resolve::Settings;
use serde_json::{Map, Value, json};

use crate::world::{NAMESPACE, World};

/// What a client asks for.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) service: String,
    pub(crate) port: u16,
    pub(crate) hostname: Option<&'static str>,
    pub(crate) node: Option<&'static str>,
}

/// What stands behind an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Pod,
    External,
    Bare,
}

struct Candidate<'w> {
    class: Class,
    v6: bool,
    name: &'w str,
    workload: Option<&'w Workload>,
    port: u16,
    slice: &'w Slice,
    endpoint: &'w SliceEndpoint,
}

/// The set that a client with these settings holds once it was told all.
pub(crate) fn truth(world: &World, settings: &Settings, question: &Question) -> Shown {
    match world.service(&question.service) {
        Some(service) => seen(world, settings, question, service, (zone(world, question), true)),
        None => Shown::new(),
    }
}

/// The zone of a client in this cluster.
pub(crate) fn zone<'w>(world: &'w World, question: &Question) -> Option<&'w str> {
    match world.get(Kind::Node, question.node?) {
        Some(Object::Node { zone }) => zone.as_deref().filter(|zone| !zone.is_empty()),
        _ => None,
    }
}

/// What of a Service is seen from a zone. Whether it is filtered by that, or by the client's node, is another question.
pub(crate) fn seen(
    world: &World,
    settings: &Settings,
    question: &Question,
    service: &Service,
    (zone, filtered): (Option<&str>, bool),
) -> Shown {
    let mut usable = candidates(world, settings, question, service);
    if filtered {
        usable = self::usable(usable, service, question.node, zone);
    }
    let mut chosen = of_one_family(usable, settings);
    // What says more comes first.
    chosen.sort_by_key(|it| (it.class, it.name, it.v6));
    let mut shown = Shown::new();
    for candidate in chosen {
        let addr = SocketAddr::new(candidate.endpoint.ip, candidate.port);
        if shown.contains_key(&addr) {
            continue;
        }
        if let Some(mut said) = described(world, settings, question, zone, &candidate) {
            let labels = said.entry("labels").or_insert_with(|| json!({}));
            labels["service"] = json!(question.service);
            labels["namespace"] = json!(NAMESPACE);
            shown.insert(addr, Value::Object(said));
        }
    }
    shown
}

/// The union of all slices: of each target in each family the first, and each bare address once (spec §2.3, §2.4).
fn candidates<'w>(
    world: &'w World,
    settings: &Settings,
    question: &Question,
    service: &Service,
) -> Vec<Candidate<'w>> {
    let same = || service.ports.iter().filter(|port| port.port == question.port);
    let named = same().find(|port| port.tcp).or_else(|| same().next()).map(|port| &port.name);
    let mut slices: Vec<_> = world.all(Kind::EndpointSlice).collect();
    // The newer decides, then the lower name.
    slices.sort_by_key(|(name, version, _)| (u64::MAX - version, *name));
    let (mut seen, mut candidates) = (BTreeSet::new(), Vec::new());
    for (_, _, object) in slices {
        let Object::Slice(slice) = object else { continue };
        let Some(ports) = &slice.meta.ports else { continue };
        let port = match named {
            None => Some(question.port),
            Some(name) => ports.iter().find(|port| port.name == *name).and_then(|port| port.port),
        };
        let Some(port) = port else { continue };
        if slice.service.as_ref().is_none_or(|name| name.name() != question.service) {
            continue;
        }
        for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.ready) {
            if question.hostname.is_some() && endpoint.hostname.as_deref() != question.hostname {
                continue;
            }
            let v6 = slice.family == Family::V6;
            let (class, kind, name) = match &endpoint.target {
                Target::Bare => (Class::Bare, Kind::Pod, ""),
                Target::Pod(name) => (Class::Pod, Kind::Pod, name.name()),
                Target::ExternalWorkload(name) => {
                    (Class::External, Kind::ExternalWorkload, name.name())
                }
            };
            let workload = match world.get(kind, name) {
                _ if class == Class::Bare => None,
                Some(Object::Workload(workload)) => Some(workload),
                _ => continue,
            };
            if class == Class::Pod && v6 && !settings.ipv6 {
                continue;
            }
            let place = (class == Class::Bare).then_some((endpoint.ip, port));
            if seen.insert((class, name, class != Class::Bare && v6, place)) {
                candidates.push(Candidate { class, v6, name, workload, port, slice, endpoint });
            }
        }
    }
    candidates
}

/// Those that the client may use (spec §2.5).
fn usable<'w>(
    candidates: Vec<Candidate<'w>>,
    service: &Service,
    node: Option<&str>,
    zone: Option<&str>,
) -> Vec<Candidate<'w>> {
    if service.local_traffic {
        let here = |it: &Candidate<'_>| {
            it.class == Class::Pod && it.workload.is_some_and(|pod| pod.node.as_deref() == node)
        };
        return candidates.into_iter().filter(here).collect();
    }
    let hints = |it: &Candidate<'_>| it.endpoint.hints.clone();
    let for_zone = |it: &Candidate<'_>| hints(it).iter().any(|hint| Some(hint.as_str()) == zone);
    if zone.is_none()
        || candidates.iter().any(|it| hints(it).is_empty())
        || !candidates.iter().any(for_zone)
    {
        return candidates;
    }
    candidates.into_iter().filter(for_zone).collect()
}

/// A target is seen by one of its addresses: with IPv6 on by that, with it off a workload by the other.
fn of_one_family<'w>(usable: Vec<Candidate<'w>>, settings: &Settings) -> Vec<Candidate<'w>> {
    let better = |it: &Candidate<'_>| it.v6 == settings.ipv6;
    let with_better: BTreeSet<_> =
        usable.iter().filter(|it| better(it)).map(|it| (it.class, it.name)).collect();
    let stays = |it: &Candidate<'_>| {
        it.class == Class::Bare || better(it) || !with_better.contains(&(it.class, it.name))
    };
    usable.into_iter().filter(stays).collect()
}

/// What is said of an address; `None` if its proxy can't be reached (spec §2.9).
fn described(
    world: &World,
    settings: &Settings,
    question: &Question,
    zone: Option<&str>,
    it: &Candidate<'_>,
) -> Option<Map<String, Value>> {
    let mut said = Map::new();
    let mut labels = BTreeMap::new();
    let locality = match (zone, it.endpoint.zone.as_deref()) {
        (Some(here), Some(there)) if here == there => "local",
        (Some(_), Some(_)) if it.class != Class::Bare => "remote",
        _ => "unknown",
    };
    let locality = if it.class == Class::Bare { "unknown" } else { locality };
    labels.insert("zone_locality".to_owned(), locality.to_owned());
    let weight = if settings.zone_weights && locality == "local" { 100_000 } else { 10_000 };
    said.insert("weight".to_owned(), json!(weight));
    match it.workload {
        None => bare(settings, question, it.slice, &mut said),
        Some(workload) => {
            let named = (it.name, it.port);
            labels.insert("zone".to_owned(), it.endpoint.zone.clone().unwrap_or_default());
            match workload.template.kind {
                WorkloadKind::Pod => pod(world, settings, named, workload, &mut labels, &mut said)?,
                WorkloadKind::External => {
                    external(world, settings, named, workload, &mut labels, &mut said)
                }
            }
        }
    }
    labels.extend(mirrored(it.slice));
    said.insert("labels".to_owned(), json!(labels));
    Some(said)
}

/// Whose gateway it is, if the slice says so (spec §2.9.1).
fn mirrored(slice: &Slice) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    if let Some(cluster) = &slice.meta.mirror_cluster {
        labels.insert("target_cluster".to_owned(), cluster.clone());
        let remote = slice.meta.remote_service.as_deref().unwrap_or_default();
        if let [service, namespace, ..] = remote.split('.').collect::<Vec<_>>()[..] {
            labels.insert("target_service".to_owned(), service.to_owned());
            labels.insert("target_service_namespace".to_owned(), namespace.to_owned());
        }
    }
    labels
}

fn bare(settings: &Settings, question: &Question, slice: &Slice, said: &mut Map<String, Value>) {
    if let Some(gateway) = &slice.meta.gateway_identity {
        said.insert("tls_identity".to_owned(), json!({"dns_like_identity": {"name": gateway}}));
        if settings.h2_upgrade {
            said.insert("protocol_hint".to_owned(), json!({"h2": {}}));
        }
    }
    if let Some(remote) = &slice.meta.remote_service {
        let authority = format!("{remote}:{}", question.port);
        said.insert("authority_override".to_owned(), json!(authority));
    }
}

pub(crate) fn pod(
    world: &World,
    settings: &Settings,
    (name, port): (&str, u16),
    pod: &Workload,
    labels: &mut BTreeMap<String, String>,
    said: &mut Map<String, Value>,
) -> Option<()> {
    let template = &pod.template;
    let label = |key: &str| template.labels.get(key).filter(|value| !value.is_empty());
    labels.insert("pod".to_owned(), name.to_owned());
    if let Some(owner) = owner_of(world, template.owner.as_ref()) {
        let kind = owner.kind.to_lowercase();
        let kind = if kind == "job" { "k8s_job".to_owned() } else { kind };
        labels.insert(kind, owner.name);
    }
    labels.insert("serviceaccount".to_owned(), template.service_account.clone());
    if let Some(hash) = label("pod-template-hash") {
        labels.insert("pod_template_hash".to_owned(), hash.clone());
    }
    let Some(control_plane) = label("linkerd.io/control-plane-ns") else { return Some(()) };
    labels.insert("control_plane_ns".to_owned(), control_plane.clone());
    if template.skip_inbound.contains(port) {
        return Some(());
    }
    let proxy = template.proxy.as_ref()?;
    let own = [proxy.admin?, proxy.control?];
    let opaque = is_opaque(world, settings, pod, port);
    let mut hint = Map::new();
    if opaque {
        hint.insert("opaque".to_owned(), json!({}));
    } else if settings.h2_upgrade {
        hint.insert("h2".to_owned(), json!({}));
    }
    if (opaque || settings.transport_header) && !own.contains(&port) {
        hint.insert("opaque_transport".to_owned(), json!({"inbound_port": proxy.inbound?}));
    }
    said.insert("protocol_hint".to_owned(), Value::Object(hint));
    if *control_plane == settings.controller_namespace && !settings.trust_domain.is_empty() {
        let name = format!(
            "{}.{NAMESPACE}.serviceaccount.identity.{control_plane}.{}",
            template.service_account, settings.trust_domain
        );
        let identity = json!({"dns_like_identity": {"name": name}, "server_name": {"name": name}});
        said.insert("tls_identity".to_owned(), identity);
    }
    Some(())
}

pub(crate) fn external(
    world: &World,
    settings: &Settings,
    (name, port): (&str, u16),
    workload: &Workload,
    labels: &mut BTreeMap<String, String>,
    said: &mut Map<String, Value>,
) {
    let template = &workload.template;
    if let Some(owner) = &template.owner {
        labels.insert(owner.kind.to_lowercase(), owner.name.clone());
    }
    labels.insert("external_workload".to_owned(), name.to_owned());
    let opaque = is_opaque(world, settings, workload, port);
    let mut hint = Map::new();
    hint.insert(if opaque { "opaque" } else { "h2" }.to_owned(), json!({}));
    if opaque || settings.transport_header {
        let inbound = template.proxy.as_ref().and_then(|proxy| proxy.inbound).unwrap_or(4_143);
        hint.insert("opaque_transport".to_owned(), json!({"inbound_port": inbound}));
    }
    said.insert("protocol_hint".to_owned(), Value::Object(hint));
    let identity = match &template.mesh_tls {
        Some(tls) => json!({
            "uri_like_identity": {"uri": tls.identity}, "server_name": {"name": tls.server_name},
        }),
        None => json!({"uri_like_identity": {}, "server_name": {}}),
    };
    said.insert("tls_identity".to_owned(), identity);
}

/// The owner to name: of a Job or ReplicaSet its own, if that is known and of a kind that says more (spec §2.9.2).
fn owner_of(world: &World, owner: Option<&OwnerRef>) -> Option<OwnerRef> {
    let owner = owner?;
    let kind = match owner.kind.as_str() {
        "ReplicaSet" => Kind::ReplicaSet,
        "Job" => Kind::Job,
        _ => return Some(owner.clone()),
    };
    let above = match world.get(kind, &owner.name) {
        Some(Object::Owned { owner }) => owner.clone(),
        _ => None,
    };
    let says_more = |above: &OwnerRef| {
        kind == Kind::Job
            || ["Job", "StatefulSet", "DaemonSet", "Deployment"].contains(&above.kind.as_str())
    };
    Some(above.filter(says_more).unwrap_or_else(|| owner.clone()))
}

/// By annotation or default, or by any Server of the namespace (spec §2.7, §2.8).
pub(crate) fn is_opaque(
    world: &World,
    settings: &Settings,
    workload: &Workload,
    port: u16,
) -> bool {
    let template = &workload.template;
    // The port itself, and that of the container that it leads to (Q10).
    let behind = template.ports.iter().filter(|it| it.host_port == Some(port)).map(|it| it.port);
    let ports: Vec<u16> = behind.chain([port]).collect();
    let said = match &template.opaque {
        Some(said) => ports.iter().any(|port| said.contains(*port)),
        None => settings.default_opaque.contains(port),
    };
    let by = |server: &Server| {
        let selector = match template.kind {
            WorkloadKind::Pod => &server.pods,
            WorkloadKind::External => &server.workloads,
        };
        let named = |name: &String| {
            let ports = template.ports.iter().filter(|it| it.name == *name);
            ports.clone().any(|it| it.port == port || it.host_port == Some(port))
        };
        server.opaque
            && selector.as_ref().is_some_and(|selector| selector.matches(&template.labels))
            && match &server.port {
                ServerPort::Number(number) => ports.contains(number),
                ServerPort::Name(name) => named(name),
            }
    };
    let servers = world.all(Kind::Server).filter_map(|(_, _, object)| match object {
        Object::Server(server) => Some(server),
        _ => None,
    });
    said || servers.into_iter().any(by)
}
