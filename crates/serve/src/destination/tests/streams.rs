//! What a stream says, one change after the other.

use expect_test::expect;
use futures::FutureExt as _;
use model::limits::FEW_ROWS_MAX;
use model::{
    Kind, MeshTls, Object, Phase, PortSet, ProxyPorts, Service, SliceMeta, Target, Template,
    Workload, WorkloadKind,
};
use tonic::Code;

use super::fixture::{Choice, Client, Server, USUAL, endpoint, key, of_pod, pod, slice, web};
use crate::destination::Answer;
use crate::destination::wire::tests::text;
use crate::metrics::AnswerFrom;

#[tokio::test]
async fn a_change_is_said_and_nothing_else() {
    let mut server = Server::start(USUAL);
    server.web();
    server.bare("web-a", &["10.1.0.2", "10.1.0.1"]);
    let mut client = server.open_web().await;
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {zone_locality=unknown}
        + 10.1.0.2:8080 10000 {zone_locality=unknown}
    "#]])
        .await;
    server.bare("web-a", &["10.1.0.1", "10.1.0.3"]);
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.3:8080 10000 {zone_locality=unknown}
    "#]])
        .await;
    client
        .says(expect![[r#"
        - 10.1.0.2:8080
    "#]])
        .await;
    server.delete(Kind::EndpointSlice, "web-a");
    client
        .says(expect![[r#"
        - 10.1.0.1:8080
        - 10.1.0.3:8080
    "#]])
        .await;
    server.bare("web-a", &["10.1.0.1"]);
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {zone_locality=unknown}
    "#]])
        .await;
    // Without its Service the view is empty; with it, what it was.
    server.delete(Kind::Service, "web");
    client
        .says(expect![[r#"
        - 10.1.0.1:8080
    "#]])
        .await;
    let revision = server.web();
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {zone_locality=unknown}
    "#]])
        .await;
    client.settle(&server.hub, revision).await;
    assert_eq!(server.metrics.messages_sent(), 7);
}

/// A small change is read where it is looked for. What may be more, by its rows or since it may change how others look,
/// is read on a thread that may block.
#[test]
fn only_a_few_rows_are_read_at_once() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let mut server = Server::start(USUAL);
        server.web();
        let ips: Vec<String> =
            (1..=2 * FEW_ROWS_MAX).map(|last| format!("10.1.0.{last}")).collect();
        let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
        server.bare("web-a", &ips[..1]);
        let mut client = server.open_web().await;
        assert!(!is_read_at_once(&mut client).await, "the first answer may be of any size");
        client.next().await;
        server.bare("web-a", &ips[..2]);
        assert!(is_read_at_once(&mut client).await);
        server.bare("web-a", &ips);
        assert!(!is_read_at_once(&mut client).await);
        assert_eq!(text(&client.next().await).lines().count(), 1 + ips.len() - 2);
        server.bare("web-a", &ips[1..]);
        assert!(is_read_at_once(&mut client).await);
        server.put(Kind::Service, "web", Object::Service(Service { local_traffic: true, ..web() }));
        assert!(!is_read_at_once(&mut client).await);
        assert_eq!(text(&client.next().await).lines().count(), ips.len() - 1);
    });
}

/// Has a client its next message while the only thread that may block does?
async fn is_read_at_once(client: &mut Client) -> bool {
    // What was handed to it before is done.
    tokio::task::spawn_blocking(|| ()).await.unwrap();
    let (_until_dropped, blocked) = std::sync::mpsc::channel::<()>();
    tokio::task::spawn_blocking(move || blocked.recv());
    client.next().now_or_never().is_some()
}

#[tokio::test]
async fn an_empty_view_is_said_once_of_q_1() {
    let mut server = Server::start(USUAL);
    let revision = server.web();
    let mut client = server.open_web().await;
    client
        .says(expect![[r#"
        no endpoints, exists: true
    "#]])
        .await;
    client.settle(&server.hub, revision).await;
    assert_eq!(server.metrics.messages_sent(), 1);
}

#[tokio::test]
async fn an_empty_view_can_be_kept_silent_about_of_q_1() {
    let mut server = Server::start(Choice { no_endpoints: false, ..USUAL });
    let revision = server.web();
    let mut client = server.open_web().await;
    client.settle(&server.hub, revision).await;
    assert_eq!(server.metrics.messages_sent(), 0);
    server.bare("web-a", &["10.1.0.1"]);
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {zone_locality=unknown}
    "#]])
        .await;
}

#[tokio::test]
async fn what_changes_nothing_for_a_view_is_not_said() {
    let mut server = Server::start(USUAL);
    server.web();
    server.bare("web-a", &["10.1.0.1"]);
    let mut client = server.open_web().await;
    client.next().await;
    // The same address from another slice, a port that nobody asked for, another Service.
    server.bare("web-b", &["10.1.0.1"]);
    let mut ports = web();
    ports.ports.push(model::ServicePort { name: "adm".to_owned(), port: 90, tcp: true });
    server.put(Kind::Service, "web", Object::Service(ports));
    let other = slice("other", 1, vec![endpoint("10.9.0.1", Target::Bare)]);
    let revision = server.put(Kind::EndpointSlice, "other-a", Object::Slice(other));
    client.settle(&server.hub, revision).await;
    assert_eq!(server.metrics.messages_sent(), 1);
}

#[tokio::test]
async fn the_zone_of_the_clients_node_is_followed() {
    let mut server = Server::start(USUAL);
    server.web();
    server.pod("w1", "n7", "10.1.0.1");
    let endpoints = vec![of_pod("10.1.0.1", "w1", "z1")];
    server.put(Kind::EndpointSlice, "web-a", Object::Slice(slice("web", 8080, endpoints)));
    let mut client = server.open_web().await;
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {pod=w1 serviceaccount=default zone=z1 zone_locality=unknown}
    "#]])
        .await;
    server.node("n1", Some("z1"));
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {pod=w1 serviceaccount=default zone=z1 zone_locality=local}
    "#]])
        .await;
    server.node("n1", Some("z2"));
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {pod=w1 serviceaccount=default zone=z1 zone_locality=remote}
    "#]])
        .await;
    let local = Service { local_traffic: true, ..web() };
    server.put(Kind::Service, "web", Object::Service(local));
    client
        .says(expect![[r#"
        - 10.1.0.1:8080
    "#]])
        .await;
}

#[tokio::test]
async fn an_instance_is_its_hostname() {
    let mut server = Server::start(USUAL);
    server.web();
    let named = |ip: &str, name: &str| {
        let hostname = Some(name.to_owned());
        model::SliceEndpoint { hostname, ..endpoint(ip, Target::Bare) }
    };
    let endpoints = vec![named("10.1.0.1", "db-0"), named("10.1.0.2", "db-1")];
    server.put(Kind::EndpointSlice, "web-a", Object::Slice(slice("web", 8080, endpoints)));
    let mut client = server.open("db-1.web.shop.svc.k.test:6000", "").await.unwrap();
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.2:6000 10000 {zone_locality=unknown}
    "#]])
        .await;
    let endpoints = vec![named("10.1.0.1", "db-1"), named("10.1.0.2", "db-0")];
    server.put(Kind::EndpointSlice, "web-a", Object::Slice(slice("web", 8080, endpoints)));
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:6000 10000 {zone_locality=unknown}
    "#]])
        .await;
    client
        .says(expect![[r#"
        - 10.1.0.2:6000
    "#]])
        .await;
}

#[tokio::test]
async fn a_stream_that_is_left_behind_ends_and_is_asked_for_again() {
    let mut server = Server::start(Choice { undo_bytes_max: 500, ..USUAL });
    server.web();
    server.bare("web-a", &["10.1.0.1"]);
    let mut client = server.open_web().await;
    client.next().await;
    // Nobody polls the stream meanwhile, as if its client took nothing.
    for last in 0..100 {
        server.bare("web-a", &[&format!("10.1.0.{last}")]);
    }
    assert_eq!(client.end().await, Some(Code::Unavailable));
    drop(client);
    assert_eq!(server.hub.stream_count(), 0);
}

#[tokio::test]
async fn a_quiet_stream_is_not_left_behind() {
    let mut server = Server::start(Choice { undo_bytes_max: 500, ..USUAL });
    server.web();
    server.bare("web-a", &["10.1.0.1"]);
    let mut client = server.open_web().await;
    client.next().await;
    for last in 0..100 {
        let ip = format!("10.9.0.{last}");
        let other = slice("other", 1, vec![endpoint(&ip, Target::Bare)]);
        server.put(Kind::EndpointSlice, "other-a", Object::Slice(other));
    }
    server.bare("web-a", &["10.1.0.1", "10.1.0.2"]);
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.2:8080 10000 {zone_locality=unknown}
    "#]])
        .await;
}

#[tokio::test]
async fn all_streams_end_well_when_the_server_stops() {
    let mut server = Server::start(USUAL);
    server.web();
    let mut open = server.open_web().await;
    open.next().await;
    let waiting = tokio::spawn(async move { open.end().await });
    tokio::task::yield_now().await;
    server.stop.cancel();
    assert_eq!(waiting.await.unwrap(), None);
    assert_eq!(server.open_web().await.end().await, None, "opened late");
}

#[tokio::test]
async fn a_stream_is_small() {
    let mut server = Server::start(USUAL);
    server.web();
    let bytes = server.open_web().await.bytes();
    assert!(bytes <= 1_280, "{bytes}");
    // Where it is, and what it waits for; the rest of the above is its request.
    let own = size_of::<Answer>();
    assert!(own <= 200, "{own}");
}

#[tokio::test]
async fn those_who_ask_the_same_are_told_the_same_bytes() {
    let mut server = Server::start(USUAL);
    server.web();
    for node in 0..20 {
        server.node(&format!("n{node}"), Some(["z1", "z2"][node % 2]));
    }
    server.bare("web-a", &["10.1.0.1"]);
    let mut clients: Vec<Client> = Vec::new();
    for index in 0..200 {
        let node = format!("n{}", index % 20);
        clients.push(server.open("web.shop.svc.k.test:80", &node).await.unwrap());
    }
    let made = |server: &Server| server.metrics.answers(AnswerFrom::Store);
    let mut first = Vec::new();
    for client in &mut clients {
        first.push(client.next().await.bytes().as_ptr());
    }
    first.sort_unstable();
    first.dedup();
    assert_eq!((first.len(), made(&server)), (2, 2), "one answer for each zone");
    for change in 1..5 {
        // Something else happens in between, which changes nothing for them.
        server.put(Kind::Service, "other", Object::Service(web()));
        server.bare("web-a", &["10.1.0.1", &format!("10.1.0.2{change}")]);
        futures::future::join_all(clients.iter_mut().map(Client::next)).await;
        assert_eq!(made(&server), 2 + 2 * change);
        futures::future::join_all(clients.iter_mut().map(async |client| match change {
            1 => None,
            _ => Some(client.next().await),
        }))
        .await;
    }
}

/// A slice of `web` with one endpoint of each of these pods, all on one address.
fn on_one_address(names: &[&str]) -> Object {
    let endpoints = names.iter().map(|name| of_pod("10.1.0.1", name, "z1")).collect();
    Object::Slice(slice("web", 8080, endpoints))
}

#[tokio::test]
async fn a_finished_pod_that_a_slice_calls_ready_is_served_of_c27() {
    let mut server = Server::start(USUAL);
    server.web();
    let finished = Workload { phase: Phase::Finished, ..pod("n7", "10.1.0.1") };
    server.put(Kind::Pod, "w1", Object::Workload(finished));
    server.put(Kind::EndpointSlice, "web-a", on_one_address(&["w1"]));
    let mut client = server.open_web().await;
    client.next().await;
    assert_eq!(client.held.len(), 1);
}

#[tokio::test]
async fn one_of_two_pods_on_an_address_leaves_of_q_16() {
    let mut server = Server::start(USUAL);
    server.web();
    for name in ["w1", "w2"] {
        server.pod(name, "n7", "10.1.0.1");
    }
    server.put(Kind::EndpointSlice, "web-a", on_one_address(&["w1", "w2"]));
    let mut client = server.open_web().await;
    client.next().await;
    server.put(Kind::EndpointSlice, "web-a", on_one_address(&["w2"]));
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {pod=w2 serviceaccount=default zone=z1 zone_locality=unknown}
    "#]])
        .await;
    let revision = server.put(Kind::EndpointSlice, "web-a", on_one_address(&["w2", "w1"]));
    client.settle(&server.hub, revision).await;
    assert_eq!(client.held.len(), 1);
}

#[tokio::test]
async fn an_annotation_of_a_running_pod_is_followed_of_q_7() {
    let mut server = Server::start(USUAL);
    server.web();
    let meshed = |opaque: &[(u16, u16)]| {
        let pod = pod("n7", "10.1.0.1");
        let labels = [("linkerd.io/control-plane-ns".to_owned(), "mesh-sys".to_owned())].into();
        let proxy = ProxyPorts { inbound: Some(4143), admin: Some(4191), control: Some(4190) };
        let opaque = Some(PortSet::from_ranges(opaque.iter().copied()));
        let template = Template { labels, proxy: Some(proxy), opaque, ..pod.template };
        Object::Workload(Workload { template, ..pod })
    };
    server.put(Kind::Pod, "w1", meshed(&[]));
    server.put(Kind::EndpointSlice, "web-a", on_one_address(&["w1"]));
    let mut client = server.open_web().await;
    client.next().await;
    server.put(Kind::Pod, "w1", meshed(&[(8080, 8080)]));
    client.says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {control_plane_ns=mesh-sys pod=w1 serviceaccount=default zone=z1 zone_locality=unknown} tls dns default.shop.serviceaccount.identity.mesh-sys.id.test sni default.shop.serviceaccount.identity.mesh-sys.id.test hint opaque transport 4143
    "#]]).await;
}

#[tokio::test]
async fn the_identity_of_a_workload_is_followed_of_q_8() {
    let mut server = Server::start(USUAL);
    server.web();
    let external = |identity: &str| {
        let workload = pod("n7", "10.1.0.1");
        let tls = MeshTls { identity: identity.to_owned(), server_name: "v1.corp".to_owned() };
        let kind = WorkloadKind::External;
        let template = Template { kind, mesh_tls: Some(tls), ..workload.template };
        Object::Workload(Workload { template, node: None, ..workload })
    };
    server.put(Kind::ExternalWorkload, "v1", external("spiffe://corp/old"));
    let target = Target::ExternalWorkload(key(Kind::ExternalWorkload, "v1").name);
    let endpoints = slice("web", 8080, vec![endpoint("10.1.0.1", target)]);
    server.put(Kind::EndpointSlice, "web-a", Object::Slice(endpoints));
    let mut client = server.open_web().await;
    client.next().await;
    server.put(Kind::ExternalWorkload, "v1", external("spiffe://corp/new"));
    client.says(expect![[r#"
        add {namespace=shop service=web}
        + 10.1.0.1:8080 10000 {external_workload=v1 zone= zone_locality=unknown} tls uri spiffe://corp/new sni v1.corp hint h2
    "#]]).await;
}

#[tokio::test]
async fn a_mirror_in_endpoints_mode_of_h01() {
    let mut server = Server::start(USUAL);
    server.web();
    let subset = slice("web", 8080, vec![endpoint("10.3.0.1", Target::Bare)]);
    let meta = SliceMeta {
        gateway_identity: Some("gw-1".to_owned()),
        remote_service: Some("m-far".to_owned()),
        ..subset.meta
    };
    let subsets = Object::Subsets(vec![model::Slice { meta, ..subset }]);
    server.put(Kind::Endpoints, "web", subsets);
    let mut client = server.open_web().await;
    client
        .says(expect![[r#"
        add {namespace=shop service=web}
        + 10.3.0.1:8080 10000 {zone_locality=unknown} tls dns gw-1 sni - hint h2 authority m-far:80
    "#]])
        .await;
}
