//! What cannot be read is named as far as possible, and costs nothing but itself.

use expect_test::expect;
use model::Kind::{EndpointSlice, Endpoints, Pod, Service};
use model::limits::OBJECT_VALUES_MAX;

use super::check;

#[test]
fn wrong_types_are_rejected_with_the_name() {
    check(
        Pod,
        r#"{"metadata": {"namespace": "shop", "name": "p", "labels": {"a": 1}}}"#,
        expect![[r#"
            reject shop/p: invalid type: integer `1`, expected a string at line 1 column 65
        "#]],
    );
    check(
        Pod,
        r#"{"metadata": {"name": "p"}, "spec": {"containers": 7}}"#,
        expect![[r#"
        reject default/p: invalid type: integer `7`, expected a sequence at line 1 column 52
    "#]],
    );
    check(
        Service,
        r#"{"metadata": {"name": "s"}, "spec": {"ports": [{"port": "80"}]}}"#,
        expect![[r#"
        reject default/s: invalid type: string "80", expected i64 at line 1 column 60
    "#]],
    );
}

#[test]
fn without_a_name_there_is_none_to_tell() {
    check(
        Pod,
        r#"{"metadata": {"namespace": "shop"}}"#,
        expect![[r#"
        reject without a name: metadata.name is missing
    "#]],
    );
    check(
        Pod,
        r#"{"metadata": {"namespace": "shop", "name": ["p"]}}"#,
        expect![[r#"
        reject without a name: invalid type: sequence, expected a string at line 1 column 43
    "#]],
    );
    check(
        Pod,
        r#"{"spec": {}}"#,
        expect![[r#"
        reject without a name: metadata.name is missing
    "#]],
    );
    check(
        Pod,
        "null",
        expect![[r#"
        reject without a name: invalid type: null, expected struct Document at line 1 column 4
    "#]],
    );
    check(
        Pod,
        r#"{"metadata": {"name": "p""#,
        expect![[r#"
        reject without a name: EOF while parsing an object at line 1 column 25
    "#]],
    );
}

#[test]
fn names_that_no_key_could_hold() {
    check(
        Pod,
        r#"{"metadata": {"name": "a\u0000b"}}"#,
        expect![[r#"
        reject without a name: name "a\0b" contains a NUL byte
    "#]],
    );
    let json = format!(r#"{{"metadata": {{"name": "{}"}}}}"#, "a".repeat(254));
    check(
        Pod,
        &json,
        expect![[r#"
        reject without a name: name of 254 bytes is longer than the 253 that Kubernetes allows
    "#]],
    );
}

#[test]
fn a_reason_is_no_longer_than_it_needs_to_be() {
    let json = format!(r#"{{"metadata": {{"name": "p"}}, "spec": "{}"}}"#, "x".repeat(1 << 20));
    check(
        Pod,
        &json,
        expect![[r#"
        reject default/p: invalid type: string "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    "#]],
    );
}

#[test]
fn an_object_of_more_values_than_any_has_is_not_read() {
    let slice = |many: &str, count: usize| {
        let values = vec![many; count].join(",");
        format!(r#"{{"metadata": {{"name": "s", "note": "\",,"}}, "endpoints": [{values}]}}"#)
    };
    check(
        EndpointSlice,
        &slice("{}", OBJECT_VALUES_MAX + 1),
        expect![[r#"
        reject default/s: it is made of more than 65536 values
    "#]],
    );
    check(
        EndpointSlice,
        &slice("7", OBJECT_VALUES_MAX - 2),
        expect![[r#"
        reject default/s: invalid type: integer `7`, expected struct Endpoint at line 1 column 59
    "#]],
    );
    let commas = ",".repeat(2 * OBJECT_VALUES_MAX);
    check(
        Pod,
        &format!(r#"{{"metadata": {{"name": "p", "annotations": {{"a": "{commas}"}}}}}}"#),
        expect![[r#"
            Pod default/p @
              Pod in default, Pending
              account: "default"
        "#]],
    );
    check(
        Endpoints,
        &slice("{}", OBJECT_VALUES_MAX + 1).replace("endpoints", "notReadyAddresses"),
        expect![[r#"
            Endpoints default/s @
        "#]],
    );
}

#[test]
fn a_version_that_is_too_long_is_none() {
    let version = "9".repeat(65);
    check(
        Pod,
        &format!(r#"{{"metadata": {{"name": "p", "resourceVersion": "{version}"}}}}"#),
        expect![[r#"
            reject default/p: its version is longer than 64 bytes
        "#]],
    );
}
