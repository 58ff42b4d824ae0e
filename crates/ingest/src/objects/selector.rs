//! Label selectors as they are written, and what makes one invalid.

use std::collections::BTreeMap;

use model::{Operator, Requirement, Selector};
use serde::Deserialize;

use super::nullable;

/// Characters of a label's value, and of its key after the prefix.
const LABEL_PART_BYTES_MAX: usize = 63;

/// Characters of the prefix of a label's key, a DNS subdomain.
const LABEL_PREFIX_BYTES_MAX: usize = 253;

/// A selector as it is written.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LabelSelector {
    #[serde(deserialize_with = "nullable::map")]
    match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable::default")]
    match_expressions: Vec<Expression>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Expression {
    #[serde(deserialize_with = "nullable::default")]
    key: String,
    #[serde(deserialize_with = "nullable::default")]
    operator: String,
    #[serde(deserialize_with = "nullable::default")]
    values: Vec<String>,
}

/// Why a selector is invalid as a whole.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SelectorError {
    #[error("{key:?} cannot be the key of a label")]
    Key { key: String },
    #[error("{value:?} cannot be the value of label {key}")]
    Value { key: String, value: String },
    #[error("{operator:?} is no operator (In, NotIn, Exists or DoesNotExist)")]
    Operator { operator: String },
    #[error("operator {operator} on label {key} needs values")]
    NoValues { key: String, operator: String },
    #[error("operator {operator} on label {key} takes no values")]
    NeedlessValues { key: String, operator: String },
}

/// The selector, if each of its requirements is valid.
pub(super) fn check(written: LabelSelector) -> Result<Selector, SelectorError> {
    let equal = |(key, value)| Expression { key, operator: "In".to_owned(), values: vec![value] };
    let equal = written.match_labels.into_iter().map(equal);
    let requirements: Result<_, _> =
        equal.chain(written.match_expressions).map(requirement).collect();
    Ok(Selector { requirements: requirements? })
}

fn requirement(expression: Expression) -> Result<Requirement, SelectorError> {
    let Expression { key, operator: written, values } = expression;
    if !is_label_key(&key) {
        return Err(SelectorError::Key { key });
    }
    let operator = match written.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return Err(SelectorError::Operator { operator: written }),
    };
    let needs_values = matches!(operator, Operator::In | Operator::NotIn);
    if needs_values && values.is_empty() {
        return Err(SelectorError::NoValues { key, operator: written });
    }
    if !needs_values && !values.is_empty() {
        return Err(SelectorError::NeedlessValues { key, operator: written });
    }
    match values.iter().find(|value| !is_label_value(value)) {
        Some(value) => Err(SelectorError::Value { key, value: value.clone() }),
        None => Ok(Requirement { key, operator, values }),
    }
}

/// `[prefix/]name`: a DNS subdomain, and a non-empty value.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_dns_subdomain)
}

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends; may be empty.
fn is_label_value(value: &str) -> bool {
    let bytes = value.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let ends = [bytes.first(), bytes.last()].into_iter().flatten().all(u8::is_ascii_alphanumeric);
    bytes.len() <= LABEL_PART_BYTES_MAX && ends && bytes.iter().all(inner)
}

fn is_dns_subdomain(name: &str) -> bool {
    let is_dns_label = |label: &str| {
        let bytes = label.as_bytes();
        let outer = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let ends = bytes.first().is_some_and(outer) && bytes.last().is_some_and(outer);
        ends && bytes.iter().all(|byte| outer(byte) || *byte == b'-')
    };
    name.len() <= LABEL_PREFIX_BYTES_MAX && name.split('.').all(is_dns_label)
}
