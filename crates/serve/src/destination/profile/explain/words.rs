//! The words of an explanation: whose an address is, and what makes a port opaque.

use std::net::{IpAddr, SocketAddr};

use model::{Phase, PortSet, ServicePort, WorkloadKind};
use store::Backing;

/// Ports, or ranges of them, that are listed.
const PORTS_MAX: usize = 20;

/// What a pod, an ExternalWorkload or a Service says of its opaque ports.
const ANNOTATION: &str = "config.linkerd.io/opaque-ports";

/// Is the port opaque, by the annotation of this one?
pub(super) fn annotated(of: &str, ports: &PortSet, port: u16) -> (bool, String) {
    judged(&format!("annotation {ANNOTATION} of {of}"), ports, port)
}

pub(super) fn without_annotation(of: &str) -> String {
    format!("{of} has no annotation {ANNOTATION}")
}

/// Is the port in this set, which is somebody's?
pub(super) fn judged(whose: &str, ports: &PortSet, port: u16) -> (bool, String) {
    let opaque = ports.contains(port);
    let (word, has) = if opaque { ("yes", "has") } else { ("no", "doesn't have") };
    (opaque, format!("{word}: {whose} ({}) {has} port {port}", ranges(ports)))
}

/// Why it is the address of nobody.
pub(super) fn nobodys(addr: SocketAddr) -> String {
    format!(
        "nobody has {addr}: it is no ClusterIP and no pod's or ExternalWorkload's; pods that are finished or \
         terminating don't count, nor do load balancers' addresses"
    )
}

/// By which rule an address is a workload's, and whether that counts yet.
pub(super) fn has_address(standing: &Backing, ip: IpAddr, port: u16) -> String {
    let of = named(standing);
    let has = match standing.metadata.kind {
        WorkloadKind::External => {
            format!("{ip} is an address of {of}, and {port} one of its ports")
        }
        // No port of a host is 0.
        WorkloadKind::Pod if standing.has(ip, 0) => format!("{ip} is {of}'s own address"),
        WorkloadKind::Pod => {
            format!("{ip} is the address of the host of {of}, and {port} one of its host ports")
        }
    };
    match standing.phase {
        Phase::Running => has,
        Phase::Pending => format!("{has}, but it doesn't run yet; until then nobody has it"),
        Phase::Finished => format!("{has}, but it is finished; nobody has it"),
    }
}

pub(super) fn named(standing: &Backing) -> String {
    match standing.metadata.kind {
        WorkloadKind::Pod => format!("Pod {}", standing.name),
        WorkloadKind::External => format!("ExternalWorkload {}", standing.name),
    }
}

/// The ports of a Service, with their names.
pub(super) fn ports(ports: &[ServicePort]) -> String {
    let port = |it: &ServicePort| match it.name.as_str() {
        "" => it.port.to_string(),
        name => format!("{} {name}", it.port),
    };
    listed(ports.iter().map(port))
}

fn ranges(ports: &PortSet) -> String {
    let range = |(low, high): &(u16, u16)| match low == high {
        true => low.to_string(),
        false => format!("{low}-{high}"),
    };
    listed(ports.ranges().iter().map(range))
}

fn listed(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(PORTS_MAX);
    let first = all.take(PORTS_MAX).collect::<Vec<_>>().join(", ");
    match (first.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => first,
        (false, more) => format!("{first} and {more} more"),
    }
}
