//! Whose turn it is: to read, to decode, and to hold something large.
//!
//! *Invariant:* of what any API server says, a text larger than `SMALL_BYTES_MAX` is in memory only for who holds a
//! [`Place`], from before it is read until what it says is committed.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::limits::{LARGE_MAX, LARGE_WAIT_MAX, READING_MAX};

/// What the watches of one API server share with each other, and some of it with those of others.
#[derive(Clone, Debug)]
pub struct Turns {
    /// Whoever has it may take what has arrived, and holds it until that is handed on. `None`: always.
    reading: Option<Arc<Semaphore>>,
    /// Whoever has it decodes. `None`: always.
    decoding: Option<Arc<Semaphore>>,
    large: Arc<Semaphore>,
}

impl Default for Turns {
    /// For the cluster that comes first: it waits for nobody, except to hold something large.
    fn default() -> Turns {
        Turns { reading: None, decoding: None, large: Arc::new(Semaphore::new(LARGE_MAX)) }
    }
}

impl Turns {
    /// For clusters that must leave time and memory to others: all of them decode one at a time.
    pub fn shared() -> Turns {
        Turns { decoding: Some(Arc::new(Semaphore::new(1))), ..Turns::default() }
    }

    /// For one of those: few of its watches read at the same time.
    pub fn of_one(&self) -> Turns {
        Turns { reading: Some(Arc::new(Semaphore::new(READING_MAX))), ..self.clone() }
    }

    /// Waits until it may read.
    pub(super) async fn to_read(&self) -> Option<OwnedSemaphorePermit> {
        turn(self.reading.as_ref()).await
    }

    /// Waits until it may decode.
    pub(super) async fn to_decode(&self) -> Option<OwnedSemaphorePermit> {
        turn(self.decoding.as_ref()).await
    }

    /// Waits until it may hold something large.
    pub(super) async fn to_hold(&self) -> Place {
        let permit = turn(Some(&self.large)).await.map(Arc::new);
        Place { until: Instant::now() + LARGE_WAIT_MAX, _permit: permit }
    }
}

async fn turn(turns: Option<&Arc<Semaphore>>) -> Option<OwnedSemaphorePermit> {
    // It is never closed.
    Arc::clone(turns?).acquire_owned().await.ok()
}

/// Room for something large. Who comes next gets it once all clones of this are gone.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// By then it must have arrived.
    pub(super) until: Instant,
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}
