//! Addresses as text.

use std::net::IpAddr;

use super::warnings::Warnings;

/// As [`parse`], with a warning of what is none.
pub(super) fn expect(text: &str, warnings: &mut Warnings) -> Option<IpAddr> {
    let ip = parse(text);
    if ip.is_none() {
        warnings.push(format_args!("{text:?} is no IP address"));
    }
    ip
}

/// The address, without its zone suffix (`fe80::1%eth0`). `None` for what is no address; IPv4 with leading zeros
/// is none, since it is read differently in different places.
pub(super) fn parse(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((ip, _)) => ip.parse().ok().filter(IpAddr::is_ipv6),
        None => text.parse().ok(),
    }
}
