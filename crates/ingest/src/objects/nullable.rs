//! `null` as Kubernetes reads it: the zero value of whatever it stands for.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// `null` is the default, as if the field were absent.
pub(super) fn default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A key of a string map that is there: `null` is the empty string, not absence.
pub(super) fn present<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    default(deserializer).map(Some)
}

/// A map of strings, any of which, and which itself, may be `null`.
pub(super) fn map<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let map: BTreeMap<String, Option<String>> = default(deserializer)?;
    Ok(map.into_iter().map(|(key, value)| (key, value.unwrap_or_default())).collect())
}
