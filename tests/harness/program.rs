//! The program as users build it, and a process of it, which can be killed.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::cgroup::Cgroup;
use crate::http;

/// Between two looks at a process: it can't wake us.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// How long a start may take, on a busy machine and after a repair.
const START_MAX: Duration = Duration::from_secs(20);

/// The only clock of these tests.
#[expect(clippy::disallowed_methods, reason = "when a process is killed is a matter of real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// The program.
pub struct Program {
    path: PathBuf,
    /// Takes its processes, if they shall run in a cgroup.
    procs: Option<PathBuf>,
}

impl Program {
    /// Builds it into the folder and profile that this test was built in.
    pub fn build() -> Result<Program> {
        let exe = std::env::current_exe()?;
        let profile = exe.ancestors().nth(2).context("a test outside of a target folder")?;
        let target = profile.parent().context("a profile without a folder")?;
        let name = profile.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = if name == "debug" { "dev" } else { name };
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "spillway", "--bin", "spillway", "--profile", name])
            .arg("--target-dir")
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()?;
        ensure!(built.success(), "the program does not build");
        Ok(Program { path: profile.join("spillway"), procs: None })
    }

    /// From now on its servers run in a cgroup.
    pub fn within(self, cgroup: &Cgroup) -> Program {
        Program { procs: Some(cgroup.procs()), ..self }
    }

    /// Starts it on a folder of manifests and one of data, each by its usual name.
    pub fn serve(&self, folder: &Path, fsync_commit: bool) -> Result<Server> {
        self.serve_data(folder, "data", fsync_commit)
    }

    /// The same with data of another name.
    pub fn serve_data(&self, folder: &Path, data: &str, fsync_commit: bool) -> Result<Server> {
        let manifests = folder.join("manifests").display().to_string();
        let mut flags = vec!["--manifests", &manifests];
        if fsync_commit {
            flags.extend(["--fsync", "commit"]);
        }
        self.serve_with(folder, data, &flags)
    }

    /// Starts it on a folder with data of that name, and a log, with flags that say what it is a server of.
    pub fn serve_with(&self, folder: &Path, data: &str, flags: &[&str]) -> Result<Server> {
        let data = folder.join(data).display().to_string();
        let mut args = vec!["serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"];
        args.extend(["--log-format", "json", "--data", &data]);
        args.extend(flags);
        self.start(&args, &folder.join("log"))
    }

    /// Starts a server, which writes its log, as JSON, to a file.
    pub fn start(&self, args: &[&str], log: &Path) -> Result<Server> {
        let (log, stderr) = (log.to_owned(), File::create(log)?);
        let mut command = match &self.procs {
            None => Command::new(&self.path),
            Some(procs) => {
                let mut shell = Command::new("sh");
                // It goes there itself, and becomes the program: not a page is counted elsewhere.
                shell.args(["-c", r#"echo $$ >"$0" && exec "$@""#]).arg(procs).arg(&self.path);
                shell
            }
        };
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let child =
            command.spawn().with_context(|| format!("cannot run {}", self.path.display()))?;
        Ok(Server { child, log, polling: None, samples: Arc::default() })
    }

    /// Runs a command to its end.
    pub async fn run(&self, args: &[&str]) -> Result<Output> {
        let mut command = tokio::process::Command::new(&self.path);
        Ok(command.args(args).stdin(Stdio::null()).output().await?)
    }
}

/// What the process said of itself, and when.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When the answer had come.
    pub at: Instant,
    /// The revision that streams see.
    pub revision: u64,
    /// How often commits had been made durable together.
    pub syncs: u64,
}

/// A process. Dropping it kills it.
pub struct Server {
    child: Child,
    log: PathBuf,
    polling: Option<JoinHandle<()>>,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl Server {
    /// Waits until it serves; gives its addresses, the one for proxies first.
    pub async fn serving(&mut self) -> Result<(SocketAddr, SocketAddr)> {
        let begun = now();
        loop {
            let log = std::fs::read_to_string(&self.log)?;
            if let Some(line) = log.lines().find(|line| line.contains("\"serving\"")) {
                let line: serde_json::Value = serde_json::from_str(line)?;
                let addr = |name: &str| -> Result<SocketAddr> {
                    let field = line["fields"][name].as_str().context("no such field")?;
                    field.parse().with_context(|| format!("{field} is no address"))
                };
                return Ok((addr("addr")?, addr("admin")?));
            }
            self.alive()?;
            ensure!(begun.elapsed() < START_MAX, "it does not serve:\n{log}");
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Fails if it has ended by itself.
    pub fn alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            bail!("it ended by itself with {status}:\n{log}");
        }
        Ok(())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A line of its status, such as `VmRSS` or, the most that this has been, `VmHWM`, in bytes.
    pub fn memory(&self, line: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let value = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
        let kib =
            value.and_then(|value| value.trim().strip_suffix("kB")).context("no such line")?;
        Ok(kib.trim().parse::<u64>()? << 10)
    }

    /// From now on, what it says of itself is written down.
    pub fn watch(&mut self, admin: SocketAddr) {
        let samples = Arc::clone(&self.samples);
        self.polling = Some(tokio::spawn(async move {
            loop {
                // Once it is killed, there is no answer any more.
                if let Ok((200, body)) = http::get(admin, "/metrics").await {
                    samples.lock().extend(sample(&body));
                }
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }));
    }

    /// Sends it a signal.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status()?;
        ensure!(sent.success(), "SIG{name} could not be sent");
        Ok(())
    }

    /// Waits until it has ended by itself.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        let begun = now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(begun.elapsed() < START_MAX, "it does not end");
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Kills it (SIGKILL), and waits until it is gone. Gives what it said of itself before, and when it was killed.
    pub fn kill(mut self) -> Result<(Vec<Sample>, Instant)> {
        self.alive()?;
        let at = now();
        self.child.kill()?;
        self.child.wait()?;
        Ok((std::mem::take(&mut *self.samples.lock()), at))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(polling) = &self.polling {
            polling.abort();
        }
        // Where it is gone already, there is nothing to kill.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn sample(metrics: &str) -> Option<Sample> {
    let revision = http::metric(metrics, "spillway_revision")?;
    let syncs = http::metric(metrics, "spillway_sync_seconds_count")?;
    Some(Sample { at: now(), revision, syncs })
}
