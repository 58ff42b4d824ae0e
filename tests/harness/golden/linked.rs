//! The linked clusters of a case, and what a server is told of them: as by who follows the Secrets, and the watches of each.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::ByteString;
use model::{Change, ClusterId, EndpointsFrom, Origin, Part, Source};
use serde_json::{Value, json};

use super::{Cluster, Server};

/// What a Secret's kubeconfig says instead of one, in a case.
pub(super) const STANDS_FOR: &str = "@kubeconfig:";

/// The clusters of a case besides the local one.
pub struct Linked {
    controller_namespace: String,
    endpoints: EndpointsFrom,
    clusters: BTreeMap<String, Cluster>,
    /// By Secret, whose kubeconfig it has.
    targets: BTreeMap<String, String>,
    /// By the name under which it is linked: which cluster it is, and its number.
    joined: BTreeMap<String, (String, ClusterId)>,
}

impl Linked {
    /// These clusters, with their objects.
    pub fn new(
        clusters: &BTreeMap<String, Value>,
        controller_namespace: &str,
        endpoints: EndpointsFrom,
    ) -> Result<Linked> {
        let cluster = |(name, objects): (&String, &Value)| {
            let objects = objects.as_array().context("a cluster is a list of objects")?;
            let mut cluster = Cluster::new(endpoints);
            cluster.apply(objects)?;
            Ok((name.clone(), cluster))
        };
        Ok(Linked {
            controller_namespace: controller_namespace.to_owned(),
            endpoints,
            clusters: clusters.iter().map(cluster).collect::<Result<_>>()?,
            targets: BTreeMap::new(),
            joined: BTreeMap::new(),
        })
    }

    /// The objects as an API server stores them: with kubeconfigs that can be read.
    pub fn stored(&mut self, objects: &[Value]) -> Vec<Value> {
        objects.iter().map(|object| self.stored_one(object)).collect()
    }

    fn stored_one(&mut self, object: &Value) -> Value {
        let mut object = object.clone();
        let given = object["stringData"]["kubeconfig"].as_str().map(str::to_owned);
        if let (Some("Secret"), Some(given)) = (object["kind"].as_str(), given) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let text = match given.strip_prefix(STANDS_FOR) {
                Some(target) => {
                    self.targets.insert(name, target.to_owned());
                    kubeconfig(target)
                }
                None => {
                    self.targets.remove(&name);
                    given
                }
            };
            object["data"] = json!({"kubeconfig": ByteString(text.into_bytes())});
        }
        object
    }

    /// Tells the server of what has become of the links since.
    pub async fn follow(&mut self, server: &mut Server) -> Result<()> {
        let mut linked = BTreeMap::new();
        server.reader().snapshot()?.links(&self.controller_namespace, &mut |secret, link| {
            if let Ok(link) = link {
                linked.entry(link.cluster).or_insert((secret, link.trust_domain));
            }
        })?;
        let mut now = BTreeMap::new();
        for (cluster, (secret, trust_domain)) in linked {
            // Another cluster than those of the case can't be reached.
            if let Some(target) = self.targets.get(secret.name()) {
                now.insert(cluster, Origin { uid: target.clone(), trust_domain });
            }
        }
        let is_left = |(cluster, _): &(&String, &(String, ClusterId))| !now.contains_key(*cluster);
        let left: Vec<_> = self.joined.iter().filter(is_left).map(|(_, (_, id))| *id).collect();
        for id in left {
            server.deliver(vec![Change::Leave { id }]).await?;
            self.joined.retain(|_, (_, it)| *it != id);
        }
        for (cluster, origin) in now {
            let target = origin.uid.clone();
            let part = Part { cluster: cluster.clone(), namespace: String::new() };
            server.deliver(vec![Change::Join { part: part.clone(), origin }]).await?;
            let stored = server.reader().snapshot()?.part(&part)?.context("it was stored")?;
            let joined = (target.clone(), stored.id);
            if self.joined.get(&cluster) != Some(&joined) {
                let objects = self.clusters.get(&target).context("a cluster of the case")?;
                let listing = objects.listing()?;
                server.deliver(self.of(stored.id, listing)).await?;
                self.joined.insert(cluster, joined);
            }
        }
        Ok(())
    }

    /// Changes objects of a cluster, and tells the server.
    pub async fn change(
        &mut self,
        name: &str,
        delete: &[String],
        apply: &[Value],
        server: &mut Server,
    ) -> Result<()> {
        let cluster = self.clusters.get_mut(name).context("a cluster of the case")?;
        let mut changes = cluster.delete(delete)?;
        changes.extend(cluster.apply(apply)?);
        for (target, id) in self.joined.values() {
            let changes = self.of(*id, changes.clone());
            if target == name && !changes.is_empty() {
                server.deliver(changes).await?;
            }
        }
        Ok(())
    }

    /// The changes as they are said of the cluster of a number: of the kinds that are watched there.
    fn of(&self, cluster: ClusterId, changes: Vec<Change>) -> Vec<Change> {
        let kinds = self.endpoints.kinds_of_linked();
        let watched = |change: &Change| change.source().is_some_and(|it| kinds.contains(&it.kind));
        changes.into_iter().filter(watched).map(|change| of_cluster(change, cluster)).collect()
    }
}

/// The change as it is said of the cluster of a number.
pub fn of_cluster(mut change: Change, cluster: ClusterId) -> Change {
    match &mut change {
        Change::Begin { source }
        | Change::End { source, .. }
        | Change::Forget { source }
        | Change::Checkpoint { source, .. } => *source = Source { cluster, ..*source },
        Change::Put { key, .. } | Change::Keep { key } | Change::Delete { key } => {
            key.source.cluster = cluster;
        }
        Change::Join { .. } | Change::Leave { .. } => {}
    }
    change
}

/// One that leads nowhere.
fn kubeconfig(target: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": format!("https://{target}.test")}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string()
}
