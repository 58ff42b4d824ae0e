//! One address as bytes, straight from the values: a message of 20,000 addresses would else be a million small
//! allocations on its way. The numbers of the fields are those of `destination.proto` and `net.proto`.

use std::net::IpAddr;

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};
use resolve::{Address, Hint, Identity, Protocol};

/// Parameters for HTTP/2, encoded.
pub(in super::super) type Http2 = [u8];

/// The number of the field of an address in a set, of an address's labels, and of a set's.
pub(super) const ADDRESS: u32 = 1;
pub(super) const LABELS_OF_ADDRESS: u32 = 4;
pub(super) const LABELS_OF_SET: u32 = 2;

/// Appends a `WeightedAddr`, with these of its labels.
pub(in super::super) fn address<'l>(
    to: &mut Vec<u8>,
    field: u32,
    address: &Address<'_>,
    labels: impl Iterator<Item = (&'l str, &'l str)>,
    http2: Option<&Http2>,
) {
    message(to, field, |to| {
        tcp(to, 1, address.ip, address.port);
        uint32(to, 3, address.weight);
        self::labels(to, LABELS_OF_ADDRESS, labels);
        if let Some(it) = &address.identity {
            identity(to, 5, it);
        }
        if let Some(it) = address.hint {
            hint(to, 6, it);
        }
        if let Some(authority) = &address.authority_override {
            message(to, 7, |to| string(to, 1, authority));
        }
        if let Some(params) = http2.filter(|_| address.http2) {
            message(to, 8, |to| to.extend_from_slice(params));
        }
    });
}

/// Appends a map of labels.
pub(super) fn labels<'l>(
    to: &mut Vec<u8>,
    field: u32,
    labels: impl Iterator<Item = (&'l str, &'l str)>,
) {
    for (key, value) in labels {
        message(to, field, |to| {
            string(to, 1, key);
            string(to, 2, value);
        });
    }
}

/// Appends a `TcpAddress`.
pub(super) fn tcp(to: &mut Vec<u8>, field: u32, ip: IpAddr, port: u16) {
    message(to, field, |to| {
        message(to, 1, |to| match ip {
            IpAddr::V4(ip) => {
                encode_key(1, WireType::ThirtyTwoBit, to);
                to.extend_from_slice(&u32::from(ip).to_le_bytes());
            }
            IpAddr::V6(ip) => message(to, 2, |to| {
                let ip = u128::from(ip);
                fixed64(to, 1, (ip >> 64) as u64);
                fixed64(to, 2, ip as u64);
            }),
        });
        uint32(to, 2, port.into());
    });
}

fn identity(to: &mut Vec<u8>, field: u32, identity: &Identity<'_>) {
    let text = |to: &mut Vec<u8>, field, parts: &[&str]| {
        message(to, field, |to| strings(to, 1, parts));
    };
    message(to, field, |to| match *identity {
        Identity::ServiceAccount(account) => {
            text(to, 1, &account.parts());
            text(to, 4, &account.parts());
        }
        Identity::Gateway(name) => text(to, 1, &[name]),
        Identity::Uri { uri, server_name } => {
            text(to, 3, &[uri]);
            text(to, 4, &[server_name]);
        }
    });
}

fn hint(to: &mut Vec<u8>, field: u32, hint: Hint) {
    message(to, field, |to| {
        match hint.protocol {
            Protocol::Unset => {}
            Protocol::H2 => message(to, 1, |_| ()),
            Protocol::Opaque => message(to, 3, |_| ()),
        }
        if let Some(port) = hint.inbound_port {
            message(to, 2, |to| uint32(to, 1, port.into()));
        }
    });
}

/// What is the default is left out, as in every field below: so it is in proto3.
fn string(to: &mut Vec<u8>, field: u32, value: &str) {
    strings(to, field, &[value]);
}

/// A string of several parts.
fn strings(to: &mut Vec<u8>, field: u32, parts: &[&str]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    if len > 0 {
        encode_key(field, WireType::LengthDelimited, to);
        encode_varint(len as u64, to);
        parts.iter().for_each(|part| to.extend_from_slice(part.as_bytes()));
    }
}

fn uint32(to: &mut Vec<u8>, field: u32, value: u32) {
    if value != 0 {
        encode_key(field, WireType::Varint, to);
        encode_varint(value.into(), to);
    }
}

fn fixed64(to: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        encode_key(field, WireType::SixtyFourBit, to);
        to.extend_from_slice(&value.to_le_bytes());
    }
}

/// Appends a message. Its length comes before it and is known after it, so one that is longer than a length of one
/// byte can say is moved up.
fn message(to: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    encode_key(field, WireType::LengthDelimited, to);
    let at = to.len();
    to.push(0);
    write(to);
    let (start, end) = (at + 1, to.len());
    let len = (end - start) as u64;
    match encoded_len_varint(len) {
        1 => to[at] = len as u8,
        width => {
            to.resize(end + width - 1, 0);
            to.copy_within(start..end, at + width);
            encode_varint(len, &mut &mut to[at..at + width]);
        }
    }
}
