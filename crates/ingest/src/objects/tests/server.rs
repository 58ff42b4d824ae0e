//! Servers and their selectors.

use expect_test::expect;
use model::Kind::Server;

use super::check;

#[test]
fn absent_and_empty_selectors_differ() {
    check(
        Server,
        r#"{"metadata": {"namespace": "shop", "name": "db", "resourceVersion": "3"},
            "spec": {"podSelector": {}, "port": 5432, "proxyProtocol": "opaque"}}"#,
        expect![[r#"
            Server shop/db @3
              Number(5432) opaque: true
              pods: []
        "#]],
    );
    check(
        Server,
        r#"{"metadata": {"name": "db"},
            "spec": {"externalWorkloadSelector": {"matchLabels": null}, "podSelector": null, "port": "80"}}"#,
        expect![[r#"
            Server default/db @
              Name("80") opaque: false
              workloads: []
        "#]],
    );
}

#[test]
fn labels_and_expressions_are_one_list() {
    check(
        Server,
        r#"{"metadata": {"name": "db"}, "spec": {"proxyProtocol": "HTTP/2", "port": "db", "podSelector": {
              "matchLabels": {"app": "db", "example.org/tier": ""},
              "matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]},
                {"key": "b", "operator": "NotIn", "values": ["z"]}, {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist", "values": []}]}}}"#,
        expect![[r#"
            Server default/db @
              Name("db") opaque: false
              pods: ["app In [\"db\"]", "example.org/tier In [\"\"]", "a In [\"x\", \"y\"]", "b NotIn [\"z\"]", "c Exists []", "d DoesNotExist []"]
        "#]],
    );
}

#[test]
fn an_invalid_selector_selects_nothing() {
    let check = |selector: &str, expected| {
        let json = format!(
            r#"{{"metadata": {{"name": "s"}}, "spec": {{"port": 1, "podSelector": {selector}, "externalWorkloadSelector": {{}}}}}}"#
        );
        check(Server, &json, expected);
    };
    check(
        r#"{"matchExpressions": [{"key": "a", "operator": "in", "values": ["x"]}]}"#,
        expect![[r#"
        Server default/s @
          Number(1) opaque: false
          workloads: []
        warning: podSelector selects nothing: "in" is no operator (In, NotIn, Exists or DoesNotExist)
    "#]],
    );
    check(
        r#"{"matchExpressions": [{"key": "a", "operator": "In"}]}"#,
        expect![[r#"
        Server default/s @
          Number(1) opaque: false
          workloads: []
        warning: podSelector selects nothing: operator In on label a needs values
    "#]],
    );
    check(
        r#"{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}"#,
        expect![[r#"
            Server default/s @
              Number(1) opaque: false
              workloads: []
            warning: podSelector selects nothing: operator Exists on label a takes no values
        "#]],
    );
    check(
        r#"{"matchExpressions": [{"operator": "Exists"}]}"#,
        expect![[r#"
        Server default/s @
          Number(1) opaque: false
          workloads: []
        warning: podSelector selects nothing: "" cannot be the key of a label
    "#]],
    );
    check(
        r#"{"matchLabels": {"a/b/c": "x"}}"#,
        expect![[r#"
        Server default/s @
          Number(1) opaque: false
          workloads: []
        warning: podSelector selects nothing: "a/b/c" cannot be the key of a label
    "#]],
    );
    check(
        r#"{"matchLabels": {"Example.org/a": "x"}}"#,
        expect![[r#"
        Server default/s @
          Number(1) opaque: false
          workloads: []
        warning: podSelector selects nothing: "Example.org/a" cannot be the key of a label
    "#]],
    );
    check(
        r#"{"matchLabels": {"a": "-x"}}"#,
        expect![[r#"
        Server default/s @
          Number(1) opaque: false
          workloads: []
        warning: podSelector selects nothing: "-x" cannot be the value of label a
    "#]],
    );
}

#[test]
fn odd_ports() {
    check(
        Server,
        r#"{"metadata": {"name": "s"}, "spec": {"port": 70000}}"#,
        expect![[r#"
            Server default/s @
              Number(0) opaque: false
            warning: port 70000 is none that a workload can have
        "#]],
    );
    check(
        Server,
        r#"{"metadata": {"name": "s"}, "spec": {"port": null}}"#,
        expect![[r#"
        Server default/s @
          Number(0) opaque: false
    "#]],
    );
    check(
        Server,
        r#"{"metadata": {"name": "s"}, "spec": {"port": [80]}}"#,
        expect![[r#"
        reject default/s: port is neither a number nor a name at line 1 column 50
    "#]],
    );
}
