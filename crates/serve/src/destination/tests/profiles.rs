//! GetProfile over a real store: what streams say when objects change, and which of them look.

use std::collections::BTreeMap;

use linkerd2_proxy_api::destination::DestinationProfile;
use linkerd2_proxy_api::meta::metadata::Kind as Reference;
use model::{
    Kind, Object, Phase, PortSet, RequestMatch, Revision, Route, Selector, Server, ServerPort,
    Service, ServiceProfile, Workload,
};
use prost::Message as _;
use tonic::{Code, Status};

use super::fixture::{self, Choice, USUAL, key, pod, web};
use crate::destination::Turn;
use crate::metrics::AnswerFrom;
use crate::{Message, ProfileAnswer};

const WEB: &str = "web.shop.svc.k.test:80";

impl fixture::Server {
    async fn profile(&self, path: &str) -> Result<ProfileAnswer, Status> {
        self.destination.get_profile(path, "ns:shop", &Turn::default()).await
    }

    /// A running pod of this address.
    fn running(&mut self, name: &str, ip: &str) -> Revision {
        self.pod(name, "n1", ip)
    }

    fn service_profile(&mut self, profile: Option<ServiceProfile>) -> Revision {
        let name = "web.shop.svc.k.test";
        self.put(Kind::ServiceProfile, name, Object::Profile(profile))
    }
}

/// The next message; there must be one.
async fn next(stream: &mut ProfileAnswer) -> (Message, DestinationProfile) {
    let next = tokio::time::timeout(std::time::Duration::from_secs(10), stream.next());
    let message = next.await.expect("no message came").expect("it ended").unwrap();
    let profile = DestinationProfile::decode(message.bytes()).unwrap();
    (message, profile)
}

/// Does the stream say nothing of what has happened so far?
async fn is_silent(server: &fixture::Server, stream: &mut ProfileAnswer) -> bool {
    tokio::select! {
        biased;
        message = stream.next() => panic!("{message:?}"),
        () = server.hub.settled(Revision(0)) => true,
    }
}

/// The pod that a profile is of.
fn pod_of(profile: &DestinationProfile) -> String {
    let endpoint = profile.endpoint.as_ref().expect("an endpoint");
    endpoint.metric_labels.get("pod").cloned().unwrap_or_default()
}

fn route(name: &str) -> Route {
    Route {
        name: name.to_owned(),
        condition: RequestMatch::Path("/a".to_owned()),
        responses: Vec::new(),
        retryable: false,
        timeout_ns: 0,
    }
}

#[tokio::test]
async fn what_changes_nothing_visible_is_not_said_of_q31() {
    let mut server = fixture::Server::start(USUAL);
    server.web();
    let mut stream = server.profile(WEB).await.unwrap();
    assert!(!next(&mut stream).await.1.opaque_protocol);
    // The set of opaque ports is another one, and this port isn't in it.
    let opaque = Some(PortSet::from_ranges([(90, 90)]));
    server.put(Kind::Service, "web", Object::Service(Service { opaque, ..web() }));
    assert!(is_silent(&server, &mut stream).await);
    let opaque = Some(PortSet::from_ranges([(80, 80)]));
    server.put(Kind::Service, "web", Object::Service(Service { opaque, ..web() }));
    assert!(next(&mut stream).await.1.opaque_protocol);
    // Endpoints are nothing to it, and it doesn't look for them.
    let looked = server.metrics.answers(AnswerFrom::Store);
    server.bare("web-a", &["10.1.0.1"]);
    assert!(is_silent(&server, &mut stream).await);
    assert_eq!(server.metrics.answers(AnswerFrom::Store), looked);
}

#[tokio::test]
async fn a_pods_event_wakes_the_streams_of_its_address_and_no_other() {
    let mut server = fixture::Server::start(USUAL);
    let path = |n: u16| format!("10.1.0.{n}:8080");
    for n in 0..50 {
        server.running(&format!("p{n}"), &format!("10.1.0.{n}"));
    }
    let mut streams = Vec::new();
    for n in (0..50).chain([7]) {
        let mut stream = server.profile(&path(n)).await.unwrap();
        assert_eq!(pod_of(&next(&mut stream).await.1), format!("p{n}"));
        assert!(is_silent(&server, &mut stream).await);
        streams.push(stream);
    }
    let looked = server.metrics.answers(AnswerFrom::Store);
    server.delete(Kind::Pod, "p7");
    let [seventh, last] = streams.get_disjoint_mut([7, 50]).unwrap();
    let (first, second) = tokio::join!(next(seventh), next(last));
    assert_eq!(pod_of(&first.1), "");
    // One has read it for both, and they share its bytes.
    assert_eq!(first.0.frame.as_ptr(), second.0.frame.as_ptr());
    let others = streams.iter_mut().enumerate().filter(|(n, _)| ![7, 50].contains(n));
    for (_, stream) in others {
        let quiet = tokio::time::timeout(std::time::Duration::ZERO, stream.next()).await;
        assert!(quiet.is_err(), "{quiet:?}");
    }
    assert_eq!(server.metrics.answers(AnswerFrom::Store), looked + 1);
}

#[tokio::test]
async fn a_server_wakes_the_streams_of_those_that_it_selects() {
    let mut server = fixture::Server::start(USUAL);
    for (name, ip, app) in [("a", "10.1.0.1", "a"), ("b", "10.1.0.2", "b")] {
        let mut workload: Workload = pod("n1", ip);
        workload.template.labels.insert("app".to_owned(), app.to_owned());
        server.put(Kind::Pod, name, Object::Workload(workload));
    }
    let mut a = server.profile("10.1.0.1:80").await.unwrap();
    let mut b = server.profile("10.1.0.2:80").await.unwrap();
    assert!(!next(&mut a).await.1.opaque_protocol && !next(&mut b).await.1.opaque_protocol);
    let requirement = model::Requirement {
        key: "app".to_owned(),
        operator: model::Operator::In,
        values: vec!["a".to_owned()],
    };
    let pods = Some(Selector { requirements: vec![requirement] });
    let opaque = Server { opaque: true, pods, workloads: None, port: ServerPort::Number(80) };
    server.put(Kind::Server, "s", Object::Server(opaque));
    assert!(next(&mut a).await.1.opaque_protocol);
    server.delete(Kind::Server, "s");
    assert!(!next(&mut a).await.1.opaque_protocol);
    // It isn't polled while the other settles, so it counts as busy until now.
    let quiet = tokio::time::timeout(std::time::Duration::ZERO, b.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}

#[tokio::test]
async fn an_address_goes_from_pod_to_pod() {
    let mut server = fixture::Server::start(USUAL);
    let put = |server: &mut fixture::Server, name: &str, phase, deleting| {
        let workload = Workload { phase, deleting, ..pod("n1", "10.1.0.1") };
        server.put(Kind::Pod, name, Object::Workload(workload));
    };
    let mut stream = server.profile("10.1.0.1:80").await.unwrap();
    assert_eq!(pod_of(&next(&mut stream).await.1), "", "nobody's");
    put(&mut server, "a", Phase::Pending, false);
    assert!(is_silent(&server, &mut stream).await);
    put(&mut server, "a", Phase::Running, false);
    assert_eq!(pod_of(&next(&mut stream).await.1), "a");
    // It is about to go, and another is about to come.
    put(&mut server, "a", Phase::Running, true);
    put(&mut server, "b", Phase::Pending, false);
    assert!(is_silent(&server, &mut stream).await);
    put(&mut server, "b", Phase::Running, false);
    assert_eq!(pod_of(&next(&mut stream).await.1), "b");
    server.delete(Kind::Pod, "a");
    put(&mut server, "c", Phase::Finished, false);
    server.delete(Kind::Pod, "c");
    assert!(is_silent(&server, &mut stream).await, "none of them had it");
}

#[tokio::test]
async fn several_owners_refuse_and_end_only_who_has_none_of_them() {
    let mut server = fixture::Server::start(USUAL);
    server.running("a", "10.1.0.1");
    let mut early = server.profile("10.1.0.1:80").await.unwrap();
    let mut unknown = server.profile("10.1.0.2:80").await.unwrap();
    assert_eq!(pod_of(&next(&mut early).await.1), "a");
    assert_eq!(pod_of(&next(&mut unknown).await.1), "");
    server.running("b", "10.1.0.1");
    assert!(
        tokio::time::timeout(std::time::Duration::from_millis(20), early.next()).await.is_err()
    );
    let refused = server.profile("10.1.0.1:80").await.err().expect("not refused");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(refused.message(), "found 2 pods with a conflicting pod network IP 10.1.0.1");
    // Two come at once: whoever showed nobody is to ask again, and not for good.
    let version = |n: u64| model::ResourceVersion((1_000 + n).to_string());
    let changes = [("c", 1), ("d", 2)].map(|(name, n)| model::Change::Put {
        key: key(Kind::Pod, name),
        version: version(n),
        object: Object::Workload(pod("n1", "10.1.0.2")),
    });
    server.commit(changes.into());
    let end = unknown.next().await.expect("an end").expect_err("it goes on");
    assert_eq!(end.code(), Code::Unavailable);
    assert!(unknown.next().await.is_none());
    server.delete(Kind::Pod, "a");
    assert_eq!(pod_of(&next(&mut early).await.1), "b");
}

#[tokio::test]
async fn a_profile_too_large_for_a_message_is_not_sent() {
    let mut server = fixture::Server::start(Choice { message_bytes_max: 400, ..USUAL });
    server.web();
    let routes = |count: usize| (0..count).map(|n| route(&format!("r{n}"))).collect();
    server.service_profile(Some(ServiceProfile { routes: routes(3), ..Default::default() }));
    let mut stream = server.profile(WEB).await.unwrap();
    assert_eq!(next(&mut stream).await.1.routes.len(), 3);
    server.service_profile(Some(ServiceProfile { routes: routes(100), ..Default::default() }));
    let (message, profile) = next(&mut stream).await;
    assert!(profile.routes.is_empty() && message.bytes().len() <= 400);
}

#[tokio::test]
async fn a_profile_says_which_it_is_of_q23() {
    let mut server = fixture::Server::start(USUAL);
    server.web();
    let of = |profile: &DestinationProfile| {
        let kind = profile.profile_ref.as_ref()?.kind.as_ref()?;
        let Reference::Resource(it) = kind else { panic!("{kind:?}") };
        Some(format!("{} {} {}/{}", it.group, it.kind, it.namespace, it.name))
    };
    let mut stream = server.profile(WEB).await.unwrap();
    assert_eq!(of(&next(&mut stream).await.1), None);
    server.service_profile(Some(ServiceProfile::default()));
    let named = Some("linkerd.io ServiceProfile shop/web.shop.svc.k.test".to_owned());
    assert_eq!(of(&next(&mut stream).await.1), named);
    // For one that holds nothing stands the default.
    server.service_profile(None);
    assert_eq!(of(&next(&mut stream).await.1), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_yet_is_asked_for_again() {
    let mut server = fixture::Server::start(Choice { synced: false, ..USUAL });
    let begun = tokio::time::Instant::now();
    for path in [WEB, "10.1.0.1:80", "db-0.db.shop.svc.k.test:80"] {
        let refused = server.profile(path).await.err().expect("not refused");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(9), "a proxy waits three seconds");
    server.sync();
    let refused = server.profile(WEB).await.err().expect("not refused");
    assert_eq!((refused.code(), refused.message()), (Code::Unknown, "service \"web\" not found"));
}

#[tokio::test]
async fn streams_end_with_the_server() {
    let server = fixture::Server::start(USUAL);
    let mut stream = server.profile("10.1.0.1:80").await.unwrap();
    next(&mut stream).await;
    server.hub.end_all(std::time::Duration::ZERO).await;
    let end = stream.next().await.expect("an end").expect_err("it goes on");
    assert_eq!(end.code(), Code::Unavailable);
    let refused = server.profile("10.1.0.1:80").await.err().expect("not refused");
    assert_eq!(refused.code(), Code::Unavailable);
    drop(server);
}

#[tokio::test]
async fn a_stream_that_waits_is_small() {
    let server = fixture::Server::start(USUAL);
    let stream = server.profile("10.1.0.1:80").await.unwrap();
    assert!(std::mem::size_of_val(&stream) <= 200, "{}", std::mem::size_of_val(&stream));
}

#[tokio::test]
async fn bad_authorities_are_refused_for_good_of_a09_a10_a14() {
    let server = fixture::Server::start(USUAL);
    let mut refusals = BTreeMap::new();
    for path in ["example.org", "ext.shop.svc.cluster.local", "fd00::9", "10.1.0.1:0", ""] {
        let refused = server.profile(path).await.err().expect("not refused");
        assert_eq!(refused.code(), Code::InvalidArgument, "{path}");
        refusals.insert(path, refused.message().to_owned());
    }
    assert_eq!(refusals["fd00::9"], "invalid authority: \"fd00::9\": \"not host or host:port\"",);
}

#[tokio::test]
async fn a_service_is_found_by_name_and_address_of_i02_i04_i10() {
    let mut server = fixture::Server::start(Choice { default_opaque: Some(3_306), ..USUAL });
    let cluster_ips = vec!["10.9.0.1".parse().unwrap()];
    let mut ports = web().ports;
    ports.push(model::ServicePort { name: "db".to_owned(), port: 3_306, tcp: true });
    server.put(Kind::Service, "web", Object::Service(Service { cluster_ips, ports, ..web() }));
    let routes = vec![route("r1")];
    server.service_profile(Some(ServiceProfile { routes, ..ServiceProfile::default() }));
    for (path, token) in [(WEB, r#"{"ns":"other"}"#), ("10.9.0.1:80", "")] {
        let stream = server.destination.get_profile(path, token, &Turn::default()).await;
        let (_, profile) = next(&mut stream.unwrap()).await;
        let names = profile.routes.iter().map(|it| it.metrics_labels["route"].as_str());
        let names: Vec<_> = names.collect();
        assert_eq!(profile.fully_qualified_name, "web.shop.svc.k.test");
        assert_eq!((names, profile.opaque_protocol), (vec!["r1"], false), "{path}");
    }
    let mut by_default = server.profile("10.9.0.1:3306").await.unwrap();
    assert!(next(&mut by_default).await.1.opaque_protocol);
}

#[tokio::test]
async fn what_is_opaque_without_a_proxy_of_j10_j15() {
    let mut server = fixture::Server::start(Choice { default_opaque: Some(3_306), ..USUAL });
    server.running("u", "10.1.0.13");
    for (path, opaque) in [
        ("10.1.0.13:3306", true),
        ("10.1.0.13:8000", false),
        ("203.0.113.4:3306", true),
        ("203.0.113.4:80", false),
    ] {
        let (_, profile) = next(&mut server.profile(path).await.unwrap()).await;
        assert_eq!(profile.opaque_protocol, opaque, "{path}");
        let endpoint = profile.endpoint.expect("an endpoint");
        assert_eq!((endpoint.protocol_hint, endpoint.weight), (None, 10_000), "{path}");
    }
}

#[tokio::test]
async fn the_set_of_opaque_ports_of_l14() {
    let mut server = fixture::Server::start(Choice { default_opaque: Some(80), ..USUAL });
    let put = |server: &mut fixture::Server, opaque| {
        server.put(Kind::Service, "web", Object::Service(Service { opaque, ..web() }));
    };
    put(&mut server, Some(PortSet::from_ranges([(90, 90)])));
    let mut stream = server.profile(WEB).await.unwrap();
    assert!(!next(&mut stream).await.1.opaque_protocol);
    put(&mut server, None);
    assert!(next(&mut stream).await.1.opaque_protocol, "the default");
    server.delete(Kind::Service, "web");
    put(&mut server, None);
    assert!(is_silent(&server, &mut stream).await);
}

#[tokio::test]
async fn routes_have_timeouts_and_methods_of_k09_k10_k13() {
    use linkerd2_proxy_api::destination::request_match::Match;
    use linkerd2_proxy_api::http_types::http_method::Type;
    let mut server = fixture::Server::start(USUAL);
    server.web();
    let names =
        ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "HEAD", "TRACE", "BREW"];
    let of = |(at, name): (usize, &&str)| Route {
        condition: RequestMatch::Method((*name).to_owned()),
        // What can't be read as a time is none.
        timeout_ns: [250_000_000, 0][at % 2],
        ..route(name)
    };
    let routes = names.iter().enumerate().map(of).collect();
    server.service_profile(Some(ServiceProfile { routes, ..ServiceProfile::default() }));
    let (_, profile) = next(&mut server.profile(WEB).await.unwrap()).await;
    for (at, route) in profile.routes.iter().enumerate() {
        let timeout = route.timeout.as_ref().map(|it| (it.seconds, it.nanos));
        assert_eq!(timeout, [Some((0, 250_000_000)), None][at % 2]);
        let Some(Match::Method(method)) = route.condition.clone().unwrap().r#match else {
            panic!("{route:?}")
        };
        let expected = match names[at] {
            "BREW" => Type::Unregistered("BREW".to_owned()),
            _ => Type::Registered(at.try_into().unwrap()),
        };
        assert_eq!(method.r#type, Some(expected));
    }
    assert_eq!(profile.routes.len(), names.len());
}
