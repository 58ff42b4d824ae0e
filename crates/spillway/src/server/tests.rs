//! A server as a whole, fed by hand.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use linkerd2_proxy_api::destination as pb;
use linkerd2_proxy_api::destination::destination_client::DestinationClient;
use model::{
    Change, ClusterId, EndpointsFrom, Family, Key, Kind, Object, ObjectName, ResourceVersion,
    Revision, Service, ServicePort, Slice, SliceEndpoint, SliceMeta, SlicePort, Source, Target,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

use super::*;
use crate::SourceOptions;

fn options(data: &Path) -> Options {
    Options::new(data.to_owned(), SourceOptions::Fed)
}

fn source(kind: Kind) -> Source {
    Source { cluster: ClusterId::LOCAL, kind }
}

fn put(kind: Kind, name: &str, version: u64, object: Object) -> Change {
    let name = ObjectName::new("shop", name).unwrap();
    let version = ResourceVersion(version.to_string());
    Change::Put { key: Key { source: source(kind), name }, version, object }
}

/// Service `web` with these addresses.
fn web(version: u64, ips: &[&str]) -> Vec<Change> {
    let port = ServicePort { name: "http".to_owned(), port: 80, tcp: true };
    let service = Service { ports: vec![port], ..Service::default() };
    let endpoint = |ip: &&str| SliceEndpoint {
        ip: ip.parse().unwrap(),
        ready: true,
        target: Target::Bare,
        hostname: None,
        zone: None,
        hints: Vec::new(),
    };
    let ports = vec![SlicePort { name: "http".to_owned(), port: Some(8080) }];
    let slice = Slice {
        service: Some(ObjectName::new("shop", "web").unwrap()),
        family: Family::V4,
        meta: SliceMeta { ports: Some(ports), ..SliceMeta::default() },
        endpoints: ips.iter().map(endpoint).collect(),
    };
    vec![
        put(Kind::Service, "web", version, Object::Service(service)),
        put(Kind::EndpointSlice, "web-1", version, Object::Slice(slice)),
    ]
}

/// Listings of all kinds, with these objects.
fn listing(objects: Vec<Change>) -> Vec<Change> {
    let kinds = EndpointsFrom::Slices.kinds();
    let begin = kinds.clone().map(|kind| Change::Begin { source: source(kind) });
    let version = ResourceVersion("1".to_owned());
    let end = kinds.map(|kind| Change::End { source: source(kind), version: version.clone() });
    begin.chain(objects).chain(end).collect()
}

async fn deliver(server: &Running, changes: Vec<Change>) -> Revision {
    let (done, committed) = oneshot::channel();
    server.deliveries().send(Delivery::told(changes, done)).await.unwrap();
    committed.await.unwrap()
}

async fn get(server: &Running) -> Result<tonic::Streaming<pb::Update>, tonic::Status> {
    let url = format!("http://{}", server.addr());
    let mut client = DestinationClient::connect(url).await.unwrap();
    let path = "web.shop.svc.cluster.local:80".to_owned();
    let response = client.get(pb::GetDestination { path, ..Default::default() }).await?;
    Ok(response.into_inner())
}

/// The addresses of the next message, which must be an Add.
async fn added(stream: &mut tonic::Streaming<pb::Update>) -> Vec<SocketAddr> {
    let update = stream.message().await.unwrap().unwrap().update.unwrap();
    let pb::update::Update::Add(set) = update else { panic!("{update:?}") };
    let addr = |addr: pb::WeightedAddr| {
        let addr = addr.addr.unwrap();
        let ip: IpAddr = addr.ip.unwrap().try_into().unwrap();
        SocketAddr::new(ip, u16::try_from(addr.port).unwrap())
    };
    set.addrs.into_iter().map(addr).collect()
}

async fn ready(server: &Running) -> String {
    let mut socket = tokio::net::TcpStream::connect(server.admin_addr().unwrap()).await.unwrap();
    let request = b"GET /ready HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

fn addrs(addrs: &[&str]) -> Vec<SocketAddr> {
    addrs.iter().map(|addr| addr.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_reaches_streams_and_a_restart_answers_from_disk() {
    let data = tempfile::tempdir().unwrap();
    let server = start(options(data.path())).await.unwrap();
    deliver(&server, listing(web(1, &["10.0.0.1", "10.0.0.2"]))).await;
    let mut stream = get(&server).await.unwrap();
    assert_eq!(added(&mut stream).await, addrs(&["10.0.0.1:8080", "10.0.0.2:8080"]));
    let revision = deliver(&server, web(2, &["10.0.0.1", "10.0.0.2", "10.0.0.3"])).await;
    assert_eq!(added(&mut stream).await, addrs(&["10.0.0.3:8080"]));
    server.hub().settled(revision).await;
    assert_eq!(server.messages_sent(), 2);
    server.stop().await.unwrap();
    assert!(stream.message().await.unwrap().is_none(), "the stream ends with OK");

    let server = start(options(data.path())).await.unwrap();
    assert_eq!(server.reader().stats().revision, revision);
    let mut stream = get(&server).await.unwrap();
    assert_eq!(added(&mut stream).await.len(), 3);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_says_what_is_missing() {
    let data = tempfile::tempdir().unwrap();
    let admin_addr = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let server = start(Options { admin_addr, ..options(data.path()) }).await.unwrap();
    let answer = ready(&server).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("- EndpointSlice: being listed\n"), "{answer}");
    deliver(&server, listing(Vec::new())).await;
    assert!(ready(&server).await.starts_with("HTTP/1.1 200"));
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_that_is_used_up_stops_the_learning_and_not_the_answers() {
    let data = tempfile::tempdir().unwrap();
    let server = start(options(data.path())).await.unwrap();
    deliver(&server, listing(web(1, &["10.0.0.1"]))).await;
    server.stop().await.unwrap();

    let admin_addr = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    // What is there may stay. Nothing may come.
    let full = Options { admin_addr, disk_quota_bytes: Some(1), ..options(data.path()) };
    let server = start(full).await.unwrap();
    let ips: Vec<String> = (0..4_000).map(|n| format!("10.1.{}.{}", n / 250, n % 250)).collect();
    let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
    // This may still be seen, if it is what the disk fails at.
    server.deliveries().send(Delivery::new(web(2, &ips))).await.unwrap();
    let answer = loop {
        let answer = ready(&server).await;
        if answer.contains("the disk quota of 0 MiB is used up") {
            break answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (done, waiting) = oneshot::channel();
    let changes = web(3, &["10.0.0.2"]);
    server.deliveries().send(Delivery::told(changes, done)).await.unwrap();
    // It waits, and is no failure; answers go on, and the end of the process takes back what is not on disk.
    let mut stream = get(&server).await.unwrap();
    assert!(!added(&mut stream).await.is_empty());
    server.stop().await.unwrap();
    assert!(waiting.await.is_err(), "it was never committed");

    let server = start(options(data.path())).await.unwrap();
    let mut stream = get(&server).await.unwrap();
    assert_eq!(added(&mut stream).await, addrs(&["10.0.0.1:8080"]));
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_that_cant_be_used_is_refused_with_a_sentence() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = start(options(&file)).await.unwrap_err().to_string();
    assert!(error.contains(&*file.to_string_lossy()), "{error}");

    let folder = data.path().join("folder");
    let server = start(options(&folder)).await.unwrap();
    let error = start(options(&folder)).await.unwrap_err().to_string();
    assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
    server.stop().await.unwrap();
    start(options(&folder)).await.unwrap().stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_named() {
    let data = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let error = start(Options { addr, ..options(data.path()) }).await.unwrap_err();
    assert!(format!("{error:#}").contains(&format!("cannot listen on {addr} (--addr)")));
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_another_sort_of_source_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let manifests = tempfile::tempdir().unwrap();
    let source = SourceOptions::Manifests(manifests.path().to_owned());
    let server = start(Options::new(data.path().to_owned(), source)).await.unwrap();
    server.stop().await.unwrap();
    let source = SourceOptions::Kubernetes { kubeconfig: None, context: None };
    let error = start(Options::new(data.path().to_owned(), source)).await.unwrap_err().to_string();
    assert!(error.contains("holds data from manifests, not kubernetes"), "{error}");
}
