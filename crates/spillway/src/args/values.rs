//! Values of flags: text → value, each refusal one sentence.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use model::PortSet;

/// An address to listen on, as Go writes it: `:8086` is that port on all interfaces, IPv4 and IPv6.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse().map_err(|_| format!("{port:?} is not a port"))?;
        return Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port));
    }
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse().map_err(|_| {
        "expected IP:PORT, [IPV6]:PORT, localhost:PORT, or :PORT for all interfaces".to_owned()
    })
}

/// A server to ask: any host with a port, with or without `http://`.
pub(super) fn target(text: &str) -> Result<String, String> {
    let host_port = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let host_port = match host_port.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => host_port.to_owned(),
    };
    let wrong = || format!("{text:?} is not HOST:PORT or [IPV6]:PORT");
    let (host, port) = host_port.rsplit_once(':').ok_or_else(wrong)?;
    let bracketed = host.starts_with('[') && host.ends_with(']');
    let bare = !host.is_empty() && !host.contains([':', '/', '[', ']', '@', ' ']);
    if !(bracketed && host[1..host.len() - 1].parse::<Ipv6Addr>().is_ok() || bare) {
        return Err(wrong());
    }
    port.parse::<u16>().map_err(|_| wrong())?;
    Ok(format!("http://{host_port}"))
}

/// A number of bytes: `33554432`, `32MiB`, `32M` (powers of two, whichever way it is written).
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "K" | "KiB" | "k" | "KB" => 1 << 10,
        "M" | "MiB" | "m" | "MB" => 1 << 20,
        "G" | "GiB" | "g" | "GB" => 1_usize << 30,
        unit => return Err(format!("{unit:?} is not a unit; use KiB, MiB or GiB")),
    };
    let number: usize = digits.parse().map_err(|_| format!("{text:?} is not a number of bytes"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text} is too large"))
}

/// A memory budget: a number of bytes that a server can do with.
pub(super) fn memory(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)? as u64;
    let least = spillway::memory::TOTAL_BYTES_MIN;
    match bytes >= least {
        true => Ok(bytes),
        false => Err(format!("{text} is less than the {} MiB that a server needs", least >> 20)),
    }
}

/// A span of time: `3s`, `500ms`, `2m`, `1h`, or seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| format!("{text:?} is not a span of time"))?;
    let seconds = match &text[digits.len()..] {
        "ms" => number / 1_000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        unit => return Err(format!("{unit:?} is not a unit; use ms, s, m or h")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text:?} is out of range"))
}

/// A span of time that is not nothing.
pub(super) fn wait(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it can't be 0".to_owned()),
        time => Ok(time),
    }
}

/// How many there may be: one at least.
pub(super) fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it can't be 0".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("{text:?} is not a number")),
    }
}

/// When commits reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fsync {
    /// How long they may wait; `None`: not at all.
    pub(super) interval: Option<Duration>,
}

/// `commit`, or `interval=TIME`.
pub(super) fn fsync(text: &str) -> Result<Fsync, String> {
    let interval = match text.split_once('=') {
        None if text == "commit" => None,
        Some(("interval", time)) => Some(duration(time)?),
        _ => return Err(format!("{text:?} is neither commit nor interval=TIME")),
    };
    Ok(Fsync { interval })
}

/// Ports and ranges of ports: `25,587,8000-8100`. A flag names no ports, so any other item is refused.
pub(super) fn ports(text: &str) -> Result<PortSet, String> {
    match PortSet::parse(text, |_| None) {
        (ports, errors) if errors.is_empty() => Ok(ports),
        (_, errors) => Err(errors[0].to_string()),
    }
}

/// A DNS name: labels separated by dots, none empty.
pub(super) fn domain(text: &str) -> Result<String, String> {
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    match text.split('.').all(label) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not a DNS name")),
    }
}
