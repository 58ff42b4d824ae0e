//! What the benches share: the real server as a child process, a client, and how results are printed.

pub mod child;
pub mod client;
pub mod fed;
pub mod ingest;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ::ingest::Delivery;
use ::ingest::synthetic::Cluster;
use anyhow::Context as _;
use linkerd2_proxy_api::destination as pb;
use linkerd2_proxy_api::destination::destination_client::DestinationClient;

/// The only clock of the benches.
#[expect(clippy::disallowed_methods, reason = "benches measure time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds since 1970, which the processes of a bench have in common.
#[expect(clippy::disallowed_methods, reason = "benches measure time")]
pub fn wall_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A line of a process's status, such as `VmRSS`, in bytes.
pub fn memory(pid: u32, line: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
    let kib = value.and_then(|value| value.trim().strip_suffix("kB")).context("no such line")?;
    Ok(kib.trim().parse::<u64>()? << 10)
}

/// Waits a little, between two looks at something that another process does.
#[expect(clippy::disallowed_methods, reason = "the other process can't wake us")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Prints a line that people read.
#[expect(clippy::print_stdout, reason = "results are for standard output")]
pub fn say(line: &str) {
    println!("{line}");
}

/// Prints a result that programs read: one JSON object on one line.
pub fn result(value: &serde_json::Value) {
    say(&value.to_string());
}

/// Numbers given after `--`, or else the defaults.
pub fn sizes(defaults: &[u64]) -> Vec<u64> {
    let given: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    if given.is_empty() { defaults.to_vec() } else { given }
}

/// Bytes as MiB, to a tenth.
pub fn mib(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0
}

/// A time as milliseconds, to a hundredth.
pub fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

/// A made-up cluster of this many endpoints, in Services of 1,000, in which nothing changes.
pub fn spec(endpoints: u64) -> String {
    format!("services=0,big={}x1000,churn=0", endpoints / 1_000)
}

/// All of that cluster's objects, as a watch lists them.
pub fn deliveries(endpoints: u64) -> anyhow::Result<impl Iterator<Item = Delivery>> {
    Ok(Cluster::new(spec(endpoints).parse()?).listing())
}

/// The address of one of its pods.
pub fn address(endpoint: usize) -> std::net::Ipv4Addr {
    let endpoint = u32::try_from(endpoint).unwrap_or(u32::MAX);
    std::net::Ipv4Addr::from_bits(0x0a00_0100_u32.saturating_add(endpoint))
}

/// What a proxy asks for to get one of its Services.
pub fn authority(service: usize) -> String {
    format!("stock-{service}.depot.svc.cluster.local:80")
}

/// Bytes of all files in a folder.
pub fn folder_bytes(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// A folder on the disk that has the build, removed when dropped. The system's temporary folder may be memory.
pub fn folder() -> anyhow::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("bench-").tempdir_in(target()?).context("no temporary folder")
}

/// Cargo's target folder: benches are in `target/release/deps`.
fn target() -> anyhow::Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let target = exe.ancestors().nth(3).context("a bench outside of a target folder")?;
    Ok(target.to_owned())
}

/// Builds the server as users do, and gives the program.
pub fn build() -> anyhow::Result<PathBuf> {
    let target = target()?;
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "-p", "spillway", "--bin", "spillway"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?;
    anyhow::ensure!(built.success(), "the server does not build");
    Ok(target.join("release/spillway"))
}

/// A server process. Dropping it kills it.
pub struct Server {
    child: Child,
    /// When the process was started.
    pub started: Instant,
    addr: SocketAddr,
    admin_addr: SocketAddr,
}

impl Server {
    /// Starts `spillway serve` on a data folder, with a synthetic cluster.
    pub fn start(program: &Path, data: &Path, synthetic: &str) -> anyhow::Result<Server> {
        let (addr, admin_addr) = (free_port()?, free_port()?);
        let started = now();
        let child = Command::new(program)
            .args(["serve", "--log-level", "warn", "--synthetic", synthetic])
            .args(["--addr", &addr.to_string(), "--admin-addr", &admin_addr.to_string()])
            .arg("--data")
            .arg(data)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Server { child, started, addr, admin_addr })
    }

    /// Waits until `/ready` says yes; gives the time since the start of the process.
    pub fn ready(&mut self, within: Duration) -> anyhow::Result<Duration> {
        loop {
            if self.get("/ready").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                return Ok(self.started.elapsed());
            }
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the server ended before it was ready: {status}");
            }
            if self.started.elapsed() > within {
                anyhow::bail!("not ready within {within:?}: {}", self.get("/ready")?);
            }
            pause(Duration::from_millis(1));
        }
    }

    /// The head and body of an answer of the admin address.
    pub fn get(&self, path: &str) -> anyhow::Result<String> {
        let mut socket = TcpStream::connect(self.admin_addr)?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(socket, "GET {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// A line of the process's status, such as `VmRSS`, in bytes.
    pub fn memory(&self, line: &str) -> anyhow::Result<u64> {
        memory(self.child.id(), line)
    }

    /// Connects a client.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        let url = format!("http://{}", self.addr);
        Ok(Client { client: DestinationClient::connect(url).await.context("cannot connect")? })
    }

    /// Ends the server as Kubernetes does, and waits for it.
    pub fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status()?;
        anyhow::ensure!(sent.success(), "cannot signal the server");
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` there is nothing to kill any more.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn free_port() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// A client of the Destination API.
pub struct Client {
    client: DestinationClient<tonic::transport::Channel>,
}

/// A Get stream that has had its first Add.
pub struct Stream {
    /// Held so that the stream stays open.
    _stream: tonic::Streaming<pb::Update>,
    /// Addresses in the first Add.
    pub addresses: usize,
    /// From the request to the first Add.
    pub time: Duration,
}

impl Client {
    /// Opens a stream and waits for its first Add.
    pub async fn first_add(&mut self, authority: &str) -> anyhow::Result<Stream> {
        let request = pb::GetDestination { path: authority.to_owned(), ..Default::default() };
        let asked = now();
        let mut stream = self.client.get(request).await?.into_inner();
        loop {
            let update = stream.message().await?.context("the stream ended")?;
            if let Some(pb::update::Update::Add(set)) = update.update {
                let time = asked.elapsed();
                return Ok(Stream { _stream: stream, addresses: set.addrs.len(), time });
            }
        }
    }
}
