//! Lines in, changes out.

use expect_test::{Expect, expect};
use model::{Kind, ResourceVersion};

use super::{source, words};
use crate::kube::limits::{DELIVERY_CHANGES_MAX, DELIVERY_ENDPOINTS_MAX};
use crate::kube::session::{Quality, Session};

const ADDED: &str = r#"{"type":"ADDED","object":{"kind":"Service","metadata":{"namespace":"n","name":"a","resourceVersion":"7"}}}"#;
const MODIFIED: &str = r#"{"type":"MODIFIED","object":{"metadata":{"namespace":"n","name":"b","resourceVersion":"8"}}}"#;
const DELETED: &str = r#"{"type":"DELETED","object":{"metadata":{"namespace":"n","name":"a","resourceVersion":"9"},"spec":7}}"#;
const BAD: &str = r#"{"type":"MODIFIED","object":{"metadata":{"namespace":"n","name":"b","resourceVersion":"10"},"spec":7}}"#;
const ODD: &str = r#"{"type":"MODIFIED","object":{"metadata":{"namespace":"n","name":"c","resourceVersion":"8","annotations":{"config.linkerd.io/opaque-ports":"80,none"}}}}"#;
const NAMELESS: &str = r#"{"type":"DELETED","object":{"metadata":{"resourceVersion":"11"}}}"#;
const BOOKMARK: &str = r#"{"type":"BOOKMARK","object":{"kind":"Service","metadata":{"resourceVersion":"12","creationTimestamp":null}}}"#;
const INITIAL_END: &str = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;

fn check(mut session: Session, lines: &[&str], expected: Expect) {
    let mut quality = Quality::default();
    let failure = lines.iter().find_map(|line| session.line(line.as_bytes(), &mut quality).err());
    let (changes, again) = (session.take(), session.take());
    assert!(again.is_empty(), "what was taken is gone: {again:?}");
    let mut out = match changes.as_slice() {
        [] => "nothing\n".to_owned(),
        changes => format!("{}\n", words(changes)),
    };
    if quality.rejects > 0 {
        out += &format!("rejects: {}\n", quality.rejects);
    }
    if quality.partial > 0 {
        out += &format!("partial: {}\n", quality.partial);
    }
    if let Some(failure) = failure {
        out += &format!("{failure:?}\n");
    }
    expected.assert_eq(&out);
}

fn following() -> Session {
    Session::following(source(Kind::Service), "services", ResourceVersion("5".to_owned()))
}

fn listing() -> Session {
    Session::listing(source(Kind::Service), "services")
}

#[test]
fn events_end_with_a_checkpoint_of_the_last_one() {
    check(
        following(),
        &[ADDED, MODIFIED, DELETED],
        expect![[r#"
        put n/a@7, put n/b@8, delete n/a, checkpoint@9
    "#]],
    );
    check(
        following(),
        &[ADDED, BOOKMARK],
        expect![[r#"
        put n/a@7, checkpoint@12
    "#]],
    );
    check(
        following(),
        &[BOOKMARK],
        expect![[r#"
        checkpoint@12
    "#]],
    );
    check(
        following(),
        &[],
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn an_object_that_cannot_be_read_is_kept_and_passed() {
    check(
        following(),
        &[ADDED, BAD, NAMELESS],
        expect![[r#"
        put n/a@7, keep n/b, checkpoint@11
        rejects: 2
    "#]],
    );
}

#[test]
fn an_object_that_makes_no_sense_in_part_is_counted_and_taken() {
    check(
        following(),
        &[ADDED, ODD, ODD],
        expect![[r#"
        put n/a@7, put n/c@8, put n/c@8, checkpoint@8
        partial: 2
    "#]],
    );
}

#[test]
fn a_listing_has_no_checkpoints_and_ends_with_its_bookmark() {
    check(
        listing(),
        &[MODIFIED, ADDED],
        expect![[r#"
        begin, put n/b@8, put n/a@7
    "#]],
    );
    check(
        listing(),
        &[ADDED, BOOKMARK, BAD],
        expect![[r#"
        begin, put n/a@7, keep n/b
        rejects: 1
    "#]],
    );
    check(
        listing(),
        &[ADDED, INITIAL_END],
        expect![[r#"
        begin, put n/a@7, end@12
    "#]],
    );
    check(
        listing(),
        &[INITIAL_END, BAD],
        expect![[r#"
        begin, end@12, keep n/b, checkpoint@10
        rejects: 1
    "#]],
    );
}

#[test]
fn errors_and_nonsense_end_the_session() {
    let error = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 5 (9)"}}"#;
    check(
        following(),
        &[ADDED, error],
        expect![[r#"
        put n/a@7, checkpoint@7
        Expired("too old resource version: 5 (9)")
    "#]],
    );
    check(
        following(),
        &[ADDED, r#"{"type":"MOVED","object":{}}"#],
        expect![[r#"
        put n/a@7, checkpoint@7
        Broken("a watch event of unknown type \"MOVED\"")
    "#]],
    );
    check(
        following(),
        &["<html>"],
        expect![[r#"
            nothing
            Broken("a watch event that can't be read: expected value at line 1 column 1")
        "#]],
    );
    check(
        following(),
        &[r#"{"type":"BOOKMARK","object":{"metadata":{}}}"#],
        expect![[r#"
            nothing
            Broken("a bookmark that can't be read: missing field `resourceVersion` at line 1 column 14")
        "#]],
    );
}

#[test]
fn a_session_is_full_by_changes_or_by_endpoints() {
    let mut quality = Quality::default();
    let mut session = following();
    for _ in 0..DELIVERY_CHANGES_MAX {
        assert!(!session.is_full());
        session.line(ADDED.as_bytes(), &mut quality).unwrap();
    }
    assert!(session.is_full());

    let endpoints = vec![r#"{"addresses":["10.0.0.1"]}"#; DELIVERY_ENDPOINTS_MAX / 2].join(",");
    let slice = format!(r#"{{"metadata":{{"name":"s"}},"endpoints":[{endpoints}]}}"#);
    let mut session = Session::listing(source(Kind::EndpointSlice), "endpointslices");
    session.object(&slice, &mut quality);
    assert!(!session.is_full());
    session.object(&slice, &mut quality);
    assert!(session.is_full());
    assert_eq!(session.take().len(), 3);
    assert!(!session.is_full());
}
