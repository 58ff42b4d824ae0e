//! From the port that a client asks for to the port of an endpoint (spec §2.3).

use model::{PortKey, Service};

/// What the requested port means for the slices of a Service: the name of its port with that number, one of
/// TCP before others (Q14), the first before later ones; else the number itself.
pub fn port_key(service: &Service, requested: u16) -> PortKey {
    let mut same = service.ports.iter().filter(|port| port.port == requested);
    let tcp = same.clone().find(|port| port.tcp);
    match tcp.or_else(|| same.next()) {
        Some(port) => PortKey::Named(port.name.clone()),
        None => PortKey::Numeric(requested),
    }
}
