//! Addresses as text.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use model::Claim;

use crate::{Address, Exclusion, Identity, Labels, Lens, Protocol};

/// An address with all that is said of it, over several lines.
pub(super) fn show(address: &Address<'_>) -> String {
    let mut shown = format!(
        "{} x{} {}",
        SocketAddr::new(address.ip, address.port),
        address.weight,
        show_labels(&address.labels),
    );
    match &address.identity {
        Some(Identity::Gateway(name)) => shown += &format!("\n  dns {name}"),
        Some(Identity::ServiceAccount(account)) => {
            let name = account.parts().concat();
            shown += &format!("\n  dns {name} sni {name}");
        }
        Some(Identity::Uri { uri, server_name }) => {
            shown += &format!("\n  uri {uri} sni {server_name}");
        }
        None => {}
    }
    if let Some(hint) = address.hint {
        shown += match hint.protocol {
            Protocol::Unset => "\n  hint",
            Protocol::Opaque => "\n  hint opaque",
            Protocol::H2 => "\n  hint h2",
        };
        shown += &hint.inbound_port.map(|port| format!(" via {port}")).unwrap_or_default();
    }
    if let Some(authority) = &address.authority_override {
        shown += &format!("\n  authority {authority}");
    }
    if address.http2 {
        shown += "\n  http2";
    }
    shown + "\n"
}

/// A claim, and what becomes of it.
pub(super) fn why(
    lens: &Lens,
    (claim, verdict): (&Claim, Result<Address<'_>, Exclusion>),
) -> String {
    let verdict = match verdict {
        Ok(address) => format!("at port {}", address.port),
        Err(exclusion) => format!("not: {} ({})", lens.words(exclusion), exclusion.rule()),
    };
    format!("{} {:?} {} {verdict}\n", claim.ip, claim.class, claim.name)
}

pub(super) fn show_labels(labels: &Labels<'_>) -> String {
    let labels: BTreeMap<_, _> = labels.iter().collect();
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}
