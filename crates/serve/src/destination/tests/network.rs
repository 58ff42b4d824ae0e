//! What only HTTP/2 shows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use linkerd2_proxy_api::destination::GetDestination;
use linkerd2_proxy_api::destination::destination_client::DestinationClient;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tonic::Code;
use tonic::transport::Channel;

use super::fixture::{Choice, Server, USUAL};
use crate::{Door, DoorLimits};

const LIMITS: DoorLimits = DoorLimits {
    connections_max: 1_000,
    streams_max: 1_000,
    streams_per_connection_max: 1_000,
    stall: Duration::from_secs(60),
};

async fn open(server: &Server, limits: DoorLimits) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let door = Door {
        destination: server.destination.clone(),
        limits,
        metrics: Arc::clone(&server.metrics),
        closing: server.stop.child_token(),
        stop: server.stop.clone(),
    };
    (addr, tokio::spawn(crate::serve(listener, door)))
}

async fn client(addr: SocketAddr) -> DestinationClient<Channel> {
    DestinationClient::connect(format!("http://{addr}")).await.unwrap()
}

/// One whose window a large answer fills.
async fn slow_client(addr: SocketAddr) -> DestinationClient<Channel> {
    let channel = Channel::from_shared(format!("http://{addr}")).unwrap();
    DestinationClient::new(channel.initial_stream_window_size(65_535).connect().await.unwrap())
}

async fn connect(server: &Server) -> (DestinationClient<Channel>, JoinHandle<()>) {
    let (addr, serving) = open(server, LIMITS).await;
    (client(addr).await, serving)
}

/// Returns when it is so, and fails if that doesn't come.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it does not come");
}

/// So many addresses that no window holds them.
fn large(server: &mut Server) {
    let ips: Vec<String> = (0..5_000).map(|at| format!("10.1.{}.{}", at / 250, at % 250)).collect();
    server.bare("web-a", &ips.iter().map(String::as_str).collect::<Vec<_>>());
}

fn request(path: &str) -> GetDestination {
    GetDestination { path: path.to_owned(), ..GetDestination::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_carries_any_number_of_streams() {
    let mut server = Server::start(USUAL);
    server.web();
    server.bare("web-a", &["10.1.0.1"]);
    let (mut client, serving) = connect(&server).await;
    let mut streams = Vec::new();
    for _ in 0..500 {
        streams.push(client.get(request("web.shop.svc.k.test:80")).await.unwrap().into_inner());
    }
    for stream in &mut streams {
        assert!(stream.message().await.unwrap().is_some());
    }
    let revision = server.bare("web-a", &["10.1.0.1", "10.1.0.2"]);
    for stream in &mut streams {
        assert!(stream.message().await.unwrap().is_some());
    }
    server.hub.settled(revision).await;
    assert_eq!((server.hub.stream_count(), server.metrics.messages_sent()), (500, 1_000));

    // Clients that leave take their streams with them; those that stay get OK when the server stops.
    streams.truncate(100);
    until(|| server.hub.stream_count() == 100).await;
    server.stop.cancel();
    for stream in &mut streams {
        assert!(stream.message().await.unwrap().is_none());
    }
    drop((client, streams));
    tokio::time::timeout(Duration::from_secs(10), serving).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_comes_without_a_stream() {
    let server = Server::start(USUAL);
    let (mut client, _serving) = connect(&server).await;
    let refused = client.get(request("web.shop.svc.k.test:80")).await.unwrap_err();
    // In a trailers-only response the status is among the headers.
    assert_eq!(refused.code(), tonic::Code::NotFound);
    assert_eq!(refused.message(), "Service web.shop not found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn profiles_are_served_and_what_is_no_request_is_refused() {
    let server = Server::start(USUAL);
    let (mut client, _serving) = connect(&server).await;
    let mut profile = client.get_profile(request("10.0.0.1:80")).await.unwrap().into_inner();
    assert!(profile.message().await.unwrap().unwrap().endpoint.is_some());
    let refused = client.get_profile(request("10.0.0.1:0")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let refused = client.get(request(&"a".repeat(20_000))).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_nothing_is_ended_with_unavailable() {
    let mut server = Server::start(USUAL);
    server.web();
    large(&mut server);
    let limits = DoorLimits { stall: Duration::from_millis(200), ..LIMITS };
    let (addr, _serving) = open(&server, limits).await;
    let mut stalled = slow_client(addr).await;
    let mut stalled = stalled.get(request("web.shop.svc.k.test:80")).await.unwrap();
    // Another one on the same server is not disturbed, and takes its time for nothing but changes.
    let mut calm = client(addr).await.get(request("web.shop.svc.k.test:80")).await.unwrap();
    assert_eq!(addresses(calm.get_mut().message().await.unwrap()), 5_000);
    until(|| server.hub.stream_count() == 1).await;
    let ended = stalled.get_mut().message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    server.bare("web-b", &["10.2.0.1"]);
    assert_eq!(addresses(calm.get_mut().message().await.unwrap()), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_hold_no_more_than_their_share() {
    let limit = 600_000;
    let mut server = Server::start(Choice { hot_bytes: 0, sending_bytes: limit, ..USUAL });
    server.web();
    large(&mut server);
    let (addr, _serving) = open(&server, LIMITS).await;
    let mut calm = client(addr).await.get(request("web.shop.svc.k.test:80")).await.unwrap();
    assert_eq!(addresses(calm.get_mut().message().await.unwrap()), 5_000);
    // What is over the limit is gone as soon as those who had it have noticed; the last answer was counted before that.
    let most = limit + 200_000;
    let mut slow = Vec::new();
    for number in 0..30 {
        // Each holds an answer that no other has.
        server.bare("web-b", &[&format!("10.2.0.{number}")]);
        slow.push(slow_client(addr).await.get(request("web.shop.svc.k.test:80")).await.unwrap());
        until(|| server.destination.afloat_bytes() > 0).await;
        until(|| server.destination.afloat_bytes() <= most as u64).await;
    }
    until(|| server.hub.stream_count() < 10).await;
    let ended = slow[0].get_mut().message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable);
    // Whoever reads is not among them.
    server.bare("web-c", &["10.3.0.1"]);
    let mut told = 0;
    while told < 1 {
        let update = calm.get_mut().message().await.unwrap().unwrap();
        told += usize::from(format!("{update:?}").contains("Ipv4(167968769)"));
    }
}

fn addresses(update: Option<linkerd2_proxy_api::destination::Update>) -> usize {
    match update.unwrap().update.unwrap() {
        linkerd2_proxy_api::destination::update::Update::Add(set) => set.addrs.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_have_limits_in_all_and_on_each_connection() {
    let mut server = Server::start(USUAL);
    server.web();
    let limits = DoorLimits { streams_max: 3, streams_per_connection_max: 2, ..LIMITS };
    let (addr, _serving) = open(&server, limits).await;
    let (mut one, mut two) = (client(addr).await, client(addr).await);
    let web = || request("web.shop.svc.k.test:80");
    let first = one.get(web()).await.unwrap();
    let second = one.get(web()).await.unwrap();
    let refused = one.get(web()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("--max-streams-per-connection"), "{refused}");
    let third = two.get(web()).await.unwrap();
    let refused = two.get(web()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().ends_with("(--max-streams)"), "{refused}");
    // A stream that is refused for another reason takes no place either.
    drop(second);
    until(|| server.hub.stream_count() == 2).await;
    for _ in 0..5 {
        let absent = two.get(request("none.shop.svc.k.test:80")).await.unwrap_err();
        assert_eq!(absent.code(), Code::NotFound);
    }
    let fourth = two.get(web()).await.unwrap();
    drop((first, third, fourth));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_have_a_limit_too() {
    let mut server = Server::start(USUAL);
    server.web();
    let (addr, _serving) = open(&server, DoorLimits { connections_max: 2, ..LIMITS }).await;
    let web = || request("web.shop.svc.k.test:80");
    let (mut one, mut two) = (client(addr).await, client(addr).await);
    let streams = [one.get(web()).await.unwrap(), two.get(web()).await.unwrap()];
    let third = DestinationClient::connect(format!("http://{addr}")).await;
    let third = match third {
        Ok(mut third) => third.get(web()).await.is_err(),
        Err(_) => true,
    };
    assert!(third, "there are two already");
    drop((streams, one));
    until(|| server.hub.stream_count() == 0).await;
    // There is room again as soon as a connection is gone.
    let mut again = DestinationClient::connect(format!("http://{addr}")).await;
    while again.is_err() || again.as_mut().unwrap().get(web()).await.is_err() {
        again = DestinationClient::connect(format!("http://{addr}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_stream_shows_that_it_is_alive() {
    let mut server = Server::start(USUAL);
    server.web();
    server.bare("web-a", &["10.1.0.1"]);
    let (mut client, _serving) = connect(&server).await;
    let mut stream = client.get(request("web.shop.svc.k.test:80")).await.unwrap().into_inner();
    assert_eq!(addresses(stream.message().await.unwrap()), 1);
    let hub = Arc::clone(&server.hub);
    let waking = tokio::spawn(async move { hub.run(Duration::from_millis(300)).await });
    for _ in 0..2 {
        assert_eq!(addresses(stream.message().await.unwrap()), 0);
    }
    waking.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_one_after_the_other() {
    let mut server = Server::start(USUAL);
    server.web();
    let (mut client, _serving) = connect(&server).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(client.get(request("web.shop.svc.k.test:80")).await.unwrap().into_inner());
    }
    for stream in &mut streams {
        stream.message().await.unwrap();
    }
    let hub = Arc::clone(&server.hub);
    let ending = tokio::spawn(async move { hub.end_all(Duration::from_secs(1)).await });
    let mut counts = std::collections::BTreeSet::new();
    while server.hub.stream_count() > 0 {
        counts.insert(server.hub.stream_count());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ending.await.unwrap();
    assert!(counts.len() > 10, "not all at once: {counts:?}");
    for stream in &mut streams {
        assert_eq!(stream.message().await.unwrap_err().code(), Code::Unavailable);
    }
    let late = client.get(request("web.shop.svc.k.test:80")).await.unwrap_err();
    assert_eq!(late.code(), Code::Unavailable, "the server is ending");
}

/// What a client that speaks HTTP/2 and little gRPC is answered: the HTTP status, and gRPC's.
async fn raw(addr: SocketAddr, request: Request<()>, body: &[u8]) -> (u16, Option<String>) {
    let socket = TcpStream::connect(addr).await.unwrap();
    let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
    let driving = tokio::spawn(connection);
    let (response, mut stream) = client.send_request(request, false).unwrap();
    // A server that refuses by the head alone may have ended the stream before its body is sent.
    stream.send_data(Bytes::copy_from_slice(body), true).ok();
    let response = response.await.unwrap();
    let status = response.headers().get("grpc-status").map(|it| it.to_str().unwrap().to_owned());
    driving.abort();
    (response.status().as_u16(), status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_grpc_is_told_so() {
    let server = Server::start(USUAL);
    let (addr, _serving) = open(&server, LIMITS).await;
    let request = |method: Method, content_type: &str, path: &str| {
        let uri = format!("http://{addr}/io.linkerd.proxy.destination.Destination/{path}");
        let request = Request::builder().method(method).uri(uri);
        request.header("content-type", content_type).body(()).unwrap()
    };
    let grpc = |path: &str| request(Method::POST, "application/grpc", path);
    assert_eq!(raw(addr, request(Method::GET, "application/grpc", "Get"), b"").await, (405, None));
    assert_eq!(raw(addr, request(Method::POST, "text/html", "Get"), b"").await, (415, None));
    let code = |code: Code| (200, Some((code as i32).to_string()));
    assert_eq!(raw(addr, grpc("Put"), b"").await, code(Code::Unimplemented));
    assert_eq!(raw(addr, grpc("Get"), b"").await, code(Code::Internal));
    assert_eq!(raw(addr, grpc("Get"), b"\0\0\0\0\x05a").await, code(Code::Internal));
    assert_eq!(raw(addr, grpc("Get"), b"\x01\0\0\0\0").await, code(Code::Unimplemented));
    assert_eq!(raw(addr, grpc("Get"), b"\0\0\0\0\x01\xff").await, code(Code::Internal));
    assert_eq!(raw(addr, grpc("Get"), b"\0\0\0\0\0").await, code(Code::InvalidArgument));
    assert_eq!(raw(addr, grpc("Get"), &[0; 20_000]).await, code(Code::ResourceExhausted));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_open_and_give_up_leave_nothing() {
    let mut server = Server::start(USUAL);
    server.web();
    large(&mut server);
    let (addr, _serving) = open(&server, LIMITS).await;
    let calm = client(addr).await.get(request("web.shop.svc.k.test:80")).await.unwrap();
    for _ in 0..20 {
        let mut hasty = client(addr).await;
        let opened: Vec<_> = (0..50)
            .map(|_| {
                let mut client = hasty.clone();
                tokio::spawn(async move { client.get(request("web.shop.svc.k.test:80")).await })
            })
            .collect();
        for one in opened.iter().step_by(2) {
            one.abort();
        }
        hasty.get(request("web.shop.svc.k.test:80")).await.unwrap();
    }
    until(|| server.hub.stream_count() == 1).await;
    assert_eq!(addresses(calm.into_inner().message().await.unwrap()), 5_000);
}

/// A Get of `web`, as HTTP/2 has it.
fn raw_get() -> (Request<()>, Bytes) {
    let uri = "http://x/io.linkerd.proxy.destination.Destination/Get";
    let head = Request::post(uri).header("content-type", "application/grpc").body(()).unwrap();
    let message = prost::Message::encode_to_vec(&request("web.shop.svc.k.test:80"));
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    (head, Bytes::from([&[0], &length[..], &message].concat()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clients_that_read_a_byte_at_a_time_hold_up_nobody() {
    let limit = 1_000_000;
    let mut server = Server::start(Choice { hot_bytes: 0, sending_bytes: limit, ..USUAL });
    server.web();
    large(&mut server);
    let (addr, _serving) = open(&server, LIMITS).await;
    let mut calm = client(addr).await.get(request("web.shop.svc.k.test:80")).await.unwrap();
    assert_eq!(addresses(calm.get_mut().message().await.unwrap()), 5_000);
    let read = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for _ in 0..10 {
        let socket = TcpStream::connect(addr).await.unwrap();
        let (mut send, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..99 {
            send = send.ready().await.unwrap();
            let (head, body) = raw_get();
            let (response, mut stream) = send.send_request(head, false).unwrap();
            stream.send_data(body, true).unwrap();
            let read = Arc::clone(&read);
            tokio::spawn(async move {
                let Ok(response) = response.await else { return };
                let mut body = response.into_body();
                while let Some(Ok(part)) = body.data().await {
                    for _ in 0..part.len() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        body.flow_control().release_capacity(1).ok();
                        read.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    }
    until(|| server.hub.stream_count() > 900).await;
    let mut most = 0;
    for number in 0..20 {
        server.bare("web-b", &[&format!("10.2.0.{number}")]);
        assert!(calm.get_mut().message().await.unwrap().is_some());
        most = most.max(server.destination.afloat_bytes());
    }
    let read = read.load(std::sync::atomic::Ordering::Relaxed);
    assert!(read > 0 && most < (limit + 400_000) as u64, "{read} bytes read, {most} afloat");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_streams_that_are_reset_disturbs_nobody() {
    let mut server = Server::start(USUAL);
    server.web();
    large(&mut server);
    let (addr, _serving) = open(&server, LIMITS).await;
    let mut calm = client(addr).await.get(request("web.shop.svc.k.test:80")).await.unwrap();
    assert_eq!(addresses(calm.get_mut().message().await.unwrap()), 5_000);
    let (mut opened, mut connections) = (0, 0);
    while opened < 5_000 {
        let socket = TcpStream::connect(addr).await.unwrap();
        let (mut send, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(connection);
        connections += 1;
        // Where the server takes it for an attack, it closes the connection.
        while opened < 5_000 {
            send = match send.ready().await {
                Ok(send) => send,
                Err(_) => break,
            };
            let (head, body) = raw_get();
            let Ok((_response, mut stream)) = send.send_request(head, false) else { break };
            stream.send_data(body, true).ok();
            stream.send_reset(h2::Reason::CANCEL);
            opened += 1;
        }
    }
    server.bare("web-b", &["10.2.0.1"]);
    assert_eq!(addresses(calm.get_mut().message().await.unwrap()), 1);
    until(|| server.hub.stream_count() == 1).await;
    assert!(connections < 100, "{connections} connections for {opened} streams");
}
