//! One linked cluster: reached, recognised, and watched in the parts that are wanted of it.
//!
//! *Invariant:* whatever it does or fails to do is its own affair: it has its own door to the writer, its own tasks, and
//! takes its turns in reading.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ingest::Delivery;
use ingest::kube::{self, Backoff, Turns, Watch};
use model::{Change, ClusterId, Credentials, EndpointsFrom, Origin, Part, Source, StoredPart};
use store::Reader;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::status::{LinkStatuses, State, is_dispensable};

/// How often it is looked whether the API server is still that of the same cluster.
const RECOGNISE_INTERVAL: Duration = Duration::from_secs(30);

/// How long the API server may take to say so.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// How long to wait before watching a part again whose watch has panicked.
const PANIC_WAIT: Duration = Duration::from_secs(10);

/// What a cluster's task is given.
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) credentials: Credentials,
    pub(super) trust_domain: String,
    /// The namespaces that are wanted; the empty one is all.
    pub(super) wanted: watch::Receiver<BTreeSet<String>>,
    pub(super) endpoints: EndpointsFrom,
    pub(super) reader: Reader,
    /// Bytes that it may take in the store.
    pub(super) bytes_max: Option<u64>,
    pub(super) turns: Turns,
    pub(super) to: mpsc::Sender<Delivery>,
    pub(super) statuses: Arc<LinkStatuses>,
}

/// Nobody takes what it says any more.
struct Over;

impl Cluster {
    /// Runs as long as the cluster is linked with these credentials, or until nobody takes deliveries any more.
    pub(super) async fn run(mut self) {
        let watches = self.statuses.begin(&self.name);
        let client = match kube::connect_linked(&self.credentials).await {
            Ok(client) => client,
            Err(error) => {
                self.say(State::Refused, Some(error.to_string()));
                // Other credentials may be better, and then this task is ended. If it ended by itself it would be begun again.
                return std::future::pending().await;
            }
        };
        loop {
            let uid = self.recognise(&client).await;
            self.say(State::Watching, None);
            match self.watch(&client, &uid, &watches).await {
                Ok(()) => tracing::warn!(
                    cluster = self.name,
                    "under this name there is another cluster now; it is learnt anew"
                ),
                Err(Over) => return,
            }
        }
    }

    fn say(&self, state: State, reason: Option<String>) {
        self.statuses.set(&self.name, state, reason);
    }

    /// Asks until it is known which cluster this is.
    async fn recognise(&self, client: &kube::Client) -> String {
        let mut backoff = Backoff::default();
        loop {
            match self.uid(client).await {
                Ok(uid) => return uid,
                Err((state, reason)) => self.say(state, Some(reason)),
            }
            sleep(backoff.wait()).await;
        }
    }

    /// What tells this cluster from others; empty if it is not to be seen.
    async fn uid(&self, client: &kube::Client) -> Result<String, (State, String)> {
        match timeout(ANSWER_WAIT, kube::linked_uid(client)).await {
            Ok(Ok(uid)) => Ok(uid.unwrap_or_default()),
            Ok(Err(error @ kube::ConnectError::Denied { .. })) => {
                Err((State::Refused, error.to_string()))
            }
            Ok(Err(error)) => Err((State::Connecting, error.to_string())),
            Err(_) => {
                let reason = format!("nothing was heard from it for {} s", ANSWER_WAIT.as_secs());
                Err((State::Connecting, reason))
            }
        }
    }

    /// Watches what is wanted. Returns when another cluster is found under the name.
    async fn watch(
        &mut self,
        client: &kube::Client,
        uid: &str,
        status: &Arc<kube::Status>,
    ) -> Result<(), Over> {
        let mut parts = BTreeMap::new();
        let mut anew = BTreeSet::new();
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            parts.retain(|namespace, Watched { id, .. }| {
                let kept = wanted.contains(namespace);
                if !kept {
                    status.forget(*id);
                }
                kept
            });
            for namespace in wanted {
                if parts.contains_key(&namespace) {
                    continue;
                }
                let part = Part { cluster: self.name.clone(), namespace: namespace.clone() };
                let origin =
                    Origin { uid: uid.to_owned(), trust_domain: self.trust_domain.clone() };
                let Some(stored) = self.join(part, origin).await? else { continue };
                let mut tasks = JoinSet::new();
                let resume = !anew.remove(&namespace);
                for watch in self.watches(&stored, resume)? {
                    let (client, status) = (client.clone(), Arc::clone(status));
                    tasks.spawn(kube::watch(client, watch, self.to.clone(), status));
                }
                parts.insert(namespace, Watched { id: stored.id, tasks });
            }
            tokio::select! {
                changed = self.wanted.changed() => changed.map_err(|_| Over)?,
                () = self.to.closed() => return Err(Over),
                namespace = ended(&mut parts) => {
                    tracing::error!(cluster = self.name, namespace, "a watch panicked; its part is watched anew");
                    sleep(PANIC_WAIT).await;
                    parts.remove(&namespace);
                }
                () = sleep(RECOGNISE_INTERVAL) => {
                    match self.uid(client).await {
                        Ok(now) if now != uid => return Ok(()),
                        Ok(_) => self.say(State::Watching, None),
                        Err((state, reason)) => self.say(state, Some(reason)),
                    }
                    for namespace in self.with_room_again(&parts).await? {
                        tracing::info!(
                            cluster = self.name, namespace,
                            "there is room for what was refused; it is listed anew"
                        );
                        parts.remove(&namespace);
                        anew.insert(namespace);
                    }
                }
            }
        }
    }

    /// Has a part stored from here on.
    async fn join(&self, part: Part, origin: Origin) -> Result<Option<StoredPart>, Over> {
        let (done, committed) = oneshot::channel();
        let changes = vec![Change::Join { part: part.clone(), origin }];
        let delivery = Delivery::told(changes, done);
        self.to.send(delivery).await.map_err(|_| Over)?;
        committed.await.map_err(|_| Over)?;
        self.read(move |reader| reader.snapshot()?.part(&part)).await
    }

    /// The parts of which something was refused for which there is room now.
    async fn with_room_again(
        &self,
        parts: &BTreeMap<String, Watched>,
    ) -> Result<Vec<String>, Over> {
        let Some(bytes_max) = self.bytes_max else { return Ok(Vec::new()) };
        let (cluster, ids) = (self.name.clone(), parts.iter());
        let ids: Vec<_> = ids.map(|(namespace, part)| (namespace.clone(), part.id)).collect();
        self.read(move |reader| {
            let snapshot = reader.snapshot()?;
            let mut found = Vec::new();
            for (namespace, id) in ids {
                if snapshot.has_room_again(&cluster, id, bytes_max)? {
                    found.push(namespace);
                }
            }
            Ok(found)
        })
        .await
    }

    /// How each kind of a part is watched: from where its checkpoint is, or from a new listing on.
    fn watches(&self, stored: &StoredPart, resume: bool) -> Result<Vec<Watch>, Over> {
        let snapshot = self.reader.snapshot().map_err(|_| Over)?;
        let namespace = Some(stored.part.namespace.clone()).filter(|it| !it.is_empty());
        let watch = |kind| {
            let source = Source { cluster: stored.id, kind };
            let checkpoint = snapshot.checkpoint(source).map_err(|_| Over)?;
            let resume = checkpoint.filter(|_| resume);
            let dispensable = is_dispensable(kind);
            let (namespace, turns) = (namespace.clone(), self.turns.clone());
            Ok(Watch { source, namespace, resume, dispensable, turns })
        };
        self.endpoints.kinds_of_linked().into_iter().map(watch).collect()
    }

    /// Reads the store, which may have to wait for the disk. That it can't be read is the supervisor's affair.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, store::Error> + Send + 'static,
    ) -> Result<T, Over> {
        let reader = self.reader.clone();
        let read = tokio::task::spawn_blocking(move || read(&reader)).await;
        read.map_err(|_| Over)?.map_err(|_| Over)
    }
}

/// A part, and the tasks that watch it. They end with this.
struct Watched {
    id: ClusterId,
    tasks: JoinSet<()>,
}

/// The part of which a watch has ended, which none does by itself.
async fn ended(parts: &mut BTreeMap<String, Watched>) -> String {
    std::future::poll_fn(|context| {
        for (namespace, Watched { tasks, .. }) in parts.iter_mut() {
            if let std::task::Poll::Ready(Some(_)) = tasks.poll_join_next(context) {
                return std::task::Poll::Ready(namespace.clone());
            }
        }
        std::task::Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_one_watch_is_told_with_its_part_and_ends_no_other() {
        let part = |id| Watched { id: ClusterId(id), tasks: JoinSet::new() };
        let mut parts =
            BTreeMap::from([("calm".to_owned(), part(1)), ("shop".to_owned(), part(2))]);
        for Watched { tasks, .. } in parts.values_mut() {
            tasks.spawn(std::future::pending());
        }
        assert!(timeout(Duration::from_millis(20), ended(&mut parts)).await.is_err());
        parts.get_mut("shop").unwrap().tasks.spawn(async { panic!("as a test") });
        assert_eq!(ended(&mut parts).await, "shop");
        parts.remove("shop");
        assert!(timeout(Duration::from_millis(20), ended(&mut parts)).await.is_err());
        assert_eq!(parts["calm"].tasks.len(), 1);
    }
}
