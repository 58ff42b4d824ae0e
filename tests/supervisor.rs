//! The disk fails a sync, and with it the writer, under a server with open streams: it goes on from what is on disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use harness::client::{Client, Question, Seen, Stream};
use harness::crash::{CrashVolume, Op};
use harness::http;
use ingest::Delivery;
use ingest::synthetic::Spec;
use model::{Change, ClusterId, Key, Kind, Object, ObjectName, ResourceVersion, Service, Source};
use spillway::{Options, Running, SourceOptions};
use tonic::Code;

const SPEC: Spec = Spec { services: 2, endpoints: 6, churn: 0, seed: 7, ..Spec::DEFAULT };

struct Server {
    running: Running,
    /// Syncs that are yet to fail.
    failures: Arc<AtomicUsize>,
    /// They don't fail but panic, as a fault in the writer's code does.
    panics: Arc<AtomicBool>,
    versions: u64,
    _data: tempfile::TempDir,
}

impl Server {
    async fn start(volume: CrashVolume) -> Server {
        let data = tempfile::tempdir().expect("a folder");
        let failures = Arc::new(AtomicUsize::new(0));
        let panics = Arc::new(AtomicBool::new(false));
        let (fails, panicking) = (Arc::clone(&failures), Arc::clone(&panics));
        volume.set_fault(Some(Box::new(move |_, op| {
            let one_less = |n: usize| n.checked_sub(1);
            let fails = matches!(op, Op::Sync(_))
                && fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok();
            assert!(!fails || !panicking.load(Ordering::SeqCst), "told to panic");
            fails.then(|| io::Error::other("the disk is gone"))
        })));
        let options = Options {
            volume: Some(Arc::new(volume.clone())),
            admin_addr: Some(([127, 0, 0, 1], 0).into()),
            // Tests say when.
            fsync_interval: Some(Duration::from_millis(20)),
            ..Options::new(data.path().to_owned(), SourceOptions::Synthetic(SPEC))
        };
        let running = spillway::start(options).await.expect("it starts");
        let server = Server { running, failures, panics, versions: 1 << 40, _data: data };
        server.until("spillway_objects{kind=\"EndpointSlice\"}", |slices| slices >= 2).await;
        server.until("spillway_endpoints", |endpoints| endpoints >= 12).await;
        server
    }

    /// Waits until a metric is as wanted.
    async fn until(&self, metric: &str, wanted: impl Fn(u64) -> bool) {
        let addr = self.running.admin_addr().expect("an admin address");
        for _ in 0..2_000 {
            let (_, page) = http::get(addr, "/metrics").await.expect("metrics");
            if http::metric(&page, metric).is_some_and(&wanted) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{metric} is not as it should be");
    }

    /// Service `cart-0` gets another port, or its first one again: all addresses of its streams change.
    /// What was being delivered when the writer failed is said again, as sources do.
    async fn change(&mut self, port: u16) {
        while !self.deliver(port).await.expect("it is taken") {}
    }

    /// The same of a server that may end meanwhile.
    async fn change_or_end(&mut self, port: u16) {
        while self.deliver(port).await == Some(false) {}
    }

    /// Delivers it once. Was it committed? `None`: the server has ended.
    async fn deliver(&mut self, port: u16) -> Option<bool> {
        self.versions += 1;
        let name = ObjectName::new("shop", "cart-0").expect("a name");
        let source = Source { cluster: ClusterId::LOCAL, kind: Kind::Service };
        let ports = vec![model::ServicePort { name: "http".to_owned(), port, tcp: true }];
        let change = Change::Put {
            key: Key { source, name },
            version: ResourceVersion(self.versions.to_string()),
            object: Object::Service(Service { ports, ..Service::default() }),
        };
        let (done, committed) = tokio::sync::oneshot::channel();
        let delivery = Delivery::told(vec![change], done);
        self.running.deliveries().send(delivery).await.ok()?;
        Some(committed.await.is_ok())
    }

    /// So many syncs fail, from the next one on.
    fn fail(&self, syncs: usize) {
        self.failures.store(syncs, Ordering::SeqCst);
    }
}

/// Streams of both Services.
struct Streams {
    client: Client,
    changed: Stream,
    other: Stream,
}

impl Streams {
    async fn open(server: &Server) -> Streams {
        let client = Client::connect(server.running.addr()).await.expect("it answers");
        let (changed, other) = (open(&client, 0).await, open(&client, 1).await);
        client.received(2).await;
        Streams { client, changed, other }
    }
}

async fn open(client: &Client, service: u32) -> Stream {
    let path = format!("cart-{service}.shop.svc.cluster.local:80");
    client.open(Question { path, ..Question::default() }, false).await
}

/// Waits until a stream is as wanted.
async fn until(stream: &Stream, wanted: impl Fn(&Seen) -> bool) {
    for _ in 0..2_000 {
        if wanted(&stream.seen()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?} is not as it should be: {:?}", stream.seen(), stream.status_message());
}

/// Are these the addresses of an open stream, all of them at this port?
fn at(port: u16) -> impl Fn(&Seen) -> bool {
    let end = format!(":{port}");
    move |seen| match seen {
        Seen::Open(held) => {
            held.len() == 6 && held.keys().all(|addr| addr.to_string().ends_with(&end))
        }
        Seen::Ended(_) => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_live_on_if_nothing_was_lost() {
    let mut server = Server::start(CrashVolume::of(Default::default())).await;
    let streams = Streams::open(&server).await;
    for (round, port) in [81, 80, 82].into_iter().enumerate() {
        server.fail(1);
        server.change(port).await;
        server.until("spillway_store_reopened_total", |count| count == round as u64 + 1).await;
        // Whoever asks for 80 is given 80 as it is, if the Service has no such port.
        until(&streams.changed, at(if port == 80 { 8080 } else { 80 })).await;
    }
    until(&streams.other, at(8080)).await;
    assert_eq!(streams.changed.faults(), Vec::<String>::new());
    server.running.stop().await.expect("it ends well");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_streams_that_were_told_of_what_is_lost_end() {
    let mut server = Server::start(CrashVolume::forgetful()).await;
    let streams = Streams::open(&server).await;
    // Until then nothing of what is there is lost.
    server.until("spillway_sync_seconds_count", |syncs| syncs > 0).await;
    server.change(80).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.fail(1);
    server.change(81).await;
    server.until("spillway_store_reopened_total", |count| count == 1).await;
    until(&streams.changed, |seen| *seen == Seen::Ended(Code::Unavailable)).await;
    let again = open(&streams.client, 0).await;
    until(&again, at(8080)).await;
    server.change(82).await;
    until(&again, at(80)).await;
    assert!(streams.other.is_open());
    until(&streams.other, at(8080)).await;
    server.running.stop().await.expect("it ends well");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_goes_on_failing_ends_the_server_with_a_reason() {
    let mut server = Server::start(CrashVolume::of(Default::default())).await;
    server.fail(usize::MAX);
    server.change_or_end(81).await;
    let reason = tokio::time::timeout(Duration::from_secs(60), server.running.failed()).await;
    let reason = reason.expect("it goes on");
    assert!(reason.starts_with("the writer failed: storage: "), "{reason}");
    assert!(reason.contains("the disk is gone"), "{reason}");
    assert!(server.running.stop().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_writer_ends_the_server() {
    let mut server = Server::start(CrashVolume::of(Default::default())).await;
    server.panics.store(true, Ordering::SeqCst);
    server.fail(1);
    server.change_or_end(81).await;
    assert_eq!(server.running.failed().await, "the writer panicked");
}
