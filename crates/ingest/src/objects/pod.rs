//! Pods.

use std::net::SocketAddr;

use model::{ContainerPort, Object, Phase, ProxyPorts, Template, Workload, WorkloadKind};
use serde::Deserialize;

use super::warnings::Warnings;
use super::{Decoded, Document, ip, meta, nullable, ports};

/// The container that is the proxy.
const PROXY_CONTAINER: &str = "linkerd-proxy";

const INBOUND_ADDR: &str = "LINKERD2_PROXY_INBOUND_LISTEN_ADDR";
const ADMIN_ADDR: &str = "LINKERD2_PROXY_ADMIN_LISTEN_ADDR";
const CONTROL_ADDR: &str = "LINKERD2_PROXY_CONTROL_LISTEN_ADDR";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "nullable::default")]
    node_name: String,
    #[serde(deserialize_with = "nullable::default")]
    service_account_name: String,
    #[serde(deserialize_with = "nullable::default")]
    host_network: bool,
    #[serde(deserialize_with = "nullable::default")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable::default")]
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    #[serde(deserialize_with = "nullable::default")]
    name: String,
    #[serde(deserialize_with = "nullable::default")]
    ports: Vec<Port>,
    #[serde(deserialize_with = "nullable::default")]
    env: Vec<Env>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    #[serde(deserialize_with = "nullable::default")]
    name: String,
    container_port: Option<i64>,
    host_port: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Env {
    #[serde(deserialize_with = "nullable::default")]
    name: String,
    #[serde(deserialize_with = "nullable::default")]
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "nullable::default")]
    phase: String,
    #[serde(rename = "podIP", deserialize_with = "nullable::default")]
    pod_ip: String,
    #[serde(rename = "podIPs", deserialize_with = "nullable::default")]
    pod_ips: Vec<Ip>,
    #[serde(rename = "hostIP", deserialize_with = "nullable::default")]
    host_ip: String,
    #[serde(rename = "hostIPs", deserialize_with = "nullable::default")]
    host_ips: Vec<Ip>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ip {
    #[serde(deserialize_with = "nullable::default")]
    ip: String,
}

/// Reads a Pod.
pub(super) fn decode(json: &str, warnings: &mut Warnings) -> Result<Decoded, serde_json::Error> {
    let Document::<Spec, Status> { mut metadata, spec, status } = serde_json::from_str(json)?;
    let containers: Vec<_> = spec.init_containers.iter().chain(&spec.containers).collect();
    let container_ports = container_ports(&containers, spec.host_network, warnings);
    let annotations = std::mem::take(&mut metadata.annotations);
    let named = container_ports.iter().map(|port| (port.name.as_str(), port.port));
    let opaque = annotations.opaque_ports.as_deref();
    let opaque = ports::list("opaque-ports", opaque, named, warnings);
    let skip = annotations.skip_inbound_ports.as_deref();
    let skip = ports::list("skip-inbound-ports", skip, std::iter::empty(), warnings);
    let template = Template {
        kind: WorkloadKind::Pod,
        namespace: meta::namespace(model::Kind::Pod, &metadata.namespace).to_owned(),
        labels: std::mem::take(&mut metadata.labels),
        owner: metadata.only_owner(),
        name_prefix: std::mem::take(&mut metadata.generate_name),
        service_account: match spec.service_account_name.is_empty() {
            true => "default".to_owned(),
            false => spec.service_account_name,
        },
        ports: container_ports,
        opaque,
        skip_inbound: skip.unwrap_or_default(),
        proxy: containers.iter().find(|it| it.name == PROXY_CONTAINER).map(|it| proxy_ports(it)),
        mesh_tls: None,
    };
    let workload = Workload {
        template,
        node: Some(spec.node_name).filter(|name| !name.is_empty()),
        phase: phase(&status.phase),
        deleting: metadata.deletion_timestamp.is_some(),
        host_network: spec.host_network,
        ips: ips(&status.pod_ips, &status.pod_ip),
        host_ips: ips(&status.host_ips, &status.host_ip),
    };
    Ok(Decoded { meta: metadata, object: Object::Workload(workload) })
}

/// On the host's network a port is one of the host as well: an API server says so, a manifest need not.
fn container_ports(
    containers: &[&Container],
    host_network: bool,
    warnings: &mut Warnings,
) -> Vec<ContainerPort> {
    let mut container_ports = Vec::new();
    for Port { name, container_port, host_port } in containers.iter().flat_map(|it| &it.ports) {
        match ports::number(*container_port) {
            Some(port) => container_ports.push(ContainerPort {
                name: name.clone(),
                port,
                host_port: ports::number(*host_port)
                    .filter(|port| *port != 0)
                    .or(host_network.then_some(port)),
            }),
            None => warnings.push(format_args!("port {name:?} has no number that a port can have")),
        }
    }
    container_ports
}

fn proxy_ports(container: &Container) -> ProxyPorts {
    let port = |variable: &str| {
        // Of variables that are set twice, the container sees the last.
        let env = container.env.iter().rev().find(|env| env.name == variable)?;
        env.value.parse::<SocketAddr>().ok().map(|addr| addr.port())
    };
    ProxyPorts {
        inbound: port(INBOUND_ADDR).filter(|port| *port != 0),
        admin: port(ADMIN_ADDR),
        control: port(CONTROL_ADDR),
    }
}

fn phase(phase: &str) -> Phase {
    match phase {
        "Running" => Phase::Running,
        "Succeeded" | "Failed" => Phase::Finished,
        _ => Phase::Pending,
    }
}

fn ips(all: &[Ip], first: &str) -> Vec<std::net::IpAddr> {
    match all {
        [] => ip::parse(first).into_iter().collect(),
        all => all.iter().filter_map(|it| ip::parse(&it.ip)).collect(),
    }
}
