//! ServiceProfiles that hold.

use expect_test::{Expect, expect};
use model::Kind::ServiceProfile;
use model::limits::CONDITION_DEPTH_MAX;
use model::{ClusterId, Object};

use super::check;
use crate::objects::{decode, kind_of};

fn check_spec(spec: &str, expected: Expect) {
    check(ServiceProfile, &profile(spec), expected);
}

fn check_condition(condition: &str, expected: Expect) {
    check_spec(&format!(r#"{{"routes": [{{"name": "r", "condition": {condition}}}]}}"#), expected);
}

fn check_classes(classes: &str, expected: Expect) {
    let condition = r#"{"pathRegex": "/p"}"#;
    let route =
        format!(r#"{{"name": "r", "condition": {condition}, "responseClasses": {classes}}}"#);
    check_spec(&format!(r#"{{"routes": [{route}]}}"#), expected);
}

/// The object with this `spec`.
pub(super) fn profile(spec: &str) -> String {
    format!(r#"{{"metadata": {{"namespace": "shop", "name": "web"}}, "spec": {spec}}}"#)
}

/// So many conditions within each other.
pub(super) fn nested(depth: usize, open: &str, close: &str, inmost: &str) -> String {
    format!("{}{inmost}{}", open.repeat(depth - 1), close.repeat(depth - 1))
}

#[test]
fn one_version_is_known() {
    assert_eq!(kind_of("linkerd.io/v1alpha2", "ServiceProfile"), Some(ServiceProfile));
    assert_eq!(kind_of("linkerd.io/v1alpha1", "ServiceProfile"), None);
}

#[test]
fn routes_and_classes_in_their_order() {
    check(
        ServiceProfile,
        r#"{"apiVersion": "linkerd.io/v1alpha2", "kind": "ServiceProfile",
            "metadata": {"namespace": "shop", "name": "web.shop.svc.k.test", "resourceVersion": "7"},
            "spec": {"routes": [
              {"name": "r1", "condition": {"all": [{"method": "GET"}, {"not": {"pathRegex": "/admin/.*"}}]},
               "responseClasses": [{"condition": {"status": {"min": 500, "max": 599}}, "isFailure": true}]},
              {"name": "r2", "condition": {"pathRegex": "/signin"}, "isRetryable": true, "timeout": "250ms",
               "responseClasses": [{"isFailure": true, "condition":
                 {"any": [{"status": {"min": 500, "max": 599}}, {"status": {"min": 425, "max": 425}}]}}]}]}}"#,
        expect![[r#"
            ServiceProfile shop/web.shop.svc.k.test @7
              route "r1": all[method GET, not path /admin/.*]
                failure: status 500..599
              route "r2": path /signin, retryable, timeout 250000000 ns
                failure: any[status 500..599, status 425..425]
        "#]],
    );
}

#[test]
fn nothing_is_said() {
    for spec in [
        r#", "spec": {}"#,
        r#", "spec": null"#,
        r#", "spec": {"routes": [], "dstOverrides": [], "unknown": [[[]]]}"#,
        r#", "spec": {"routes": null, "dstOverrides": null, "retryBudget": null}"#,
        "",
    ] {
        let json = format!(r#"{{"metadata": {{"name": "web"}}{spec}}}"#);
        let read = decode(ClusterId::LOCAL, ServiceProfile, &json).unwrap();
        assert_eq!(read.object, Object::Profile(Some(model::ServiceProfile::default())), "{spec}");
        assert_eq!(read.warnings, [""; 0], "{spec}");
    }
}

#[test]
fn opaque_ports_are_nobodys_business() {
    let with = |ports: &str| {
        let json = profile(&format!(
            r#"{{{ports}"routes": [{{"name": "r", "condition": {{"method": "GET"}}}}]}}"#
        ));
        decode(ClusterId::LOCAL, ServiceProfile, &json)
    };
    for ports in [r#"["80"]"#, r#"{"80": {}}"#, r#"{"80": true}"#, "7", "null", r#"[{"a": []}]"#] {
        assert_eq!(with(&format!(r#""opaquePorts": {ports}, "#)), with(""), "{ports}");
    }
    assert!(matches!(with("").unwrap().object, Object::Profile(Some(_))));
}

#[test]
fn names_are_taken_as_they_are() {
    check_spec(
        r#"{"routes": [{"name": "r", "condition": {"pathRegex": "/a"}},
            {"name": "r", "condition": {"pathRegex": "/a"}},
            {"name": "", "condition": {"pathRegex": "/a"}}, {"condition": {"pathRegex": "/a"}},
            {"name": null, "isRetryable": null, "timeout": null, "responseClasses": null,
             "condition": {"pathRegex": "/a"}}]}"#,
        expect![[r#"
            ServiceProfile shop/web @
              route "r": path /a
              route "r": path /a
              route "": path /a
              route "": path /a
              route "": path /a
        "#]],
    );
}

#[test]
fn fields_of_a_request_condition_are_joined() {
    check_condition(
        r#"{"method": "GET", "pathRegex": "/some/path"}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": all[method GET, path /some/path]
    "#]],
    );
    check_condition(
        r#"{"pathRegex": "/p", "not": {"method": "PUT"}, "method": "POST", "any": [{"method": "GET"}],
            "all": [{"pathRegex": "/q"}]}"#,
        expect![[r#"
            ServiceProfile shop/web @
              route "r": all[all[path /q], any[method GET], method POST, not method PUT, path /p]
        "#]],
    );
    check_condition(
        r#"{"any": [{"all": [{"method": "GET"}, {"any": [{"pathRegex": "/1"}, {"pathRegex": "/2", "method": "HEAD"}]}]},
            {"not": {"not": {"pathRegex": "/3"}}}]}"#,
        expect![[r#"
            ServiceProfile shop/web @
              route "r": any[all[method GET, any[path /1, all[method HEAD, path /2]]], not not path /3]
        "#]],
    );
}

#[test]
fn empty_lists_count_and_nulls_and_empty_strings_do_not() {
    check_condition(
        r#"{"all": []}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": all[]
    "#]],
    );
    check_condition(
        r#"{"any": []}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": any[]
    "#]],
    );
    check_condition(
        r#"{"all": [], "pathRegex": "/p"}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": all[all[], path /p]
    "#]],
    );
    check_condition(
        r#"{"all": null, "any": null, "not": null, "method": null, "pathRegex": "/p"}"#,
        expect![[r#"
            ServiceProfile shop/web @
              route "r": path /p
        "#]],
    );
    check_condition(
        r#"{"method": "", "pathRegex": "/p"}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": path /p
    "#]],
    );
    check_condition(
        r#"{"method": "GET", "pathRegex": ""}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": method GET
    "#]],
    );
}

#[test]
fn methods_are_in_upper_case_and_paths_as_they_are() {
    for method in
        ["get", "post", "put", "delete", "patch", "options", "connect", "head", "trace", "Brew"]
    {
        let upper = method.to_uppercase();
        let json =
            profile(&format!(r#"{{"routes": [{{"condition": {{"method": "{method}"}}}}]}}"#));
        let read = decode(ClusterId::LOCAL, ServiceProfile, &json).unwrap();
        let Object::Profile(Some(profile)) = read.object else { panic!("{method}: no profile") };
        assert_eq!(profile.routes[0].condition, model::RequestMatch::Method(upper));
    }
    check_condition(
        r#"{"pathRegex": "(["}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": path ([
    "#]],
    );
}

#[test]
fn not_is_an_object_or_a_list() {
    check_condition(
        r#"{"not": {"method": "GET"}}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": not method GET
    "#]],
    );
    check_condition(
        r#"{"not": [{"method": "GET"}]}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": not method GET
    "#]],
    );
    check_condition(
        r#"{"not": [{"method": "GET"}, {"pathRegex": "/p"}], "pathRegex": "/q"}"#,
        expect![[r#"
            ServiceProfile shop/web @
              route "r": all[not method GET, not path /p, path /q]
        "#]],
    );
    check_condition(
        r#"{"all": [{"not": [{"method": "GET"}]}]}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": all[not method GET]
    "#]],
    );
    check_condition(
        r#"{"not": [], "method": "GET"}"#,
        expect![[r#"
        ServiceProfile shop/web @
          route "r": method GET
    "#]],
    );
}

#[test]
fn fields_of_a_response_condition_are_joined() {
    check_classes(
        r#"[{"condition": {"status": {"min": 400, "max": 499}, "not": {"status": {"min": 404}}}},
            {"condition": {"not": {"status": {"min": 500, "max": 500}}, "status": {"min": 200, "max": 299},
               "any": [{"status": {"min": 201, "max": 201}}], "all": [{"status": {"min": 202, "max": 202}}]}},
            {"condition": {"all": []}, "isFailure": true},
            {"condition": {"any": [], "status": {"min": 200}}, "isFailure": null},
            {"condition": {"all": null, "any": null, "not": null, "status": {}}, "isFailure": false}]"#,
        expect![[r#"
            ServiceProfile shop/web @
              route "r": path /p
                success: all[status 400..499, not status 404..0]
                success: all[all[status 202..202], any[status 201..201], status 200..299, not status 500..500]
                failure: all[]
                success: all[any[], status 200..0]
                success: status 0..0
        "#]],
    );
    check_classes(
        "[]",
        expect![[r#"
        ServiceProfile shop/web @
          route "r": path /p
    "#]],
    );
}

#[test]
fn bounds_of_a_status() {
    check_classes(
        r#"[{"condition": {"status": {"min": 200}}}, {"condition": {"status": {"max": 299}}},
            {"condition": {"status": {"min": 100, "max": 599}}},
            {"condition": {"status": {"min": 429, "max": 429}}},
            {"condition": {"status": {"min": null, "max": 0}}}]"#,
        expect![[r#"
            ServiceProfile shop/web @
              route "r": path /p
                success: status 200..0
                success: status 0..299
                success: status 100..599
                success: status 429..429
                success: status 0..0
        "#]],
    );
}

#[test]
fn timeouts() {
    check_spec(
        r#"{"routes": [{"name": "a", "condition": {"method": "A"}, "timeout": "1m"},
            {"name": "b", "condition": {"method": "B"}, "timeout": "abc"},
            {"name": "c", "condition": {"method": "C"}, "timeout": "0"},
            {"name": "d", "condition": {"method": "D"}, "timeout": ""},
            {"name": "e", "condition": {"method": "E"}, "timeout": "-1.5s"},
            {"name": "", "condition": {"method": "F"}, "timeout": "3000000h"}]}"#,
        expect![[r#"
            ServiceProfile shop/web @
              route "a": method A, timeout 60000000000 ns
              route "b": method B
              route "c": method C
              route "d": method D
              route "e": method E, timeout -1500000000 ns
              route "": method F
            warning: route "b": timeout "abc" is no duration
            warning: route 6: timeout "3000000h" is no duration
        "#]],
    );
}

#[test]
fn retry_budgets() {
    let check = |budget: &str, expected| {
        check_spec(&format!(r#"{{"retryBudget": {budget}}}"#), expected);
    };
    check(
        r#"{"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": "1m"}"#,
        expect![[r#"
        ServiceProfile shop/web @
          retry budget: (0.5, 1, 60000000000)
    "#]],
    );
    check(
        r#"{"ttl": "0"}"#,
        expect![[r#"
        ServiceProfile shop/web @
          retry budget: (0.0, 0, 0)
    "#]],
    );
    check(
        r#"{"retryRatio": null, "minRetriesPerSecond": null, "ttl": "-1s"}"#,
        expect![[r#"
        ServiceProfile shop/web @
          retry budget: (0.0, 0, -1000000000)
    "#]],
    );
    check(
        r#"{"retryRatio": -1, "minRetriesPerSecond": 4294967295, "ttl": "1ns"}"#,
        expect![[r#"
            ServiceProfile shop/web @
              retry budget: (-1.0, 4294967295, 1)
        "#]],
    );
    // Just above the middle between two neighbours: by way of 64 bits, this would be 1.
    check(
        r#"{"retryRatio": 1.00000005960464477540, "ttl": "1s"}"#,
        expect![[r#"
        ServiceProfile shop/web @
          retry budget: (1.0000001, 0, 1000000000)
    "#]],
    );
}

#[test]
fn overrides() {
    check_spec(
        r#"{"dstOverrides": [{"authority": "a.shop.svc.k.test", "weight": "900m"},
            {"authority": "b.shop.svc.k.test:99", "weight": "100m"}, {"authority": "number", "weight": 1},
            {"authority": "number", "weight": 1.5}, {"authority": "number", "weight": 1e3},
            {"authority": "zero", "weight": 0}, {"authority": "spaces", "weight": " 1 "},
            {"authority": "null", "weight": null}, {"authority": "absent"}, {"weight": 1},
            {"authority": null, "weight": "1Ki"}, {"authority": "c:", "weight": "2k"},
            {"authority": "[fd00::1]:82", "weight": 1}]}"#,
        expect![[r#"
            ServiceProfile shop/web @
              override "a.shop.svc.k.test": 9000
              override "b.shop.svc.k.test:99": 1000
              override "number": 10000
              override "number": 15000
              override "number": 10000000
              override "zero": 0
              override "spaces": 10000
              override "null": 0
              override "absent": 0
              override "": 10000
              override "": 10240000
              override "c:": 20000000
              override "[fd00::1]:82": 10000
        "#]],
    );
    check_spec(
        r#"{"dstOverrides": [{"authority": "w0", "weight": "1u"}, {"authority": "w1", "weight": "1n"},
            {"authority": "w2", "weight": "0.0001"}, {"authority": "w3", "weight": "1100u"},
            {"authority": "w4", "weight": "429496"}, {"authority": "w5", "weight": "429497"},
            {"authority": "w6", "weight": "1M"}, {"authority": "w7", "weight": "-1"},
            {"authority": "w8", "weight": "-1u"}]}"#,
        expect![[r#"
            ServiceProfile shop/web @
              override "w0": 10
              override "w1": 10
              override "w2": 10
              override "w3": 20
              override "w4": 4294960000
              override "w5": 2704
              override "w6": 1410065408
              override "w7": 4294957296
              override "w8": 4294967286
        "#]],
    );
}

#[test]
fn ten_thousand_routes() {
    let route = |number| {
        format!(
            r#"{{"name": "r{number}", "condition": {{"pathRegex": "/{number}"}}, "timeout": "x"}}"#
        )
    };
    let routes = (0..10_000).map(route).collect::<Vec<_>>().join(",");
    let json = profile(&format!(r#"{{"routes": [{routes}]}}"#));
    let read = decode(ClusterId::LOCAL, ServiceProfile, &json).unwrap();
    let Object::Profile(Some(profile)) = read.object else { panic!("no profile") };
    assert_eq!(profile.routes.len(), 10_000);
    assert_eq!(profile.routes[9_999].condition, model::RequestMatch::Path("/9999".to_owned()));
    assert_eq!(read.warnings.last().unwrap(), "and 9992 more like these");
}

#[test]
fn as_deep_as_it_may_be() {
    let depth = CONDITION_DEPTH_MAX;
    for (open, close) in [(r#"{"not": "#, "}"), (r#"{"all": ["#, "]}"), (r#"{"not": ["#, "]}")] {
        let condition = nested(depth, open, close, r#"{"method": "GET"}"#);
        let json = profile(&format!(r#"{{"routes": [{{"condition": {condition}}}]}}"#));
        let read = decode(ClusterId::LOCAL, ServiceProfile, &json).unwrap();
        assert!(matches!(read.object, Object::Profile(Some(_))), "{:?}", read.warnings);
    }
    // What is joined is one deeper.
    let condition = nested(depth - 1, r#"{"not": "#, "}", r#"{"method": "GET", "pathRegex": "/"}"#);
    let json = profile(&format!(r#"{{"routes": [{{"condition": {condition}}}]}}"#));
    let read = decode(ClusterId::LOCAL, ServiceProfile, &json).unwrap();
    assert!(matches!(read.object, Object::Profile(Some(_))), "{:?}", read.warnings);
}
