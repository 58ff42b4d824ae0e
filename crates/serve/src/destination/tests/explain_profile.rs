//! Why a profile is what it is. Each explanation is held against what a client is told.

use std::time::Duration;

use expect_test::expect;
use linkerd2_proxy_api::destination::DestinationProfile;
use model::{
    Change, ContainerPort, Key, Kind, Object, ObjectName, Phase, PortSet, ProxyPorts,
    ResourceVersion, Selector, Server as PolicyServer, ServerPort, Service, ServicePort,
    ServiceProfile, SliceEndpoint, Target, Template, Workload, WorkloadKind,
};
use prost::Message as _;

use super::fixture::{Choice, Server, USUAL, key, of_pod, pod, slice, web};
use crate::destination::Turn;
use crate::{ProfileExplanation, ProfileVerdict};

const WEB: &str = "web.shop.svc.k.test:80";

/// What is explained, in words; it must be what a client is told.
async fn why(server: &Server, path: &str, token: &str) -> String {
    let explanation = server.destination.explain_profile(path, token).await.unwrap();
    assert_eq!(told(server, path, token).await, short(&explanation), "{explanation:?}");
    let mut text = format!("{path}: {}\n", short(&explanation));
    for it in &explanation.reasons {
        text += &format!("  {}: {} ({})\n", it.about, it.reason, it.rule);
    }
    text
}

fn short(explanation: &ProfileExplanation) -> String {
    match explanation.answer {
        ProfileVerdict::Refused => "Refused".to_owned(),
        ProfileVerdict::Silence => "Silence".to_owned(),
        ProfileVerdict::Empty => "Empty".to_owned(),
        answer => {
            let owner = explanation.owner.as_deref().unwrap_or("nobody");
            let profile = explanation.service_profile.as_deref().unwrap_or("default");
            let opaque = if explanation.opaque { ", opaque" } else { "" };
            format!("{answer:?} of {owner} from {profile}{opaque}")
        }
    }
}

/// The same, from the first message.
async fn told(server: &Server, path: &str, token: &str) -> String {
    let stream = server.destination.get_profile(path, token, &Turn::default()).await;
    let Ok(mut stream) = stream else { return "Refused".to_owned() };
    let first = tokio::time::timeout(Duration::from_millis(50), stream.next()).await;
    let Ok(message) = first else { return "Silence".to_owned() };
    let profile = DestinationProfile::decode(message.unwrap().unwrap().bytes()).unwrap();
    if profile == DestinationProfile::default() {
        return "Empty".to_owned();
    }
    let named = |of: Option<linkerd2_proxy_api::meta::Metadata>| match of.and_then(|it| it.kind) {
        Some(linkerd2_proxy_api::meta::metadata::Kind::Resource(it)) => {
            Some((it.kind, format!("{}/{}", it.namespace, it.name)))
        }
        _ => None,
    };
    let opaque = if profile.opaque_protocol { ", opaque" } else { "" };
    let (answer, owner) = match profile.endpoint {
        None => ("Service", named(profile.parent_ref).map(|(_, name)| format!("Service {name}"))),
        Some(endpoint) => {
            let label = |name: &str| endpoint.metric_labels.get(name);
            let external = label("external_workload").map(|it| ("ExternalWorkload", it));
            let owner = label("pod").map(|it| ("Pod", it)).or(external);
            let namespace = label("namespace").map_or("", String::as_str);
            ("Endpoint", owner.map(|(kind, name)| format!("{kind} {namespace}/{name}")))
        }
    };
    let owner = owner.unwrap_or_else(|| "nobody".to_owned());
    let profile = named(profile.profile_ref).map_or("default".to_owned(), |(_, name)| name);
    format!("{answer} of {owner} from {profile}{opaque}")
}

fn ports(ranges: &[(u16, u16)]) -> Option<PortSet> {
    Some(PortSet::from_ranges(ranges.iter().copied()))
}

fn service(opaque: Option<PortSet>) -> Object {
    let named = ServicePort { name: "db".to_owned(), port: 5432, tcp: true };
    let ports = web().ports.into_iter().chain([named]).collect();
    let cluster_ips = vec!["10.9.0.1".parse().unwrap()];
    Object::Service(Service { ports, cluster_ips, opaque, ..web() })
}

/// A ServiceProfile for `web` in a client's namespace.
fn of_client(server: &mut Server, version: &str, profile: Option<ServiceProfile>) {
    let name = ObjectName::new("a", "web.shop.svc.k.test").unwrap();
    let key = Key { name, ..key(Kind::ServiceProfile, "") };
    let version = ResourceVersion(version.to_owned());
    server.commit(vec![Change::Put { key, version, object: Object::Profile(profile) }]);
}

#[tokio::test]
async fn a_service_its_port_and_its_opaque_ports() {
    let mut server = Server::start(Choice { default_opaque: Some(80), ..USUAL });
    let mut text = why(&server, WEB, "").await;
    server.put(Kind::Service, "web", service(None));
    text += &why(&server, WEB, "").await;
    text += &why(&server, "10.9.0.1:5432", "").await;
    text += &why(&server, "10.9.0.1:81", "").await;
    server.put(Kind::Service, "web", service(ports(&[(25, 25), (5430, 5440)])));
    text += &why(&server, "web.shop.svc.k.test:5432", "").await;
    server.put(Kind::Service, "web", service(ports(&[])));
    text += &why(&server, WEB, "").await;
    server.put(Kind::Service, "other", service(None));
    text += &why(&server, "10.9.0.1:80", "").await;
    let elsewhere = Service { external_name: true, ..web() };
    server.put(Kind::Service, "ext", Object::Service(elsewhere));
    text += &why(&server, "ext.shop.svc.k.test:80", "").await;
    expect![[r#"
        web.shop.svc.k.test:80: Refused
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          answer: Unknown: service "web" not found (spec §1.5)
        web.shop.svc.k.test:80: Service of Service shop/web from default, opaque
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80, 5432 db (spec §3.3.1)
          opaque: yes: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (80) has port 80 (spec §3.3.4)
          service profile: there is no shop/web.shop.svc.k.test, in the Service's namespace (spec §3.3.3)
          service profile: the token names no namespace of the client, where one might be (spec §3.3.3)
          service profile: there is none, so the default is taken (spec §3.3.3)
        10.9.0.1:5432: Service of Service shop/web from default
          owner: 10.9.0.1 is a ClusterIP of Service shop/web (spec §3.2)
          port: 5432 is one of the Service's ports: 80, 5432 db (spec §3.3.1)
          opaque: no: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (80) doesn't have port 5432 (spec §3.3.4)
          service profile: there is no shop/web.shop.svc.k.test, in the Service's namespace (spec §3.3.3)
          service profile: the token names no namespace of the client, where one might be (spec §3.3.3)
          service profile: there is none, so the default is taken (spec §3.3.3)
        10.9.0.1:81: Empty
          owner: 10.9.0.1 is a ClusterIP of Service shop/web (spec §3.2)
          port: 81 is none of the Service's ports (80, 5432 db): a proxy asks for its policy (spec §3.3.1)
        web.shop.svc.k.test:5432: Service of Service shop/web from default, opaque
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 5432 is one of the Service's ports: 80, 5432 db (spec §3.3.1)
          opaque: yes: annotation config.linkerd.io/opaque-ports of the Service (25, 5430-5440) has port 5432 (spec §3.3.4)
          service profile: there is no shop/web.shop.svc.k.test, in the Service's namespace (spec §3.3.3)
          service profile: the token names no namespace of the client, where one might be (spec §3.3.3)
          service profile: there is none, so the default is taken (spec §3.3.3)
        web.shop.svc.k.test:80: Service of Service shop/web from default
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80, 5432 db (spec §3.3.1)
          opaque: no: annotation config.linkerd.io/opaque-ports of the Service (none) doesn't have port 80 (spec §3.3.4)
          service profile: there is no shop/web.shop.svc.k.test, in the Service's namespace (spec §3.3.3)
          service profile: the token names no namespace of the client, where one might be (spec §3.3.3)
          service profile: there is none, so the default is taken (spec §3.3.3)
        10.9.0.1:80: Refused
          answer: FailedPrecondition: found 2 services with conflicting cluster IP 10.9.0.1 (spec §1.5)
        ext.shop.svc.k.test:80: Refused
          owner: ext.shop.svc.k.test names Service shop/ext (spec §1.6)
          port: 80 is one of the Service's ports: 80 (spec §3.3.1)
          owner: its type is ExternalName (spec §3.3.1)
          answer: InvalidArgument: Invalid authority: ext.shop.svc.k.test:80 (spec §1.5)
    "#]].assert_eq(&text);
}

#[tokio::test]
async fn the_service_profile_that_is_taken() {
    let mut server = Server::start(Choice { message_bytes_max: 2_000, ..USUAL });
    server.web();
    let mut text = why(&server, WEB, r#"{"ns":"shop"}"#).await;
    text += &why(&server, WEB, r#"{"ns":"a"}"#).await;
    let beside = "web.shop.svc.k.test";
    let some = || Object::Profile(Some(ServiceProfile::default()));
    server.put(Kind::ServiceProfile, beside, some());
    text += &why(&server, WEB, "no token").await;
    text += &why(&server, WEB, "ns:a").await;
    of_client(&mut server, "1", Some(ServiceProfile::default()));
    text += &why(&server, WEB, "ns:a").await;
    of_client(&mut server, "2", None);
    text += &why(&server, WEB, "ns:a").await;
    let to = |n| model::DstOverride { authority: format!("{n}.shop.svc.k.test"), weight: 1 };
    let large = ServiceProfile { dst_overrides: (0..200).map(to).collect(), ..Default::default() };
    server.put(Kind::ServiceProfile, beside, Object::Profile(Some(large)));
    text += &why(&server, WEB, "").await;
    expect![[r#"
        web.shop.svc.k.test:80: Service of Service shop/web from default
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80 (spec §3.3.1)
          opaque: no: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 80 (spec §3.3.4)
          service profile: there is no shop/web.shop.svc.k.test, in the Service's namespace (spec §3.3.3)
          service profile: there is none, so the default is taken (spec §3.3.3)
        web.shop.svc.k.test:80: Service of Service shop/web from default
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80 (spec §3.3.1)
          opaque: no: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 80 (spec §3.3.4)
          service profile: there is no a/web.shop.svc.k.test, in the client's namespace (spec §3.3.3)
          service profile: there is no shop/web.shop.svc.k.test, in the Service's namespace (spec §3.3.3)
          service profile: there is none, so the default is taken (spec §3.3.3)
        web.shop.svc.k.test:80: Service of Service shop/web from shop/web.shop.svc.k.test
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80 (spec §3.3.1)
          opaque: no: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 80 (spec §3.3.4)
          service profile: shop/web.shop.svc.k.test, in the Service's namespace (spec §3.3.3)
        web.shop.svc.k.test:80: Service of Service shop/web from shop/web.shop.svc.k.test
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80 (spec §3.3.1)
          opaque: no: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 80 (spec §3.3.4)
          service profile: there is no a/web.shop.svc.k.test, in the client's namespace (spec §3.3.3)
          service profile: shop/web.shop.svc.k.test, in the Service's namespace (spec §3.3.3)
        web.shop.svc.k.test:80: Service of Service shop/web from a/web.shop.svc.k.test
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80 (spec §3.3.1)
          opaque: no: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 80 (spec §3.3.4)
          service profile: a/web.shop.svc.k.test, in the client's namespace (spec §3.3.3)
        web.shop.svc.k.test:80: Service of Service shop/web from default
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80 (spec §3.3.1)
          opaque: no: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 80 (spec §3.3.4)
          service profile: a/web.shop.svc.k.test, in the client's namespace, is invalid: the default stands for it (spec Q24)
        web.shop.svc.k.test:80: Service of Service shop/web from default
          owner: web.shop.svc.k.test names Service shop/web (spec §1.6)
          port: 80 is one of the Service's ports: 80 (spec §3.3.1)
          opaque: no: the Service has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 80 (spec §3.3.4)
          service profile: shop/web.shop.svc.k.test is larger than a message of 2000 bytes: the default stands for it (the limit of a message)
    "#]].assert_eq(&text);
}

#[tokio::test]
async fn whose_an_address_is() {
    let mut server = Server::start(Choice { default_opaque: Some(25), ..USUAL });
    server.pod("own", "n1", "10.1.0.1");
    let at = |ip: &str, phase| Workload { phase, ..pod("n1", ip) };
    server.put(Kind::Pod, "pending", Object::Workload(at("10.1.0.2", Phase::Pending)));
    server.put(Kind::Pod, "over", Object::Workload(at("10.1.0.3", Phase::Finished)));
    let port = ContainerPort { name: "http".to_owned(), port: 8080, host_port: Some(80) };
    let host_ips = vec!["10.0.0.7".parse().unwrap()];
    let template = Template { ports: vec![port.clone()], ..pod("n1", "10.1.0.4").template };
    let on_host = Workload { template, host_ips, ..pod("n1", "10.1.0.4") };
    server.put(Kind::Pod, "host", Object::Workload(on_host));
    let template = Template {
        kind: WorkloadKind::External,
        ports: vec![ContainerPort { host_port: None, ..port }],
        opaque: ports(&[(8000, 8090)]),
        mesh_tls: Some(model::MeshTls {
            identity: "spiffe://id.test/vm".to_owned(),
            server_name: "vm.id.test".to_owned(),
        }),
        ..pod("n1", "10.2.0.1").template
    };
    let external = Workload { template, ..pod("n1", "10.2.0.1") };
    server.put(Kind::ExternalWorkload, "vm", Object::Workload(external));
    let mut text = String::new();
    for path in [
        "10.1.0.1:25",
        "10.1.0.2:25",
        "10.1.0.3:80",
        "10.0.0.7:80",
        "10.0.0.7:81",
        "10.2.0.1:8080",
        "[::1]:25",
    ] {
        text += &why(&server, path, "").await;
    }
    server.pod("twin", "n1", "10.1.0.1");
    text += &why(&server, "10.1.0.1:80", "").await;
    expect![[r#"
        10.1.0.1:25: Endpoint of Pod shop/own from default, opaque
          owner: 10.1.0.1 is Pod shop/own's own address (spec §3.4.1)
          opaque: yes: Pod shop/own has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (25) has port 25 (spec §2.8)
        10.1.0.2:25: Endpoint of nobody from default, opaque
          owner: 10.1.0.2 is Pod shop/pending's own address, but it doesn't run yet; until then nobody has it (spec §3.4.1)
          opaque: yes: nobody has the address, and --default-opaque-ports (25) has port 25 (spec §3.4.4)
        10.1.0.3:80: Endpoint of nobody from default
          owner: nobody has 10.1.0.3:80: it is no ClusterIP and no pod's or ExternalWorkload's; pods that are finished or terminating don't count, nor do load balancers' addresses (spec §3.4.1)
          opaque: no: nobody has the address, and --default-opaque-ports (25) doesn't have port 80 (spec §3.4.4)
        10.0.0.7:80: Endpoint of Pod shop/host from default
          owner: 10.0.0.7 is the address of the host of Pod shop/host, and 80 one of its host ports (spec §3.4.1)
          opaque: no: Pod shop/host has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (25) doesn't have port 80 (spec §2.8)
          opaque: no: no Server that selects Pod shop/host makes port 80 opaque (spec §2.7)
        10.0.0.7:81: Endpoint of nobody from default
          owner: nobody has 10.0.0.7:81: it is no ClusterIP and no pod's or ExternalWorkload's; pods that are finished or terminating don't count, nor do load balancers' addresses (spec §3.4.1)
          opaque: no: nobody has the address, and --default-opaque-ports (25) doesn't have port 81 (spec §3.4.4)
        10.2.0.1:8080: Endpoint of ExternalWorkload shop/vm from default, opaque
          owner: 10.2.0.1 is an address of ExternalWorkload shop/vm, and 8080 one of its ports (spec §3.4.1)
          opaque: yes: annotation config.linkerd.io/opaque-ports of ExternalWorkload shop/vm (8000-8090) has port 8080 (spec §2.8)
        [::1]:25: Endpoint of nobody from default, opaque
          owner: nobody has [::1]:25: it is no ClusterIP and no pod's or ExternalWorkload's; pods that are finished or terminating don't count, nor do load balancers' addresses (spec §3.4.1)
          opaque: yes: nobody has the address, and --default-opaque-ports (25) has port 25 (spec §3.4.4)
        10.1.0.1:80: Refused
          answer: FailedPrecondition: found 2 pods with a conflicting pod network IP 10.1.0.1 (spec §1.5)
    "#]].assert_eq(&text);
}

#[tokio::test]
async fn a_server_makes_a_port_opaque_and_a_proxy_without_ports_makes_silence() {
    let mut server = Server::start(USUAL);
    server.pod("web-0", "n1", "10.1.0.1");
    let all = Some(Selector { requirements: Vec::new() });
    let port = ServerPort::Number(80);
    let policy = PolicyServer { opaque: true, pods: all, workloads: None, port };
    server.put(Kind::Server, "s", Object::Server(policy));
    let mut text = why(&server, "10.1.0.1:80", "").await;
    let mut broken = pod("n1", "10.1.0.2");
    let label = ("linkerd.io/control-plane-ns".to_owned(), "mesh-sys".to_owned());
    broken.template.labels.extend([label]);
    broken.template.opaque = ports(&[(80, 80)]);
    broken.template.proxy = Some(ProxyPorts::default());
    server.put(Kind::Pod, "broken", Object::Workload(broken));
    text += &why(&server, "10.1.0.2:80", "").await;
    expect![[r#"
        10.1.0.1:80: Endpoint of Pod shop/web-0 from default, opaque
          owner: 10.1.0.1 is Pod shop/web-0's own address (spec §3.4.1)
          opaque: no: Pod shop/web-0 has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 80 (spec §2.8)
          opaque: yes: a Server that selects Pod shop/web-0 makes port 80 opaque (spec §2.7)
        10.1.0.2:80: Silence
          owner: 10.1.0.2 is Pod shop/broken's own address (spec §3.4.1)
          opaque: yes: annotation config.linkerd.io/opaque-ports of Pod shop/broken (80) has port 80 (spec §2.8)
          answer: it is meshed, and not all ports of its proxy are known, so nothing is said (spec §2.9.3)
    "#]].assert_eq(&text);
}

#[tokio::test]
async fn a_hostname_stands_for_its_pod() {
    let mut server = Server::start(USUAL);
    let of = |name: &str, ip: &str| SliceEndpoint {
        hostname: Some(name.to_owned()),
        ..of_pod(ip, name, "z1")
    };
    let bare = SliceEndpoint { target: Target::Bare, ..of("bare", "10.1.0.9") };
    let named = ["db-0", "db-1", "db-2", "gone"].map(|name| of(name, "10.1.0.1"));
    let endpoints = named.into_iter().chain([bare]).collect();
    server.put(Kind::EndpointSlice, "db", Object::Slice(slice("db", 5432, endpoints)));
    server.pod("db-0", "n1", "10.1.0.1");
    let ending = Workload { deleting: true, ..pod("n1", "10.1.0.2") };
    server.put(Kind::Pod, "db-1", Object::Workload(ending));
    let unplaced = Workload { phase: Phase::Pending, ips: Vec::new(), ..pod("n1", "10.1.0.3") };
    server.put(Kind::Pod, "db-2", Object::Workload(unplaced));
    let mut text = String::new();
    for hostname in ["db-0", "db-1", "db-2", "gone", "bare", "none"] {
        text += &why(&server, &format!("{hostname}.db.shop.svc.k.test:5432"), "").await;
    }
    expect![[r#"
        db-0.db.shop.svc.k.test:5432: Endpoint of Pod shop/db-0 from default
          owner: db-0 of Service shop/db is Pod shop/db-0, at 10.1.0.1 (spec §3.4.2)
          owner: 10.1.0.1 is Pod shop/db-0's own address (spec §3.4.1)
          opaque: no: Pod shop/db-0 has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 5432 (spec §2.8)
          opaque: no: no Server that selects Pod shop/db-0 makes port 5432 opaque (spec §2.7)
        db-1.db.shop.svc.k.test:5432: Endpoint of Pod shop/db-1 from default
          owner: db-1 of Service shop/db is Pod shop/db-1, at 10.1.0.2 (spec §3.4.2)
          owner: nobody has 10.1.0.2:5432: it is no ClusterIP and no pod's or ExternalWorkload's; pods that are finished or terminating don't count, nor do load balancers' addresses (spec §3.4.1)
          owner: 10.1.0.2 stays that of Pod shop/db-1 while it runs, unless another one that runs has it alone (spec §3.4.2)
          opaque: no: Pod shop/db-1 has no annotation config.linkerd.io/opaque-ports, and --default-opaque-ports (none) doesn't have port 5432 (spec §2.8)
          opaque: no: no Server that selects Pod shop/db-1 makes port 5432 opaque (spec §2.7)
        db-2.db.shop.svc.k.test:5432: Silence
          owner: db-2 of Service shop/db is Pod shop/db-2, without an address, which doesn't run yet (spec §3.4.2)
          answer: without an address it has no profile, and none is looked for later (spec §3.4.2)
        gone.db.shop.svc.k.test:5432: Refused
          answer: Unknown: pod "gone" not found (spec §1.5)
        bare.db.shop.svc.k.test:5432: Refused
          answer: NotFound: no pod found in EndpointSlices of Service shop/db for hostname bare (spec §1.5)
        none.db.shop.svc.k.test:5432: Refused
          answer: NotFound: no pod found in EndpointSlices of Service shop/db for hostname none (spec §1.5)
    "#]].assert_eq(&text);
}

#[tokio::test]
async fn what_nobody_can_dial_and_what_is_not_known_yet() {
    let server = Server::start(Choice { synced: false, ..USUAL });
    for path in ["web", "web.shop.svc.k.test:0", "fd00::1", ""] {
        let status = server.destination.explain_profile(path, "").await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::InvalidArgument, "{path}");
    }
    let explanation = server.destination.explain_profile("10.1.0.1:80", "{").await.unwrap();
    assert_eq!(explanation.answer, ProfileVerdict::Refused);
    assert_eq!(explanation.reasons.last().unwrap().reason, "Unavailable before all is listed once");
}

#[tokio::test]
async fn very_many_ports_are_no_long_answer() {
    let mut server = Server::start(USUAL);
    let ports = (1..=1_000).map(|port| ServicePort { name: String::new(), port, tcp: true });
    let opaque = PortSet::from_ranges((1..=1_000).map(|n| (n * 3, n * 3)));
    let service = Service { ports: ports.collect(), opaque: Some(opaque), ..web() };
    server.put(Kind::Service, "web", Object::Service(service));
    let explanation = server.destination.explain_profile(WEB, "").await.unwrap();
    for about in ["port", "opaque"] {
        let reason = explanation.reasons.iter().find(|it| it.about == about).unwrap();
        assert!(reason.reason.contains("and 980 more"), "{}", reason.reason);
        assert!(reason.reason.len() < 300, "{}", reason.reason);
    }
}
