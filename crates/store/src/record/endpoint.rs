//! Endpoints of a slice as bytes: a byte that says what there is, and then only that.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use super::v3::{Ip, SliceEndpoint};

/// What the first byte says. The target is in two bits.
const READY: u8 = 1;
const TARGET: u8 = 1 << 1;
const TARGETS_MAX: u8 = 2;
const NAMESPACE: u8 = 1 << 3;
const HOSTNAME: u8 = 1 << 4;
const ZONE: u8 = 1 << 5;
const HINTS: u8 = 1 << 6;
const V6: u8 = 1 << 7;

impl Encode for SliceEndpoint {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        let bit = |there: bool, bit: u8| if there { bit } else { 0 };
        let head = bit(self.ready, READY)
            | (self.target.min(TARGETS_MAX) * TARGET)
            | bit(!self.namespace.is_empty(), NAMESPACE)
            | bit(self.hostname.is_some(), HOSTNAME)
            | bit(self.zone != 0, ZONE)
            | bit(!self.hints.is_empty(), HINTS)
            | bit(matches!(self.ip, Ip::V6(_)), V6);
        head.encode(to)?;
        match &self.ip {
            Ip::V4(octets) => octets.encode(to)?,
            Ip::V6(octets) => octets.encode(to)?,
        }
        if self.target != 0 {
            self.workload.encode(to)?;
            self.name.encode(to)?;
        }
        if !self.namespace.is_empty() {
            self.namespace.encode(to)?;
        }
        if let Some(hostname) = &self.hostname {
            hostname.encode(to)?;
        }
        if self.zone != 0 {
            self.zone.encode(to)?;
        }
        if !self.hints.is_empty() {
            self.hints.encode(to)?;
        }
        Ok(())
    }
}

impl<C> Decode<C> for SliceEndpoint {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<SliceEndpoint, DecodeError> {
        let head = u8::decode(from)?;
        let has = |bit: u8| head & bit != 0;
        let target = (head / TARGET) % 4;
        if target > TARGETS_MAX {
            return Err(DecodeError::Other("an endpoint's target is of no kind"));
        }
        let ip = match has(V6) {
            false => Ip::V4(Decode::decode(from)?),
            true => Ip::V6(Decode::decode(from)?),
        };
        let (workload, name) = match target {
            0 => (0, String::new()),
            _ => (Decode::decode(from)?, Decode::decode(from)?),
        };
        Ok(SliceEndpoint {
            ip,
            ready: has(READY),
            workload,
            target,
            namespace: if has(NAMESPACE) { Decode::decode(from)? } else { String::new() },
            name,
            hostname: if has(HOSTNAME) { Some(Decode::decode(from)?) } else { None },
            zone: if has(ZONE) { Decode::decode(from)? } else { 0 },
            hints: if has(HINTS) { Decode::decode(from)? } else { Vec::new() },
        })
    }
}

bincode::impl_borrow_decode!(SliceEndpoint);
