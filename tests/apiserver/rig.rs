//! An API server, a line to it that can be cut, and our server at the other end.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use harness::apiserver::{ApiServer, Cut, Line, Objects, User, equal};
use harness::client::{Client, Question, Seen, Stream};
use harness::shown::Shown;
use model::EndpointsFrom;
use serde_json::{Value, json};
use spillway::{Options, Running, SourceOptions};
use store::Admission;
use tempfile::TempDir;

/// How long anything may take. Some of it waits for the next of several attempts.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The whole arrangement. Its servers end with it.
pub(crate) struct Rig {
    pub(crate) running: Option<Running>,
    pub(crate) line: Line,
    pub(crate) objects: Objects,
    pub(crate) api: ApiServer,
    /// What our server lets in, if not what it does by itself.
    pub(crate) admission: Option<Admission>,
    folder: TempDir,
}

impl Rig {
    /// An API server that knows these custom kinds, and two pods behind a Service. Ours isn't started yet.
    pub(crate) async fn new(kinds: &[&str]) -> Result<Rig> {
        let api = ApiServer::start().await?;
        let objects = api.objects().await?;
        objects.define(kinds).await?;
        objects.apply(&[service("web"), pod("w1", 1), pod("w2", 2), slice("web", &[1, 2])]).await?;
        let line = api.line().await?;
        Ok(Rig { running: None, line, objects, api, admission: None, folder: TempDir::new()? })
    }

    /// Starts our server as a user of the API server, on the folder that it had before.
    pub(crate) async fn start(&mut self, user: User) -> Result<()> {
        let mut options = Options::new(self.folder.path().join("data"), self.source(user)?);
        options.admission = self.admission.unwrap_or(options.admission);
        options.admin_addr = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        self.running = Some(spillway::start(options).await?);
        Ok(())
    }

    /// The API server as a source, at the other end of the line.
    pub(crate) fn source(&self, user: User) -> Result<SourceOptions> {
        let kubeconfig = Some(self.kubeconfig(user)?);
        Ok(SourceOptions::Kubernetes { kubeconfig, context: None })
    }

    /// A file that leads there.
    pub(crate) fn kubeconfig(&self, user: User) -> Result<PathBuf> {
        let kubeconfig = self.folder.path().join("kubeconfig");
        self.api.write_kubeconfig(&kubeconfig, self.line.addr(), user)?;
        Ok(kubeconfig)
    }

    /// A folder for what belongs to this arrangement.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn stop(&mut self) -> Result<()> {
        let running = self.running.take().context("it runs")?;
        tokio::time::timeout(PATIENCE, running.stop()).await.context("it does not stop")?
    }

    pub(crate) fn running(&self) -> Result<&Running> {
        self.running.as_ref().context("it runs")
    }

    /// Returns when the store is equal to the API server.
    pub(crate) async fn equal(&self) -> Result<()> {
        equal(&self.objects, &self.running()?.reader(), EndpointsFrom::Slices, None).await
    }

    /// A stream of the Service `web`.
    pub(crate) async fn open(&self) -> Result<Watched> {
        open(self.running()?.addr()).await
    }

    /// Cuts the line, and lets what was open notice.
    pub(crate) fn cut(&self) {
        self.line.set(Cut::Closed);
    }

    /// Makes the line whole.
    pub(crate) fn mend(&self) {
        self.line.set(Cut::Through);
    }

    /// What `/ready` says, with its status.
    pub(crate) async fn ready(&self) -> Result<(u16, String)> {
        self.admin("/ready").await
    }

    /// A page of the admin port.
    pub(crate) async fn admin(&self, path: &str) -> Result<(u16, String)> {
        harness::http::get(self.running()?.admin_addr().context("it has one")?, path).await
    }

    /// Returns when `/ready` says something that satisfies.
    pub(crate) async fn until_ready_says(&self, says: impl Fn(u16, &str) -> bool) -> Result<()> {
        let mut last = (0, String::new());
        let waiting = async {
            loop {
                last = self.ready().await?;
                if says(last.0, &last.1) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(done) => done,
            Err(_) => anyhow::bail!("/ready still says {} {}", last.0, last.1),
        }
    }
}

/// A stream of the Service `web` at a server.
pub(crate) async fn open(addr: SocketAddr) -> Result<Watched> {
    ask(addr, false).await
}

/// A stream of its profile.
pub(crate) async fn dial(addr: SocketAddr) -> Result<Watched> {
    ask(addr, true).await
}

async fn ask(addr: SocketAddr, profile: bool) -> Result<Watched> {
    let client = Client::connect(addr).await?;
    let path = "web.shop.svc.cluster.local:80".to_owned();
    let stream = client.open(Question { path, profile, ..Question::default() }, false).await;
    Ok(Watched { stream, _client: client })
}

/// An open stream, and the connection under it.
pub(crate) struct Watched {
    pub(crate) stream: Stream,
    _client: Client,
}

impl Watched {
    pub(crate) fn new(stream: Stream, client: Client) -> Watched {
        Watched { stream, _client: client }
    }

    /// Returns when the stream has ended so.
    pub(crate) async fn until_ended(&self, code: tonic::Code) -> Result<()> {
        let waiting = async {
            while self.stream.is_open() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.context("the stream goes on")?;
        anyhow::ensure!(self.stream.seen() == Seen::Ended(code), "{:?}", self.stream.seen());
        Ok(())
    }

    /// Returns when the client holds what satisfies.
    pub(crate) async fn until(&self, holds: impl Fn(&Shown) -> bool) -> Result<()> {
        let waiting = async {
            while !holds(&self.stream.seen().held()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.with_context(|| {
            let message = self.stream.status_message().unwrap_or_default();
            format!("the stream stays at {:?} {message}", self.stream.seen())
        })
    }

    /// Returns when the client holds the pods of these numbers.
    pub(crate) async fn until_pods(&self, numbers: &[u8]) -> Result<()> {
        let expected: Vec<_> = numbers.iter().map(|number| address(*number)).collect();
        self.until(|held| held.keys().copied().eq(expected.iter().copied())).await
    }
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, number], 8080))
}

pub(crate) fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ports": [{"port": 80, "targetPort": 8080}]},
    })
}

/// A meshed pod at 10.1.0.`number`.
pub(crate) fn pod(name: &str, number: u8) -> Value {
    let env = |what: &str, port: u16| json!({"name": format!("LINKERD2_PROXY_{what}_LISTEN_ADDR"), "value": format!("0.0.0.0:{port}")});
    let ip = address(number).ip();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "shop",
            "labels": {"linkerd.io/control-plane-ns": "linkerd", "app": "web"},
        },
        "spec": {"containers": [
            {"name": "app", "image": "app:1", "ports": [{"containerPort": 8080}]},
            {
                "name": "linkerd-proxy", "image": "proxy:1",
                "env": [env("INBOUND", 4143), env("ADMIN", 4191), env("CONTROL", 4190)],
            },
        ]},
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]},
    })
}

/// The slice of a Service, with the pods `w<number>`.
pub(crate) fn slice(service: &str, numbers: &[u8]) -> Value {
    let endpoint = |number: &u8| {
        json!({
            "addresses": [address(*number).ip()],
            "conditions": {"ready": true},
            "targetRef": {"kind": "Pod", "name": format!("w{number}"), "namespace": "shop"},
        })
    };
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{service}-1"), "namespace": "shop",
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "endpoints": numbers.iter().map(endpoint).collect::<Vec<_>>(),
        "ports": [{"port": 8080}],
    })
}

/// A Server that makes the web pods opaque, on a port given as JSON.
pub(crate) fn server(name: &str, port: Value) -> Value {
    json!({
        "apiVersion": "policy.linkerd.io/v1beta3", "kind": "Server",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "podSelector": {"matchLabels": {"app": "web"}},
            "port": port, "proxyProtocol": "opaque",
        },
    })
}

/// Are all addresses hinted as opaque?
pub(crate) fn all_opaque(held: &Shown) -> bool {
    !held.is_empty() && held.values().all(|value| value["protocol_hint"].get("opaque").is_some())
}
