//! ServiceProfiles of which nothing holds: none of them is a reject, and each has one warning.

use expect_test::{Expect, expect};
use model::Kind::ServiceProfile;
use model::limits::CONDITION_DEPTH_MAX;
use model::{ClusterId, Object};

use super::check;
use super::profile::{nested, profile};
use crate::objects::decode;

/// Each text, and what is said of the ServiceProfile that it makes.
fn check_all(texts: &[&str], spec: impl Fn(&str) -> String, expected: Expect) {
    let said = texts.iter().map(|text| format!("{text}\n  {}\n", fault(&spec(text))));
    expected.assert_eq(&said.collect::<String>());
}

fn fault(spec: &str) -> String {
    let read = decode(ClusterId::LOCAL, ServiceProfile, &profile(spec)).unwrap();
    assert_eq!(read.object, Object::Profile(None), "{spec}");
    let [warning] = read.warnings.as_slice() else { panic!("{spec}: {:?}", read.warnings) };
    warning.strip_suffix("; the default profile stands for it").unwrap().to_owned()
}

/// In a second route, behind one that is valid and has a warning of its own.
fn route(route: &str) -> String {
    let first = r#"{"name": "r1", "condition": {"method": "GET"}, "timeout": "abc"}"#;
    format!(r#"{{"routes": [{first}, {route}]}}"#)
}

fn condition(condition: &str) -> String {
    route(&format!(r#"{{"name": "r2", "condition": {condition}}}"#))
}

/// The second class of the second route.
fn class(class: &str) -> String {
    let condition = r#"{"pathRegex": "/"}"#;
    let first = r#"{"condition": {"status": {"min": 500}}}"#;
    route(&format!(
        r#"{{"name": "r2", "condition": {condition}, "responseClasses": [{first}, {class}]}}"#
    ))
}

fn class_condition(condition: &str) -> String {
    class(&format!(r#"{{"condition": {condition}}}"#))
}

fn budget(budget: &str) -> String {
    format!(r#"{{"routes": [{{"condition": {{"method": "GET"}}}}], "retryBudget": {budget}}}"#)
}

fn dst_override(item: &str) -> String {
    format!(r#"{{"dstOverrides": [{{"authority": "a", "weight": 1}}, {item}]}}"#)
}

#[test]
fn request_conditions() {
    check_all(
        &[r#"{"name": "r2"}"#],
        route,
        expect![[r#"
        {"name": "r2"}
          route "r2": a condition is missing
    "#]],
    );
    check_all(
        &[
            "null",
            "{}",
            r#"{"pathRegex": "", "method": ""}"#,
            r#"{"unknown": 1, "status": {"min": 200}}"#,
            r#"{"all": [{"method": "GET"}, {}]}"#,
            r#"{"any": [{}]}"#,
            r#"{"not": {}, "pathRegex": "/p"}"#,
            r#"{"not": [{"method": "GET"}, null]}"#,
            r#"{"not": []}"#,
            r#"{"all": [{"any": [{"not": {}}]}]}"#,
            r#"{"all": [{"all": [null]}]}"#,
        ],
        condition,
        expect![[r#"
            null
              route "r2": a condition is missing
            {}
              route "r2": condition without a field
            {"pathRegex": "", "method": ""}
              route "r2": condition without a field
            {"unknown": 1, "status": {"min": 200}}
              route "r2": condition without a field
            {"all": [{"method": "GET"}, {}]}
              route "r2": condition without a field
            {"any": [{}]}
              route "r2": condition without a field
            {"not": {}, "pathRegex": "/p"}
              route "r2": condition without a field
            {"not": [{"method": "GET"}, null]}
              route "r2": a condition is missing
            {"not": []}
              route "r2": condition without a field
            {"all": [{"any": [{"not": {}}]}]}
              route "r2": condition without a field
            {"all": [{"all": [null]}]}
              route "r2": a condition is missing
        "#]],
    );
}

#[test]
fn response_conditions() {
    check_all(
        &["null", r#"{"isFailure": true}"#],
        class,
        expect![[r#"
        null
          route "r2": response class 2: null instead of an object
        {"isFailure": true}
          route "r2": response class 2: a condition is missing
    "#]],
    );
    check_all(
        &[
            "{}",
            r#"{"status": null}"#,
            r#"{"status": {"min": 201, "max": 200}}"#,
            r#"{"status": {"min": 99}}"#,
            r#"{"status": {"max": 600}}"#,
            r#"{"status": {"min": 600, "max": 700}}"#,
            r#"{"status": {"min": -1}}"#,
            r#"{"status": {"max": 4294967796}}"#,
            r#"{"all": [{"status": {"min": 200}}, {}]}"#,
            r#"{"not": {"status": {"min": 99}}}"#,
            r#"{"not": [{"status": {"min": 200}}]}"#,
            r#"{"any": [{"any": [null]}]}"#,
        ],
        class_condition,
        expect![[r#"
            {}
              route "r2": response class 2: condition without a field
            {"status": null}
              route "r2": response class 2: condition without a field
            {"status": {"min": 201, "max": 200}}
              route "r2": response class 2: status 200, the highest, is below 201, the lowest
            {"status": {"min": 99}}
              route "r2": response class 2: status 99 is not within 100 to 599
            {"status": {"max": 600}}
              route "r2": response class 2: status 600 is not within 100 to 599
            {"status": {"min": 600, "max": 700}}
              route "r2": response class 2: status 600 is not within 100 to 599
            {"status": {"min": -1}}
              route "r2": response class 2: status: invalid value: integer `-1`, expected u32
            {"status": {"max": 4294967796}}
              route "r2": response class 2: status: invalid value: integer `4294967796`, expected u32
            {"all": [{"status": {"min": 200}}, {}]}
              route "r2": response class 2: condition without a field
            {"not": {"status": {"min": 99}}}
              route "r2": response class 2: status 99 is not within 100 to 599
            {"not": [{"status": {"min": 200}}]}
              route "r2": response class 2: condition: not an object
            {"any": [{"any": [null]}]}
              route "r2": response class 2: a condition is missing
        "#]],
    );
}

#[test]
fn too_deep() {
    let depth = CONDITION_DEPTH_MAX + 1;
    let get = r#"{"method": "GET"}"#;
    let two = r#"{"method": "GET", "pathRegex": "/"}"#;
    let words = "more than 32 conditions within each other";
    for deep in [
        nested(depth, r#"{"not": "#, "}", get),
        nested(depth, r#"{"all": ["#, "]}", get),
        nested(depth, r#"{"any": [{"method": "PUT"}, "#, "]}", get),
        nested(10_000, r#"{"not": [{"not": "#, "}]}", get),
        // What is joined is one deeper, each time.
        nested(depth - 1, r#"{"not": "#, "}", two),
        nested(depth / 2 + 1, r#"{"method": "GET", "not": "#, "}", get),
    ] {
        assert_eq!(fault(&condition(&deep)), format!("route \"r2\": {words}"));
    }
    let deep = nested(depth, r#"{"not": "#, "}", r#"{"status": {"min": 200}}"#);
    let words = format!("route \"r2\": response class 2: {words}");
    assert_eq!(fault(&class_condition(&deep)), words);
    let joined = nested(depth / 2 + 1, r#"{"status": {}, "not": "#, "}", r#"{"status": {}}"#);
    assert_eq!(fault(&class_condition(&joined)), words);
    // What nobody reads may be as deep as it likes.
    let unread = format!(r#"{{"unknown": {}}}"#, nested(100_000, "[", "]", ""));
    assert_eq!(fault(&condition(&unread)), "route \"r2\": condition without a field");
}

#[test]
fn retry_budgets() {
    check_all(
        &[
            r#"{"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": ""}"#,
            r#"{"retryRatio": 0.5, "minRetriesPerSecond": 1}"#,
            r#"{"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": null}"#,
            r#"{"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": "10"}"#,
            "{}",
            r#"{"ttl": "3000000h"}"#,
            r#"{"ttl": 10}"#,
            r#"{"minRetriesPerSecond": -1, "ttl": "10s"}"#,
            r#"{"minRetriesPerSecond": 4294967296, "ttl": "10s"}"#,
            r#"{"minRetriesPerSecond": 1.5, "ttl": "10s"}"#,
            r#"{"minRetriesPerSecond": 1e999, "ttl": "10s"}"#,
            r#"{"retryRatio": 1e39, "ttl": "10s"}"#,
            r#"{"retryRatio": "0.5", "ttl": "10s"}"#,
            r#"{"retryRatio": true, "ttl": "10s"}"#,
            r#"["0.5", 1, "10s"]"#,
        ],
        budget,
        expect![[r#"
            {"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": ""}
              retryBudget: ttl "" is no duration
            {"retryRatio": 0.5, "minRetriesPerSecond": 1}
              retryBudget: ttl "" is no duration
            {"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": null}
              retryBudget: ttl "" is no duration
            {"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": "10"}
              retryBudget: ttl "10" is no duration
            {}
              retryBudget: ttl "" is no duration
            {"ttl": "3000000h"}
              retryBudget: ttl "3000000h" is no duration
            {"ttl": 10}
              retryBudget: invalid type: integer `10`, expected a string
            {"minRetriesPerSecond": -1, "ttl": "10s"}
              retryBudget: invalid value: integer `-1`, expected u32
            {"minRetriesPerSecond": 4294967296, "ttl": "10s"}
              retryBudget: invalid value: integer `4294967296`, expected u32
            {"minRetriesPerSecond": 1.5, "ttl": "10s"}
              retryBudget: invalid type: floating point `1.5`, expected u32
            {"minRetriesPerSecond": 1e999, "ttl": "10s"}
              retryBudget: number out of range
            {"retryRatio": 1e39, "ttl": "10s"}
              retryBudget: retryRatio 1e39 is no 32-bit number
            {"retryRatio": "0.5", "ttl": "10s"}
              retryBudget: retryRatio "0.5" is no 32-bit number
            {"retryRatio": true, "ttl": "10s"}
              retryBudget: retryRatio true is no 32-bit number
            ["0.5", 1, "10s"]
              retryBudget: not an object
        "#]],
    );
}

#[test]
fn overrides() {
    check_all(
        &[
            "null",
            r#""a""#,
            r#"{"authority": 80, "weight": 1}"#,
            r#"{"authority": "b", "weight": ""}"#,
            r#"{"authority": "b", "weight": "much"}"#,
            r#"{"authority": "b", "weight": "1e1.5"}"#,
            r#"{"authority": "b", "weight": true}"#,
            r#"{"authority": "b", "weight": [1]}"#,
        ],
        dst_override,
        expect![[r#"
            null
              override 2: null instead of an object
            "a"
              override 2: not an object
            {"authority": 80, "weight": 1}
              override 2: invalid type: integer `80`, expected a string
            {"authority": "b", "weight": ""}
              override 2: weight "" is no quantity
            {"authority": "b", "weight": "much"}
              override 2: weight "much" is no quantity
            {"authority": "b", "weight": "1e1.5"}
              override 2: weight "1e1.5" is no quantity
            {"authority": "b", "weight": true}
              override 2: weight "true" is no quantity
            {"authority": "b", "weight": [1]}
              override 2: weight "[1]" is no quantity
        "#]],
    );
}

#[test]
fn wrong_types() {
    check_all(
        &[
            "7",
            "[]",
            r#""text""#,
            r#"{"routes": {}}"#,
            r#"{"dstOverrides": "none"}"#,
            r#"{"retryBudget": 1}"#,
            r#"{"routes": [], "routes": []}"#,
        ],
        str::to_owned,
        expect![[r#"
            7
              spec: not an object
            []
              spec: not an object
            "text"
              spec: not an object
            {"routes": {}}
              spec: invalid type: map, expected a sequence
            {"dstOverrides": "none"}
              spec: invalid type: string "none", expected a sequence
            {"retryBudget": 1}
              retryBudget: not an object
            {"routes": [], "routes": []}
              spec: duplicate field `routes`
        "#]],
    );
    check_all(
        &[
            "null",
            "[]",
            r#"{"name": 7}"#,
            r#"{"name": "r2", "timeout": 5}"#,
            r#"{"name": "r2", "isRetryable": "yes"}"#,
            r#"{"name": "r2", "responseClasses": {}}"#,
        ],
        route,
        expect![[r#"
            null
              route 2: null instead of an object
            []
              route 2: not an object
            {"name": 7}
              route 2: invalid type: integer `7`, expected a string
            {"name": "r2", "timeout": 5}
              route 2: invalid type: integer `5`, expected a string
            {"name": "r2", "isRetryable": "yes"}
              route 2: invalid type: string "yes", expected a boolean
            {"name": "r2", "responseClasses": {}}
              route 2: invalid type: map, expected a sequence
        "#]],
    );
    check_all(
        &[r#"{"condition": {"status": {"min": 500}}, "isFailure": 1}"#],
        class,
        expect![[r#"
            {"condition": {"status": {"min": 500}}, "isFailure": 1}
              route "r2": response class 2: invalid type: integer `1`, expected a boolean
        "#]],
    );
}

#[test]
fn wrong_types_in_conditions() {
    check_all(
        &[
            "[]",
            r#"{"all": {"method": "GET"}}"#,
            r#"{"all": ["GET"]}"#,
            r#"{"not": "GET"}"#,
            r#"{"not": [["GET"]]}"#,
            r#"{"method": ["GET"]}"#,
            r#"{"pathRegex": 1}"#,
        ],
        condition,
        expect![[r#"
            []
              route "r2": condition: not an object
            {"all": {"method": "GET"}}
              route "r2": condition: invalid type: map, expected a sequence
            {"all": ["GET"]}
              route "r2": condition: not an object
            {"not": "GET"}
              route "r2": condition: not an object
            {"not": [["GET"]]}
              route "r2": condition: not an object
            {"method": ["GET"]}
              route "r2": condition: invalid type: sequence, expected a string
            {"pathRegex": 1}
              route "r2": condition: invalid type: integer `1`, expected a string
        "#]],
    );
    check_all(
        &[
            r#"{"status": 500}"#,
            r#"{"status": [500, 599]}"#,
            r#"{"status": {"min": "500"}}"#,
            r#"{"status": {"min": 500.5}}"#,
            r#"{"status": {"min": 500}, "all": {}}"#,
        ],
        class_condition,
        expect![[r#"
            {"status": 500}
              route "r2": response class 2: status: not an object
            {"status": [500, 599]}
              route "r2": response class 2: status: not an object
            {"status": {"min": "500"}}
              route "r2": response class 2: status: invalid type: string "500", expected u32
            {"status": {"min": 500.5}}
              route "r2": response class 2: status: invalid type: floating point `500.5`, expected u32
            {"status": {"min": 500}, "all": {}}
              route "r2": response class 2: condition: invalid type: map, expected a sequence
        "#]],
    );
}

#[test]
fn an_invalid_route_takes_everything_with_it() {
    check(
        ServiceProfile,
        r#"{"metadata": {"namespace": "shop", "name": "web", "resourceVersion": "9"},
            "spec": {"routes": [{"name": "", "condition": {"method": "GET"}, "timeout": "abc"},
                                {"name": "", "condition": {}}],
                     "dstOverrides": [{"authority": "a.shop.svc.k.test", "weight": 1}]}}"#,
        expect![[r#"
            ServiceProfile shop/web @9
              nothing that holds
            warning: route 2: condition without a field; the default profile stands for it
        "#]],
    );
}

#[test]
fn a_name_of_a_route_is_not_all_there_is_to_read() {
    let long = format!(r#"{{"name": "{}", "condition": {{}}}}"#, "x".repeat(65));
    assert_eq!(fault(&route(&long)), "route 2: condition without a field");
}

#[test]
fn only_metadata_and_what_is_no_json_are_rejected() {
    let bad = r#""spec": {"routes": [null]}"#;
    check(
        ServiceProfile,
        &format!(r#"{{"metadata": {{"name": 7}}, {bad}}}"#),
        expect![[r#"
        reject without a name: invalid type: integer `7`, expected a string at line 1 column 23
    "#]],
    );
    check(
        ServiceProfile,
        &format!("{{{bad}}}"),
        expect![[r#"
        reject without a name: metadata.name is missing
    "#]],
    );
    check(
        ServiceProfile,
        &profile(r#"{"routes": [}"#),
        expect![[r#"
        reject without a name: expected value at line 1 column 72
    "#]],
    );
}
