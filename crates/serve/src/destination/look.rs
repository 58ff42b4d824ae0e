//! A stream's look at what is to say next: in the hot set, or else in the store.

use std::sync::Arc;

use model::{ClusterId, Flow, ObjectName, Revision, ServiceName};
use resolve::{Authority, Bucket, View};
use store::{ServiceRows, Snapshot};

use super::cursor::{Cursor, Step};
use super::delta::{Position, ViewAt, lens};
use super::hot::{Claim, Found, Head, Hot, Key, Seen, Value};
use super::level::Levels;
use super::members::{Asked, Member, Members};
use super::reads::{Reader, Turn};
use super::shared::{Failure, Shared};
use crate::metrics::AnswerFrom;

/// What a Get asks for, as long as it lasts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) asked: Asked,
    pub(super) port: u16,
    pub(super) hostname: Option<String>,
    /// The client's node.
    pub(super) node: Option<String>,
    /// The number of the client's pod, if it says which it is.
    pub(super) client: Option<u32>,
}

impl Question {
    /// Its flow is that of the Service itself, until somebody has looked.
    pub(super) fn new(authority: Authority, token: &str) -> Question {
        let caller = resolve::caller(token);
        let service = ServiceName { cluster: ClusterId::LOCAL, object: authority.service };
        Question {
            asked: Asked { service, flow: Flow::Own },
            port: authority.port,
            hostname: authority.instance,
            // What can't be a node's name isn't kept: a stream is to stay small.
            node: caller.node.filter(|node| ObjectName::new("", node).is_ok()),
            client: caller.pod.as_deref().map(resolve::client_number),
        }
    }

    /// Where a client is that was told all.
    pub(super) fn position(
        &self,
        members: &[Member],
        heads: &[Head],
        zone: Option<&str>,
        levels: &Levels,
    ) -> Position {
        // A hostname has few endpoints, and they could all be in the parts of others.
        let bits = match self.hostname {
            None => levels.bits(&self.asked.service, targets(heads)),
            Some(_) => 0,
        };
        let federated = self.asked.flow == Flow::Federated;
        let view = |(member, head): (&Member, &Head)| {
            let service = head.object.service();
            // A name elsewhere has no endpoints; who asks for it alone is refused.
            if federated && service.is_some_and(|service| service.external_name) {
                return None;
            }
            let local = service.is_some_and(|service| service.local_traffic);
            let view = View {
                service: member.service.clone(),
                port: self.port,
                hostname: self.hostname.clone(),
                zone: zone.map(str::to_owned),
                node: self.node.clone().filter(|_| local && member.linked.is_none()),
                bucket: self.client.and_then(|client| Bucket::of(client, bits)),
                linked: member.linked.clone(),
                member: federated,
            };
            Some(ViewAt { view: Arc::new(view), revision: head.changed })
        };
        Position { views: members.iter().zip(heads).filter_map(view).collect() }
    }
}

/// How many targets there are in all.
fn targets(heads: &[Head]) -> u64 {
    heads.iter().map(|head| head.targets).sum()
}

/// A client that was told what its cursor says.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) question: Arc<Question>,
    pub(super) cursor: Arc<Cursor>,
    /// Nothing has changed for it from its cursor up to this revision.
    pub(super) unchanged_until: Revision,
    /// Whose endpoints it is told of.
    pub(super) members: Arc<Members>,
    /// What it is to know of each of them.
    pub(super) members_seen: Vec<Seen>,
    /// What it is to know of its node.
    pub(super) node_seen: Seen,
    /// Its connection's.
    pub(super) turn: Turn,
}

/// The Services as they are, and where that is for a client.
struct Now<'s> {
    rows: Vec<ServiceRows<'s>>,
    targets: u64,
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

    /// The Service itself answers: always, so all its streams share that.
    pub(super) fn own_member(&self, asked: &Asked) -> Arc<Members> {
        let key = Key::Members(asked.clone());
        if let Some(Value::Members(members)) = self.hot.kept(&key, 0) {
            return members;
        }
        let members = Arc::new(Members::own(&asked.service));
        self.hot.keep(key, Value::Members(Arc::clone(&members)), Seen::MAX);
        members
    }

    /// Whose endpoints answer, as it was after so many commits or later.
    pub(super) async fn members(
        self: &Arc<Shared>,
        asked: &Asked,
        seen: Seen,
    ) -> Result<Arc<Members>, Failure> {
        if asked.flow == Flow::Own {
            return Ok(self.own_member(asked));
        }
        let key = Key::Members(asked.clone());
        if let Some(Value::Members(members)) = self.hot.kept(&key, seen) {
            return Ok(members);
        }
        let asked = asked.clone();
        let read = move |shared: &Shared, snapshot: &Snapshot, seen: Seen| {
            let namespace = &shared.answers.settings.controller_namespace;
            let members = Members::read(&asked, snapshot, namespace, shared.endpoints())?;
            let members = Arc::new(members);
            shared.hot.keep(key, Value::Members(Arc::clone(&members)), seen);
            Ok(members)
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
        if let Some(told) =
            told.filter(|told| told.views.iter().all(|at| at.view.hostname.is_none()))
        {
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
        let mut heads = Vec::with_capacity(self.members.list.len());
        for (member, seen) in self.members.list.iter().zip(&self.members_seen) {
            match hot.find(Key::Head(member.service.clone()), *seen) {
                Found::Kept(Value::Head(head)) => heads.push(head),
                found => return found,
            }
        }
        let zone = match &self.question.node {
            None => None,
            Some(node) => match hot.find(Key::Zone(node.clone()), self.node_seen) {
                Found::Kept(Value::Zone(zone)) => zone,
                found => return found,
            },
        };
        let position = self.question.position(&self.members.list, &heads, zone.as_deref(), levels);
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
        let rows = self.members.list.iter().map(|member| snapshot.service(&member.service));
        let rows = rows.collect::<Result<_, _>>()?;
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
        let ([told], [member]) = (told.views.as_slice(), self.members.list.as_slice()) else {
            return Ok(None);
        };
        let rows = snapshot.service(&member.service)?;
        if told.view.service != member.service || !rows.reads_few(told.revision)? {
            return Ok(None);
        }
        let now = self.now(shared, snapshot, seen, vec![rows])?;
        let ([at], [rows]) = (now.position.views.as_slice(), now.rows.as_slice()) else {
            return Ok(None);
        };
        // Seen through another lens, all may look different.
        if lens(told, rows, &shared.answers)? != lens(at, rows, &shared.answers)? {
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
        rows: Vec<ServiceRows<'s>>,
    ) -> Result<Now<'s>, Failure> {
        let members = &self.members.list;
        let mut heads = Vec::with_capacity(members.len());
        for (member, rows) in members.iter().zip(&rows) {
            let head = head_of(rows, snapshot)?;
            let key = Key::Head(member.service.clone());
            shared.hot.keep(key, Value::Head(head.clone()), seen);
            heads.push(head);
        }
        let zone = self.zone(shared, snapshot, seen)?;
        let position = self.question.position(members, &heads, zone.as_deref(), &shared.levels);
        let viewed =
            |service: &ServiceName| position.views.iter().any(|at| at.view.service == *service);
        let rows = rows.into_iter().zip(members).filter(|(_, it)| viewed(&it.service));
        let rows = rows.map(|(rows, _)| rows).collect();
        Ok(Now { rows, targets: targets(&heads), position })
    }

    fn read_to(
        &self,
        Now { rows, targets, position }: Now<'_>,
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
        let bucket = position.views.first().and_then(|at| at.view.bucket);
        let whole = bucket.is_none() && shared.answers.oversize.subset;
        let probed = first_of_all && whole && self.question.client.is_some();
        let expected = probed.then_some(targets);
        let (until, answers) = (self.unchanged_until, &shared.answers);
        let mut step = self.cursor.step(until, &position, (rows, snapshot), answers, expected)?;
        if first_of_all {
            let bits = bucket.map_or(0, |bucket| bucket.bits);
            let service = &self.question.asked.service;
            if step.again && shared.levels.overflowed(service, targets, step.added) {
                // Those who were told before have grown into it.
                for key in &self.members.wakes {
                    shared.hub.look_again_at(*key, snapshot.revision());
                }
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
    let object = Arc::new(rows.object(snapshot.revision())?);
    Ok(Head { object, changed: rows.last_change()?, targets: rows.targets()? })
}
