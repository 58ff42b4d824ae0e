//! A stream's look at what is to say next: in the hot set, or else in the store.

use std::sync::Arc;

use model::{ClusterId, ObjectName, Revision, ServiceName};
use resolve::{Authority, Bucket, View};
use store::{ServiceRows, Snapshot, WakeKey};

use super::cursor::{Cursor, Step};
use super::delta::{Position, lens};
use super::hot::{Claim, Found, Head, Hot, Key, Seen, Value};
use super::level::Levels;
use super::reads::{Reader, Turn};
use super::shared::{Failure, Shared};
use crate::metrics::AnswerFrom;

/// What a Get asks for, as long as it lasts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) service: ServiceName,
    pub(super) port: u16,
    pub(super) hostname: Option<String>,
    /// The client's node.
    pub(super) node: Option<String>,
    /// The number of the client's pod, if it says which it is.
    pub(super) client: Option<u32>,
}

impl Question {
    pub(super) fn new(authority: Authority, token: &str) -> Question {
        let caller = resolve::caller(token);
        Question {
            service: ServiceName { cluster: ClusterId::LOCAL, object: authority.service },
            port: authority.port,
            hostname: authority.instance,
            // What can't be a node's name isn't kept: a stream is to stay small.
            node: caller.node.filter(|node| ObjectName::new("", node).is_ok()),
            client: caller.pod.as_deref().map(resolve::client_number),
        }
    }

    /// Where a client is that was told all.
    pub(super) fn position(&self, head: &Head, zone: Option<&str>, levels: &Levels) -> Position {
        // A hostname has few endpoints, and they could all be in the parts of others.
        let bits = match self.hostname {
            None => levels.bits(&self.service, head.targets),
            Some(_) => 0,
        };
        let local = head.object.as_ref().is_some_and(|service| service.local_traffic);
        let view = View {
            service: self.service.clone(),
            port: self.port,
            hostname: self.hostname.clone(),
            zone: zone.map(str::to_owned),
            node: self.node.clone().filter(|_| local),
            bucket: self.client.and_then(|client| Bucket::of(client, bits)),
        };
        Position { view: Arc::new(view), revision: head.changed }
    }
}

/// A client that was told what its cursor says.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) question: Arc<Question>,
    pub(super) cursor: Arc<Cursor>,
    /// Nothing has changed for it from its cursor up to this revision.
    pub(super) unchanged_until: Revision,
    /// What it is to know of its Service.
    pub(super) service_seen: Seen,
    /// What it is to know of its node.
    pub(super) node_seen: Seen,
    /// Its connection's.
    pub(super) turn: Turn,
}

/// A Service as it is, and where that is for a client.
struct Now<'s> {
    rows: ServiceRows<'s>,
    head: Head,
    position: Position,
}

/// What was read, and where it is from. `None`: somebody else reads the rest.
type Read = Option<(Arc<Step>, AnswerFrom)>;

impl Shared {
    /// A Service, as it was after so many commits or later.
    pub(super) async fn head(
        self: &Arc<Shared>,
        service: &ServiceName,
        seen: Seen,
    ) -> Result<Head, Failure> {
        let key = Key::Head(service.clone());
        if let Some(Value::Head(head)) = self.hot.kept(&key, seen) {
            return Ok(head);
        }
        let service = service.clone();
        let read = move |shared: &Shared, snapshot: &Snapshot, seen: Seen| {
            let head = head_of(&snapshot.service(&service)?, snapshot)?;
            shared.hot.keep(key, Value::Head(head.clone()), seen);
            Ok(head)
        };
        self.read(&Reader::Server, read).await
    }

    /// What to say next. Reads nothing if somebody else has just read the same.
    pub(super) async fn look(self: &Arc<Shared>, look: &Look) -> Result<Arc<Step>, Failure> {
        loop {
            match look.find(&self.hot, &self.levels) {
                Found::Kept(Value::Step(step)) => return Ok(self.answered(step, AnswerFrom::Hot)),
                // A Service or a node is known now.
                Found::Kept(_) => {}
                Found::Reading(mut reading) => {
                    let read = reading.wait_for(Option::is_some).await;
                    if let Some(Value::Step(step)) = read.ok().and_then(|read| read.clone()) {
                        return Ok(self.answered(step, AnswerFrom::Shared));
                    }
                }
                Found::Missing(claim) => {
                    if let Some((step, from)) = self.read_step(look, claim).await? {
                        return Ok(self.answered(step, from));
                    }
                }
            }
        }
    }

    /// Reads what was missing first, and all that comes after it.
    async fn read_step(self: &Arc<Shared>, look: &Look, claim: Claim) -> Result<Read, Failure> {
        let first = look.cursor.is_new();
        let reader = Reader::Stream { turn: look.turn.clone(), first };
        let place = self.reads.place(&reader).await;
        let mut claim = Some(claim);
        // What has a hostname is looked for among all.
        let told = look.cursor.position(look.unchanged_until);
        if let Some(told) = told.filter(|told| told.view.hostname.is_none()) {
            let few =
                |snapshot: &Snapshot, seen| look.read_few(&told, self, snapshot, seen, &mut claim);
            if let Some(Some(read)) = self.read_here(few)? {
                return Ok(read);
            }
        }
        let Some(claim) = claim else { return Ok(None) };
        let look = look.clone();
        self.read_at(place, move |shared, snapshot, seen| look.read(shared, snapshot, seen, claim))
            .await
    }

    fn answered(&self, step: Arc<Step>, from: AnswerFrom) -> Arc<Step> {
        if !step.messages.is_empty() {
            self.metrics.answer(from);
        }
        step
    }
}

impl Look {
    /// What is kept; or else what is missing first.
    fn find(&self, hot: &Arc<Hot>, levels: &Levels) -> Found {
        let head = match hot.find(Key::Head(self.question.service.clone()), self.service_seen) {
            Found::Kept(Value::Head(head)) => head,
            found => return found,
        };
        let zone = match &self.question.node {
            None => None,
            Some(node) => match hot.find(Key::Zone(node.clone()), self.node_seen) {
                Found::Kept(Value::Zone(zone)) => zone,
                found => return found,
            },
        };
        let position = self.question.position(&head, zone.as_deref(), levels);
        if self.cursor.is_at(&position) {
            return Found::Kept(Value::Step(Arc::new(Step::none(&self.cursor))));
        }
        // A step says from where to where it goes, so it is never out of date.
        hot.find(Key::Step(Arc::clone(&self.cursor), position), 0)
    }

    /// Reads what was missing first, and all that comes after it.
    fn read(
        &self,
        shared: &Shared,
        snapshot: &Snapshot,
        seen: Seen,
        claim: Claim,
    ) -> Result<Read, Failure> {
        let rows = snapshot.service(&self.question.service)?;
        let now = self.now(shared, snapshot, seen, rows)?;
        self.read_to(now, shared, snapshot, seen, claim)
    }

    /// The same for a client that has been told that, if a few rows only are to be read. `None`: it isn't, and the claim is left.
    fn read_few(
        &self,
        told: &Position,
        shared: &Shared,
        snapshot: &Snapshot,
        seen: Seen,
        claim: &mut Option<Claim>,
    ) -> Result<Option<Read>, Failure> {
        let rows = snapshot.service(&self.question.service)?;
        if !rows.reads_few(told.revision)? {
            return Ok(None);
        }
        let now = self.now(shared, snapshot, seen, rows)?;
        let lens = |position| lens(position, &now.rows, &shared.answers);
        // Seen through another lens, all may look different.
        if lens(told)? != lens(&now.position)? {
            return Ok(None);
        }
        let read = |claim| self.read_to(now, shared, snapshot, seen, claim);
        claim.take().map(read).transpose()
    }

    /// Where a client that knows all is.
    fn now<'s>(
        &self,
        shared: &Shared,
        snapshot: &Snapshot,
        seen: Seen,
        rows: ServiceRows<'s>,
    ) -> Result<Now<'s>, Failure> {
        let head = head_of(&rows, snapshot)?;
        let key = Key::Head(self.question.service.clone());
        shared.hot.keep(key, Value::Head(head.clone()), seen);
        let zone = self.zone(shared, snapshot, seen)?;
        let position = self.question.position(&head, zone.as_deref(), &shared.levels);
        Ok(Now { rows, head, position })
    }

    fn read_to(
        &self,
        Now { rows, head, position }: Now<'_>,
        shared: &Shared,
        snapshot: &Snapshot,
        seen: Seen,
        claim: Claim,
    ) -> Result<Read, Failure> {
        if self.cursor.is_at(&position) {
            return Ok(Some((Arc::new(Step::none(&self.cursor)), AnswerFrom::Store)));
        }
        let key = Key::Step(Arc::clone(&self.cursor), position.clone());
        let claim = match claim.is_for(&key) {
            true => claim,
            false => {
                let found = shared.hot.find(key, 0);
                // Whoever waits for the Service or the node goes on now: not everyone is told this step.
                drop(claim);
                match found {
                    Found::Missing(claim) => claim,
                    Found::Kept(Value::Step(step)) => return Ok(Some((step, AnswerFrom::Hot))),
                    _ => return Ok(None),
                }
            }
        };
        // Who could be told a part is not told the first piece of all.
        let first_of_all = self.cursor.is_new() && self.question.hostname.is_none();
        let whole = position.view.bucket.is_none() && shared.answers.oversize.subset;
        let probed = first_of_all && whole && self.question.client.is_some();
        let expected = probed.then_some(head.targets);
        let (until, answers) = (self.unchanged_until, &shared.answers);
        let mut step = self.cursor.step(until, &position, &rows, answers, expected)?;
        if first_of_all {
            let bits = position.view.bucket.map_or(0, |bucket| bucket.bits);
            let service = &self.question.service;
            if step.again && shared.levels.overflowed(service, head.targets, step.added) {
                // Those who were told before have grown into it.
                shared.hub.look_again_at(WakeKey::service(service), snapshot.revision());
                if self.question.client.is_some() {
                    // It is asked for again, as a subset: in pieces, the first would make a proxy that has come back
                    // drop what it has of the others.
                    return Ok(None);
                }
            }
            shared.metrics.first_answer(bits > 0, step.again);
        }
        for message in &mut step.messages {
            shared.metrics.encoded(message.frame.len());
            message.frame = shared.afloat.count(std::mem::take(&mut message.frame));
        }
        let step = Arc::new(step);
        claim.done(Value::Step(Arc::clone(&step)), seen);
        Ok(Some((step, AnswerFrom::Store)))
    }

    fn zone(
        &self,
        shared: &Shared,
        snapshot: &Snapshot,
        seen: Seen,
    ) -> Result<Option<Arc<str>>, Failure> {
        let Some(node) = &self.question.node else { return Ok(None) };
        let zone: Option<Arc<str>> = snapshot.zone(ClusterId::LOCAL, node)?.map(Arc::from);
        shared.hot.keep(Key::Zone(node.clone()), Value::Zone(zone.clone()), seen);
        Ok(zone)
    }
}

/// What is known of a Service as a whole.
pub(super) fn head_of(rows: &ServiceRows<'_>, snapshot: &Snapshot) -> Result<Head, store::Error> {
    let object = rows.object(snapshot.revision())?.map(Arc::new);
    Ok(Head { object, changed: rows.last_change()?, targets: rows.targets()? })
}
