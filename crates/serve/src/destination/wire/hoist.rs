//! Labels that all addresses of a large message have: said once, for the set, instead of with each address. A client
//! puts the set's labels under each address's own, so it holds the same either way.
//!
//! An address is written without them from the first one on. They are put back if a later one hasn't got them, or if
//! there were too few.

use prost::encoding::{WireType, decode_varint, encode_key, encode_varint, encoded_len_varint};
use resolve::Labels;

use super::encode::{self, ADDRESS, LABELS_OF_ADDRESS, LABELS_OF_SET};

/// With fewer addresses there is nothing to save.
const ADDRESSES_MIN: usize = 100;

/// How far an endpoint is from its client is read from the endpoint itself.
const OWN: &str = "zone_locality";

/// Labels that addresses have in common, in the order in which each has them.
#[derive(Debug, Default)]
pub(super) struct Common {
    labels: Vec<(String, String)>,
    /// Bytes that they take, of a set as well as of an address.
    bytes: usize,
}

impl Common {
    fn new(labels: Vec<(String, String)>) -> Common {
        let mut common = Common { labels, bytes: 0 };
        common.bytes = common.encoded(LABELS_OF_SET).len();
        common
    }

    /// What one address alone could have in common with others.
    pub(super) fn of(labels: &Labels<'_>) -> Common {
        let others = labels.iter().filter(|(key, _)| *key != OWN);
        Common::new(others.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// Does an address have all of them?
    pub(super) fn is_in(&self, labels: &Labels<'_>) -> bool {
        let mut rest = labels.iter();
        self.iter().all(|label| rest.any(|own| own == label))
    }

    /// Those that an address has, too, and the others.
    pub(super) fn split(&self, labels: &Labels<'_>) -> (Common, Common) {
        let mut rest = labels.iter();
        let has = |(key, value): &(String, String)| {
            let mut ahead = rest.clone();
            let found = ahead.any(|own| own == (key, value));
            if found {
                rest = ahead;
            }
            found
        };
        let (kept, dropped) = self.labels.iter().cloned().partition(has);
        (Common::new(kept), Common::new(dropped))
    }

    /// Of an address that has all of them, its other labels.
    pub(super) fn others<'l>(
        &'l self,
        labels: &'l Labels<'l>,
    ) -> impl Iterator<Item = (&'l str, &'l str)> {
        let mut common = self.iter().peekable();
        labels.iter().filter(move |own| common.next_if_eq(own).is_none())
    }

    /// Bytes that they take at most in a message of so many addresses, which were written without them.
    pub(super) fn bytes(&self, addresses: usize) -> usize {
        match addresses >= ADDRESSES_MIN {
            true => self.bytes,
            false => self.bytes_put_back(addresses),
        }
    }

    /// Bytes that they take at most in each of so many addresses. The length before an address may grow with it.
    pub(super) fn bytes_put_back(&self, addresses: usize) -> usize {
        addresses * (self.bytes + encoded_len_varint(self.bytes as u64))
    }

    /// Completes a message of so many addresses, which begin there.
    pub(super) fn put(&self, bytes: &mut Vec<u8>, addresses_at: usize, addresses: usize) {
        match addresses >= ADDRESSES_MIN {
            true => encode::labels(bytes, LABELS_OF_SET, self.iter()),
            false => self.put_back(bytes, addresses_at, addresses),
        }
    }

    /// Appends them to each address.
    pub(super) fn put_back(&self, bytes: &mut Vec<u8>, addresses_at: usize, addresses: usize) {
        let labels = self.encoded(LABELS_OF_ADDRESS);
        let mut to = Vec::with_capacity(bytes.len() + self.bytes_put_back(addresses));
        let (before, mut rest) = bytes.split_at(addresses_at);
        to.extend_from_slice(before);
        while let Some(address) = next_address(&mut rest) {
            encode_key(ADDRESS, WireType::LengthDelimited, &mut to);
            encode_varint((address.len() + labels.len()) as u64, &mut to);
            to.extend_from_slice(address);
            to.extend_from_slice(&labels);
        }
        *bytes = to;
    }

    fn encoded(&self, field: u32) -> Vec<u8> {
        let mut encoded = Vec::new();
        encode::labels(&mut encoded, field, self.iter());
        encoded
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// Takes the first of some addresses: what is after its tag and its length.
fn next_address<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    decode_varint(rest).ok()?;
    let len = usize::try_from(decode_varint(rest).ok()?).ok()?;
    rest.split_off(..len)
}
