//! Values → Linkerd's messages: total, without decisions. The only place that knows how a message looks.

mod encode;
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

/// One message of a Get stream, encoded. Cheap to clone: all streams that are told the same share its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub(crate) kind: UpdateKind,
    /// As gRPC sends it, with its length before it.
    pub(crate) frame: Bytes,
}

impl Message {
    /// An encoded `io.linkerd.proxy.destination.Update`.
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
}

impl UpdateKind {
    pub(crate) const ALL: [UpdateKind; 4] =
        [UpdateKind::Add, UpdateKind::Remove, UpdateKind::NoEndpoints, UpdateKind::KeepAlive];

    pub(crate) fn name(self) -> &'static str {
        match self {
            UpdateKind::Add => "add",
            UpdateKind::Remove => "remove",
            UpdateKind::NoEndpoints => "no_endpoints",
            UpdateKind::KeepAlive => "keep_alive",
        }
    }

    /// The number of its field in `Update`.
    fn field(self) -> u32 {
        match self {
            UpdateKind::Add | UpdateKind::KeepAlive => 1,
            UpdateKind::Remove => 2,
            UpdateKind::NoEndpoints => 3,
        }
    }
}

/// Parameters for HTTP/2 as they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Http2(Box<[u8]>);

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
    body.finish(UpdateKind::NoEndpoints)
}

/// Says no more than that the stream is alive.
pub(crate) fn keep_alive() -> Message {
    Body::new(usize::MAX).finish(UpdateKind::KeepAlive)
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

    /// Appends some addresses, or takes them back and says `false`: then the message is full. The first ones stay
    /// whatever their size, so that there is always something to send. So many bytes are going to be saved.
    fn push(&mut self, count: usize, saved: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.bytes.len();
        if before > LARGE_BYTES && self.bytes.capacity() < self.bytes_max {
            // Memory that isn't written to is none.
            self.bytes.reserve_exact(self.bytes_max.saturating_mul(2));
        }
        write(&mut self.bytes);
        let bytes = self.bytes.len() - FRAME_BYTES;
        let full = bytes - saved > self.bytes_max || bytes > self.bytes_max.saturating_mul(2);
        if self.addresses > 0 && full {
            self.bytes.truncate(before);
            return false;
        }
        self.addresses += count;
        true
    }

    fn finish(mut self, kind: UpdateKind) -> Message {
        let len = (self.bytes.len() - ENVELOPE_BYTES_MAX) as u64;
        let start = ENVELOPE_BYTES_MAX - FRAME_BYTES - 1 - encoded_len_varint(len);
        let message_len = u32::try_from(self.bytes.len() - start - FRAME_BYTES).unwrap_or(u32::MAX);
        let mut envelope = &mut self.bytes[start..ENVELOPE_BYTES_MAX];
        // Not compressed.
        envelope.put_u8(0);
        envelope.put_u32(message_len);
        encode_key(kind.field(), WireType::LengthDelimited, &mut envelope);
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
        encode::labels(&mut body.bytes, 2, labels);
        Adds { addresses_at: body.bytes.len(), body, common: Common::default() }
    }

    /// Takes all of the addresses, or none and says `false`: then the message is full.
    pub(crate) fn push(&mut self, addresses: &[Address<'_>], http2: Option<&Http2>) -> bool {
        let http2 = http2.map(|http2| &*http2.0);
        let narrowed = self.common.narrowed(addresses);
        let saved = self.common.saved_with(&narrowed);
        let taken = self.body.push(addresses.len(), saved, |to| {
            addresses.iter().for_each(|address| encode::address(to, 1, address, http2));
        });
        if taken {
            self.common.take(narrowed);
        }
        taken
    }

    /// Bytes that it will have.
    pub(crate) fn bytes(&self) -> usize {
        self.body.bytes.len() - self.common.saved_bytes()
    }

    /// How many it has.
    pub(crate) fn addresses(&self) -> usize {
        self.body.addresses
    }

    /// The message; `None` if it has no address.
    pub(crate) fn finish(mut self) -> Option<Message> {
        self.common.hoist(&mut self.body.bytes, self.addresses_at);
        (self.body.addresses > 0).then(|| self.body.finish(UpdateKind::Add))
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
        (self.0.addresses > 0).then(|| self.0.finish(UpdateKind::Remove))
    }
}

#[cfg(test)]
pub(crate) mod tests;
