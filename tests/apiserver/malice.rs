//! API servers that mean no good, one behind each link: each is contained in its cluster.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use harness::apiserver::{User, mirror, secret};
use harness::http;
use harness::program::Program;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::links::{Far, MIRROR, open_at};
use crate::rig::{PATIENCE, Rig, open, pod, slice};

/// What an API server does to whoever watches it.
#[derive(Clone, Copy, Debug)]
enum Malice {
    /// Lists objects without end.
    EndlessList,
    /// Lists in pages without end.
    EndlessPages,
    /// Sends one object that never ends.
    EndlessObject,
    /// Begins objects that are almost too long, and waits in the middle of each.
    SlowObjects,
    /// Sends what is nothing at all.
    Garbage,
    /// Repeats an event without end.
    Repeats,
    /// Is always at an earlier version than before.
    Backwards,
    /// Says no, at a length that nobody needs.
    LongRefusals,
    /// Sends objects that are short to write and large to hold.
    TinyValues,
    /// Gives itself names and versions of a megabyte.
    LongNames,
    /// Never ends the head of its answer.
    EndlessHead,
    /// Ends every watch as soon as it has begun.
    ShortWatches,
}

const ALL: [Malice; 12] = [
    Malice::EndlessList,
    Malice::EndlessPages,
    Malice::EndlessObject,
    Malice::SlowObjects,
    Malice::Garbage,
    Malice::Repeats,
    Malice::Backwards,
    Malice::LongRefusals,
    Malice::TinyValues,
    Malice::LongNames,
    Malice::EndlessHead,
    Malice::ShortWatches,
];

/// Such a server.
struct Server {
    addr: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Server {
    async fn start(malice: Malice) -> Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            let mut version = 1_000_000;
            while let Ok((stream, _)) = listener.accept().await {
                version -= 1;
                // It ends when the client goes.
                tokio::spawn(answer(stream, malice, version));
            }
        });
        Ok(Server { addr, serving })
    }

    fn kubeconfig(&self) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": format!("http://{}", self.addr)}}],
            "users": [{"name": "it", "user": {"token": "any"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        })
        .to_string()
    }
}

async fn answer(mut stream: TcpStream, malice: Malice, version: u32) -> Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let request = String::from_utf8_lossy(&request);
    let listing = request.contains("sendInitialEvents=true");
    let watching = request.contains("watch=true");
    let probing = request.contains("limit=1&") || request.contains("limit=1 ");
    if request.contains("/services/kubernetes") {
        return say(&mut stream, 200, r#"{"metadata":{"uid":"u"}}"#).await;
    }
    match malice {
        Malice::EndlessHead => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ").await?;
            return forever(&mut stream, |_| "x".repeat(10_000)).await;
        }
        Malice::LongRefusals => {
            stream.write_all(b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n").await?;
            return forever(&mut stream, |_| "no ".repeat(10_000)).await;
        }
        Malice::EndlessPages if listing => return say(&mut stream, 400, "{}").await,
        Malice::EndlessPages if !watching => return say(&mut stream, 200, &page(version)).await,
        _ if probing => {
            return say(
                &mut stream,
                200,
                &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#),
            )
            .await;
        }
        _ => {}
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await?;
    match malice {
        Malice::EndlessList => forever(&mut stream, |number| event(number, 7, "")).await,
        Malice::EndlessObject => {
            stream.write_all(br#"{"type":"ADDED","object":{"metadata":{"name":""#).await?;
            forever(&mut stream, |_| "x".repeat(100_000)).await
        }
        Malice::SlowObjects => {
            stream.write_all(&event(1, 3_900, "").as_bytes()[..3_800_000]).await?;
            forever_slowly(&mut stream).await
        }
        Malice::Garbage => forever(&mut stream, |number| format!("{{\u{0}[\"{number}\n")).await,
        Malice::TinyValues => forever(&mut stream, tiny).await,
        Malice::LongNames => {
            forever(&mut stream, |number| event(number, 1, &"9".repeat(1_000_000))).await
        }
        _ => {
            if listing {
                stream.write_all(event(1, 1, "1").as_bytes()).await?;
                stream.write_all(bookmark(version).as_bytes()).await?;
            }
            match malice {
                Malice::Repeats => forever(&mut stream, |_| event(1, 7, "5")).await,
                _ => Ok(()),
            }
        }
    }
}

async fn say(stream: &mut TcpStream, status: u16, body: &str) -> Result<()> {
    let head = format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    Ok(stream.write_all(body.as_bytes()).await?)
}

async fn forever(stream: &mut TcpStream, mut next: impl FnMut(usize) -> String) -> Result<()> {
    let mut number = 0;
    loop {
        stream.write_all(next(number).as_bytes()).await?;
        number += 1;
    }
}

async fn forever_slowly(stream: &mut TcpStream) -> Result<()> {
    loop {
        stream.write_all(b"x").await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// An object of so many KB, which any kind could be, named by a number.
fn object(number: usize, kilobytes: usize, version: &str) -> String {
    let (version, note) =
        (if version.is_empty() { "7" } else { version }, "x".repeat(1_000 * kilobytes));
    format!(
        r#"{{"metadata":{{"name":"o{number}","namespace":"shop","resourceVersion":"{version}"}},"status":{{"podIP":"10.9.0.1","phase":"Running"}},"note":"{note}"}}"#
    )
}

fn event(number: usize, kilobytes: usize, version: &str) -> String {
    format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", object(number, kilobytes, version))
}

fn bookmark(version: u32) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{version}\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n"
    )
}

fn page(number: u32) -> String {
    let items: Vec<_> = (0..200).map(|it| object(number as usize * 200 + it, 7, "")).collect();
    format!(
        r#"{{"metadata":{{"resourceVersion":"5","continue":"t{number}"}},"items":[{}]}}"#,
        items.join(",")
    )
}

/// Four megabytes of values of a few bytes, in several places; or brackets in brackets.
fn tiny(number: usize) -> String {
    let many = |value: &str| vec![value; 3_900_000 / (value.len() + 1)].join(",");
    let labels: Vec<_> = (0..400_000).map(|it| format!("\"{it}\":\"\"")).collect();
    let (what, value) = match number % 6 {
        0 => ("endpoints", format!("[{}]", many("{}"))),
        1 => ("subsets", format!("[{}]", many("{}"))),
        2 => ("spec", format!("{{\"containers\":[{{\"env\":[{}]}}]}}", many("{}"))),
        3 => ("spec", format!("{{\"ports\":[{}]}}", many("{}"))),
        4 => ("spec", "[".repeat(3_900_000)),
        _ => {
            let labels = labels.join(",");
            return format!(
                "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"l\",\"namespace\":\"shop\",\"labels\":{{{labels}}}}}}}}}\n"
            );
        }
    };
    format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"o{number}\",\"namespace\":\"shop\"}},\"{what}\":{value}}}}}\n"
    )
}

/// The most memory that a process has had, in MiB.
fn peak(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = line.context("no VmHWM")?.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024)
}

fn link(name: &str, server: &Server) -> [Value; 2] {
    [mirror("shop", name, "web"), secret(name, name, &server.kubeconfig())]
}

/// All of them together, for so long. What one alone could take is more than this.
const SIEGE: Duration = Duration::from_secs(20);

/// MiB that the process may have under that, built for debugging: half of what the original's chart gives it.
const PEAK_MAX: u64 = 128;

/// Returns when what lists without an end has come to its quota.
async fn cut_short(admin: SocketAddr) -> Result<()> {
    for endless in ["endlesslist", "endlesspages"] {
        let refused = format!("spillway_link_objects_refused{{cluster=\"{endless}\"}}");
        while http::metric(&http::get(admin, "/metrics").await?.1, &refused).unwrap_or(0) == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn api_servers_that_mean_no_good_harm_nobody_else() -> Result<()> {
    let program = Program::build()?;
    let far = Far::start(&[3]).await?;
    let rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    rig.objects.apply(&[mirror("shop", "far", "web"), far.secret(User::Admin)]).await?;
    let kubeconfig = rig.kubeconfig(User::Admin)?.display().to_string();
    let flags = ["--kubeconfig", &kubeconfig, "--linked-disk-quota", "256KiB"];
    let mut server = program.serve_with(rig.folder(), "data", &flags)?;
    let (addr, admin) = server.serving().await?;
    tokio::time::timeout(PATIENCE, http::until(admin, "/ready", 200, "ok\n")).await??;
    let (web, mirrored) = (open(addr).await?, open_at(addr, MIRROR).await?);
    web.until_pods(&[1, 2]).await?;
    mirrored.until_pods(&[3]).await?;
    let quiet = peak(server.pid())?;
    let mut besieging = Vec::new();
    for malice in ALL {
        let name = format!("{malice:?}").to_lowercase();
        let server = Server::start(malice).await?;
        rig.objects.apply(&link(&name, &server)).await?;
        besieging.push(server);
    }
    rig.objects.apply(&(1..=9).map(|n| pod(&format!("w{n}"), n)).collect::<Vec<_>>()).await?;
    far.has(&[3, 4]).await?;
    let until = tokio::time::Instant::now() + SIEGE;
    let mut round = 0;
    while tokio::time::Instant::now() < until || round < 4 {
        let (at_home, away) = if round % 2 == 0 { ([1, 5], [3]) } else { ([2, 6], [4]) };
        rig.objects.apply(&[slice("web", &at_home)]).await?;
        web.until_pods(&at_home).await?;
        far.objects.apply(&[slice("web", &away)]).await?;
        mirrored.until_pods(&away).await?;
        server.alive()?;
        round += 1;
    }
    tokio::time::timeout(PATIENCE, cut_short(admin)).await.context("they may fill the disk")??;
    let most = peak(server.pid())?;
    ensure!(most <= PEAK_MAX, "{most} MiB, and {quiet} before");
    // Without them it goes on as before.
    drop(besieging);
    rig.objects.apply(&[slice("web", &[1, 2])]).await?;
    web.until_pods(&[1, 2]).await?;
    server.alive()
}
