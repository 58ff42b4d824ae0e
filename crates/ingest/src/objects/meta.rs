//! `metadata`: what every object has.

use std::collections::BTreeMap;

use model::{Kind, NameError, ObjectName, OwnerRef};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::labels::Annotations;
use super::nullable;

/// The metadata of an object, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Meta {
    #[serde(deserialize_with = "nullable::default")]
    pub(super) name: String,
    #[serde(deserialize_with = "nullable::default")]
    pub(super) namespace: String,
    #[serde(deserialize_with = "nullable::default")]
    pub(super) generate_name: String,
    #[serde(deserialize_with = "nullable::default")]
    pub(super) resource_version: String,
    #[serde(deserialize_with = "nullable::map")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable::default")]
    pub(super) annotations: Annotations,
    #[serde(deserialize_with = "nullable::default")]
    pub(super) owner_references: Vec<Owner>,
    /// Only whether it is there matters.
    pub(super) deletion_timestamp: Option<IgnoredAny>,
}

/// An owner reference, as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Owner {
    #[serde(deserialize_with = "nullable::default")]
    pub(super) kind: String,
    #[serde(deserialize_with = "nullable::default")]
    pub(super) name: String,
}

impl Meta {
    /// The only owner: an object with two has none that could speak for it.
    pub(super) fn only_owner(&self) -> Option<OwnerRef> {
        match self.owner_references.as_slice() {
            [Owner { kind, name }] => Some(OwnerRef { kind: kind.clone(), name: name.clone() }),
            _ => None,
        }
    }
}

/// The namespace of an object: manifests may leave it out, and then mean `default`; a Node has none.
pub(crate) fn namespace(kind: Kind, written: &str) -> &str {
    match (kind, written) {
        (Kind::Node, _) => "",
        (_, "") => "default",
        (_, written) => written,
    }
}

/// The name of an object whose metadata could be read.
pub(super) fn object_name(kind: Kind, meta: &Meta) -> Result<ObjectName, NameError> {
    ObjectName::new(namespace(kind, &meta.namespace), meta.name.as_str())
}

/// The name of an object of which perhaps nothing else can be read.
pub(crate) fn name_of(kind: Kind, json: &str) -> Option<ObjectName> {
    #[derive(Deserialize)]
    struct Named {
        metadata: Names,
    }
    #[derive(Deserialize)]
    struct Names {
        name: String,
        #[serde(default, deserialize_with = "nullable::default")]
        namespace: String,
    }
    let Names { name, namespace: written } = serde_json::from_str::<Named>(json).ok()?.metadata;
    if name.is_empty() {
        return None;
    }
    ObjectName::new(namespace(kind, &written), name).ok()
}
