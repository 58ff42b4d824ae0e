//! Clients that mean no good, against the real program: its memory stays within `--memory`, and a client that behaves
//! is told of every change meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::http::Request;
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use harness::client::{Client, Question, Stream};
use harness::http;
use harness::program::Program;
use linkerd2_proxy_api::destination::GetDestination;
use prost::Message as _;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What the server may take.
const MEMORY: &str = "96MiB";
const MEMORY_BYTES: u64 = 96 << 20;

/// One Service whose message is large, and which changes all the time.
const CLUSTER: &str = "services=0,big=1x10000,churn=20";
const PATH: &str = "stock-0.depot.svc.cluster.local:80";

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at the server's memory.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Connections of each kind of client, and streams on each.
const CONNECTIONS: usize = 10;
const STREAMS: usize = 90;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "how much was tried is worth knowing")]
async fn hostile_clients_take_no_memory_and_hold_up_nobody() -> Result<()> {
    let program = Program::build()?;
    let folder = TempDir::new()?;
    let flags = ["--synthetic", CLUSTER, "--memory", MEMORY];
    let mut server = program.serve_with(folder.path(), "data", &flags)?;
    let (addr, admin) = server.serving().await?;
    tokio::time::timeout(PATIENCE, http::until(admin, "/ready", 200, "ok\n")).await??;
    let calm = Client::connect(addr).await?;
    let calm_stream = calm.open(question(), false).await;
    is_told(&calm).await?;
    let before = rss_bytes(admin).await?;
    let peak = Arc::new(AtomicU64::new(before));
    let mut looking = JoinSet::new();
    looking.spawn(watch(admin, Arc::clone(&peak)));

    // Those that hold something keep it until the end.
    let silent = silent(addr).await?;
    is_told(&calm).await?;
    let mut slow = JoinSet::new();
    read_byte_by_byte(addr, &mut slow).await?;
    is_told(&calm).await?;
    let vanished = vanish(addr).await?;
    is_told(&calm).await?;
    let (reset, connections) = reset(addr).await?;
    is_told(&calm).await?;
    let cancelled = open_and_cancel(addr).await?;
    is_told(&calm).await?;

    let late = Client::connect(addr).await?;
    let late_stream = late.open(question(), false).await;
    is_told(&late).await?;
    let told = late_stream.seen().held().len();
    ensure!(told > 9_000, "a client that comes late is told of {told} addresses");
    ensure!(calm_stream.is_open(), "{:?}", calm_stream.status_message());
    ensure!(calm_stream.faults().is_empty());
    server.alive()?;
    let (after, most) = (rss_bytes(admin).await?, peak.load(Ordering::Relaxed));
    println!(
        "{} streams never read, {} read byte by byte, {vanished} vanished, {reset} reset on {connections} connections, \
         {cancelled} cancelled: RSS {} MiB before, {} at most, {} after; a calm client was told {} messages",
        silent.iter().map(|(_, streams)| streams.len()).sum::<usize>(),
        slow.len() - CONNECTIONS,
        before >> 20,
        most >> 20,
        after >> 20,
        calm.messages()
    );
    ensure!(most <= MEMORY_BYTES, "{} MiB", most >> 20);
    Ok(())
}

fn question() -> Question {
    Question { path: PATH.to_owned(), ..Question::default() }
}

/// Returns when a client has been told some more.
async fn is_told(client: &Client) -> Result<()> {
    let until = client.messages() + 5;
    tokio::time::timeout(PATIENCE, client.received(until)).await.context("it is told nothing")
}

/// The server's resident memory.
async fn rss_bytes(admin: SocketAddr) -> Result<u64> {
    let (_, page) = http::get(admin, "/metrics").await?;
    http::metric(&page, "spillway_rss_bytes").context("no spillway_rss_bytes")
}

/// Remembers the most that the server takes.
async fn watch(admin: SocketAddr, peak: Arc<AtomicU64>) {
    loop {
        if let Ok(bytes) = rss_bytes(admin).await {
            peak.fetch_max(bytes, Ordering::Relaxed);
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Clients that open streams and never read.
async fn silent(addr: SocketAddr) -> Result<Vec<(Client, Vec<Stream>)>> {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = Client::connect(addr).await?;
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            streams.push(client.open(question(), true).await);
        }
        clients.push((client, streams));
    }
    Ok(clients)
}

/// A connection without manners, whose sockets are dropped with `tasks`.
async fn connect(
    addr: SocketAddr,
    tasks: &mut JoinSet<()>,
) -> Result<h2::client::SendRequest<Bytes>> {
    let socket = TcpStream::connect(addr).await?;
    let (send, connection) = h2::client::handshake(socket).await?;
    tasks.spawn(async move {
        // However it ends.
        connection.await.ok();
    });
    Ok(send)
}

/// Opens a Get.
async fn get(
    send: h2::client::SendRequest<Bytes>,
) -> Result<(h2::client::SendRequest<Bytes>, h2::client::ResponseFuture, h2::SendStream<Bytes>)> {
    let mut send = send.ready().await?;
    let uri = "http://x/io.linkerd.proxy.destination.Destination/Get";
    let head = Request::post(uri).header("content-type", "application/grpc").body(())?;
    let request = GetDestination { path: PATH.to_owned(), ..GetDestination::default() };
    let message = request.encode_to_vec();
    let length = u32::try_from(message.len())?.to_be_bytes();
    let (response, mut stream) = send.send_request(head, false)?;
    stream.send_data([&[0], &length[..], &message].concat().into(), true)?;
    Ok((send, response, stream))
}

/// Clients that take a byte at a time, a hundred in a second.
async fn read_byte_by_byte(addr: SocketAddr, slow: &mut JoinSet<()>) -> Result<()> {
    for _ in 0..CONNECTIONS {
        let mut send = connect(addr, slow).await?;
        for _ in 0..STREAMS {
            let (next, response, _) = get(send).await?;
            send = next;
            slow.spawn(async move {
                let Ok(response) = response.await else { return };
                let mut body = response.into_body();
                while let Some(Ok(part)) = body.data().await {
                    for _ in 0..part.len() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        body.flow_control().release_capacity(1).ok();
                    }
                }
            });
        }
    }
    Ok(())
}

/// Clients whose sockets are gone in the middle of what they are told. How many streams they had.
async fn vanish(addr: SocketAddr) -> Result<usize> {
    for _ in 0..CONNECTIONS {
        let mut tasks = JoinSet::new();
        let mut send = connect(addr, &mut tasks).await?;
        let mut responses = Vec::new();
        for _ in 0..STREAMS {
            let (next, response, _) = get(send).await?;
            send = next;
            responses.push(response);
        }
        for response in responses.into_iter().take(2) {
            response.await?;
        }
        tasks.shutdown().await;
    }
    Ok(CONNECTIONS * STREAMS)
}

/// Streams that are reset as soon as they are asked for. How many there were, and on how many connections: where the
/// server takes it for an attack, it closes one.
async fn reset(addr: SocketAddr) -> Result<(usize, usize)> {
    let (mut opened, mut connections) = (0, 0);
    while opened < 5_000 {
        let mut tasks = JoinSet::new();
        let mut send = connect(addr, &mut tasks).await?;
        connections += 1;
        while opened < 5_000 {
            let Ok((next, _response, mut stream)) = get(send).await else { break };
            stream.send_reset(h2::Reason::CANCEL);
            send = next;
            opened += 1;
        }
    }
    Ok((opened, connections))
}

/// A client that opens a stream, waits for the first answer and gives it up, again and again. How often.
async fn open_and_cancel(addr: SocketAddr) -> Result<usize> {
    let client = Client::connect(addr).await?;
    for _ in 0..1_000 {
        drop(client.open(question(), true).await);
    }
    Ok(1_000)
}
