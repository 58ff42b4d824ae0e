//! Get: which flow a request takes, the statuses that refuse it, and the stream that answers it.

use std::sync::Arc;

use model::{ClusterId, Discovery, Revision, Service, ServiceName};
use store::WakeKey;
use tonic::Status;

use super::cursor::{Cursor, Step};
use super::look::{Look, Question};
use super::reads::Turn;
use super::shared::{Failure, Shared, StreamEnd};
use super::wire::{self, Message};
use crate::{Subscription, Woken};

/// Answers a request, or refuses it (spec §1.5). A refusal comes before the stream, since a proxy retries that
/// with a longer and longer delay.
pub(super) async fn get(
    shared: &Arc<Shared>,
    path: &str,
    token: &str,
    turn: &Turn,
) -> Result<Answer, Status> {
    if shared.hub.is_ending() {
        return Err(Status::unavailable("the server is ending"));
    }
    let authority = resolve::authority(path, &shared.answers.settings.cluster_domain)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let question = Question::new(authority, token);
    let failed = |failure: Failure| {
        tracing::error!(%failure, path, "a Service could not be read");
        Status::internal(format!("Failed to get service {path}"))
    };
    let synced = shared.synced().await.map_err(failed)?;
    let head = shared.head(&question.service, shared.hub.commit_count()).await.map_err(failed)?;
    match head.object {
        Some(object) => accept(&object, path)?,
        None => return Err(absent(&question.service, synced)),
    }
    Ok(Answer::new(Arc::clone(shared), question, turn.clone()))
}

/// A Service that may yet come must not be refused for good.
pub(super) fn absent(service: &ServiceName, synced: bool) -> Status {
    let (name, namespace) = (service.object.name(), service.object.namespace());
    if synced {
        Status::not_found(format!("Service {name}.{namespace} not found"))
    } else {
        Status::unavailable(format!("Service {name}.{namespace} is not known yet: still loading"))
    }
}

/// Which flow a Service's requests take (spec §1.6); those that are not served yet are refused.
pub(super) fn accept(service: &Service, path: &str) -> Result<(), Status> {
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

/// An answer, as it goes on: each next message is made when it is asked for.
pub struct Answer {
    /// Older than all that was read.
    subscription: Subscription,
    shared: Arc<Shared>,
    question: Arc<Question>,
    turn: Turn,
    /// What the client was told, or is being told.
    cursor: Arc<Cursor>,
    /// Nothing changed for it since, up to this revision.
    unchanged_until: Revision,
    /// What it is being told, and how many messages of it it has. `None`: nothing, and there is no more for now.
    sending: Option<(Arc<Step>, usize)>,
    /// There may be something that it was not told.
    due: bool,
    /// The kinds that an answer needs are known.
    started: bool,
    /// There is nothing more.
    ended: bool,
}

/// The places of a stream's keys at the hub.
const SERVICE: usize = 0;
const NODE: usize = 1;

impl Answer {
    fn new(shared: Arc<Shared>, question: Question, turn: Turn) -> Answer {
        let mut keys = vec![WakeKey::service(&question.service)];
        keys.extend(question.node.iter().map(|node| WakeKey::node(ClusterId::LOCAL, node)));
        Answer {
            subscription: shared.hub.subscribe(&keys),
            shared,
            question: Arc::new(question),
            turn,
            cursor: Arc::default(),
            unchanged_until: Revision::default(),
            sending: None,
            due: true,
            started: false,
            ended: false,
        }
    }

    /// The next message; `None` when the server stops, or after an error. Loses nothing when it is dropped before it
    /// returns.
    pub async fn next(&mut self) -> Option<Result<Message, Status>> {
        if self.ended {
            return None;
        }
        let shared = Arc::clone(&self.shared);
        let message = shared.next(self.message()).await;
        self.ended = !shared.count(message.as_ref(), &self.subscription);
        message.map(|message| message.map_err(|failure| failed(&failure, &self.question)))
    }

    /// It is given up, since the client doesn't take it.
    pub(crate) fn give_up(&mut self, end: StreamEnd) {
        tracing::info!(service = %self.question.service, reason = end.name(), "a stream is given up");
        self.shared.metrics.ended(end);
        self.ended = true;
    }

    async fn message(&mut self) -> Result<Message, Failure> {
        loop {
            if let Some(message) = self.unsent() {
                return Ok(message);
            }
            // The bytes of what was sent are not held while nothing happens.
            self.due |= self.sending.take().is_some_and(|(step, _)| step.again);
            if !self.due {
                match self.subscription.woken().await {
                    Woken::Changed(first) => {
                        self.unchanged_until = Revision(first.0.saturating_sub(1));
                        self.due = true;
                    }
                    Woken::KeepAlive => return Ok(wire::keep_alive()),
                    Woken::End => return Err(Failure::Ending),
                }
            }
            // On the heap, so that a stream that waits is small.
            Box::pin(self.look()).await?;
        }
    }

    /// The next message of what the client is being told.
    fn unsent(&mut self) -> Option<Message> {
        let (step, sent) = self.sending.as_mut()?;
        let message = step.messages.get(*sent)?.clone();
        *sent += 1;
        Some(message)
    }

    async fn look(&mut self) -> Result<(), Failure> {
        if !self.started {
            self.shared.until_synced().await?;
            self.started = true;
        }
        let seen = |place| self.subscription.last_commit(place).unwrap_or_default();
        let look = Look {
            question: Arc::clone(&self.question),
            cursor: Arc::clone(&self.cursor),
            unchanged_until: self.unchanged_until,
            service_seen: seen(SERVICE),
            node_seen: seen(NODE),
            turn: self.turn.clone(),
        };
        let step = self.shared.look(&look).await?;
        self.cursor = Arc::clone(&step.next);
        self.sending = Some((step, 0));
        self.due = false;
        Ok(())
    }
}

/// A stream that fails is asked for again, and then begins anew.
fn failed(failure: &Failure, question: &Question) -> Status {
    let service = &question.service;
    match StreamEnd::of(failure) {
        StreamEnd::Failed => tracing::error!(%service, %failure, "a stream failed"),
        StreamEnd::Ending => {}
        _ => tracing::info!(%service, %failure, "a stream is too far behind, and ends"),
    }
    Status::unavailable(failure.to_string())
}
