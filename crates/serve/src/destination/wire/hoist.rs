//! Labels that all addresses of a large message have: said once, for the set, instead of with each address. A client
//! puts the set's labels under each address's own, so it holds the same either way.

use resolve::{Address, Labels};

use super::encode;

/// With fewer addresses there is nothing to save.
const ADDRESSES_MIN: usize = 100;

/// How far an endpoint is from its client is read from the endpoint itself.
const OWN: &str = "zone_locality";

/// The number of the field of an address's labels, and of a set's.
const LABELS_OF_ADDRESS: u32 = 4;
const LABELS_OF_SET: u32 = 2;

/// The labels that all addresses so far have.
#[derive(Debug, Default)]
pub(super) struct Common {
    addresses: usize,
    labels: Vec<Label>,
}

#[derive(Clone, Debug)]
struct Label {
    key: String,
    value: String,
    /// As it is in each address.
    encoded: Vec<u8>,
}

/// What is common to more addresses.
pub(super) struct Narrowed {
    addresses: usize,
    /// `None`: the same as before, as it nearly always is.
    labels: Option<Vec<Label>>,
}

impl Common {
    /// What is common to these addresses, too.
    pub(super) fn narrowed(&self, addresses: &[Address<'_>]) -> Narrowed {
        let count = self.addresses + addresses.len();
        let known = match (self.addresses, addresses.first()) {
            (0, Some(first)) => first.labels.iter().filter_map(Label::new).collect(),
            _ if self.is_in_all(addresses) => {
                return Narrowed { addresses: count, labels: None };
            }
            _ => self.labels.clone(),
        };
        let common = |label: &Label| addresses.iter().all(|it| label.is_in(&it.labels));
        let labels = Some(known.into_iter().filter(common).collect());
        Narrowed { addresses: count, labels }
    }

    fn is_in_all(&self, addresses: &[Address<'_>]) -> bool {
        let in_all = |label: &Label| addresses.iter().all(|it| label.is_in(&it.labels));
        self.labels.iter().all(in_all)
    }

    /// Bytes that would be saved by saying them once.
    pub(super) fn saved_with(&self, narrowed: &Narrowed) -> usize {
        saved(narrowed.labels.as_ref().unwrap_or(&self.labels), narrowed.addresses)
    }

    /// The addresses were taken.
    pub(super) fn take(&mut self, narrowed: Narrowed) {
        self.addresses = narrowed.addresses;
        if let Some(labels) = narrowed.labels {
            self.labels = labels;
        }
    }

    /// Bytes that are saved by saying them once.
    pub(super) fn saved_bytes(&self) -> usize {
        saved(&self.labels, self.addresses)
    }

    fn is_worth_it(&self) -> bool {
        self.addresses >= ADDRESSES_MIN
    }

    /// Takes them out of the addresses, which begin there, and appends them as those of the set.
    pub(super) fn hoist(&self, bytes: &mut Vec<u8>, addresses_at: usize) {
        if !self.is_worth_it() || self.labels.is_empty() {
            return;
        }
        let (mut read, mut write) = (addresses_at, addresses_at);
        while let Some((tag_bytes, payload)) = field(bytes, read) {
            let end = payload.1;
            let kept: usize = fields(bytes, payload)
                .filter(|own| !self.has(&bytes[own.0..own.1]))
                .map(|own| own.1 - own.0)
                .sum();
            bytes.copy_within(read..read + tag_bytes, write);
            write += tag_bytes;
            write += put_length(&mut bytes[write..], kept);
            // What is written is never beyond what is read.
            let mut at = payload.0;
            while let Some(own) = next_field(bytes, (at, end)) {
                at = own.1;
                if !self.has(&bytes[own.0..own.1]) {
                    bytes.copy_within(own.0..own.1, write);
                    write += own.1 - own.0;
                }
            }
            read = end;
        }
        bytes.copy_within(read.., write);
        bytes.truncate(bytes.len() - (read - write));
        for label in &self.labels {
            encode::label(bytes, LABELS_OF_SET, &label.key, &label.value);
        }
    }

    fn has(&self, field: &[u8]) -> bool {
        self.labels.iter().any(|label| label.encoded == field)
    }
}

fn saved(labels: &[Label], addresses: usize) -> usize {
    let each: usize = labels.iter().map(|label| label.encoded.len()).sum();
    if addresses >= ADDRESSES_MIN { each * (addresses - 1) } else { 0 }
}

impl Label {
    fn new((key, value): (&str, &str)) -> Option<Label> {
        let mut encoded = Vec::new();
        encode::label(&mut encoded, LABELS_OF_ADDRESS, key, value);
        (key != OWN).then(|| Label { key: key.to_owned(), value: value.to_owned(), encoded })
    }

    fn is_in(&self, labels: &Labels<'_>) -> bool {
        labels.iter().any(|(key, value)| key == self.key && value == self.value)
    }
}

/// Where something is: its first byte, and the one after its last.
type Span = (usize, usize);

/// The bytes of the next field's tag, and where its payload is; `None` at the end. All fields are length-delimited here.
fn field(bytes: &[u8], at: usize) -> Option<(usize, Span)> {
    let (_, tag_bytes) = varint(bytes, at)?;
    let (length, length_bytes) = varint(bytes, at + tag_bytes)?;
    let start = at + tag_bytes + length_bytes;
    Some((tag_bytes, (start, start.checked_add(usize::try_from(length).ok()?)?)))
}

/// The fields of a message, tags included.
fn fields(bytes: &[u8], (mut at, end): Span) -> impl Iterator<Item = Span> + '_ {
    std::iter::from_fn(move || {
        let field = next_field(bytes, (at, end))?;
        at = field.1;
        Some(field)
    })
}

fn next_field(bytes: &[u8], (at, end): Span) -> Option<Span> {
    if at >= end {
        return None;
    }
    let (tag, tag_bytes) = varint(bytes, at)?;
    let after_tag = at + tag_bytes;
    let payload_end = match tag & 7 {
        0 => after_tag + varint(bytes, after_tag)?.1,
        1 => after_tag + 8,
        5 => after_tag + 4,
        _ => field(bytes, at)?.1.1,
    };
    Some((at, payload_end.min(end)))
}

/// A number, and how many bytes it takes.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut rest = bytes.get(at..)?;
    let before = rest.len();
    let number = prost::encoding::decode_varint(&mut rest).ok()?;
    Some((number, before - rest.len()))
}

fn put_length(mut to: &mut [u8], length: usize) -> usize {
    let length = length as u64;
    prost::encoding::encode_varint(length, &mut to);
    prost::encoding::encoded_len_varint(length)
}
