//! ReplicaSets and Jobs: metadata only, for the names of a pod's owner's owner.

use model::Object;
use serde::Deserialize;

use super::meta::Meta;
use super::{Decoded, nullable};

#[derive(Deserialize)]
struct Document {
    #[serde(default, deserialize_with = "nullable::default")]
    metadata: Meta,
}

/// Reads a ReplicaSet or a Job.
pub(super) fn decode(json: &str) -> Result<Decoded, serde_json::Error> {
    let Document { metadata } = serde_json::from_str(json)?;
    let object = Object::Owned { owner: metadata.only_owner() };
    Ok(Decoded { meta: metadata, object })
}
