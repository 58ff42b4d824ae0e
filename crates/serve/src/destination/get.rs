//! Get: which flow a request takes, the statuses that refuse it, and the stream that answers it.

use std::sync::Arc;
use std::vec;

use futures::stream::BoxStream;
use model::{ClusterId, Discovery, ObjectName, Service, ServiceName};
use store::{Snapshot, WakeKey};
use tonic::Status;

use super::cursor::{Cursor, Question, Step};
use super::shared::{Failure, Shared, StreamEnd};
use super::wire::{self, Update};
use crate::Subscription;

/// Answers a request, or refuses it (spec §1.5). A refusal comes before the stream, since a proxy retries that
/// with a longer and longer delay.
pub(super) async fn get(
    shared: &Arc<Shared>,
    path: &str,
    token: &str,
) -> Result<BoxStream<'static, Result<Update, Status>>, Status> {
    let authority = resolve::authority(path, &shared.answers.settings.cluster_domain)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let service = ServiceName { cluster: ClusterId::LOCAL, object: authority.service };
    let failed = |failure: Failure| {
        tracing::error!(%failure, path, "a Service could not be read");
        Status::internal(format!("Failed to get service {path}"))
    };
    let synced = shared.synced().await.map_err(failed)?;
    let name = service.clone();
    let read = move |_: &Shared, snapshot: &Snapshot| {
        Ok(snapshot.service(&name)?.object(snapshot.revision())?)
    };
    match shared.read(read).await.map_err(failed)? {
        Some(object) => accept(&object, path)?,
        None => return Err(absent(&service, synced)),
    }
    let question = Question {
        service,
        port: authority.port,
        hostname: authority.instance,
        // What can't be a node's name isn't kept: a stream is to stay small.
        node: resolve::caller(token).node.filter(|node| ObjectName::new("", node).is_ok()),
    };
    Ok(stream(Arc::clone(shared), question))
}

/// A Service that may yet come must not be refused for good.
fn absent(service: &ServiceName, synced: bool) -> Status {
    let (name, namespace) = (service.object.name(), service.object.namespace());
    if synced {
        Status::not_found(format!("Service {name}.{namespace} not found"))
    } else {
        Status::unavailable(format!("Service {name}.{namespace} is not known yet: still loading"))
    }
}

/// Which flow a Service's requests take (spec §1.6); those that are not served yet are refused.
fn accept(service: &Service, path: &str) -> Result<(), Status> {
    match &service.discovery {
        Discovery { members: Some(_), .. } | Discovery { local_member: Some(_), .. } => {
            Err(Status::unavailable("federated Services are not served yet"))
        }
        Discovery { cluster: Some(_), service: None, .. } => Err(Status::failed_precondition(
            format!("Remote discovery service missing remote service name {path}"),
        )),
        Discovery { cluster: Some(cluster), .. } => {
            Err(Status::not_found(format!("Remote cluster not found: {cluster}")))
        }
        _ if service.external_name => {
            Err(Status::invalid_argument(format!("Invalid authority: {path}")))
        }
        _ => Ok(()),
    }
}

/// The answer: each next message is made when HTTP/2 asks for it.
fn stream(shared: Arc<Shared>, question: Question) -> BoxStream<'static, Result<Update, Status>> {
    let mut keys = vec![WakeKey::service(&question.service)];
    keys.extend(question.node.iter().map(|node| WakeKey::node(ClusterId::LOCAL, node)));
    let stream = Stream {
        subscription: shared.hub.subscribe(&keys),
        shared,
        question: Arc::new(question),
        cursor: Cursor::default(),
        step: Step { again: true, ..Step::default() }.into(),
        started: false,
    };
    Box::pin(futures::stream::unfold(Some(stream), async |stream| {
        let mut stream = stream?;
        let item = stream.next().await?;
        // After an error there is nothing more.
        let stream = item.is_ok().then_some(stream);
        Some((item, stream))
    }))
}

struct Stream {
    /// Older than all that was read.
    subscription: Subscription,
    shared: Arc<Shared>,
    question: Arc<Question>,
    cursor: Cursor,
    step: Sending,
    started: bool,
}

/// A step of which some messages may have been sent.
struct Sending {
    messages: vec::IntoIter<Update>,
    again: bool,
}

impl From<Step> for Sending {
    fn from(step: Step) -> Sending {
        Sending { messages: step.messages.into_iter(), again: step.again }
    }
}

impl Stream {
    /// The next message; `None` when the server stops.
    async fn next(&mut self) -> Option<Result<Update, Status>> {
        let stop = self.shared.stop.clone();
        let message = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            message = self.message() => Some(message),
        };
        let metrics = &self.shared.metrics;
        match &message {
            Some(Ok(update)) => wire::kind(update).into_iter().for_each(|kind| metrics.sent(kind)),
            Some(Err(failure)) => metrics.ended(StreamEnd::of(failure)),
            None => metrics.ended(StreamEnd::Stopped),
        }
        message.map(|message| message.map_err(|failure| failed(&failure, &self.question)))
    }

    async fn message(&mut self) -> Result<Update, Failure> {
        if !self.started {
            self.shared.until_synced().await?;
            self.started = true;
        }
        loop {
            if let Some(message) = self.step.messages.next() {
                return Ok(message);
            }
            if !self.step.again {
                let first_change = self.subscription.changed().await;
                self.cursor.unchanged_until(first_change);
            }
            self.step = self.look().await?.into();
        }
    }

    async fn look(&mut self) -> Result<Step, Failure> {
        let question = Arc::clone(&self.question);
        let mut cursor = std::mem::take(&mut self.cursor);
        let looking = self.shared.read(move |shared, snapshot| {
            let step = cursor.step(&question, snapshot, &shared.answers)?;
            Ok((cursor, step))
        });
        let (cursor, step) = looking.await?;
        self.cursor = cursor;
        Ok(step)
    }
}

/// A stream that fails is asked for again, and then begins anew.
fn failed(failure: &Failure, question: &Question) -> Status {
    let service = &question.service;
    match StreamEnd::of(failure) {
        StreamEnd::Failed => tracing::error!(%service, %failure, "a stream failed"),
        _ => tracing::info!(%service, %failure, "a stream is too far behind, and ends"),
    }
    Status::unavailable(failure.to_string())
}
