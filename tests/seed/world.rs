//! Two real clusters, one of which mirrors a Service of the other, and the real program there in the memory of a container.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use harness::apiserver::{ApiServer, Load, Objects, User, mirror, secret};
use harness::cgroup::Cgroup;
use harness::http;
use harness::program::{Program, Server};
use harness::pulse::Pulse;
use tempfile::TempDir;

/// The limit in the original's Helm chart.
pub(crate) const MEMORY_MAX: u64 = 250 << 20;

/// What the program takes of that where it can't see the limit itself.
const MEMORY_BUDGET: &str = "150MiB";

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);

const LOCAL_SERVICES: usize = 20;
const LOCAL_STREAMS: usize = 10;
const MIRROR_STREAMS: usize = 20;

const LOCAL: Load<'static> = Load {
    namespace: "home",
    name: "home",
    services: LOCAL_SERVICES,
    pods: 100 * LOCAL_SERVICES,
    first: 0,
    bytes: 0,
    phase: "Running",
    per_second: None,
};

/// How large the file is.
pub(crate) const FILE: &str = "spillway_store_file_bytes";

pub(crate) struct World {
    // In the order of their end.
    pub(crate) server: Server,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) far: ApiServer,
    _home: ApiServer,
    objects: [Arc<Objects>; 2],
    of_far: Load<'static>,
    addr: SocketAddr,
    admin: SocketAddr,
    folder: TempDir,
}

impl World {
    /// Returns when the program is ready, and has all pods of both clusters.
    pub(crate) async fn start(of_far: Load<'static>) -> Result<World> {
        let program = Program::build()?;
        let (home, far) = tokio::try_join!(ApiServer::start(), ApiServer::start())?;
        tokio::try_join!(home.load(LOCAL), far.load(of_far))?;
        let objects = [Arc::new(home.objects().await?), Arc::new(far.objects().await?)];
        objects[0].define(&["Server", "ServiceProfile", "ExternalWorkload"]).await?;
        let link = secret("far", "far", &far.kubeconfig(User::Admin));
        let mirror = mirror(of_far.namespace, "far", &of_far.service(0));
        objects[0].apply(&[link, mirror]).await?;

        // Not in memory, as a temporary folder may be: that would be the program's.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let kubeconfig = folder.path().join("kubeconfig");
        home.write_kubeconfig(&kubeconfig, home.addr(), User::Admin)?;
        let kubeconfig = kubeconfig.display().to_string();
        let mut flags = vec!["--kubeconfig", &kubeconfig];
        // Where this user may not make one, the limit is compared with what the process took.
        let cgroup = Cgroup::new(MEMORY_MAX).ok();
        let program = match &cgroup {
            Some(cgroup) => program.within(cgroup),
            None => {
                flags.extend(["--memory", MEMORY_BUDGET]);
                program
            }
        };
        let mut server = program.serve_with(folder.path(), "data", &flags)?;
        let (addr, admin) = server.serving().await?;
        tokio::time::timeout(PATIENCE, http::until(admin, "/ready", 200, "ok\n")).await??;
        let pods = (LOCAL.pods + of_far.pods) as u64;
        let world =
            World { server, cgroup, far, _home: home, objects, of_far, addr, admin, folder };
        world.until_pods(pods).await?;
        Ok(world)
    }

    /// The local Services, with their streams.
    pub(crate) async fn local(&self) -> Result<Vec<Pulse>> {
        let mut pulses = Vec::new();
        for index in 0..LOCAL_SERVICES {
            let path = format!("{}.home.svc.cluster.local:80", LOCAL.service(index));
            let service = (LOCAL, index);
            pulses.push(
                Pulse::open(self.addr, &path, LOCAL_STREAMS, &self.objects[0], service).await?,
            );
        }
        Ok(pulses)
    }

    /// The Service of the other cluster, with streams on what stands for it here.
    pub(crate) async fn mirrored(&self) -> Result<Pulse> {
        let (name, namespace) = (self.of_far.service(0), self.of_far.namespace);
        let path = format!("{name}-far.{namespace}.svc.cluster.local:80");
        Pulse::open(self.addr, &path, MIRROR_STREAMS, &self.objects[1], (self.of_far, 0)).await
    }

    pub(crate) async fn metric(&self, name: &str) -> Result<u64> {
        let (_, page) = http::get(self.admin, "/metrics").await?;
        http::metric(&page, name).with_context(|| format!("no {name}"))
    }

    /// Returns when so many pods are stored.
    pub(crate) async fn until_pods(&self, count: u64) -> Result<()> {
        self.until(async || Ok(self.metric("spillway_objects{kind=\"Pod\"}").await? == count)).await
    }

    /// Fails unless the program that was started is the one that runs, and has had memory enough.
    pub(crate) async fn unharmed(&mut self) -> Result<()> {
        self.server.alive()?;
        ensure!(
            self.metric("spillway_store_reopened_total").await? == 0,
            "it has failed meanwhile"
        );
        let most = self.server.memory("VmHWM")?;
        ensure!(most < MEMORY_MAX, "it took {most} bytes");
        let ooms = self.cgroup.as_ref().map_or(Ok(0), Cgroup::ooms)?;
        ensure!(ooms == 0, "{ooms} processes were killed");
        Ok(())
    }

    /// Returns when the file has been compacted.
    pub(crate) async fn until_compact(&self) -> Result<()> {
        let log = self.folder.path().join("log");
        self.until(async || Ok(std::fs::read_to_string(&log)?.contains("the store is compacted")))
            .await
    }

    async fn until(&self, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
        let waiting = async {
            while !holds().await? {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, waiting).await.context("it does not happen")?
    }
}
