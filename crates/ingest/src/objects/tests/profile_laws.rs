//! What is true of any ServiceProfile, whatever its `spec` is.

use model::Kind::ServiceProfile;
use model::limits::CONDITION_DEPTH_MAX;
use model::{ClusterId, Object, RequestMatch, ResponseMatch};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::profile::profile;
use crate::objects::decode;

const VERDICT: &str = "; the default profile stands for it";

/// Conditions within each other, as deep as may be and deeper; most are on requests and on responses at once.
fn condition() -> impl Strategy<Value = Value> {
    let inmost = prop_oneof![
        40 => Just(json!({"method": "get", "status": {"max": 299}})),
        20 => Just(json!({"any": []})),
        1 => Just(json!({})),
        1 => Just(Value::Null),
        1 => Just(json!({"method": 7, "status": {"min": 99}})),
    ];
    let level = (0..4_u8, prop::bool::weighted(0.2));
    (inmost, prop::collection::vec(level, 0..40)).prop_map(|(inmost, levels)| {
        levels.into_iter().fold(inmost, |inner, (field, joined)| {
            let mut outer = match field {
                0 => json!({"all": [inner]}),
                1 => json!({"any": [{"method": "PUT", "status": {}}, inner]}),
                _ => json!({"not": inner}),
            };
            if joined {
                outer["method"] = json!("GET");
                outer["status"] = json!({"min": 500, "max": 599});
            }
            outer
        })
    })
}

/// Anything, with names of fields that mean something.
fn anything() -> impl Strategy<Value = Value> {
    let names = [
        "routes",
        "name",
        "condition",
        "responseClasses",
        "isRetryable",
        "timeout",
        "retryBudget",
        "ttl",
        "retryRatio",
        "dstOverrides",
        "weight",
        "status",
        "not",
    ];
    let leaf = prop::sample::select(vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!("10s"),
        json!(""),
    ]);
    leaf.prop_recursive(6, 40, 4, move |inner| {
        let field = (prop::sample::select(names.to_vec()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(field, 0..5).prop_map(|fields| {
                let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(Map::from_iter(fields))
            }),
        ]
    })
}

/// Reads it; checks that there is a profile, or one warning and its verdict.
fn read(spec: &Value) -> Option<model::ServiceProfile> {
    let read = decode(ClusterId::LOCAL, ServiceProfile, &profile(&spec.to_string())).unwrap();
    let verdicts = read.warnings.iter().filter(|warning| warning.ends_with(VERDICT)).count();
    let Object::Profile(profile) = read.object else { panic!("{:?}", read.object) };
    match profile {
        Some(profile) => {
            assert_eq!(verdicts, 0, "{:?}", read.warnings);
            Some(profile)
        }
        None => {
            assert_eq!((read.warnings.len(), verdicts), (1, 1), "{:?}", read.warnings);
            None
        }
    }
}

fn request_depth(condition: &RequestMatch) -> usize {
    1 + match condition {
        RequestMatch::All(list) | RequestMatch::Any(list) => {
            list.iter().map(request_depth).max().unwrap_or(0)
        }
        RequestMatch::Not(not) => request_depth(not),
        RequestMatch::Path(_) | RequestMatch::Method(_) => 0,
    }
}

fn response_depth(condition: &ResponseMatch) -> usize {
    1 + match condition {
        ResponseMatch::All(list) | ResponseMatch::Any(list) => {
            list.iter().map(response_depth).max().unwrap_or(0)
        }
        ResponseMatch::Not(not) => response_depth(not),
        ResponseMatch::Status { .. } => 0,
    }
}

proptest! {
    #[test]
    fn nothing_is_a_reject(spec in anything()) {
        read(&spec);
    }

    #[test]
    fn what_holds_is_not_too_deep(condition in condition()) {
        let route = json!({"name": "r", "condition": condition});
        if let Some(profile) = read(&json!({"routes": [route]})) {
            prop_assert!(request_depth(&profile.routes[0].condition) <= CONDITION_DEPTH_MAX);
        }
        let class = json!({"condition": condition});
        let route = json!({"condition": {"method": "GET"}, "responseClasses": [class]});
        if let Some(profile) = read(&json!({"routes": [route]})) {
            let depth = response_depth(&profile.routes[0].responses[0].condition);
            prop_assert!(depth <= CONDITION_DEPTH_MAX);
        }
    }
}
