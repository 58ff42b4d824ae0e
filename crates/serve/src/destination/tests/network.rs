//! What only HTTP/2 shows.

use std::time::Duration;

use linkerd2_proxy_api::destination::GetDestination;
use linkerd2_proxy_api::destination::destination_client::DestinationClient;
use tokio::net::TcpListener;
use tonic::transport::Channel;

use super::fixture::{Server, USUAL};

async fn connect(server: &Server) -> (DestinationClient<Channel>, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = crate::serve(listener, server.destination.clone(), server.stop.clone());
    let serving = tokio::spawn(async { serving.await.unwrap() });
    (DestinationClient::connect(format!("http://{addr}")).await.unwrap(), serving)
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
    while server.hub.stream_count() > 100 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
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
async fn what_is_not_served_and_what_is_no_request_is_refused() {
    let server = Server::start(USUAL);
    let (mut client, _serving) = connect(&server).await;
    let refused = client.get_profile(request("10.0.0.1:80")).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unimplemented);
    let refused = client.get(request(&"a".repeat(20_000))).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::OutOfRange);
}
