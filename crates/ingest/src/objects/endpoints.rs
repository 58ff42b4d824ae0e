//! Endpoints, what there was before EndpointSlices: each subset becomes a slice (spec §2.3, §2.4).

use model::limits::ENDPOINTS_ADDRESSES_MAX;
use model::{Family, Kind, Object, ObjectName, Slice, SliceEndpoint, SliceMeta, Target};
use serde::Deserialize;
use serde::de::Error as _;

use super::meta::{self, Meta};
use super::slice::{Port, TargetRef, of_mirror, target};
use super::warnings::Warnings;
use super::{Decoded, ip, nullable};

#[derive(Deserialize)]
struct Document {
    #[serde(default, deserialize_with = "nullable::default")]
    metadata: Meta,
    #[serde(default, deserialize_with = "nullable::default")]
    subsets: Vec<Subset>,
}

/// Addresses that aren't ready are nobody's.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Subset {
    #[serde(deserialize_with = "nullable::default")]
    addresses: Vec<Address>,
    #[serde(deserialize_with = "nullable::default")]
    ports: Vec<Port>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Address {
    #[serde(deserialize_with = "nullable::default")]
    ip: String,
    #[serde(deserialize_with = "nullable::default")]
    hostname: String,
    target_ref: Option<TargetRef>,
}

/// Reads Endpoints.
pub(super) fn decode(json: &str, warnings: &mut Warnings) -> Result<Decoded, serde_json::Error> {
    let Document { mut metadata, subsets } = serde_json::from_str(json)?;
    let count: usize = subsets.iter().map(|subset| subset.addresses.len()).sum();
    if count > ENDPOINTS_ADDRESSES_MAX {
        return Err(serde_json::Error::custom(format_args!(
            "{count} addresses are more than the {ENDPOINTS_ADDRESSES_MAX} that are taken of one object"
        )));
    }
    let namespace = meta::namespace(Kind::Endpoints, &metadata.namespace).to_owned();
    let service = ObjectName::new(namespace.as_str(), metadata.name.as_str()).ok();
    let mirror = of_mirror(&mut metadata);
    let mut slice = |subset: Subset| Slice {
        service: service.clone(),
        // Endpoints know no families: with this one, no rule about them applies.
        family: Family::V4,
        meta: SliceMeta {
            // A subset without ports has any number.
            ports: Some(subset.ports.into_iter().map(|port| port.read(warnings)).collect()),
            ..mirror.clone()
        },
        endpoints: subset
            .addresses
            .into_iter()
            .filter_map(|address| endpoint(&namespace, address, warnings))
            .collect(),
    };
    let slices = subsets.into_iter().map(&mut slice).collect();
    Ok(Decoded { meta: metadata, object: Object::Subsets(slices) })
}

/// An address that a client could be given: a pod's, or a bare one.
fn endpoint(namespace: &str, address: Address, warnings: &mut Warnings) -> Option<SliceEndpoint> {
    let target = match target(namespace, address.target_ref, warnings) {
        Ok(target) => target.filter(|target| !matches!(target, Target::ExternalWorkload(_)))?,
        Err(error) => {
            warnings.push(format_args!("an address's target: {error}"));
            return None;
        }
    };
    Some(SliceEndpoint {
        ip: ip::expect(&address.ip, warnings)?,
        ready: true,
        target,
        hostname: Some(address.hostname).filter(|name| !name.is_empty()),
        zone: None,
        hints: Vec::new(),
    })
}
