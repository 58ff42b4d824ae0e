//! ExternalWorkloads: what runs outside of the cluster.

use model::{
    ContainerPort, MeshTls, Object, Phase, PortSet, ProxyPorts, Template, Workload, WorkloadKind,
};
use serde::Deserialize;

use super::warnings::Warnings;
use super::{Decoded, Document, ip, meta, nullable, ports};

/// The port where its proxy takes inbound connections.
const PROXY_PORT: &str = "linkerd-proxy";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "meshTLS")]
    mesh_tls: Option<Tls>,
    #[serde(deserialize_with = "nullable::default")]
    ports: Vec<Port>,
    #[serde(rename = "workloadIPs", deserialize_with = "nullable::default")]
    workload_ips: Vec<Ip>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Tls {
    #[serde(deserialize_with = "nullable::default")]
    identity: String,
    #[serde(deserialize_with = "nullable::default")]
    server_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Port {
    #[serde(deserialize_with = "nullable::default")]
    name: String,
    port: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ip {
    #[serde(deserialize_with = "nullable::default")]
    ip: String,
}

/// Reads an ExternalWorkload.
pub(super) fn decode(json: &str, warnings: &mut Warnings) -> Result<Decoded, serde_json::Error> {
    let Document::<Spec> { mut metadata, spec, .. } = serde_json::from_str(json)?;
    let workload_ports = workload_ports(spec.ports, warnings);
    let named = workload_ports.iter().map(|port| (port.name.as_str(), port.port));
    let opaque = metadata.annotations.opaque_ports.as_deref();
    let opaque = ports::list("opaque-ports", opaque, named, warnings);
    let proxy = workload_ports.iter().find(|port| port.name == PROXY_PORT);
    let template = Template {
        kind: WorkloadKind::External,
        namespace: meta::namespace(model::Kind::ExternalWorkload, &metadata.namespace).to_owned(),
        labels: std::mem::take(&mut metadata.labels),
        owner: metadata.only_owner(),
        name_prefix: std::mem::take(&mut metadata.generate_name),
        service_account: String::new(),
        opaque,
        skip_inbound: PortSet::default(),
        proxy: proxy.map(|it| ProxyPorts { inbound: Some(it.port), ..ProxyPorts::default() }),
        ports: workload_ports,
        mesh_tls: spec
            .mesh_tls
            .map(|Tls { identity, server_name }| MeshTls { identity, server_name }),
    };
    let workload = Workload {
        template,
        node: None,
        phase: Phase::Running,
        deleting: metadata.deletion_timestamp.is_some(),
        host_network: false,
        ips: spec.workload_ips.iter().filter_map(|it| ip::parse(&it.ip)).collect(),
        host_ips: Vec::new(),
    };
    Ok(Decoded { meta: metadata, object: Object::Workload(workload) })
}

fn workload_ports(written: Vec<Port>, warnings: &mut Warnings) -> Vec<ContainerPort> {
    let mut workload_ports = Vec::with_capacity(written.len());
    for Port { name, port } in written {
        match ports::number(port) {
            Some(port) => workload_ports.push(ContainerPort { name, port, host_port: None }),
            None => warnings.push(format_args!("port {name:?} has no number that a port can have")),
        }
    }
    workload_ports
}
