//! Kubernetes objects as JSON → our own values. Pure: the same for a watch, a manifest and a test.
//!
//! *Invariant:* only the fields of spec §4.3 are read, into types with nothing else in them, so that a pod of
//! 7 KB never sits in memory whole. What is unknown is skipped; what cannot be read is a [`Reject`] with a name.

mod endpoints;
mod external_workload;
mod ip;
mod labels;
mod link;
pub(crate) mod list;
mod meta;
mod node;
mod nullable;
mod owner;
mod pod;
mod ports;
mod profile;
mod selector;
mod server;
mod service;
mod slice;
mod warnings;

#[cfg(test)]
mod tests;

use model::limits::{ENDPOINTS_VALUES_MAX, OBJECT_VALUES_MAX, VERSION_BYTES_MAX};
use model::{ClusterId, Key, Kind, Object, ObjectName, ResourceVersion, Source};
use serde::Deserialize;

use meta::Meta;
pub(crate) use meta::{name_of, namespace};
use warnings::Warnings;
pub(crate) use warnings::shorten;

/// An object that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Which object.
    pub key: Key,
    /// Its version; empty if it has none, as in a manifest.
    pub version: ResourceVersion,
    /// What it says.
    pub object: Object,
    /// What of it was skipped, in words: the rest of it stays valid.
    pub warnings: Vec<String>,
}

/// An object that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", name.as_ref().map_or_else(|| "without a name".to_owned(), ToString::to_string))]
pub struct Reject {
    /// Its name, if that much could be read.
    pub name: Option<ObjectName>,
    /// What is wrong with it.
    pub reason: String,
}

/// The kind that `apiVersion` and `kind` stand for; `None` if it is none that is kept.
pub fn kind_of(api_version: &str, kind: &str) -> Option<Kind> {
    match (api_version, kind) {
        ("v1", "Service") => Some(Kind::Service),
        ("v1", "Endpoints") => Some(Kind::Endpoints),
        ("v1", "Pod") => Some(Kind::Pod),
        ("v1", "Node") => Some(Kind::Node),
        ("discovery.k8s.io/v1", "EndpointSlice") => Some(Kind::EndpointSlice),
        ("apps/v1", "ReplicaSet") => Some(Kind::ReplicaSet),
        ("batch/v1", "Job") => Some(Kind::Job),
        ("workload.linkerd.io/v1beta1", "ExternalWorkload") => Some(Kind::ExternalWorkload),
        ("policy.linkerd.io/v1beta3", "Server") => Some(Kind::Server),
        ("v1", "Secret") => Some(Kind::Secret),
        ("linkerd.io/v1alpha2", "ServiceProfile") => Some(Kind::ServiceProfile),
        _ => None,
    }
}

/// Reads an object of a kind that is known from where it was found; what it says of its own kind isn't looked at.
pub fn decode(cluster: ClusterId, kind: Kind, json: &str) -> Result<Observed, Reject> {
    let reject = |reason: String| Reject { name: name_of(kind, json), reason: shorten(&reason) };
    let values_max = if kind == Kind::Endpoints { ENDPOINTS_VALUES_MAX } else { OBJECT_VALUES_MAX };
    // A shorter text can't have as many.
    if json.len() > values_max && values(json) > values_max {
        return Err(reject(format!("it is made of more than {values_max} values")));
    }
    let mut warnings = Warnings::default();
    let read = match kind {
        Kind::Service => service::decode(json, &mut warnings),
        Kind::EndpointSlice => slice::decode(json, &mut warnings),
        Kind::Endpoints => endpoints::decode(json, &mut warnings),
        Kind::Pod => pod::decode(json, &mut warnings),
        Kind::ExternalWorkload => external_workload::decode(json, &mut warnings),
        Kind::Node => node::decode(json),
        Kind::ReplicaSet | Kind::Job => owner::decode(json),
        Kind::Server => server::decode(json, &mut warnings),
        Kind::ServiceProfile => profile::decode(json, &mut warnings),
        Kind::Secret => link::decode(json),
    };
    let Decoded { meta, object } = read.map_err(|error| reject(error.to_string()))?;
    if meta.name.is_empty() {
        return Err(reject("metadata.name is missing".to_owned()));
    }
    let name = meta::object_name(kind, &meta).map_err(|error| reject(error.to_string()))?;
    if meta.resource_version.len() > VERSION_BYTES_MAX {
        return Err(reject(format!("its version is longer than {VERSION_BYTES_MAX} bytes")));
    }
    Ok(Observed {
        key: Key { source: Source { cluster, kind }, name },
        version: ResourceVersion(meta.resource_version),
        object,
        warnings: warnings.into_lines(),
    })
}

/// How many values a JSON text has at most, by the commas between them. Each can take some hundred bytes once it is read,
/// and be written in three.
fn values(json: &str) -> usize {
    let (mut values, mut quoted, mut escaped) = (1, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => values += 1,
            _ => {}
        }
    }
    values
}

/// What the rooms of the kinds hand back.
struct Decoded {
    meta: Meta,
    object: Object,
}

/// The usual shape of an object.
#[derive(Deserialize)]
#[serde(bound = "Spec: Deserialize<'de> + Default, Status: Deserialize<'de> + Default")]
struct Document<Spec, Status = serde::de::IgnoredAny> {
    #[serde(default, deserialize_with = "nullable::default")]
    metadata: Meta,
    #[serde(default, deserialize_with = "nullable::default")]
    spec: Spec,
    #[serde(default, deserialize_with = "nullable::default")]
    status: Status,
}
