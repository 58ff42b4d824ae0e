//! GetProfile: what a client should know of a Service, or of an address, that it dials.
//!
//! A stream is a cursor here, too: it holds what it is attached to, and a digest of what it said last. What it says is read
//! from the store each time that something changes which it depends on.

mod explain;
mod question;
mod read;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use model::ClusterId;
use resolve::Dialed;
use store::WakeKey;
use tonic::Status;

use super::hot::{Found, Key, Seen, Value};
use super::reads::{Reader, Turn};
use super::shared::{Failure, Shared, StreamEnd};
use super::wire::Message;
use crate::metrics::AnswerFrom;
use crate::{Subscription, Woken};
pub(super) use explain::explain;
pub use explain::{ProfileExplanation, ProfileReason, ProfileVerdict};
use question::Subject;
pub(super) use question::{Attached, Question};
pub(super) use read::{Outcome, Refusal};

/// How long a request waits for the first listings. A proxy waits three seconds for its answer (spec/proxy.md 4).
const LOADING_MAX: Duration = Duration::from_millis(2_500);

/// What a client was told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) attached: Attached,
    /// What it depends on.
    pub(super) wakes: Box<[WakeKey]>,
    /// Of the message; 0: there was none.
    pub(super) digest: u64,
}

/// Answers a request, or refuses it (spec §1.5).
pub(super) async fn get_profile(
    shared: &Arc<Shared>,
    path: &str,
    token: &str,
    turn: &Turn,
) -> Result<ProfileAnswer, Status> {
    if shared.hub.is_ending() {
        return Err(Status::unavailable("the server is ending"));
    }
    let (dialed, port) = resolve::dialed(path, &shared.answers.settings.cluster_domain)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let failed = |failure: Failure| {
        tracing::error!(%failure, path, "a profile could not be read");
        Status::unavailable(format!("Failed to get the profile of {path}: {failure}"))
    };
    // Before all is known, nothing can be said to be unknown.
    match tokio::time::timeout(LOADING_MAX, shared.until_synced()).await {
        Ok(synced) => synced.map_err(failed)?,
        Err(_) => {
            return Err(Status::unavailable(format!("{path} is not known yet: still loading")));
        }
    }
    let mut attached = Attached::Nothing;
    let subject = match dialed {
        Dialed::Service { service, fqn } => Subject::Service(service, fqn),
        Dialed::Ip(ip) => Subject::Address(Some(ip)),
        Dialed::Instance { service, hostname } => {
            let find = move |shared: &Shared, snapshot: &store::Snapshot, _: Seen| {
                Ok(read::instance(snapshot, shared.endpoints(), service, &hostname)?)
            };
            let found = shared.read(&Reader::Server, find).await.map_err(failed)?;
            let (ip, pod) = found.map_err(|refusal| refusal.status(path))?;
            attached = Attached::Workload(model::WorkloadKind::Pod, pod);
            Subject::Address(ip)
        }
    };
    let question = Question::new(subject, port, resolve::caller(token).namespace);
    let mut answer = ProfileAnswer::new(Arc::clone(shared), question, attached, turn.clone());
    match answer.look().await {
        Ok(None) => Ok(answer),
        Ok(Some(refusal)) => Err(refusal.status(path)),
        Err(failure) => Err(failed(failure)),
    }
}

/// A profile, as it changes: each next message is made when it is asked for.
pub struct ProfileAnswer {
    /// Older than all that was read.
    subscription: Subscription,
    shared: Arc<Shared>,
    question: Arc<Question>,
    turn: Turn,
    /// What the client was told, or is being told.
    held: Arc<Held>,
    /// What it is to be told.
    sending: Option<Message>,
    /// There may be something that it was not told.
    due: bool,
    /// There is nothing more.
    ended: bool,
}

impl ProfileAnswer {
    fn new(
        shared: Arc<Shared>,
        question: Question,
        attached: Attached,
        turn: Turn,
    ) -> ProfileAnswer {
        let wakes = question.wakes(&shared.answers.settings.cluster_domain);
        let subscription = shared.hub.subscribe(&wakes);
        let held = Arc::new(Held { attached, wakes: wakes.into(), digest: 0 });
        let question = Arc::new(question);
        ProfileAnswer {
            subscription,
            shared,
            question,
            turn,
            held,
            sending: None,
            due: false,
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
        message.map(|message| {
            message.map_err(|failure| {
                tracing::info!(question = ?self.question, %failure, "a profile's stream ends");
                Status::unavailable(failure.to_string())
            })
        })
    }

    /// It is given up, since the client doesn't take it.
    pub(crate) fn give_up(&mut self, end: StreamEnd) {
        tracing::info!(question = ?self.question, reason = end.name(), "a profile's stream is given up");
        self.shared.metrics.ended(end);
        self.ended = true;
    }

    async fn message(&mut self) -> Result<Message, Failure> {
        loop {
            if let Some(message) = self.sending.take() {
                return Ok(message);
            }
            if !self.due {
                match self.subscription.woken().await {
                    Woken::Changed(_) => self.due = true,
                    // A proxy has no profile that says nothing new, and asks again after five minutes.
                    Woken::KeepAlive => continue,
                    Woken::End => return Err(Failure::Ending),
                }
            }
            // On the heap, so that a stream that waits is small. What can't be told any more may be told otherwise to who
            // asks again.
            if let Some(refusal) = Box::pin(self.look()).await? {
                return Err(Failure::Gone(refusal.to_string()));
            }
        }
    }

    /// Reads what there is to say, until it depends on nothing that isn't subscribed to.
    async fn look(&mut self) -> Result<Option<Refusal>, Failure> {
        loop {
            let commits = self.shared.hub.commit_count();
            let outcome = self.outcome().await?;
            let (held, message) = match &*outcome {
                Outcome::Refused(refusal) => {
                    if let Refusal::Several(claimants, ..) = refusal {
                        self.shared.metrics.conflict(claimants.name());
                    }
                    return Ok(Some(refusal.clone()));
                }
                Outcome::Said(held, message) => (held, message),
            };
            let others = held.wakes != self.held.wakes;
            if others {
                self.subscription.resubscribe(&held.wakes);
            }
            let digest = self.held.digest;
            self.held = match held.digest {
                // There is nothing to say of it, so the client has what it had.
                0 => Arc::new(Held {
                    digest,
                    attached: held.attached.clone(),
                    wakes: held.wakes.clone(),
                }),
                _ => Arc::clone(held),
            };
            if self.held.digest != digest {
                self.sending.clone_from(message);
            }
            // What was committed before the others were subscribed to was not told of, and perhaps not read.
            if !others || self.shared.hub.commit_count() == commits {
                self.due = false;
                return Ok(None);
            }
        }
    }

    /// What there is to say, as it was after the commits that woke the stream or later.
    async fn outcome(&self) -> Result<Arc<Outcome>, Failure> {
        let key = Key::Profile(Arc::clone(&self.question), self.held.attached.clone());
        let seen = self.subscription.newest_commit();
        loop {
            match self.shared.hot.find(key.clone(), seen) {
                Found::Kept(Value::Profile(outcome)) => {
                    self.shared.metrics.answer(AnswerFrom::Hot);
                    return Ok(outcome);
                }
                Found::Kept(_) => {}
                Found::Reading(mut reading) => {
                    // That it failed is for the one who reads.
                    reading.wait_for(Option::is_some).await.ok();
                }
                Found::Missing(claim) => {
                    let reader =
                        Reader::Stream { turn: self.turn.clone(), first: self.held.digest == 0 };
                    let question = Arc::clone(&self.question);
                    let attached = self.held.attached.clone();
                    let read = move |shared: &Shared, snapshot: &store::Snapshot, seen: Seen| {
                        let outcome =
                            read::outcome(snapshot, &question, &attached, &shared.answers)?;
                        let outcome = Arc::new(outcome.counted(shared));
                        claim.done(Value::Profile(Arc::clone(&outcome)), seen);
                        Ok(outcome)
                    };
                    let outcome = self.shared.read(&reader, read).await?;
                    self.shared.metrics.answer(AnswerFrom::Store);
                    return Ok(outcome);
                }
            }
        }
    }
}

/// The cluster that is asked about.
const LOCAL: ClusterId = ClusterId::LOCAL;
