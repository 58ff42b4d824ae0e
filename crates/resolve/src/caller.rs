//! Who asks: the context token of a proxy (spec §1.4).

use serde::Deserialize;
use serde_json::value::RawValue;

/// What a token says of its bearer. An empty value counts as none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The caller's namespace.
    pub namespace: Option<String>,
    /// The node it runs on.
    pub node: Option<String>,
    /// Its pod.
    pub pod: Option<String>,
}

/// The token's JSON, with values not looked at yet: one of the wrong type must not spoil the others (Q30).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Token<'t> {
    #[serde(borrow)]
    ns: Option<&'t RawValue>,
    #[serde(borrow, rename = "nodeName")]
    node_name: Option<&'t RawValue>,
    #[serde(borrow)]
    pod: Option<&'t RawValue>,
}

/// Reads a token: JSON, or the old form `ns:NAMESPACE`. What can't be read counts as not said, since a bad
/// token never fails a request.
pub fn caller(token: &str) -> Caller {
    // An array would do for serde, which takes its items for the fields in their order.
    let object = token.trim_start().starts_with('{');
    if object && let Ok(token) = serde_json::from_str::<Token<'_>>(token) {
        return Caller {
            namespace: text(token.ns),
            node: text(token.node_name),
            pod: text(token.pod),
        };
    }
    let namespace = token.strip_prefix("ns:").filter(|rest| !rest.contains(':'));
    Caller { namespace: namespace.and_then(non_empty), ..Caller::default() }
}

fn text(value: Option<&RawValue>) -> Option<String> {
    let text: String = serde_json::from_str(value?.get()).ok()?;
    non_empty(&text)
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(token: &str) -> String {
        let Caller { namespace, node, pod } = caller(token);
        let show = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        format!("{} {} {}", show(namespace), show(node), show(pod))
    }

    #[test]
    fn tokens_of_spec_a15_to_a18() {
        assert_eq!(said("{\"ns\":\"a\", \"nodeName\":\"n1\", \"pod\":\"p\"}\n"), "a n1 p");
        assert_eq!(said("{\"ns\":\"a\",\"nodeName\":\"n1\"}\n"), "a n1 -");
        assert_eq!(said("ns:b"), "b - -");
        for nothing in ["12ab-xyz", "ns:a:b", "", "ns:", " ns:b", "NS:b", "\"ns:b\""] {
            assert_eq!(said(nothing), "- - -", "{nothing}");
        }
        assert_eq!(said("{\"ns\":\"a\",\"x\":1}"), "a - -");
    }

    #[test]
    fn a_value_that_cannot_be_read_is_not_said() {
        assert_eq!(said("{\"ns\":1,\"nodeName\":\"n1\"}"), "- n1 -");
        assert_eq!(said("{\"ns\":null,\"nodeName\":\"\"}"), "- - -");
        assert_eq!(said("{\"ns\":\"\\u0061\"}"), "a - -");
        for broken in ["{\"ns\":\"a\"", "{\"ns\":\"a\"} x", "null", "[\"a\",\"n1\"]", "{}"] {
            assert_eq!(said(broken), "- - -", "{broken}");
        }
    }
}
