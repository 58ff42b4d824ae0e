//! Values → Linkerd's messages: total, without decisions. The only place that knows how a message looks.

pub(super) mod encode;
mod hoist;
mod http2;

use std::net::IpAddr;

use bytes::{BufMut as _, Bytes};
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};
use resolve::{Address, Labels};

use hoist::Common;
pub use http2::{Http2ClientParams, Http2ParamsError, parse_http2_params};

/// What gRPC puts before a message: a flag, and its length.
pub(crate) const FRAME_BYTES: usize = 5;

/// What comes before a set of addresses at most: the frame, a tag, and a length of up to 5 bytes.
const ENVELOPE_BYTES_MAX: usize = FRAME_BYTES + 6;

/// A message that has become so large may become as large as one can be: it gets the room at once, and isn't moved
/// again.
const LARGE_BYTES: usize = 256 << 10;

/// One message of a stream, encoded. Cheap to clone: all streams that are told the same share its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub(crate) kind: UpdateKind,
    /// As gRPC sends it, with its length before it.
    pub(crate) frame: Bytes,
}

impl Message {
    /// An encoded `io.linkerd.proxy.destination.Update` or `DestinationProfile`.
    pub fn bytes(&self) -> Bytes {
        self.frame.slice(FRAME_BYTES..)
    }
}

/// The kinds of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    /// New and changed addresses.
    Add,
    /// Addresses that left.
    Remove,
    /// There are none.
    NoEndpoints,
    /// Nothing new: the stream is alive. It is an Add without addresses, which changes nothing for a proxy but that it
    /// goes on waiting.
    KeepAlive,
    /// A `DestinationProfile`.
    Profile,
}

/// The numbers of the fields of an `Update`.
const ADD: u32 = 1;
const REMOVE: u32 = 2;
const NO_ENDPOINTS: u32 = 3;

impl UpdateKind {
    pub(crate) const ALL: [UpdateKind; 5] = [
        UpdateKind::Add,
        UpdateKind::Remove,
        UpdateKind::NoEndpoints,
        UpdateKind::KeepAlive,
        UpdateKind::Profile,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            UpdateKind::Add => "add",
            UpdateKind::Remove => "remove",
            UpdateKind::NoEndpoints => "no_endpoints",
            UpdateKind::KeepAlive => "keep_alive",
            UpdateKind::Profile => "profile",
        }
    }
}

/// Parameters for HTTP/2 as they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Http2(Box<[u8]>);

impl Http2 {
    /// Encoded.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Http2ClientParams> for Http2 {
    fn from(params: Http2ClientParams) -> Http2 {
        Http2(params.encode_to_vec().into())
    }
}

/// The Service exists and has no address for this client.
pub(crate) fn no_endpoints() -> Message {
    let mut body = Body::new(usize::MAX);
    encode_key(1, WireType::Varint, &mut body.bytes);
    encode_varint(true.into(), &mut body.bytes);
    body.finish(UpdateKind::NoEndpoints, NO_ENDPOINTS)
}

/// Says no more than that the stream is alive.
pub(crate) fn keep_alive() -> Message {
    Body::new(usize::MAX).finish(UpdateKind::KeepAlive, ADD)
}

/// A message that is filled until it would be larger than a limit. Room for the envelope is kept before it, so that
/// it is never moved.
struct Body {
    bytes: Vec<u8>,
    bytes_max: usize,
    addresses: usize,
}

impl Body {
    fn new(bytes_max: usize) -> Body {
        Body { bytes: vec![0; ENVELOPE_BYTES_MAX], bytes_max, addresses: 0 }
    }

    /// Appends some addresses, or takes them back and says `false`: then the message is full. So many bytes are still to
    /// come.
    fn push(&mut self, count: usize, to_come: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.bytes.len();
        if before > LARGE_BYTES && self.bytes.capacity() < self.bytes_max {
            // Memory that isn't written to is none.
            self.bytes.reserve_exact(self.bytes_max);
        }
        write(&mut self.bytes);
        if !self.has_room(to_come) {
            self.bytes.truncate(before);
            return false;
        }
        self.addresses += count;
        true
    }

    /// The first addresses may be as large as they are, so that there is always something to send.
    fn has_room(&self, bytes: usize) -> bool {
        self.addresses == 0 || self.bytes.len() - FRAME_BYTES + bytes <= self.bytes_max
    }

    fn finish(mut self, kind: UpdateKind, field: u32) -> Message {
        let len = (self.bytes.len() - ENVELOPE_BYTES_MAX) as u64;
        let start = ENVELOPE_BYTES_MAX - FRAME_BYTES - 1 - encoded_len_varint(len);
        let message_len = u32::try_from(self.bytes.len() - start - FRAME_BYTES).unwrap_or(u32::MAX);
        let mut envelope = &mut self.bytes[start..ENVELOPE_BYTES_MAX];
        // Not compressed.
        envelope.put_u8(0);
        envelope.put_u32(message_len);
        encode_key(field, WireType::LengthDelimited, &mut envelope);
        encode_varint(len, &mut envelope);
        // It may be kept for long, and room to grow would be kept with it.
        self.bytes.shrink_to_fit();
        Message { kind, frame: Bytes::from(self.bytes).slice(start..) }
    }
}

/// An `add` that is filled until it would be larger than a limit.
pub(crate) struct Adds {
    body: Body,
    addresses_at: usize,
    common: Common,
}

impl Adds {
    /// Has no address yet; `labels` are those of the set.
    pub(crate) fn new(labels: &Labels<'_>, bytes_max: usize) -> Adds {
        let mut body = Body::new(bytes_max);
        encode::labels(&mut body.bytes, encode::LABELS_OF_SET, labels.iter());
        Adds { addresses_at: body.bytes.len(), body, common: Common::default() }
    }

    /// Takes all of the addresses, or none and says `false`: then the message is full.
    pub(crate) fn push(&mut self, addresses: &[Address<'_>], http2: Option<&Http2>) -> bool {
        if let (0, Some(first)) = (self.body.addresses, addresses.first()) {
            self.common = Common::of(&first.labels);
        }
        if !addresses.iter().all(|address| self.narrow(&address.labels)) {
            return false;
        }
        let http2 = http2.map(Http2::bytes);
        let to_come = self.common.bytes(self.body.addresses + addresses.len());
        self.body.push(addresses.len(), to_come, |to| {
            for address in addresses {
                encode::address(
                    to,
                    encode::ADDRESS,
                    address,
                    self.common.others(&address.labels),
                    http2,
                );
            }
        })
    }

    /// Makes common to all only what an address has, too; `false` if there is no room for what is not.
    fn narrow(&mut self, labels: &Labels<'_>) -> bool {
        if self.common.is_in(labels) {
            return true;
        }
        let (kept, dropped) = self.common.split(labels);
        let addresses = self.body.addresses;
        if !self.body.has_room(dropped.bytes_put_back(addresses)) {
            return false;
        }
        dropped.put_back(&mut self.body.bytes, self.addresses_at, addresses);
        self.common = kept;
        true
    }

    /// Bytes that it will have.
    pub(crate) fn bytes(&self) -> usize {
        self.body.bytes.len() + self.common.bytes(self.body.addresses)
    }

    /// How many it has.
    pub(crate) fn addresses(&self) -> usize {
        self.body.addresses
    }

    /// The message; `None` if it has no address.
    pub(crate) fn finish(mut self) -> Option<Message> {
        let Adds { body, addresses_at, common } = &mut self;
        common.put(&mut body.bytes, *addresses_at, body.addresses);
        (self.body.addresses > 0).then(|| self.body.finish(UpdateKind::Add, ADD))
    }
}

/// How far a message was filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    addresses: usize,
}

/// A `remove` that is filled until it would be larger than a limit.
pub(crate) struct Removes(Body);

impl Removes {
    /// Has no address yet.
    pub(crate) fn new(bytes_max: usize) -> Removes {
        Removes(Body::new(bytes_max))
    }

    /// Takes these ports of an ip, or none and says `false`: then the message is full.
    pub(crate) fn push(&mut self, ip: IpAddr, ports: &[u16]) -> bool {
        self.0.push(ports.len(), 0, |to| {
            ports.iter().for_each(|port| encode::tcp(to, 1, ip, *port));
        })
    }

    /// How far it is filled.
    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.0.bytes.len(), addresses: self.0.addresses }
    }

    /// Forgets what was pushed since.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.0.bytes.truncate(mark.bytes);
        self.0.addresses = mark.addresses;
    }

    /// The message; `None` if it has no address.
    pub(crate) fn finish(self) -> Option<Message> {
        (self.0.addresses > 0).then(|| self.0.finish(UpdateKind::Remove, REMOVE))
    }
}

#[cfg(test)]
pub(crate) mod tests;
