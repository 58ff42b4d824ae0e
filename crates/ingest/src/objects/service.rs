//! Services.

use model::{Discovery, Object, Service, ServicePort};
use serde::Deserialize;

use super::warnings::Warnings;
use super::{Decoded, Document, ip, labels, nullable, ports};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(rename = "type", deserialize_with = "nullable::default")]
    type_: String,
    #[serde(deserialize_with = "nullable::default")]
    internal_traffic_policy: String,
    #[serde(rename = "clusterIP", deserialize_with = "nullable::default")]
    cluster_ip: String,
    #[serde(rename = "clusterIPs", deserialize_with = "nullable::default")]
    cluster_ips: Vec<String>,
    #[serde(deserialize_with = "nullable::default")]
    ports: Vec<Port>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Port {
    #[serde(deserialize_with = "nullable::default")]
    name: String,
    port: Option<i64>,
    #[serde(deserialize_with = "nullable::default")]
    protocol: String,
}

/// Reads a Service.
pub(super) fn decode(json: &str, warnings: &mut Warnings) -> Result<Decoded, serde_json::Error> {
    let Document::<Spec> { mut metadata, spec, .. } = serde_json::from_str(json)?;
    let service_ports = service_ports(spec.ports, warnings);
    let annotations = std::mem::take(&mut metadata.annotations);
    let named = service_ports.iter().map(|port| (port.name.as_str(), port.port));
    let opaque = ports::list("opaque-ports", annotations.opaque_ports.as_deref(), named, warnings);
    let mut cluster_ips = spec.cluster_ips;
    if cluster_ips.is_empty() {
        cluster_ips.push(spec.cluster_ip);
    }
    let service = Service {
        ports: service_ports,
        external_name: spec.type_ == "ExternalName",
        local_traffic: spec.internal_traffic_policy == "Local",
        cluster_ips: cluster_ips.iter().filter_map(|text| ip::parse(text)).collect(),
        opaque,
        discovery: Discovery {
            cluster: metadata.labels.remove(labels::REMOTE_DISCOVERY),
            service: metadata.labels.remove(labels::REMOTE_SERVICE),
            members: annotations.remote_discovery,
            local_member: annotations.local_discovery,
        },
    };
    Ok(Decoded { meta: metadata, object: Object::Service(service) })
}

fn service_ports(written: Vec<Port>, warnings: &mut Warnings) -> Vec<ServicePort> {
    let mut service_ports = Vec::with_capacity(written.len());
    for Port { name, port, protocol } in written {
        match ports::number(port) {
            Some(port) => {
                let tcp = matches!(protocol.as_str(), "" | "TCP");
                service_ports.push(ServicePort { name, port, tcp });
            }
            None => warnings.push(format_args!("port {name:?} has no number that a port can have")),
        }
    }
    service_ports
}
