//! Real API servers that stand for the linked clusters of a case.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use model::{ClusterId, EndpointsFrom, Kind, ObjectName, ResourceVersion, Source, StoredPart};
use serde_json::Value;
use store::{Reader, Snapshot};

use super::Case;
use super::linked::STANDS_FOR;
use crate::apiserver::{ApiServer, Objects, User};

/// How long the store may take to follow. It takes milliseconds, or a wait between two attempts.
const PATIENCE: Duration = Duration::from_secs(90);

/// An API server, for one cluster after the other.
pub struct Far {
    api: ApiServer,
    objects: Objects,
    uid: String,
}

impl Far {
    /// Starts one that knows the custom kinds.
    pub async fn start() -> Result<Far> {
        let api = ApiServer::start().await?;
        let objects = api.objects().await?;
        objects.define(&["Server", "ExternalWorkload", "ServiceProfile"]).await?;
        let uid = objects.uid("Service/default/kubernetes").await?;
        Ok(Far { api, objects, uid })
    }
}

/// The clusters of a case, each with its API server.
pub struct FarClusters<'f> {
    clusters: BTreeMap<String, &'f Far>,
    /// By Secret, whose kubeconfig it has.
    targets: BTreeMap<String, String>,
    controller_namespace: String,
    endpoints: EndpointsFrom,
}

impl<'f> FarClusters<'f> {
    /// Fills them with the objects of a case.
    pub async fn fill(
        case: &Case,
        far: &'f [Far],
        controller_namespace: &str,
        endpoints: EndpointsFrom,
    ) -> Result<FarClusters<'f>> {
        anyhow::ensure!(case.clusters.len() <= far.len(), "not enough API servers");
        for far in far {
            far.objects.clear().await?;
        }
        let clusters: BTreeMap<_, _> = case.clusters.keys().cloned().zip(far).collect();
        for (name, objects) in &case.clusters {
            let objects = objects.as_array().context("a cluster is a list of objects")?;
            clusters[name].objects.apply(objects).await?;
        }
        Ok(FarClusters {
            clusters,
            targets: BTreeMap::new(),
            controller_namespace: controller_namespace.to_owned(),
            endpoints,
        })
    }

    /// The objects with kubeconfigs that lead there.
    pub fn with_kubeconfigs(&mut self, objects: &[Value]) -> Result<Vec<Value>> {
        let mut objects = objects.to_vec();
        for object in &mut objects {
            let given = object["stringData"]["kubeconfig"].as_str().map(str::to_owned);
            let Some(given) = given else { continue };
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match given.strip_prefix(STANDS_FOR) {
                Some(target) => {
                    let far = self.clusters.get(target).context("a cluster of the case")?;
                    object["stringData"]["kubeconfig"] = far.api.kubeconfig(User::Admin).into();
                    self.targets.insert(name, target.to_owned());
                }
                None => drop(self.targets.remove(&name)),
            }
        }
        Ok(objects)
    }

    /// Changes objects of a cluster.
    pub async fn change(&self, name: &str, delete: &[String], apply: &[Value]) -> Result<()> {
        let far = self.clusters.get(name).context("a cluster of the case")?;
        far.objects.delete(delete).await?;
        far.objects.apply(apply).await
    }

    /// Returns when the store knows the links, and of each cluster that can be reached holds exactly what is used of it.
    pub async fn follow(&self, objects: &Objects, reader: &Reader) -> Result<()> {
        let mut difference = None;
        let followed = async {
            loop {
                let there = objects.list(Kind::Secret).await?;
                difference = self.difference(there, reader).await?;
                if difference.is_none() {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, followed).await {
            Ok(done) => done,
            Err(_) => bail!("links are not followed: {}", difference.unwrap_or_default()),
        }
    }

    async fn difference(
        &self,
        mut secrets: BTreeMap<ObjectName, ResourceVersion>,
        reader: &Reader,
    ) -> Result<Option<String>> {
        secrets.retain(|secret, _| secret.namespace() == self.controller_namespace);
        let snapshot = reader.snapshot()?;
        let stored = stored(&snapshot, ClusterId::LOCAL, Kind::Secret, "")?;
        if stored != secrets {
            return Ok(Some(format!("Secrets {secrets:?}, stored {stored:?}")));
        }
        let mut links = BTreeMap::new();
        snapshot.links(&self.controller_namespace, &mut |secret, link| {
            if let Ok(link) = link {
                links.entry(link.cluster.clone()).or_insert((secret, link));
            }
        })?;
        let left = snapshot.parts()?.into_iter().find(|it| !links.contains_key(&it.part.cluster));
        if let Some(StoredPart { part, .. }) = left {
            return Ok(Some(format!("{part} is stored, and not linked")));
        }
        for part in snapshot.parts_in_use()? {
            let Some((secret, link)) = links.get(&part.cluster) else { continue };
            let Some(target) = self.targets.get(secret.name()) else { continue };
            let far = self.clusters[target];
            let Some(stored) = snapshot.part(&part)? else {
                return Ok(Some(format!("{part} is not stored")));
            };
            if stored.origin.trust_domain != link.trust_domain || stored.origin.uid != far.uid {
                return Ok(Some(format!("{part} is of {:?}", stored.origin)));
            }
            if let Some(difference) = self.difference_of(far, &stored, &snapshot).await? {
                return Ok(Some(format!("{part}: {difference}")));
            }
        }
        Ok(None)
    }

    async fn difference_of(
        &self,
        far: &Far,
        part: &StoredPart,
        snapshot: &Snapshot,
    ) -> Result<Option<String>> {
        if !snapshot.is_listed(part.id, self.endpoints)? {
            return Ok(Some("it is not listed".to_owned()));
        }
        let namespace = part.part.namespace.as_str();
        for kind in self.endpoints.kinds_of_linked() {
            let mut there = far.objects.list(kind).await?;
            there.retain(|name, _| namespace.is_empty() || name.namespace() == namespace);
            let stored = stored(snapshot, part.id, kind, namespace)?;
            if there != stored {
                return Ok(Some(format!("{kind}: {there:?}, stored {stored:?}")));
            }
        }
        Ok(None)
    }
}

fn stored(
    snapshot: &Snapshot,
    cluster: ClusterId,
    kind: Kind,
    namespace: &str,
) -> Result<BTreeMap<ObjectName, ResourceVersion>> {
    let mut all = BTreeMap::new();
    snapshot.objects(Source { cluster, kind }, &mut |name, version| {
        all.insert(name, version);
    })?;
    anyhow::ensure!(
        namespace.is_empty() || all.keys().all(|name| name.namespace() == namespace),
        "what is stored of {namespace} is of other namespaces, too: {all:?}"
    );
    Ok(all)
}
