//! The links to other clusters: the Secrets that declare them are followed, each cluster has a task, and of each that is
//! watched which local Services stand for.

mod cluster;
mod known;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ingest::Delivery;
use ingest::kube::Turns;
use model::{
    Change, ClusterId, Credentials, EndpointsFrom, Kind, Link, ObjectName, Part, Source, StoredPart,
};
use store::Reader;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::intake::Doors;
use crate::options::RemoteScope;
use cluster::Cluster;
pub(super) use known::{Known, News};
pub(super) use status::{LinkStatus, LinkStatuses};

/// A part that no Service stands for any more is kept for so long: it may be wanted again.
const UNUSED_KEPT: Duration = Duration::from_secs(600);

/// At least this often it is looked again.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// After a look, changes wait so long for each other: each look reads all links.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of a namespace's name, which goes into a URL: Kubernetes allows a DNS label.
const NAMESPACE_BYTES_MAX: usize = 63;

/// What following links takes.
#[derive(Clone)]
pub(super) struct Links {
    pub(super) controller_namespace: String,
    pub(super) endpoints: EndpointsFrom,
    pub(super) scope: RemoteScope,
    /// Bytes that each cluster may take in the store.
    pub(super) bytes_max: Option<u64>,
    /// What all of their watches share.
    pub(super) turns: Turns,
    pub(super) known: Arc<Known>,
    pub(super) statuses: Arc<LinkStatuses>,
}

/// What the store says of links.
struct Picture {
    /// The Secrets have been listed once.
    listed: bool,
    /// By cluster, the Secret that counts.
    links: BTreeMap<String, (ObjectName, Link)>,
    /// Secrets that declare none, with the reason.
    faults: BTreeMap<String, String>,
    in_use: BTreeSet<Part>,
    stored: Vec<StoredPart>,
}

/// The task of a cluster.
struct Task {
    credentials: Credentials,
    trust_domain: String,
    wanted: watch::Sender<BTreeSet<String>>,
    running: AbortHandle,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Links {
    /// Follows the links until nobody takes deliveries any more.
    pub(super) async fn run(self, reader: Reader, to: mpsc::Sender<Delivery>, doors: Doors) {
        // Dropped with this, and so are the tasks of all clusters.
        let mut running = JoinSet::new();
        let mut tasks = BTreeMap::new();
        let mut unused = BTreeMap::new();
        loop {
            let until = Instant::now() + LOOK_INTERVAL;
            let links = self.clone();
            let looking = reader.clone();
            let looked = tokio::task::spawn_blocking(move || links.look(&looking)).await;
            if let Ok(Ok(picture)) = looked {
                let wanted = self.wanted(&picture, &mut unused);
                self.end(&picture, &wanted, &mut tasks);
                if self.leave(&picture, &wanted, &to).await.is_none() {
                    return;
                }
                for (cluster, wanted) in wanted {
                    let Some((secret, link)) = picture.links.get(&cluster) else { continue };
                    let Some(credentials) = self.known.of(secret) else { continue };
                    if let Some(task) = tasks.get(&cluster) {
                        task.want(wanted);
                        continue;
                    }
                    let Some(to) = doors.open().await else { return };
                    let (wanted, receiver) = watch::channel(wanted);
                    let trust_domain = link.trust_domain.clone();
                    let started = Cluster {
                        name: cluster.clone(),
                        credentials: credentials.clone(),
                        trust_domain: trust_domain.clone(),
                        wanted: receiver,
                        endpoints: self.endpoints,
                        reader: reader.clone(),
                        bytes_max: self.bytes_max,
                        turns: self.turns.of_one(),
                        to,
                        statuses: Arc::clone(&self.statuses),
                    };
                    let running = running.spawn(started.run());
                    tasks.insert(cluster, Task { credentials, trust_domain, wanted, running });
                }
            }
            sleep(LOOK_PAUSE).await;
            tokio::select! {
                () = self.known.changed() => {}
                () = sleep_until(until) => {}
                () = to.closed() => return,
                // Those that were ended, so that they are not kept.
                Some(_) = running.join_next() => {}
            }
        }
    }

    fn look(&self, reader: &Reader) -> Result<Picture, store::Error> {
        let writes = self.known.writes();
        let snapshot = reader.snapshot()?;
        let secrets = Source { cluster: ClusterId::LOCAL, kind: Kind::Secret };
        let (mut links, mut faults) = (BTreeMap::new(), BTreeMap::new());
        let mut there = BTreeSet::new();
        snapshot.links(&self.controller_namespace, &mut |secret, link| {
            there.insert(secret.clone());
            match link {
                Ok(link) => drop(links.entry(link.cluster.clone()).or_insert((secret, link))),
                Err(reason) => drop(faults.insert(secret.to_string(), reason)),
            }
        })?;
        self.known.keep(writes, |secret| there.contains(secret));
        Ok(Picture {
            listed: snapshot.checkpoint(secrets)?.is_some(),
            links,
            faults,
            in_use: snapshot.parts_in_use()?.into_iter().collect(),
            stored: snapshot.parts()?,
        })
    }

    /// Which namespaces of each linked cluster are wanted, and of those that are stored which are kept for now.
    fn wanted(
        &self,
        picture: &Picture,
        unused: &mut BTreeMap<Part, Instant>,
    ) -> BTreeMap<String, BTreeSet<String>> {
        let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for cluster in picture.links.keys() {
            wanted.insert(cluster.clone(), BTreeSet::new());
        }
        let is_wanted = |part: &Part| match self.scope {
            RemoteScope::All => part.namespace.is_empty(),
            RemoteScope::Mirrored => picture.in_use.contains(part),
        };
        if self.scope == RemoteScope::All {
            wanted.values_mut().for_each(|namespaces| namespaces.extend([String::new()]));
        } else {
            for part in picture.in_use.iter().filter(|part| is_namespace(&part.namespace)) {
                if let Some(namespaces) = wanted.get_mut(&part.cluster) {
                    namespaces.insert(part.namespace.clone());
                }
            }
        }
        let now = Instant::now();
        unused.retain(|part, _| !is_wanted(part));
        for StoredPart { part, .. } in picture.stored.iter().filter(|it| !is_wanted(&it.part)) {
            let since = *unused.entry(part.clone()).or_insert(now);
            if now.duration_since(since) < UNUSED_KEPT
                && let Some(namespaces) = wanted.get_mut(&part.cluster)
            {
                namespaces.insert(part.namespace.clone());
            }
        }
        wanted
    }

    /// Ends the tasks of clusters that are not linked any more, or otherwise.
    fn end(
        &self,
        picture: &Picture,
        wanted: &BTreeMap<String, BTreeSet<String>>,
        tasks: &mut BTreeMap<String, Task>,
    ) {
        tasks.retain(|cluster, task| {
            let Some((secret, link)) = picture.links.get(cluster) else { return false };
            if task.running.is_finished() {
                return false;
            }
            let credentials = self.known.of(secret);
            credentials.is_none_or(|it| it == task.credentials)
                && link.trust_domain == task.trust_domain
        });
        self.statuses.keep(|cluster| wanted.contains_key(cluster), picture.faults.clone());
    }

    /// Gives up parts that nobody wants any more. Before the Secrets have been listed it isn't known which are linked.
    /// `None`: nobody takes deliveries any more.
    async fn leave(
        &self,
        picture: &Picture,
        wanted: &BTreeMap<String, BTreeSet<String>>,
        to: &mpsc::Sender<Delivery>,
    ) -> Option<()> {
        let is_kept = |part: &Part| {
            wanted.get(&part.cluster).is_some_and(|them| them.contains(&part.namespace))
        };
        for StoredPart { part, id, .. } in &picture.stored {
            if picture.listed && !is_kept(part) {
                tracing::info!(%part, "not wanted any more; what is stored of it goes");
                to.send(Delivery::new(vec![Change::Leave { id: *id }])).await.ok()?;
            }
        }
        Some(())
    }
}

impl Task {
    fn want(&self, namespaces: BTreeSet<String>) {
        self.wanted.send_if_modified(|wanted| {
            let others = *wanted != namespaces;
            *wanted = namespaces;
            others
        });
    }
}

/// Can a namespace be called so? It goes into a URL.
fn is_namespace(name: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    name.len() <= NAMESPACE_BYTES_MAX
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && ends(name.as_bytes().first())
        && ends(name.as_bytes().last())
}
