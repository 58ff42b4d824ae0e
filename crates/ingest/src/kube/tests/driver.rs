//! Histories of an API server, and what is handed on.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use kube::{Client, Config};
use model::{Change, Kind, ResourceVersion};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::server::{Answer, Server, breaks, says, stays};
use super::{source, words};
use crate::kube::limits::{
    DELIVERY_CHANGES_MAX, LARGE_MAX, LINE_BYTES_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_TAKEN_MAX,
};
use crate::kube::{State, Status, Turns, Watch, watch};

const INITIAL: &str = "sendInitialEvents=true";
const PROBE: &str = "limit=1 ";
const PAGE: &str = "limit=500 ";

fn event(kind: &str, name: &str, version: u64) -> String {
    format!(
        r#"{{"type":"{kind}","object":{{"metadata":{{"namespace":"n","name":"{name}","resourceVersion":"{version}"}}}}}}"#
    ) + "\n"
}

fn initial_end(version: u64) -> String {
    format!(
        r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#
    ) + "\n"
}

fn page(version: u64, token: &str, names: &[&str]) -> String {
    let item = |name: &&str| {
        format!(r#"{{"metadata":{{"namespace":"n","name":"{name}","resourceVersion":"1"}}}}"#)
    };
    let items = names.iter().map(item).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":[{items}]}}"#
    )
}

fn status(code: u16, message: &str) -> String {
    format!(r#"{{"kind":"Status","status":"Failure","code":{code},"message":"{message}"}}"#)
}

/// Runs a watch until it has handed on so many deliveries, which and its status are then compared.
async fn check(
    kind: Kind,
    resume: Option<&str>,
    answers: Vec<Answer>,
    deliveries: usize,
    expected: Expect,
) {
    let server = Server::start(answers).await;
    let mut config = Config::new(server.url.parse().unwrap());
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let (to, mut from) = mpsc::channel(4);
    let state = Arc::new(Status::default());
    let resume = resume.map(|version| ResourceVersion(version.to_owned()));
    let namespace = (kind == Kind::Secret).then(|| "mesh".to_owned());
    let dispensable = kind == Kind::ReplicaSet;
    let what =
        Watch { source: source(kind), namespace, resume, dispensable, turns: Turns::default() };
    let task = tokio::spawn(watch(client, what, to, state.clone()));
    let mut out = String::new();
    for _ in 0..deliveries {
        let delivery = timeout(Duration::from_secs(20), from.recv()).await;
        let delivery = delivery.unwrap_or_else(|_| panic!("after {out:?}, {state:?}")).unwrap();
        out += &format!("{}\n", words(&delivery.changes));
    }
    // The last delivery may be seen before the last request is made.
    let settled =
        |state: &Status| matches!(state.of(source(kind)).state, State::Live | State::Absent);
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if settled(&state) && server.is_done() {
            break;
        }
    }
    let now = state.of(source(kind));
    out += &format!(
        "{:?}, {} listings, {} restarts, {} rejects, {}\n",
        now.state,
        now.listings,
        now.restarts,
        now.rejects,
        now.last_error.as_deref().unwrap_or("no error")
    );
    drop(from);
    timeout(Duration::from_secs(5), task).await.expect("a watch without a reader ends").unwrap();
    server.assert_done();
    expected.assert_eq(&out);
}

#[tokio::test]
async fn a_streaming_list_goes_on_as_a_watch() {
    let first = event("ADDED", "a", 3)
        + &event("ADDED", "b", 2)
        + &initial_end(5)
        + &event("DELETED", "a", 6);
    let answers = vec![
        says(INITIAL, 200, first),
        says(PROBE, 200, page(7, "", &[])),
        stays("resourceVersion=6 ", event("ADDED", "c", 7) + &event("ADDED", "d", 8)),
    ];
    check(
        Kind::Service,
        None,
        answers,
        2,
        expect![[r#"
        begin, put n/a@3, put n/b@2, end@5, delete n/a, checkpoint@6
        put n/c@7, put n/d@8, checkpoint@8
        Live, 1 listings, 1 restarts, 0 rejects, no error
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_committed_version_is_gone_on_from() {
    let answers = vec![
        says(PROBE, 200, page(17, "", &["x"])),
        stays("resourceVersion=17 ", event("MODIFIED", "a", 18)),
    ];
    check(
        Kind::Pod,
        Some("17"),
        answers,
        1,
        expect![[r#"
        put n/a@18, checkpoint@18
        Live, 0 listings, 0 restarts, 0 rejects, no error
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_version_of_the_past_or_the_future_is_listed_again() {
    let gone = format!(r#"{{"type":"ERROR","object":{}}}"#, status(410, "too old")) + "\n";
    let answers = vec![
        says(PROBE, 200, page(99, "", &[])),
        says("resourceVersion=17 ", 200, gone),
        stays(INITIAL, event("ADDED", "a", 50) + &initial_end(99)),
    ];
    check(
        Kind::Pod,
        Some("17"),
        answers,
        1,
        expect![[r#"
        begin, put n/a@50, end@99
        Live, 1 listings, 1 restarts, 0 rejects, the watch can't go on from there: too old
    "#]],
    )
    .await;
    let answers = vec![
        says(PROBE, 200, page(99, "", &[])),
        says("resourceVersion=17 ", 410, status(410, "too old")),
        stays(INITIAL, initial_end(99)),
    ];
    check(
        Kind::Pod,
        Some("17"),
        answers,
        1,
        expect![[r#"
        begin, end@99
        Live, 1 listings, 1 restarts, 0 rejects, the watch can't go on from there: too old
    "#]],
    )
    .await;
    let answers = vec![
        says(PROBE, 200, page(99, "", &[])),
        says("resourceVersion=x ", 400, status(400, "resourceVersion: Invalid value")),
        stays(INITIAL, initial_end(99)),
    ];
    check(Kind::Pod, Some("x"), answers, 1, expect![[r#"
        begin, end@99
        Live, 1 listings, 1 restarts, 0 rejects, the API server doesn't do that: resourceVersion: Invalid value
    "#]]).await;
    let answers = vec![says(PROBE, 200, page(16, "", &[])), stays(INITIAL, initial_end(16))];
    check(Kind::Pod, Some("17"), answers, 1, expect![[r#"
        begin, end@16
        Live, 1 listings, 1 restarts, 0 rejects, the watch can't go on from there: the API server is at version 16, before ours of 17: it was restored
    "#]]).await;
}

#[tokio::test]
async fn without_streaming_lists_there_are_pages() {
    let answers = vec![
        says(INITIAL, 422, status(422, "sendInitialEvents is forbidden")),
        says(PAGE, 200, page(5, "t1", &["a", "b"])),
        says("limit=500&continue=t1 ", 200, page(5, "", &["c"])),
        says(PROBE, 200, page(5, "", &[])),
        stays("resourceVersion=5 ", event("ADDED", "d", 6)),
    ];
    check(
        Kind::Job,
        None,
        answers,
        2,
        expect![[r#"
        begin, put n/a@1, put n/b@1, put n/c@1, end@5
        put n/d@6, checkpoint@6
        Live, 1 listings, 0 restarts, 0 rejects, no error
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_interrupted_listing_begins_again_and_is_never_ended() {
    let many: Vec<_> = (0..DELIVERY_CHANGES_MAX).map(|i| format!("o{i}")).collect();
    let first: String = many.iter().map(|name| event("ADDED", name, 3)).collect();
    let answers =
        vec![breaks(INITIAL, first), stays(INITIAL, event("ADDED", "b", 4) + &initial_end(5))];
    check(Kind::Service, None, answers, 2, expect![[r#"
        begin, …, put n/o126@3 (128 changes)
        begin, put n/b@4, end@5
        Live, 2 listings, 1 restarts, 0 rejects, the connection broke: ServiceError: error reading a body from connection: end of file before message length reached
    "#]]).await;
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let answers = vec![
        says(INITIAL, 400, status(400, "what?")),
        says(PAGE, 200, page(5, "t1", &many)),
        says("continue=t1", 410, status(410, "The provided continue parameter is too old")),
        says(PAGE, 200, page(6, "", &["b"])),
        says(PROBE, 200, page(6, "", &[])),
        stays("resourceVersion=6 ", ""),
    ];
    check(Kind::Service, None, answers, 2, expect![[r#"
        begin, …, put n/o126@1 (128 changes)
        begin, put n/b@1, end@6
        Live, 2 listings, 1 restarts, 0 rejects, the watch can't go on from there: The provided continue parameter is too old
    "#]]).await;
}

#[tokio::test]
async fn a_refusal_is_asked_about_again() {
    let answers = vec![
        says(INITIAL, 403, status(403, "pods is forbidden")),
        says(INITIAL, 401, status(401, "Unauthorized")),
        says(INITIAL, 503, "<html>"),
        stays(INITIAL, initial_end(5)),
    ];
    check(
        Kind::Pod,
        None,
        answers,
        1,
        expect![[r#"
        begin, end@5
        Live, 1 listings, 3 restarts, 0 rejects, the API server failed (503) to watch pods: <html>
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_answers_can_do_without_is_not_waited_for() {
    let answers = vec![
        says(INITIAL, 403, status(403, "replicasets is forbidden")),
        says(INITIAL, 403, status(403, "replicasets is forbidden")),
        stays(INITIAL, event("ADDED", "a", 3) + &initial_end(5)),
    ];
    check(Kind::ReplicaSet, None, answers, 3, expect![[r#"
        begin, end@
        checkpoint@
        begin, put n/a@3, end@5
        Live, 1 listings, 2 restarts, 0 rejects, the API server doesn't allow us (403) to watch replicasets: replicasets is forbidden
    "#]]).await;
}

#[tokio::test]
async fn a_kind_that_is_not_there_has_no_objects() {
    let answers = vec![says(INITIAL, 404, "404 page not found")];
    check(
        Kind::Server,
        None,
        answers,
        1,
        expect![[r#"
        begin, end@
        Absent, 0 listings, 0 restarts, 0 rejects, no error
    "#]],
    )
    .await;
    let answers = vec![says(INITIAL, 404, "404 page not found")];
    check(
        Kind::ServiceProfile,
        None,
        answers,
        1,
        expect![[r#"
        begin, end@
        Absent, 0 listings, 0 restarts, 0 rejects, no error
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_kind_that_was_there_is_looked_at_twice() {
    let answers =
        vec![says(PROBE, 404, "404 page not found"), says(PROBE, 404, "404 page not found")];
    check(
        Kind::ExternalWorkload,
        Some("17"),
        answers,
        1,
        expect![[r#"
        begin, end@
        Absent, 0 listings, 0 restarts, 0 rejects, no error
    "#]],
    )
    .await;
}

#[tokio::test]
async fn bad_objects_stop_nothing() {
    let bad = r#"{"type":"ADDED","object":{"metadata":{"namespace":"n","name":"bad","resourceVersion":"4","labels":[]}}}"#;
    let first = event("ADDED", "a", 3) + bad + "\n" + &initial_end(5);
    let answers = vec![stays(INITIAL, first)];
    check(
        Kind::Service,
        None,
        answers,
        1,
        expect![[r#"
        begin, put n/a@3, keep n/bad, end@5
        Live, 1 listings, 0 restarts, 1 rejects, no error
    "#]],
    )
    .await;
}

/// An object in which there is a text of so many bytes.
fn long(name: &str, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"n","resourceVersion":"4","uid":"u","note":"{text}"}}}}"#
    )
}

#[tokio::test]
async fn an_object_that_is_too_long_is_known_by_name() {
    let event =
        |kind: &str, object: String| format!(r#"{{"type":"{kind}","object":{object}}}"#) + "\n";
    let said = event("ADDED", long("good", 2_000_000))
        + &event("ADDED", long("bad", LINE_BYTES_MAX))
        + &event("DELETED", long("worse", LINE_BYTES_MAX))
        + &initial_end(5)
        + &event("MODIFIED", long("bad", LINE_BYTES_MAX));
    let answers = vec![stays(INITIAL, said)];
    check(
        Kind::Service,
        None,
        answers,
        4,
        expect![[r#"
            begin, put n/good@4
            keep n/bad
            delete n/worse, end@5
            keep n/bad, checkpoint@4
            Live, 1 listings, 0 restarts, 2 rejects, no error
        "#]],
    )
    .await;
}

#[tokio::test]
async fn of_a_page_that_is_too_long_less_is_asked_for_and_at_last_only_the_metadata() {
    let too_long = format!(
        r#"{{"metadata":{{"resourceVersion":"5"}},"items":[{}]}}"#,
        long("bad", PAGE_BYTES_MAX)
    );
    let answers = vec![
        says(INITIAL, 400, status(400, "what?")),
        says(PAGE, 200, too_long.clone()),
        says("limit=62 ", 200, page(5, "t1", &["a"])),
        says("limit=124&continue=t1 ", 200, too_long.clone()),
        says("limit=15&continue=t1 ", 200, too_long.clone()),
        says("limit=1&continue=t1 ", 200, too_long),
        says("limit=1&continue=t1 ", 200, page(5, "t2", &["bad"])),
        says("limit=1&continue=t2 ", 200, page(5, "t3", &["b"])),
        says("limit=2&continue=t3 ", 200, page(5, "", &["c"])),
        says(PROBE, 200, page(5, "", &[])),
        stays("resourceVersion=5 ", ""),
    ];
    check(
        Kind::Service,
        None,
        answers,
        1,
        expect![[r#"
        begin, put n/a@1, keep n/bad, put n/b@1, put n/c@1, end@5
        Live, 1 listings, 0 restarts, 1 rejects, no error
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_api_server_that_makes_no_sense_is_left_and_tried_again() {
    let items = "0,".repeat(PAGE_ITEMS_TAKEN_MAX) + "0";
    let error = format!(
        r#"{{"type":"ERROR","object":{{"details":{{"causes":[{}]}}}}}}"#,
        "{},".repeat(50_000) + "{}"
    ) + "\n";
    let version = "9".repeat(100);
    let answers = vec![
        says(INITIAL, 500, "x".repeat(3_000_000)),
        says(INITIAL, 200, error),
        says(INITIAL, 200, initial_end(5).replace('5', &version)),
        says(INITIAL, 400, status(400, "what?")),
        says(PAGE, 200, page(5, "t1", &["a"])),
        says("continue=t1", 200, page(5, "t1", &["a"])),
        says(PAGE, 200, page(5, &"t".repeat(5_000), &["a"])),
        says(PAGE, 200, format!(r#"{{"metadata":{{"resourceVersion":"5"}},"items":[{items}]}}"#)),
        says(PAGE, 200, "\u{0}\u{1}nonsense"),
        says(PAGE, 200, page(5, "", &["a"])),
        says(PROBE, 200, page(5, "", &[])),
        stays("resourceVersion=5 ", ""),
    ];
    check(Kind::Service, None, answers, 1, expect![[r#"
        begin, put n/a@1, end@5
        Live, 4 listings, 7 restarts, 0 rejects, a list that can't be read: expected value at line 1 column 1
    "#]]).await;
}

#[tokio::test]
async fn a_large_object_waits_for_a_place_and_keeps_it_until_it_is_committed() {
    let large = format!(r#"{{"type":"ADDED","object":{}}}"#, long("b", 2_000_000)) + "\n";
    let answer = stays(INITIAL, event("ADDED", "a", 3) + &large + &initial_end(5));
    let server = Server::start([answer]).await;
    let mut config = Config::new(server.url.parse().unwrap());
    config.default_retry = false;
    let turns = Turns::shared();
    let mut places = Vec::new();
    for _ in 0..LARGE_MAX {
        places.push(turns.to_hold().await);
    }
    let what = Watch {
        source: source(Kind::Service),
        namespace: None,
        resume: None,
        dispensable: false,
        turns: turns.of_one(),
    };
    let (to, mut from) = mpsc::channel(4);
    let client = Client::try_from(config).unwrap();
    let _watching = tokio::spawn(watch(client, what, to, Arc::default()));
    let (mut said, mut held) = (Vec::new(), Vec::new());
    while let Ok(delivery) = timeout(Duration::from_secs(1), from.recv()).await {
        said.extend(delivery.unwrap().changes);
    }
    assert_eq!(words(&said), "begin, put n/a@3", "there is no place");
    places.pop();
    while !matches!(said.last(), Some(Change::End { .. })) {
        let mut delivery = timeout(Duration::from_secs(20), from.recv()).await.unwrap().unwrap();
        said.append(&mut delivery.changes);
        held.push(delivery);
    }
    assert_eq!(words(&said), "begin, put n/a@3, put n/b@4, end@5");
    let next = || timeout(Duration::from_millis(50), turns.to_hold());
    assert!(next().await.is_err(), "it isn't committed");
    drop(held);
    next().await.expect("it is");
}
