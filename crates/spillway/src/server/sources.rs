//! The sources of a cluster: prepared while the server starts, then one task each.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use ingest::kube::{Turns, Watch};
use ingest::{Delivery, kube, manifests, synthetic};
use model::{ClusterId, EndpointsFrom, Kind, ResourceVersion, Source};
use serve::Needed;
use store::Reader;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::intake::Doors;
use super::links::{Known, LinkStatuses, Links};
use super::situation::Watched;
use crate::{Options, SourceOptions};

/// Sources that can be started: what they need is there.
pub(super) struct Sources {
    from: From,
    endpoints: EndpointsFrom,
    turns: Turns,
    links: Links,
}

/// Where their objects are.
enum From {
    Kubernetes { client: kube::Client, status: Arc<kube::Status> },
    Manifests { dir: PathBuf, status: Arc<manifests::Status> },
    Synthetic(synthetic::Spec),
    Fed,
}

/// Gets ready what the sources need, or says what is wrong with it.
pub(super) async fn prepare(options: &Options) -> anyhow::Result<Sources> {
    let from = match &options.source {
        SourceOptions::Kubernetes { kubeconfig, context } => From::Kubernetes {
            client: kube::connect(kubeconfig.as_deref(), context.as_deref()).await?,
            status: Arc::default(),
        },
        SourceOptions::Manifests(dir) => {
            let folder = std::fs::read_dir(dir);
            folder.with_context(|| format!("cannot read --manifests {}", dir.display()))?;
            From::Manifests { dir: dir.clone(), status: Arc::default() }
        }
        SourceOptions::Synthetic(spec) => From::Synthetic(spec.clone()),
        SourceOptions::Fed => From::Fed,
    };
    let links = Links {
        controller_namespace: options.settings.controller_namespace.clone(),
        endpoints: options.endpoints,
        scope: options.remote_scope,
        bytes_max: options.admission.linked_bytes_max,
        known: Arc::default(),
        turns: Turns::shared(),
        statuses: Arc::default(),
    };
    Ok(Sources { from, endpoints: options.endpoints, turns: Turns::default(), links })
}

/// The version that all sources have been committed up to, if it is one.
fn common(checkpoints: Vec<(Source, Option<ResourceVersion>)>) -> Option<ResourceVersion> {
    let mut versions = checkpoints.into_iter().map(|(_, version)| version);
    let first = versions.next()??;
    versions.all(|version| version.as_ref() == Some(&first)).then_some(first)
}

impl Sources {
    /// Where each watch of the local cluster goes on, as committed with the data.
    fn checkpoints(
        &self,
        reader: &Reader,
    ) -> anyhow::Result<Vec<(Source, Option<ResourceVersion>)>> {
        let snapshot = reader.snapshot()?;
        let one = |kind| {
            let source = Source { cluster: ClusterId::LOCAL, kind };
            Ok((source, snapshot.checkpoint(source)?))
        };
        self.endpoints.kinds().map(one).collect()
    }

    /// What has to be known before the first answer.
    pub(super) fn needed(&self) -> Needed {
        let watched = self.watched();
        Needed {
            kinds: self.endpoints.kinds().collect(),
            refused: Arc::new(move |source| watched.is_refused(source)),
        }
    }

    /// Who knows how they are doing.
    pub(super) fn watched(&self) -> Watched {
        match &self.from {
            From::Kubernetes { status, .. } => Watched::Kubernetes(Arc::clone(status)),
            From::Manifests { status, .. } => Watched::Manifests(Arc::clone(status)),
            From::Synthetic(_) | From::Fed => Watched::Inside,
        }
    }

    /// The client of the API server, if there is one.
    pub(super) fn client(&self) -> Option<&kube::Client> {
        match &self.from {
            From::Kubernetes { client, .. } => Some(client),
            _ => None,
        }
    }

    /// What the writer tells of links.
    pub(super) fn links_known(&self) -> Arc<Known> {
        Arc::clone(&self.links.known)
    }

    /// How linked clusters are doing.
    pub(super) fn links(&self) -> Arc<LinkStatuses> {
        Arc::clone(&self.links.statuses)
    }

    /// Can they say again what was lost since their checkpoints?
    pub(super) fn can_repeat(&self) -> bool {
        !matches!(self.from, From::Fed)
    }

    /// How a source is watched.
    fn watch(&self, source: Source, resume: Option<ResourceVersion>) -> Watch {
        let turns = self.turns.clone();
        let watch = Watch { source, namespace: None, resume, dispensable: false, turns };
        match source.kind {
            // Their credentials are not stored, so they are always listed.
            Kind::Secret => Watch {
                namespace: Some(self.links.controller_namespace.clone()),
                resume: None,
                ..watch
            },
            _ => watch,
        }
    }

    /// Starts them, from their checkpoints. They end when the set is dropped, or nobody takes their deliveries.
    pub(super) fn spawn(
        &self,
        to: &mpsc::Sender<Delivery>,
        doors: &Doors,
        reader: &Reader,
    ) -> anyhow::Result<JoinSet<()>> {
        let mut tasks = JoinSet::new();
        if let From::Kubernetes { .. } = self.from {
            tasks.spawn(self.links.clone().run(reader.clone(), to.clone(), doors.clone()));
        }
        match &self.from {
            From::Kubernetes { client, status } => {
                for (source, resume) in self.checkpoints(reader)? {
                    let (client, status) = (client.clone(), Arc::clone(status));
                    let watch = self.watch(source, resume);
                    tasks.spawn(kube::watch(client, watch, to.clone(), status));
                }
            }
            From::Manifests { dir, status } => {
                tasks.spawn(manifests::watch(
                    dir.clone(),
                    self.endpoints,
                    to.clone(),
                    Arc::clone(status),
                ));
            }
            From::Synthetic(spec) => {
                let resume = common(self.checkpoints(reader)?);
                tasks.spawn(synthetic::run(spec.clone(), resume, to.clone()));
            }
            From::Fed => {}
        }
        Ok(tasks)
    }
}
