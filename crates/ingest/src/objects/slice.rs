//! EndpointSlices.

use std::collections::BTreeSet;

use model::limits::SLICE_ENDPOINTS_MAX;
use model::{Family, Object, ObjectName, Slice, SliceEndpoint, SliceMeta, SlicePort, Target};
use serde::Deserialize;
use serde::de::Error as _;

use super::meta::{self, Meta};
use super::warnings::Warnings;
use super::{Decoded, ip, labels, nullable, ports};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default, deserialize_with = "nullable::default")]
    metadata: Meta,
    #[serde(default, deserialize_with = "nullable::default")]
    address_type: String,
    #[serde(default, deserialize_with = "nullable::default")]
    ports: Vec<Port>,
    #[serde(default, deserialize_with = "nullable::default")]
    endpoints: Vec<Endpoint>,
}

/// A port of a slice, or of a subset of Endpoints.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Port {
    #[serde(deserialize_with = "nullable::default")]
    name: String,
    port: Option<i64>,
}

impl Port {
    pub(super) fn read(self, warnings: &mut Warnings) -> SlicePort {
        let Port { name, port } = self;
        let number = ports::number(port);
        if number.is_none() && port.is_some() {
            warnings.push(format_args!("port {name:?} has no number that a port can have"));
        }
        SlicePort { name, port: number }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Endpoint {
    #[serde(deserialize_with = "nullable::default")]
    addresses: Vec<String>,
    #[serde(deserialize_with = "nullable::default")]
    conditions: Conditions,
    #[serde(deserialize_with = "nullable::default")]
    hostname: String,
    target_ref: Option<TargetRef>,
    zone: Option<String>,
    #[serde(deserialize_with = "nullable::default")]
    hints: Hints,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Hints {
    #[serde(deserialize_with = "nullable::default")]
    for_zones: Vec<ForZone>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ForZone {
    #[serde(deserialize_with = "nullable::default")]
    name: String,
}

/// What an endpoint stands for, as it is written.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TargetRef {
    #[serde(deserialize_with = "nullable::default")]
    kind: String,
    #[serde(deserialize_with = "nullable::default")]
    name: String,
    #[serde(deserialize_with = "nullable::default")]
    namespace: String,
}

/// Reads an EndpointSlice.
pub(super) fn decode(json: &str, warnings: &mut Warnings) -> Result<Decoded, serde_json::Error> {
    let Document { mut metadata, address_type, ports, endpoints } = serde_json::from_str(json)?;
    if endpoints.len() > SLICE_ENDPOINTS_MAX {
        let count = endpoints.len();
        return Err(serde_json::Error::custom(format_args!(
            "{count} endpoints are more than the {SLICE_ENDPOINTS_MAX} that Kubernetes allows"
        )));
    }
    let namespace = meta::namespace(model::Kind::EndpointSlice, &metadata.namespace).to_owned();
    let service = service(&namespace, &metadata);
    if service.is_none() {
        warnings.push("it belongs to no Service, by label or by owner");
    }
    let ports: Vec<_> = ports.into_iter().map(|port| port.read(warnings)).collect();
    let endpoints: Vec<_> =
        endpoints.into_iter().flat_map(|endpoint| claims(&namespace, endpoint, warnings)).collect();
    warn_of_repeated(&endpoints, warnings);
    let slice = Slice {
        service,
        family: if address_type == "IPv6" { Family::V6 } else { Family::V4 },
        meta: SliceMeta {
            // The API server gives an empty list as null, so there is no difference to keep (spec §2.3).
            ports: (!ports.is_empty()).then_some(ports),
            ..of_mirror(&mut metadata)
        },
        endpoints,
    };
    Ok(Decoded { meta: metadata, object: Object::Slice(slice) })
}

/// The label decides, even if it is empty; without it the first owner that is a Service.
fn service(namespace: &str, meta: &Meta) -> Option<ObjectName> {
    let name = match meta.labels.get(labels::SERVICE_NAME) {
        Some(label) => label,
        None => &meta.owner_references.iter().find(|owner| owner.kind == "Service")?.name,
    };
    if name.is_empty() {
        return None;
    }
    ObjectName::new(namespace, name.as_str()).ok()
}

/// What a mirror's slices or Endpoints say of the cluster behind it (spec §2.9.4).
pub(super) fn of_mirror(meta: &mut Meta) -> SliceMeta {
    SliceMeta {
        ports: None,
        mirror_cluster: meta.labels.remove(labels::MIRROR_CLUSTER),
        remote_service: meta.annotations.remote_service.take(),
        gateway_identity: meta.annotations.gateway_identity.take().filter(|name| !name.is_empty()),
    }
}

/// The addresses of an endpoint that a client could be given: the last one of a pod or workload, each one of a
/// bare endpoint (spec §2.4).
fn claims(namespace: &str, endpoint: Endpoint, warnings: &mut Warnings) -> Vec<SliceEndpoint> {
    let target = match target(namespace, endpoint.target_ref, warnings) {
        Ok(Some(target)) => target,
        Ok(None) => return Vec::new(),
        Err(error) => {
            warnings.push(format_args!("an endpoint's target: {error}"));
            return Vec::new();
        }
    };
    let written = match target {
        Target::Bare => endpoint.addresses.as_slice(),
        Target::Pod(_) | Target::ExternalWorkload(_) => {
            &endpoint.addresses[endpoint.addresses.len().saturating_sub(1)..]
        }
    };
    let mut hints: Vec<_> = endpoint.hints.for_zones.into_iter().map(|zone| zone.name).collect();
    hints.sort_unstable();
    hints.dedup();
    let claim = |ip| SliceEndpoint {
        ip,
        ready: endpoint.conditions.ready.unwrap_or(true),
        target: target.clone(),
        hostname: Some(endpoint.hostname.clone()).filter(|name| !name.is_empty()),
        zone: endpoint.zone.clone(),
        hints: hints.clone(),
    };
    written.iter().filter_map(|text| ip::expect(text, warnings)).map(claim).collect()
}

/// The last of two endpoints of one target counts, and one of two that say the same.
fn warn_of_repeated(endpoints: &[SliceEndpoint], warnings: &mut Warnings) {
    let mut known = BTreeSet::new();
    for SliceEndpoint { ip, target, hostname, .. } in endpoints {
        let same = match target {
            Target::Bare => (Some((ip, hostname)), target),
            Target::Pod(_) | Target::ExternalWorkload(_) => (None, target),
        };
        if !known.insert(same) {
            warnings.push(format_args!("an endpoint at {ip} is there twice"));
        }
    }
}

/// What an endpoint stands for; `None` if it is something that nobody serves.
pub(super) fn target(
    namespace: &str,
    target: Option<TargetRef>,
    warnings: &mut Warnings,
) -> Result<Option<Target>, model::NameError> {
    let Some(TargetRef { kind, name, namespace: own_namespace }) = target else {
        return Ok(Some(Target::Bare));
    };
    if name.is_empty() {
        return Ok(None);
    }
    Ok(match kind.as_str() {
        // As it is written: a pod without a namespace is none.
        "Pod" => {
            if own_namespace != namespace {
                let elsewhere = "the pod of an endpoint is in another namespace";
                warnings.push(format_args!("{elsewhere}: {own_namespace:?}"));
            }
            Some(Target::Pod(ObjectName::new(own_namespace, name)?))
        }
        "ExternalWorkload" => Some(Target::ExternalWorkload(ObjectName::new(namespace, name)?)),
        _ => None,
    })
}
