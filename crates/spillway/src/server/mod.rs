//! Assembly: what starts in which order, what belongs together, and how it ends.

mod flood;
mod intake;
mod links;
mod listen;
mod open;
mod origin;
mod situation;
mod sources;
mod spine;
mod supervisor;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ingest::Delivery;
use serve::{Destination, Door, Hub, Metrics, StreamLimits};
use store::{Commit, Reader};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{Budget, Options};
use flood::Flood;
use intake::Intake;
use open::Opened;
use origin::Origin;
use situation::Situation;
use sources::Sources;
use spine::Spine;
use supervisor::Supervisor;

/// A server that runs. Dropping it ends it, without waiting for the end.
pub struct Running {
    addr: SocketAddr,
    admin_addr: Option<SocketAddr>,
    deliveries: mpsc::Sender<Delivery>,
    reader: Reader,
    hub: Arc<Hub>,
    metrics: Arc<Metrics>,
    situation: Arc<Situation>,
    failure: watch::Receiver<Option<String>>,
    /// Asks which cluster it is. Aborted when dropped.
    confirming: JoinSet<()>,
    /// The listeners' tasks.
    listeners: Vec<JoinHandle<()>>,
    writer: std::thread::JoinHandle<()>,
    /// Lets nobody in any more.
    closing: CancellationToken,
    stop: DropGuard,
}

/// Starts a server: health first, then the store, then its sources and the door for proxies.
pub async fn start(options: Options) -> anyhow::Result<Running> {
    let stop = CancellationToken::new();
    let closing = stop.child_token();
    let hub = Arc::new(Hub::paced(options.coalesce_max));
    let metrics = Arc::<Metrics>::default();
    let guard = stop.clone().drop_guard();
    let situation = Arc::new(Situation::default());
    let failure = watch::Sender::new(None);
    let mut listeners = Vec::new();
    let mut admin_addr = None;
    if let Some(addr) = options.admin_addr {
        let listener = listen::listen("--admin-addr", addr).await?;
        admin_addr = Some(listener.local_addr()?);
        let router = serve::admin(Arc::clone(&metrics), Arc::clone(&hub), situation.clone());
        let stop = stop.clone().cancelled_owned();
        let admin = axum::serve(listener, router).with_graceful_shutdown(stop);
        listeners.push(supervise("admin", failure.clone(), async { Ok(admin.await?) }));
    }

    let Opened { writer, reader, sources, origin } = open::open(&options).await?;
    hub.advance(&Commit { revision: reader.stats().revision, ..Commit::default() });
    let destination = destination(&options, &reader, &hub, &metrics, &sources, stop.clone());
    situation.opened(reader.clone(), destination.clone(), &sources, options.memory);
    let listener = listen::listen("--addr", options.addr).await?;
    let addr = listener.local_addr()?;

    let (deliveries, incoming) = mpsc::channel(options.memory.deliveries_max);
    let (intake, doors) = Intake::new(incoming);
    let spine = Spine {
        writer,
        hub: Arc::clone(&hub),
        metrics: Arc::clone(&metrics),
        intake,
        links: sources.links_known(),
        flood: Flood::default(),
        fsync_interval: options.fsync_interval.unwrap_or_default(),
        sync_at: None,
        stop: stop.clone(),
    };
    let confirming = confirm(origin, &sources, &failure);
    let supervisor = Supervisor {
        spine,
        reader: reader.clone(),
        tasks: sources.spawn(&deliveries, &doors, &reader)?,
        sources,
        deliveries: deliveries.downgrade(),
        doors,
    };
    let writer = supervisor::spawn(supervisor, failure.clone())?;
    listeners.push(wake(&hub, options.keep_alive, stop.clone()));
    let (limits, counted) = (options.door, Arc::clone(&metrics));
    let door = Door { destination, limits, metrics: counted, closing: closing.clone(), stop };
    listeners.push(tokio::spawn(serve::serve(listener, door)));
    let admin = admin_addr.map(|addr| addr.to_string()).unwrap_or_default();
    tracing::info!(%addr, admin, data = %options.data.display(), "serving");
    let failure = failure.subscribe();
    Ok(Running {
        addr,
        admin_addr,
        deliveries,
        reader,
        hub,
        metrics,
        situation,
        failure,
        confirming,
        listeners,
        writer,
        closing,
        stop: guard,
    })
}

/// Asks the API server which cluster it is of, until that is known.
fn confirm(
    origin: Option<Origin>,
    sources: &Sources,
    failure: &watch::Sender<Option<String>>,
) -> JoinSet<()> {
    let mut confirming = JoinSet::new();
    if let (Some(origin), Some(client)) = (origin, sources.client().cloned()) {
        confirming.spawn(origin.confirm(client, failure.clone()));
    }
    confirming
}

/// What answers proxies.
fn destination(
    options: &Options,
    reader: &Reader,
    hub: &Arc<Hub>,
    metrics: &Arc<Metrics>,
    sources: &Sources,
    stop: CancellationToken,
) -> Destination {
    let Budget { reads_max, answers_bytes, sending_bytes, .. } = options.memory;
    let setup = serve::Setup {
        reader: reader.clone(),
        hub: Arc::clone(hub),
        settings: options.settings.clone(),
        http2: options.http2_params,
        no_endpoints: options.no_endpoints,
        metrics: Arc::clone(metrics),
        oversize: options.oversize,
        limits: StreamLimits { reads_max, hot_bytes: answers_bytes, sending_bytes },
        needed: sources.needed(),
    };
    Destination::new(setup, stop)
}

/// Wakes the streams that are to be told something later.
fn wake(hub: &Arc<Hub>, keep_alive: Duration, stop: CancellationToken) -> JoinHandle<()> {
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        stop.run_until_cancelled(hub.run(keep_alive)).await;
    })
}

/// Runs a listener; that it fails is a failure of the server.
fn supervise(
    name: &'static str,
    failure: watch::Sender<Option<String>>,
    run: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = run.await {
            failure.send_replace(Some(format!("the {name} listener failed: {error:#}")));
        }
    })
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Running {
    /// Where proxies ask.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where health and metrics are.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin_addr
    }

    /// Where changes can be handed in, besides those of the source.
    pub fn deliveries(&self) -> mpsc::Sender<Delivery> {
        self.deliveries.clone()
    }

    /// Reads the store.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Where streams are woken.
    pub fn hub(&self) -> Arc<Hub> {
        Arc::clone(&self.hub)
    }

    /// Messages of Get streams that were handed to HTTP/2 so far.
    pub fn messages_sent(&self) -> u64 {
        self.metrics.messages_sent()
    }

    /// Answers of Get streams that were made from the store so far, for however many streams each.
    pub fn answers_made(&self) -> u64 {
        self.metrics.answers_made()
    }

    /// Returns when the server cannot go on, with the reason: its writer failed, or a listener.
    pub async fn failed(&self) -> String {
        let mut failure = self.failure.clone();
        match failure.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "all of the server's tasks have ended".to_owned(),
        }
    }

    /// Lets nobody in any more, and ends the streams one after the other, spread over this time, so that their clients
    /// don't all go elsewhere at once. Returns when there is none left, or the time is over.
    pub async fn drain(&self, over: Duration) {
        self.situation.drain();
        self.closing.cancel();
        self.hub.end_all(over).await;
    }

    /// Ends it: streams end with OK, what is being committed is committed, then the store is closed.
    pub async fn stop(self) -> anyhow::Result<()> {
        let Running { confirming, listeners, writer, stop, failure, .. } = self;
        drop(stop);
        drop(confirming);
        for listener in listeners {
            listener.await.context("a listener panicked")?;
        }
        let joined = tokio::task::spawn_blocking(move || writer.join()).await?;
        joined.map_err(|_| anyhow::anyhow!("the writer panicked"))?;
        match &*failure.borrow() {
            Some(reason) => anyhow::bail!(reason.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
