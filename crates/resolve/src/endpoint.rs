//! What stands behind an address that is dialled itself (spec §3.4.4).

use std::net::IpAddr;

use model::{Metadata, WorkloadKind};

use crate::render::{Address, Rendering};
use crate::{Settings, protocol};

/// What a client should know of an address that it dials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint<'c> {
    /// The address, which is what was asked for whatever stands behind it.
    pub address: Address<'c>,
    /// Its connections are not to be looked into.
    pub opaque: bool,
}

/// An address, and the workload that owns it, if any does: its name, and what clients see of it. `None`: it can't be
/// reached as it should be, and nothing is said of it (spec §2.9.3).
pub fn endpoint<'c>(
    settings: &'c Settings,
    ip: IpAddr,
    port: u16,
    workload: Option<(&'c str, &'c Metadata)>,
) -> Option<Endpoint<'c>> {
    let rendering = Rendering { settings, ip, port };
    let Some((name, workload)) = workload else {
        let opaque = settings.default_opaque.contains(port);
        return Some(Endpoint { address: rendering.blank(), opaque });
    };
    let mut address = match workload.kind {
        WorkloadKind::Pod => rendering.pod(name, workload).ok()?,
        WorkloadKind::External => rendering.external(name, workload),
    };
    // An endpoint has a zone only in an EndpointSlice.
    address.labels.set("zone", "");
    address.labels.set("namespace", &workload.namespace);
    Some(Endpoint { address, opaque: protocol::is_opaque(settings, workload, port) })
}
