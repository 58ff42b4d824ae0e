//! How to speak to an endpoint: opaque ports, HTTP/2, and the port of its proxy.

use model::{Metadata, ProxyPorts};

use crate::Settings;

/// The inbound port of an ExternalWorkload's proxy, if it doesn't name one.
const INBOUND_PORT_DEFAULT: u16 = 4143;

/// What is known of the protocol at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The protocol.
    pub protocol: Protocol,
    /// The proxy's own port, if connections are to go there with the real one in a header.
    pub inbound_port: Option<u16>,
}

/// A protocol that both proxies know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Nothing to say.
    Unset,
    /// Not to be looked into.
    Opaque,
    /// HTTP/2 between the proxies.
    H2,
}

/// What a meshed pod needs and does not have: its proxy can't be reached as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProxyUnknown;

/// The hint for a port of a meshed pod (spec §2.9.2, §2.9.3).
pub(crate) fn of_pod(settings: &Settings, pod: &Metadata, port: u16) -> Result<Hint, ProxyUnknown> {
    let Some(ProxyPorts { inbound, admin: Some(admin), control: Some(control) }) = pod.proxy else {
        return Err(ProxyUnknown);
    };
    let opaque = is_opaque(settings, pod, port);
    let protocol = match opaque {
        true => Protocol::Opaque,
        false if settings.h2_upgrade => Protocol::H2,
        false => Protocol::Unset,
    };
    let transport = (opaque || settings.transport_header) && port != admin && port != control;
    let inbound_port = match (transport, inbound) {
        (false, _) => None,
        (true, Some(inbound)) if inbound != 0 => Some(inbound),
        (true, _) => return Err(ProxyUnknown),
    };
    Ok(Hint { protocol, inbound_port })
}

/// The hint for a port of an ExternalWorkload (spec §2.9.5): it is meshed, and always upgraded.
pub(crate) fn of_external(settings: &Settings, workload: &Metadata, port: u16) -> Hint {
    let opaque = is_opaque(settings, workload, port);
    let inbound = workload.proxy.as_ref().and_then(|proxy| proxy.inbound);
    Hint {
        protocol: if opaque { Protocol::Opaque } else { Protocol::H2 },
        inbound_port: (opaque || settings.transport_header)
            .then_some(inbound.unwrap_or(INBOUND_PORT_DEFAULT)),
    }
}

/// The hint for a gateway that has an identity.
pub(crate) fn of_gateway(settings: &Settings) -> Option<Hint> {
    settings.h2_upgrade.then_some(Hint { protocol: Protocol::H2, inbound_port: None })
}

/// Is the port opaque, by annotation, by default, or by a Server (spec §2.8)?
pub(crate) fn is_opaque(settings: &Settings, workload: &Metadata, port: u16) -> bool {
    let said = workload.opaque.as_ref().unwrap_or(&settings.default_opaque);
    said.contains(port) || workload.opaque_by_server.contains(port)
}
