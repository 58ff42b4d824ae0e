//! What waits for the writer: the local cluster's deliveries, and those of each linked one behind a door of its own.
//!
//! *Invariant:* the local cluster comes first. Who delivers more than the writer takes waits at its own door, and nobody
//! else does.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use ingest::Delivery;
use ingest::batch::Batch;
use tokio::sync::mpsc;

/// Deliveries of one linked cluster that wait. Each is some hundred objects at most.
const WAITING_MAX: usize = 1;

/// Changes of linked clusters in one commit: what is local waits for a commit that is under way.
const LINKED_CHANGES_MAX: usize = 256;

/// Doors that wait to be opened.
const DOORS_WAITING_MAX: usize = 8;

/// Deliveries from all sides.
pub(super) struct Intake {
    local: mpsc::Receiver<Delivery>,
    /// Those that are to be opened.
    doors: mpsc::Receiver<mpsc::Receiver<Delivery>>,
    /// The next one's turn is first.
    linked: VecDeque<mpsc::Receiver<Delivery>>,
    /// One that the last commit had no room for.
    rest: Option<Delivery>,
}

/// Opens doors for linked clusters.
#[derive(Clone)]
pub(super) struct Doors(mpsc::Sender<mpsc::Receiver<Delivery>>);

impl Doors {
    /// A door of one's own. `None`: nobody takes deliveries any more.
    pub(super) async fn open(&self) -> Option<mpsc::Sender<Delivery>> {
        let (to, from) = mpsc::channel(WAITING_MAX);
        self.0.send(from).await.ok()?;
        Some(to)
    }
}

impl Intake {
    pub(super) fn new(local: mpsc::Receiver<Delivery>) -> (Intake, Doors) {
        let (open, doors) = mpsc::channel(DOORS_WAITING_MAX);
        (Intake { local, doors, linked: VecDeque::new(), rest: None }, Doors(open))
    }

    /// Waits for a delivery. `None`: there will be no local one any more. Loses nothing when it is dropped before it returns.
    pub(super) async fn next(&mut self) -> Option<Delivery> {
        match self.rest.take() {
            Some(rest) => Some(rest),
            None => poll_fn(|context| self.poll(context)).await,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Delivery>> {
        while let Poll::Ready(Some(door)) = self.doors.poll_recv(context) {
            self.linked.push_back(door);
        }
        if let Poll::Ready(delivery) = self.local.poll_recv(context) {
            return Poll::Ready(delivery);
        }
        for _ in 0..self.linked.len() {
            let Some(mut door) = self.linked.pop_front() else { break };
            match door.poll_recv(context) {
                Poll::Ready(Some(delivery)) => {
                    self.linked.push_back(door);
                    return Poll::Ready(Some(delivery));
                }
                Poll::Ready(None) => {}
                Poll::Pending => self.linked.push_back(door),
            }
        }
        Poll::Pending
    }

    /// What one commit takes of what waits: first one delivery of a linked cluster, so that a busy local one doesn't keep
    /// them all waiting; then what is local; then of the linked ones in turn as much as a commit may have.
    pub(super) fn batch(&mut self, first: Delivery) -> Batch {
        let Intake { local, linked, .. } = self;
        let mut linked_changes = 0;
        let mut next = || {
            if linked_changes == 0
                && let Some(delivery) = next_linked(linked)
            {
                linked_changes += delivery.changes.len();
                return Some(delivery);
            }
            if let Ok(delivery) = local.try_recv() {
                return Some(delivery);
            }
            let room = linked_changes < LINKED_CHANGES_MAX;
            let delivery = room.then(|| next_linked(linked)).flatten()?;
            linked_changes += delivery.changes.len();
            Some(delivery)
        };
        let (batch, rest) = Batch::collect(first, &mut next);
        self.rest = rest;
        batch
    }

    /// Drops all that waits.
    pub(super) fn clear(&mut self) {
        self.rest = None;
        self.linked.clear();
        while self.local.try_recv().is_ok() {}
        while self.doors.try_recv().is_ok() {}
    }
}

/// What waits at the first door at which anything does; that door is the last then.
fn next_linked(linked: &mut VecDeque<mpsc::Receiver<Delivery>>) -> Option<Delivery> {
    let place = (0..linked.len()).find(|place| !linked[*place].is_empty())?;
    linked.rotate_left(place);
    let mut door = linked.pop_front()?;
    let delivery = door.try_recv().ok();
    linked.push_back(door);
    delivery
}

#[cfg(test)]
mod tests {
    use model::{Change, ClusterId, Kind, Source};

    use super::*;

    fn delivery(cluster: u16, changes: usize) -> Delivery {
        let source = Source { cluster: ClusterId(cluster), kind: Kind::Pod };
        Delivery::new(vec![Change::Begin { source }; changes])
    }

    /// The clusters of a batch's changes, in their order, each once where it repeats.
    fn clusters(batch: Batch) -> Vec<u16> {
        let (changes, _) = batch.into_parts();
        let mut clusters: Vec<_> =
            changes.iter().filter_map(Change::source).map(|it| it.cluster.0).collect();
        clusters.dedup();
        clusters
    }

    async fn with_two_linked()
    -> (Intake, mpsc::Sender<Delivery>, mpsc::Sender<Delivery>, mpsc::Sender<Delivery>) {
        let (local, from) = mpsc::channel(8);
        let (mut intake, doors) = Intake::new(from);
        let (one, two) = (doors.open().await.unwrap(), doors.open().await.unwrap());
        local.send(delivery(0, 1)).await.unwrap();
        assert_eq!(intake.next().await.unwrap().changes.len(), 1);
        (intake, local, one, two)
    }

    #[tokio::test]
    async fn what_is_local_comes_first_and_others_in_turn() {
        let (mut intake, local, one, two) = with_two_linked().await;
        for to in [&one, &two] {
            to.send(delivery(if std::ptr::eq(to, &one) { 1 } else { 2 }, 10)).await.unwrap();
        }
        local.send(delivery(0, 1)).await.unwrap();
        let first = intake.next().await.unwrap();
        assert_eq!(first.changes.len(), 1, "the local one");
        local.send(delivery(0, 1)).await.unwrap();
        assert_eq!(clusters(intake.batch(first)), [0, 1, 0, 2]);
    }

    #[tokio::test]
    async fn linked_clusters_have_a_limit_in_each_commit_and_take_turns() {
        let (mut intake, _local, one, two) = with_two_linked().await;
        one.send(delivery(1, LINKED_CHANGES_MAX)).await.unwrap();
        two.send(delivery(2, 5)).await.unwrap();
        let first = intake.next().await.unwrap();
        assert_eq!(clusters(intake.batch(first)), [1, 2]);
        one.send(delivery(1, 5)).await.unwrap();
        two.send(delivery(2, LINKED_CHANGES_MAX)).await.unwrap();
        let first = delivery(0, 1);
        assert_eq!(clusters(intake.batch(first)), [0, 1, 2]);
        two.send(delivery(2, 5)).await.unwrap();
        drop(one);
        assert_eq!(intake.next().await.unwrap().changes.len(), 5);
    }

    #[tokio::test]
    async fn a_busy_local_cluster_leaves_each_commit_a_share_for_others() {
        let (mut intake, local, one, _two) = with_two_linked().await;
        one.send(delivery(1, 10)).await.unwrap();
        for _ in 0..8 {
            local.send(delivery(0, 1_000)).await.unwrap();
        }
        let first = intake.next().await.unwrap();
        assert_eq!(clusters(intake.batch(first)), [0, 1, 0]);
        assert!(intake.rest.is_some());
        intake.clear();
        assert!(intake.rest.is_none());
    }
}
