//! What a workload shows to clients, joined from the objects that have a say in it.

use model::{Metadata, OwnerRef, PortSet, Selector, Server, ServerPort, Template, WorkloadKind};

/// Changes whenever `join` would give other results for what is already stored, so that it is joined anew.
pub const JOIN_VERSION: u32 = 3;

const CONTROL_PLANE_NS: &str = "linkerd.io/control-plane-ns";
const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Joins a template with its owner's owner and the Servers of its namespace; see [`model::Join`].
pub fn join(
    template: &Template,
    owner_known: Option<Option<&OwnerRef>>,
    servers: &[Server],
) -> Metadata {
    let label = |key: &str| template.labels.get(key).filter(|value| !value.is_empty()).cloned();
    let ports = servers
        .iter()
        .filter(|server| selects(server, template))
        .flat_map(|server| ports_of(server, template).into_iter().map(|port| (port, port)));
    Metadata {
        kind: template.kind,
        namespace: template.namespace.clone(),
        control_plane_ns: label(CONTROL_PLANE_NS),
        owner: owner(template, owner_known.flatten()),
        service_account: template.service_account.clone(),
        pod_template_hash: label(POD_TEMPLATE_HASH),
        name_prefix: template.name_prefix.clone(),
        opaque: template.opaque.as_ref().map(|ports| on_host_too(ports, template)),
        opaque_by_server: PortSet::from_ranges(ports),
        skip_inbound: template.skip_inbound.clone(),
        proxy: template.proxy.clone(),
        mesh_tls: template.mesh_tls.clone(),
    }
}

/// The owner to show (spec §2.9.2): for a pod of a Job or ReplicaSet its owner in turn, where there is one. A
/// ReplicaSet may belong to a stranger's kind, which says less than its own name.
fn owner(template: &Template, above: Option<&OwnerRef>) -> Option<OwnerRef> {
    let owner = template.owner.as_ref()?;
    let above = above.filter(|above| match (template.kind, owner.kind.as_str()) {
        (WorkloadKind::Pod, "Job") => true,
        (WorkloadKind::Pod, "ReplicaSet") => {
            matches!(above.kind.as_str(), "Job" | "StatefulSet" | "DaemonSet" | "Deployment")
        }
        _ => false,
    });
    Some(above.unwrap_or(owner).clone())
}

/// Ports of containers, and the host's that lead there (Q10).
fn on_host_too(ports: &PortSet, template: &Template) -> PortSet {
    let meant = template.ports.iter().filter(|port| ports.contains(port.port));
    let on_host = meant.filter_map(|port| port.host_port).map(|port| (port, port));
    PortSet::from_ranges(ports.ranges().iter().copied().chain(on_host))
}

/// Does the Server make ports of this workload opaque (spec §2.7)?
fn selects(server: &Server, template: &Template) -> bool {
    let selector = match template.kind {
        WorkloadKind::Pod => &server.pods,
        WorkloadKind::External => &server.workloads,
    };
    let matches = |selector: &Selector| selector.matches(&template.labels);
    server.opaque && selector.as_ref().is_some_and(matches)
}

/// The ports that a Server means: its number, whatever the workload declares, or all ports of its name; on the container and
/// on the host (Q10).
fn ports_of(server: &Server, template: &Template) -> Vec<u16> {
    match &server.port {
        ServerPort::Number(number) => {
            let there = template.ports.iter().filter(|port| port.port == *number);
            std::iter::once(*number).chain(there.filter_map(|port| port.host_port)).collect()
        }
        ServerPort::Name(name) => {
            let named = template.ports.iter().filter(|port| port.name == *name);
            named.flat_map(|port| std::iter::once(port.port).chain(port.host_port)).collect()
        }
    }
}
