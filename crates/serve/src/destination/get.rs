//! Get: which flow a request takes, the statuses that refuse it, and the stream that answers it.

use std::sync::Arc;

use model::{ClusterId, Flow, Revision, Service, ServiceName};
use store::WakeKey;
use tonic::Status;

use super::cursor::{Cursor, Step};
use super::look::{Look, Question};
use super::members::{Member, Members, State};
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
    let mut question = Question::new(authority, token);
    let failed = |failure: Failure| {
        tracing::error!(%failure, path, "a Service could not be read");
        Status::internal(format!("Failed to get service {path}"))
    };
    let synced = shared.synced().await.map_err(failed)?;
    let asked = &mut question.asked;
    let head = shared.head(&asked.service, shared.hub.commit_count()).await.map_err(failed)?;
    match head.object.service() {
        Some(service) => asked.flow = accept(service, path)?,
        None => return Err(absent(&asked.service, synced)),
    }
    if let Flow::Mirror(cluster, _) = &asked.flow {
        let members = shared.members(asked, shared.hub.commit_count()).await.map_err(failed)?;
        if members.state == State::NotLinked {
            return Err(not_linked(cluster, synced));
        }
        for Member { service, .. } in &members.list {
            let head = shared.head(service, shared.hub.commit_count()).await.map_err(failed)?;
            head.object.service().map_or(Ok(()), |service| accept_linked(service, path))?;
        }
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

/// A link that may yet be found must not be refused for good either.
pub(super) fn not_linked(cluster: &str, synced: bool) -> Status {
    if synced {
        Status::not_found(format!("Remote cluster not found: {cluster}"))
    } else {
        Status::unavailable(format!("Remote cluster {cluster} is not known yet: still loading"))
    }
}

/// Which flow a Service's requests take (spec §1.6).
pub(super) fn accept(service: &Service, path: &str) -> Result<Flow, Status> {
    let flow = service.discovery.flow();
    match &flow {
        Flow::Mirror(_, None) => Err(Status::failed_precondition(format!(
            "Remote discovery service missing remote service name {path}"
        ))),
        Flow::Own => accept_linked(service, path).map(|()| flow),
        // What stands in for others may be of any type itself.
        Flow::Mirror(..) | Flow::Federated => Ok(flow),
    }
}

/// Has the Service endpoints at all?
pub(super) fn accept_linked(service: &Service, path: &str) -> Result<(), Status> {
    match service.external_name {
        true => Err(Status::invalid_argument(format!("Invalid authority: {path}"))),
        false => Ok(()),
    }
}

/// An answer, as it goes on: each next message is made when it is asked for.
pub struct Answer {
    /// Older than all that was read.
    subscription: Subscription,
    shared: Arc<Shared>,
    question: Arc<Question>,
    turn: Turn,
    /// Whose endpoints it is told of.
    members: Arc<Members>,
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
    /// What it is being told is the last.
    over: bool,
    /// There is nothing more.
    ended: bool,
}

impl Answer {
    fn new(shared: Arc<Shared>, question: Question, turn: Turn) -> Answer {
        let members = match question.asked.flow {
            Flow::Own => shared.own_member(&question.asked),
            _ => Arc::new(Members::unread(&question.asked)),
        };
        Answer {
            subscription: shared.hub.subscribe(&wakes(&members, &question)),
            shared,
            question: Arc::new(question),
            turn,
            members,
            cursor: Arc::default(),
            unchanged_until: Revision::default(),
            sending: None,
            due: true,
            started: false,
            over: false,
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
        match message? {
            Err(Failure::Over) => None,
            message => Some(message.map_err(|failure| failed(&failure, &self.question))),
        }
    }

    /// It is given up, since the client doesn't take it.
    pub(crate) fn give_up(&mut self, end: StreamEnd) {
        tracing::info!(service = %self.question.asked.service, reason = end.name(), "a stream is given up");
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
            if self.over && !self.due {
                return Err(Failure::Over);
            }
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
        self.find_members().await?;
        match self.members.state {
            State::Open => {}
            // Nothing is said of who isn't known yet; those that were told and are gone are taken back.
            State::Loading if !self.cursor.is_new() => {}
            State::Loading => {
                self.due = false;
                return Ok(());
            }
            // What was told of them is taken back, unless there was nothing.
            State::NotLinked | State::Gone if !self.cursor.is_new() => self.over = true,
            State::NotLinked | State::Gone | State::Changed => return Err(Failure::Over),
        }
        let seen = |key: WakeKey| self.subscription.last_commit_of(key).unwrap_or_default();
        let members = self.members.list.iter();
        let node = self.question.node.as_deref();
        let look = Look {
            question: Arc::clone(&self.question),
            cursor: Arc::clone(&self.cursor),
            unchanged_until: self.unchanged_until,
            members_seen: members.map(|it| seen(WakeKey::service(&it.service))).collect(),
            members: Arc::clone(&self.members),
            node_seen: node.map_or(0, |node| seen(WakeKey::node(ClusterId::LOCAL, node))),
            turn: self.turn.clone(),
        };
        let step = self.shared.look(&look).await?;
        self.cursor = Arc::clone(&step.next);
        self.sending = Some((step, 0));
        self.due = false;
        Ok(())
    }
}

impl Answer {
    /// Reads whose endpoints answer, until that depends on nothing that isn't subscribed to.
    async fn find_members(&mut self) -> Result<(), Failure> {
        if self.question.asked.flow == Flow::Own {
            return Ok(());
        }
        loop {
            let commits = self.shared.hub.commit_count();
            let seen = self.subscription.newest_commit();
            let members = self.shared.members(&self.question.asked, seen).await?;
            let others = members.wakes != self.members.wakes;
            self.members = members;
            if others {
                self.subscription.resubscribe(&wakes(&self.members, &self.question));
            }
            // What was committed before the others were subscribed to was not told of, and perhaps not read.
            if !others || self.shared.hub.commit_count() == commits {
                return Ok(());
            }
        }
    }
}

/// What a stream waits for.
fn wakes(members: &Members, question: &Question) -> Vec<WakeKey> {
    let node = question.node.iter().map(|node| WakeKey::node(ClusterId::LOCAL, node));
    members.wakes.iter().copied().chain(node).collect()
}

/// A stream that fails is asked for again, and then begins anew.
fn failed(failure: &Failure, question: &Question) -> Status {
    let service = &question.asked.service;
    match StreamEnd::of(failure) {
        StreamEnd::Failed => tracing::error!(%service, %failure, "a stream failed"),
        StreamEnd::Ending => {}
        _ => tracing::info!(%service, %failure, "a stream is too far behind, and ends"),
    }
    Status::unavailable(failure.to_string())
}
