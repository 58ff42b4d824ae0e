//! Who is woken when, and by what.

use super::*;
use futures::FutureExt as _;

fn changed(revision: u64) -> Woken {
    Woken::Changed(Revision(revision))
}

fn commit(revision: u64, touched: &[u64]) -> Commit {
    let touched = touched.iter().map(|key| WakeKey(*key)).collect();
    Commit { revision: Revision(revision), touched, ..Commit::default() }
}

#[test]
fn a_commit_between_subscribing_and_waiting_is_not_lost() {
    let hub = Arc::new(Hub::new());
    let web = hub.subscribe(&[WakeKey(1), WakeKey(9)]);
    let api = hub.subscribe(&[WakeKey(2)]);
    hub.advance(&commit(5, &[1, 3]));
    hub.advance(&commit(6, &[9]));
    assert_eq!(web.woken().now_or_never(), Some(changed(5)), "the first of two");
    assert_eq!(web.woken().now_or_never(), None, "both were told at once");
    assert_eq!(api.woken().now_or_never(), None);
    hub.advance(&commit(7, &[9]));
    assert_eq!(web.woken().now_or_never(), Some(changed(7)));
}

#[test]
fn a_wait_that_is_given_up_loses_nothing() {
    let hub = Arc::new(Hub::new());
    let web = hub.subscribe(&[WakeKey(1)]);
    let mut wait = Box::pin(web.woken());
    assert_eq!((&mut wait).now_or_never(), None);
    hub.advance(&commit(1, &[1]));
    drop(wait);
    assert_eq!(web.woken().now_or_never(), Some(changed(1)));
}

#[test]
fn the_last_subscription_takes_its_slots_away() {
    let hub = Arc::new(Hub::new());
    let (one, two) = (hub.subscribe(&[WakeKey(1)]), hub.subscribe(&[WakeKey(1), WakeKey(1)]));
    assert_eq!((hub.stream_count(), hub.slots.lock().len()), (2, 2));
    drop(one);
    assert_eq!((hub.stream_count(), hub.slots.lock().len()), (1, 1));
    drop(two);
    assert_eq!((hub.stream_count(), hub.slots.lock().len()), (0, 0));
    assert_eq!(hub.settled(Revision(0)).now_or_never(), Some(()));
}

#[test]
fn all_can_be_told_to_look_again() {
    let hub = Arc::new(Hub::new());
    let streams = [hub.subscribe(&[WakeKey(1)]), hub.subscribe(&[WakeKey(2), WakeKey(3)])];
    hub.look_again(Revision(7), Revision(9));
    for (stream, last) in streams.iter().zip([vec![Some(1)], vec![Some(1), Some(1)]]) {
        assert_eq!(stream.woken().now_or_never(), Some(changed(7)));
        assert_eq!(
            stream.keys.iter().map(|key| stream.last_commit_of(*key)).collect::<Vec<_>>(),
            last
        );
    }
}

#[test]
fn settled_waits_for_the_revision_and_for_each_stream() {
    let hub = Arc::new(Hub::new());
    let web = hub.subscribe(&[WakeKey(1)]);
    let mut settled = Box::pin(hub.settled(Revision(3)));
    assert_eq!((&mut settled).now_or_never(), None, "not there yet");
    hub.advance(&commit(3, &[1]));
    assert_eq!((&mut settled).now_or_never(), None, "the stream has not looked");
    assert_eq!(web.woken().now_or_never(), Some(changed(3)));
    assert_eq!((&mut settled).now_or_never(), None, "the stream is looking");
    assert_eq!(web.woken().now_or_never(), None);
    assert_eq!((&mut settled).now_or_never(), Some(()));
    hub.advance(&commit(4, &[2]));
    assert_eq!(hub.settled(Revision(4)).now_or_never(), Some(()), "not this stream's");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_quiet_does_not_wait_for_a_busy_one() {
    let hub = Arc::new(Hub::paced(Duration::from_secs(10)));
    let (busy, calm) = (hub.subscribe(&[WakeKey(1)]), hub.subscribe(&[WakeKey(2)]));
    let running = tokio::spawn({
        let hub = Arc::clone(&hub);
        async move { hub.run(Duration::from_secs(3_600)).await }
    });
    for revision in 1..10_000 {
        hub.advance(&commit(revision, &[1]));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Its next time is seconds away. The other one is told at once, and then within its own first window.
    for revision in [10_000, 10_001] {
        hub.advance(&commit(revision, &[2]));
        let told = tokio::time::timeout(Duration::from_millis(20), calm.woken()).await;
        assert_eq!(told, Ok(changed(revision)));
    }
    drop(busy);
    running.abort();
}
