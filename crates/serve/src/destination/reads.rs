//! Who reads the store next. There are a few places; a client that opens thousands of streams at once waits for its own,
//! and what thousands of clients ask at first leaves a place for what has changed for the others.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Reads of one connection that may wait for a place. The next ones wait for these, so that connections take turns.
const CONNECTION_MAX: usize = 2;

/// The places.
pub(super) struct Reads {
    all: Arc<Semaphore>,
    /// Those of them that first answers may take.
    first: Arc<Semaphore>,
}

/// A connection, as far as reading is concerned.
#[derive(Clone, Debug)]
pub struct Turn(Arc<Semaphore>);

impl Default for Turn {
    fn default() -> Turn {
        Turn(Arc::new(Semaphore::new(CONNECTION_MAX)))
    }
}

/// For whom something is read.
#[derive(Clone, Debug)]
pub(super) enum Reader {
    /// The server itself, or a request before it is a stream: little is read.
    Server,
    /// A stream of this connection.
    Stream {
        /// The connection's.
        turn: Turn,
        /// It has been told nothing yet.
        first: bool,
    },
}

/// A place, for as long as it is kept.
pub(super) struct Place {
    _permits: [Option<OwnedSemaphorePermit>; 3],
}

impl Reads {
    pub(super) fn new(places: usize) -> Reads {
        Reads {
            all: Arc::new(Semaphore::new(places)),
            first: Arc::new(Semaphore::new(places.saturating_sub(1).max(1))),
        }
    }

    /// Waits for a place; who came first has the next.
    pub(super) async fn place(&self, reader: &Reader) -> Place {
        // The semaphores are never closed; if they were, reading without a permit would be right.
        let wait =
            async |semaphore: &Arc<Semaphore>| Arc::clone(semaphore).acquire_owned().await.ok();
        let (turn, first) = match reader {
            Reader::Server => (None, None),
            Reader::Stream { turn, first } => {
                let turn = wait(&turn.0).await;
                (turn, if *first { wait(&self.first).await } else { None })
            }
        };
        Place { _permits: [turn, first, wait(&self.all).await] }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn stream(turn: &Turn, first: bool) -> Reader {
        Reader::Stream { turn: turn.clone(), first }
    }

    #[test]
    fn first_answers_leave_a_place_for_what_has_changed() {
        let reads = Reads::new(3);
        let taken: Vec<_> = (0..2)
            .map(|_| reads.place(&stream(&Turn::default(), true)).now_or_never().unwrap())
            .collect();
        let calm = Turn::default();
        assert!(reads.place(&stream(&calm, true)).now_or_never().is_none());
        let change = reads.place(&stream(&calm, false)).now_or_never();
        assert!(change.is_some());
        assert!(reads.place(&Reader::Server).now_or_never().is_none(), "all are taken");
        drop((taken, change));
        assert!(reads.place(&stream(&calm, true)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_connection_with_many_streams_lets_others_by() {
        let reads = Arc::new(Reads::new(1));
        let place = reads.place(&Reader::Server).await;
        let (crowd, calm) = (Turn::default(), Turn::default());
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let mut readers = Vec::new();
        for (turn, name, count) in [(&crowd, "crowd", 20), (&calm, "calm", 1)] {
            for _ in 0..count {
                let (reads, order, reader) =
                    (Arc::clone(&reads), Arc::clone(&order), stream(turn, false));
                readers.push(tokio::spawn(async move {
                    let _place = reads.place(&reader).await;
                    order.lock().push(name);
                }));
            }
        }
        tokio::task::yield_now().await;
        drop(place);
        for reader in readers {
            reader.await.unwrap();
        }
        let calm_at = order.lock().iter().position(|name| *name == "calm").unwrap();
        assert!(calm_at <= CONNECTION_MAX, "it was the {calm_at}th");
    }
}
