//! The hot set of streams: what they ask the store for again and again, as long as its budget lasts. The first who
//! misses something reads it; whoever else wants it meanwhile waits, and is given the same.
//!
//! What may change is kept with the number of commits that its reader had seen. Whoever was woken by a later commit
//! finds it too old, so a reader that was overtaken does no harm.

use std::collections::BTreeMap;
use std::sync::Arc;

use lru::LruCache;
use model::{Revision, ServiceName};
use parking_lot::Mutex;
use store::Presence;
use tokio::sync::watch;

use super::cursor::{Cursor, Step};
use super::delta::Position;
use super::members::{Asked, Members};
use super::profile::{Attached, Outcome, Question};

/// What an entry takes besides what it is about, with its key.
const ENTRY_BYTES: usize = 512;

/// What one of several members takes, with its name, about.
const MEMBER_BYTES: usize = 256;

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// The Service, and when it last changed.
    Head(ServiceName),
    /// Whose endpoints answer.
    Members(Asked),
    /// The zone of a node of the local cluster.
    Zone(String),
    /// What to say to a client that has been told all that a cursor says, and is to know a position.
    Step(Arc<Cursor>, Position),
    /// What to say of what a GetProfile asks for, to a stream that is attached to this.
    Profile(Arc<Question>, Attached),
}

/// What is known of a Service as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The Service, if it is there.
    pub(super) object: Arc<Presence>,
    /// The last change of anything that its answers depend on.
    pub(super) changed: Revision,
    /// How many targets its slices name.
    pub(super) targets: u64,
}

/// An answer to a [`Key`].
#[derive(Clone, Debug)]
pub(super) enum Value {
    Head(Head),
    Members(Arc<Members>),
    Zone(Option<Arc<str>>),
    Step(Arc<Step>),
    Profile(Arc<Outcome>),
}

impl Value {
    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Value::Head(_) | Value::Zone(_) => 0,
                Value::Members(members) => members.list.len() * MEMBER_BYTES,
                Value::Step(step) => step.bytes(),
                Value::Profile(outcome) => outcome.bytes(),
            }
    }
}

/// Commits that a reader had seen before it read, at least.
pub(super) type Seen = u64;

/// What is known at the moment.
pub(super) enum Found {
    /// It is there.
    Kept(Value),
    /// Somebody reads it.
    Reading(Reading),
    /// Nobody reads it, so whoever asked does.
    Missing(Claim),
}

/// Gives the value once it has been read, or nothing if that failed.
pub(super) type Reading = watch::Receiver<Option<Value>>;

/// The hot set.
pub(super) struct Hot {
    state: Mutex<State>,
}

struct State {
    kept: LruCache<Key, Kept>,
    /// Bytes that those kept take, about.
    bytes: usize,
    bytes_max: usize,
    /// No more than streams wait for.
    reading: BTreeMap<Key, Reading>,
}

struct Kept {
    value: Value,
    seen: Seen,
}

impl Hot {
    pub(super) fn new(bytes_max: usize) -> Hot {
        let state =
            State { kept: LruCache::unbounded(), bytes: 0, bytes_max, reading: BTreeMap::new() };
        Hot { state: Mutex::new(state) }
    }

    /// Bytes that what is kept takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// What is kept, if its reader had seen so many commits.
    pub(super) fn kept(&self, key: &Key, seen: Seen) -> Option<Value> {
        self.state.lock().kept(key, seen)
    }

    /// What is kept; or else who reads it.
    pub(super) fn find(self: &Arc<Hot>, key: Key, seen: Seen) -> Found {
        let mut state = self.state.lock();
        if let Some(value) = state.kept(&key, seen) {
            return Found::Kept(value);
        }
        if let Some(reading) = state.reading.get(&key) {
            return Found::Reading(reading.clone());
        }
        let (read, reading) = watch::channel(None);
        state.reading.insert(key.clone(), reading);
        Found::Missing(Claim { hot: Arc::clone(self), key, read })
    }

    /// Keeps what a reader that had seen so many commits has read, unless a later one has been here. What is larger
    /// than the budget is not kept.
    pub(super) fn keep(&self, key: Key, value: Value, seen: Seen) {
        let bytes = value.bytes();
        let mut state = self.state.lock();
        let overtaken = state.kept.peek(&key).is_some_and(|kept| kept.seen > seen);
        if overtaken || bytes > state.bytes_max {
            return;
        }
        state.bytes += bytes;
        if let Some((_, old)) = state.kept.push(key, Kept { value, seen }) {
            state.bytes -= old.value.bytes();
        }
        while state.bytes > state.bytes_max {
            let Some((_, old)) = state.kept.pop_lru() else { break };
            state.bytes -= old.value.bytes();
        }
    }
}

impl State {
    fn kept(&mut self, key: &Key, seen: Seen) -> Option<Value> {
        self.kept.get(key).filter(|kept| kept.seen >= seen).map(|kept| kept.value.clone())
    }
}

/// Whoever has it reads what it is for. When it is gone, somebody else may.
pub(super) struct Claim {
    hot: Arc<Hot>,
    key: Key,
    read: watch::Sender<Option<Value>>,
}

impl Claim {
    pub(super) fn is_for(&self, key: &Key) -> bool {
        self.key == *key
    }

    /// Gives what was read to those who wait, and keeps it.
    pub(super) fn done(self, value: Value, seen: Seen) {
        self.hot.keep(self.key.clone(), value.clone(), seen);
        self.read.send_replace(Some(value));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.hot.state.lock().reading.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Key {
        Key::Zone(name.to_owned())
    }

    fn text(found: Option<Value>) -> Option<String> {
        match found? {
            Value::Zone(zone) => zone.map(|zone| zone.to_string()),
            other => panic!("{other:?}"),
        }
    }

    fn value(text: &str) -> Value {
        Value::Zone(Some(text.into()))
    }

    #[test]
    fn a_reader_that_was_overtaken_leaves_nothing_behind() {
        let hot = Hot::new(1 << 20);
        hot.keep(zone("n"), value("new"), 7);
        hot.keep(zone("n"), value("old"), 6);
        assert_eq!(text(hot.kept(&zone("n"), 7)), Some("new".to_owned()));
        assert_eq!(text(hot.kept(&zone("n"), 8)), None, "whoever was woken by commit 8 reads it");
        hot.keep(zone("n"), value("newer"), 8);
        assert_eq!(text(hot.kept(&zone("n"), 8)), Some("newer".to_owned()));
    }

    #[tokio::test]
    async fn one_reads_and_all_who_wait_are_given_the_same() {
        // Too little for anything to be kept.
        let hot = Arc::new(Hot::new(1));
        let Found::Missing(claim) = hot.find(zone("n"), 0) else { panic!("it is there") };
        let wait = |hot: &Arc<Hot>| match hot.find(zone("n"), 0) {
            Found::Reading(reading) => reading,
            _ => panic!("nobody reads it"),
        };
        let (mut one, mut two) = (wait(&hot), wait(&hot));
        claim.done(value("z"), 0);
        for reading in [&mut one, &mut two] {
            let read = reading.wait_for(Option::is_some).await.unwrap().clone();
            assert_eq!(text(read), Some("z".to_owned()));
        }
        // Nothing was kept; and if a reader fails, the next one reads.
        let Found::Missing(claim) = hot.find(zone("n"), 0) else { panic!("it was kept") };
        let mut three = wait(&hot);
        drop(claim);
        assert!(three.wait_for(Option::is_some).await.is_err());
        assert!(matches!(hot.find(zone("n"), 0), Found::Missing(_)));
        assert!(hot.state.lock().reading.is_empty());
    }

    #[test]
    fn the_budget_is_kept() {
        let hot = Hot::new(10 * ENTRY_BYTES);
        for number in 0..100 {
            hot.keep(zone(&number.to_string()), value("z"), 0);
            hot.keep(zone(&number.to_string()), value("y"), 0);
            let state = hot.state.lock();
            assert!(state.bytes <= 10 * ENTRY_BYTES);
            assert_eq!(state.bytes, state.kept.len() * ENTRY_BYTES);
        }
        assert!(hot.kept(&zone("99"), 0).is_some() && hot.kept(&zone("1"), 0).is_none());
    }
}
