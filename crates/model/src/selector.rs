//! Label selectors, with Kubernetes' semantics (spec §2.7).

use std::collections::BTreeMap;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is there and its value is one of these.
    In,
    /// The label is missing, or its value is none of these.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

/// One condition of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// The comparison.
    pub operator: Operator,
    /// The values to compare with; empty for `Exists` and `DoesNotExist`.
    pub values: Vec<String>,
}

/// A label selector: all requirements must hold, so the empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The requirements; `matchLabels` are `In` with one value.
    pub requirements: Vec<Requirement>,
}

impl Selector {
    /// Do these labels satisfy every requirement?
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            let listed = value.is_some_and(|value| requirement.values.contains(value));
            match requirement.operator {
                Operator::In => listed,
                Operator::NotIn => !listed,
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_label_satisfies_the_negative_operators_only() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        let check = |key: &str, operator, values: &[&str]| {
            let values = values.iter().map(|v| (*v).to_owned()).collect();
            Selector { requirements: vec![Requirement { key: key.to_owned(), operator, values }] }
                .matches(&labels)
        };
        assert!(check("app", Operator::In, &["api", "web"]));
        assert!(!check("app", Operator::NotIn, &["web"]));
        assert!(check("tier", Operator::NotIn, &["web"]));
        assert!(!check("tier", Operator::In, &["web"]));
        assert!(check("app", Operator::Exists, &[]));
        assert!(check("tier", Operator::DoesNotExist, &[]));
        assert!(Selector::default().matches(&labels));
    }
}
