//! Starts the two programs, and does to them what happens to them.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tempfile::TempDir;

use super::build::{Programs, loader};
use super::cut::Line;
use super::key::{base64, new_key};
use super::load::Load;
use super::objects::Objects;
use super::process::Process;
use crate::http;

/// How long a program may take to start. It takes 3 seconds; a machine may be busy.
const START_SECS_MAX: u64 = 120;

/// How large etcd's file may become. By itself it takes no more writes at 2 GiB, where each change of an object
/// counts as another, until it is compacted.
const ETCD_BYTES_MAX: u64 = 8 << 30;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// One that may do everything.
    Admin,
    /// One that is known and may do nothing.
    Nobody,
    /// One that isn't known.
    Stranger,
}

impl User {
    fn token(self) -> &'static str {
        match self {
            User::Admin => "token-of-admin",
            User::Nobody => "token-of-nobody",
            User::Stranger => "token-of-a-stranger",
        }
    }
}

/// An API server and its etcd, in a folder of their own.
pub struct ApiServer {
    // In the order of their end.
    apiserver: Option<Process>,
    etcd: Option<Process>,
    programs: Programs,
    addr: SocketAddr,
    etcd_addr: SocketAddr,
    folder: TempDir,
}

impl ApiServer {
    /// Starts both, and returns when the API server is ready.
    pub async fn start() -> Result<ApiServer> {
        let programs = tokio::task::spawn_blocking(Programs::find).await??;
        let mut last_words = String::new();
        // A port that was free may be taken by the time that it is used.
        for _ in 0..3 {
            let mut server = ApiServer::prepare(programs.clone())?;
            if server.start_etcd().await? && server.start_apiserver().await? {
                return Ok(server);
            }
            let ended = server.apiserver.as_ref().or(server.etcd.as_ref());
            last_words = ended.map(Process::last_words).unwrap_or_default();
        }
        bail!("the API server ends at once, three times:\n{last_words}")
    }

    fn prepare(programs: Programs) -> Result<ApiServer> {
        let folder = TempDir::new()?;
        let key = new_key()?;
        std::fs::write(folder.path().join("key.pem"), key.private)?;
        std::fs::write(folder.path().join("public.pem"), key.public)?;
        let tokens = [(User::Admin, "admin,1,system:masters"), (User::Nobody, "nobody,2,nobodies")];
        let tokens = tokens.map(|(user, rest)| format!("{},{rest}\n", user.token()));
        std::fs::write(folder.path().join("tokens.csv"), tokens.concat())?;
        let audit = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "verbs": ["list", "watch"]}, {"level": "None"}],
        });
        std::fs::write(folder.path().join("audit.json"), audit.to_string())?;
        let (addr, etcd_addr) = (free_addr()?, free_addr()?);
        Ok(ApiServer { apiserver: None, etcd: None, programs, addr, etcd_addr, folder })
    }

    /// False if it has ended by itself.
    async fn start_etcd(&mut self) -> Result<bool> {
        let (client, peer) =
            (format!("http://{}", self.etcd_addr), format!("http://{}", free_addr()?));
        let data = self.path("etcd");
        let args = [
            format!("--data-dir={data}"),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // Nothing here has to survive a power cut.
            "--unsafe-no-fsync".to_owned(),
            format!("--quota-backend-bytes={ETCD_BYTES_MAX}"),
            "--log-level=error".to_owned(),
        ];
        let log = self.folder.path().join("etcd.log");
        let etcd = self.etcd.insert(Process::start(&self.programs.etcd, &args, &log)?);
        let addr = self.etcd_addr;
        ready(etcd, async || matches!(http::get(addr, "/health").await, Ok((200, _)))).await
    }

    async fn start_apiserver(&mut self) -> Result<bool> {
        let args = [
            format!("--etcd-servers=http://{}", self.etcd_addr),
            format!("--secure-port={}", self.addr.port()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", self.path("certs")),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            format!("--service-account-key-file={}", self.path("public.pem")),
            format!("--service-account-signing-key-file={}", self.path("key.pem")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/12,fd00:9::/112".to_owned(),
            // They ask for what no controller is here to write.
            "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,TaintNodesByCondition,\
             Priority"
                .to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--audit-policy-file={}", self.path("audit.json")),
            format!("--audit-log-path={}", self.path("audit.log")),
        ];
        let log = self.folder.path().join("apiserver.log");
        let program = self.programs.apiserver.clone();
        self.apiserver = Some(Process::start(&program, &args, &log)?);
        let client = self.client(User::Admin).await?;
        let Some(apiserver) = &mut self.apiserver else { return Ok(false) };
        ready(apiserver, async || {
            let request = ::http::Request::get("/readyz").body(Vec::new());
            let Ok(request) = request else { return false };
            client.request_text(request).await.is_ok_and(|text| text == "ok")
        })
        .await
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Kills the API server; etcd stays.
    pub fn stop(&mut self) {
        self.apiserver = None;
    }

    /// Kills it if it runs, and starts it again, at the same address.
    pub async fn restart(&mut self) -> Result<()> {
        self.stop();
        ensure!(self.start_apiserver().await?, "the API server does not start again");
        Ok(())
    }

    /// Keeps a copy of all that etcd has, and goes on.
    pub async fn back_up(&mut self) -> Result<()> {
        self.stop();
        self.etcd = None;
        copy_folder(&self.folder.path().join("etcd"), &self.folder.path().join("backup"))?;
        ensure!(self.start_etcd().await?, "etcd does not start again");
        self.restart().await
    }

    /// Puts the copy into the place of all that etcd has.
    pub async fn restore(&mut self) -> Result<()> {
        self.stop();
        self.etcd = None;
        let etcd = self.folder.path().join("etcd");
        std::fs::remove_dir_all(&etcd)?;
        std::fs::rename(self.folder.path().join("backup"), etcd)?;
        ensure!(self.start_etcd().await?, "etcd does not start from its backup");
        self.restart().await
    }

    /// Restarts the API server with another certificate, which another authority has signed.
    pub async fn change_certificate(&mut self) -> Result<()> {
        self.stop();
        std::fs::remove_dir_all(self.folder.path().join("certs"))?;
        self.restart().await
    }

    /// Forgets the past of every object: a watch that wants to go on from before now gets 410, as soon as the
    /// API server has lost its own memory of it, which is at its next restart.
    pub async fn compact(&self) -> Result<()> {
        let (_, now) = http::post(self.etcd_addr, "/v3/kv/range", r#"{"key":"AA=="}"#).await?;
        let now: serde_json::Value = serde_json::from_str(&now)?;
        let revision = &now["header"]["revision"];
        let body = json!({"revision": revision, "physical": true}).to_string();
        let (status, answer) = http::post(self.etcd_addr, "/v3/kv/compaction", &body).await?;
        ensure!(status == 200, "etcd does not compact: {answer}");
        Ok(())
    }

    /// Fills it with objects, past the API server: they are there, and were sent to who watches, as if created.
    pub async fn load(&self, load: Load<'_>) -> Result<()> {
        let program = tokio::task::spawn_blocking(loader).await??;
        load.run(&program, self.etcd_addr, false).await
    }

    /// Deletes what a load has written, one object after another.
    pub async fn unload(&self, load: Load<'_>) -> Result<()> {
        let program = tokio::task::spawn_blocking(loader).await??;
        load.run(&program, self.etcd_addr, true).await
    }

    /// How many listings of a resource were begun so far, paged or streaming; not those of this harness.
    pub fn listings(&self, plural: &str) -> Result<usize> {
        let log = std::fs::read_to_string(self.folder.path().join("audit.log"))?;
        let mut begun = 0;
        for line in log.lines() {
            let entry: serde_json::Value = serde_json::from_str(line)?;
            // It lists some kinds for itself as well.
            if entry["user"]["username"] == "system:apiserver" {
                continue;
            }
            let uri = entry["requestURI"].as_str().unwrap_or_default();
            let of_kind = uri.split('?').next().is_some_and(|path| path.ends_with(plural));
            let streaming =
                uri.contains("sendInitialEvents=true") && entry["stage"] == "ResponseStarted";
            let paged =
                uri.contains("limit=") && !uri.contains("limit=1&") && !uri.ends_with("limit=1");
            begun += usize::from(of_kind && (streaming || paged));
        }
        Ok(begun)
    }

    /// The paths of a resource that were asked for so far; not by this harness, which doesn't watch.
    pub fn watched(&self, plural: &str) -> Result<BTreeSet<String>> {
        let log = std::fs::read_to_string(self.folder.path().join("audit.log"))?;
        let mut paths = BTreeSet::new();
        for line in log.lines() {
            let entry: serde_json::Value = serde_json::from_str(line)?;
            let path = entry["requestURI"].as_str().and_then(|uri| uri.split('?').next());
            let own = entry["user"]["username"] == "system:apiserver";
            if let Some(path) = path.filter(|path| path.ends_with(plural) && !own)
                && entry["verb"] == "watch"
            {
                paths.insert(path.to_owned());
            }
        }
        Ok(paths)
    }

    /// A line to it that can be cut.
    pub async fn line(&self) -> Result<Line> {
        Line::to(self.addr).await
    }

    /// Where it is.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A client of it.
    pub async fn client(&self, user: User) -> Result<Client> {
        let config = serde_json::from_value::<Kubeconfig>(kubeconfig(self.addr, user))?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Its objects.
    pub async fn objects(&self) -> Result<Objects> {
        Ok(Objects::new(self.client(User::Admin).await?))
    }

    /// A kubeconfig that leads to it.
    pub fn kubeconfig(&self, user: User) -> String {
        ApiServer::kubeconfig_for(self.addr, user)
    }

    /// A kubeconfig for an address that leads to one.
    pub fn kubeconfig_for(addr: SocketAddr, user: User) -> String {
        kubeconfig(addr, user).to_string()
    }

    /// The same, for who trusts nobody but the authority that has signed this API server's certificate.
    pub fn kubeconfig_with_authority(&self, addr: SocketAddr, user: User) -> Result<String> {
        let mut kubeconfig = kubeconfig(addr, user);
        let authority = std::fs::read(self.folder.path().join("certs/apiserver.crt"))?;
        let server = format!("https://{addr}");
        kubeconfig["clusters"][0]["cluster"] =
            json!({"server": server, "certificate-authority-data": base64(&authority)});
        Ok(kubeconfig.to_string())
    }

    /// The same, with a token that isn't of one of these users.
    pub fn kubeconfig_with_token(addr: SocketAddr, token: &str) -> String {
        let mut kubeconfig = kubeconfig(addr, User::Stranger);
        kubeconfig["users"][0]["user"]["token"] = token.into();
        kubeconfig.to_string()
    }

    /// Writes a kubeconfig for an address that leads to it.
    pub fn write_kubeconfig(&self, to: &Path, addr: SocketAddr, user: User) -> Result<()> {
        // Every JSON is a YAML.
        Ok(std::fs::write(to, kubeconfig(addr, user).to_string())?)
    }
}

/// Not checking the server's certificate: it signs that itself.
fn kubeconfig(addr: SocketAddr, user: User) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "test",
            "cluster": {"server": format!("https://{addr}"), "insecure-skip-tls-verify": true},
        }],
        "users": [{"name": "test", "user": {"token": user.token()}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    })
}

/// A folder with all that is in it.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

fn free_addr() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Waits until a program answers; false if it has ended instead.
async fn ready(process: &mut Process, answers: impl AsyncFn() -> bool) -> Result<bool> {
    let waiting = async {
        while !answers().await {
            if process.has_ended() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        true
    };
    match tokio::time::timeout(Duration::from_secs(START_SECS_MAX), waiting).await {
        Ok(answers) => Ok(answers),
        Err(_) => bail!("not ready after {START_SECS_MAX} s:\n{}", process.last_words()),
    }
}
