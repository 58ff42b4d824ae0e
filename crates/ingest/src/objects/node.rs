//! Nodes: metadata only, for the zone of a client.

use model::Object;
use serde::Deserialize;

use super::meta::Meta;
use super::{Decoded, labels, nullable};

#[derive(Deserialize)]
struct Document {
    #[serde(default, deserialize_with = "nullable::default")]
    metadata: Meta,
}

/// Reads a Node. An empty zone is none: it makes every address's locality unknown, as no zone does.
pub(super) fn decode(json: &str) -> Result<Decoded, serde_json::Error> {
    let Document { mut metadata } = serde_json::from_str(json)?;
    let zone = metadata.labels.remove(labels::ZONE).filter(|zone| !zone.is_empty());
    Ok(Decoded { meta: metadata, object: Object::Node { zone } })
}
