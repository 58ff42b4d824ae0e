//! The beginning of an event that is too long to be read: which object it is about.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

/// What the beginning of an event says, as far as it says it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// `ADDED`, `MODIFIED`, `DELETED`.
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) version: String,
}

/// Reads the first bytes of an event. The API server writes an object's name before all that can be long.
pub(super) fn read(bytes: &[u8]) -> Head {
    let mut head = Head::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    // It breaks off, so reading it fails, after what counts.
    Fields { within: Within::Event, head: &mut head }.deserialize(&mut json).ok();
    head
}

#[derive(Clone, Copy)]
enum Within {
    Event,
    Object,
    Metadata,
}

struct Fields<'h> {
    within: Within,
    head: &'h mut Head,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an event of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Fields { within, head } = self;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match (within, &*key) {
                (Within::Event, "type") => head.kind = map.next_value()?,
                (Within::Event, "object") => {
                    map.next_value_seed(Fields { within: Within::Object, head })?;
                }
                (Within::Object, "metadata") => {
                    map.next_value_seed(Fields { within: Within::Metadata, head })?;
                    return Err(A::Error::custom("that was all of interest"));
                }
                (Within::Metadata, "name") => head.name = map.next_value()?,
                (Within::Metadata, "namespace") => head.namespace = map.next_value()?,
                (Within::Metadata, "resourceVersion") => head.version = map.next_value()?,
                _ => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_known_as_is_there() {
        const WHOLE: &str = r#"{"type":"DELETED","object":{"kind":"Pod","metadata":{"name":"a\u0062","namespace":"n","uid":"u","resourceVersion":"7","labels":{"x":"y"}},"spec":{"name":"no"}}}"#;
        let all = ["DELETED", "ab", "n", "7"];
        for end in 0..=WHOLE.len() {
            let Head { kind, name, namespace, version } = read(&WHOLE.as_bytes()[..end]);
            for (read, written) in [kind, name, namespace, version].iter().zip(all) {
                assert!(read.is_empty() || read == written, "{read} of {}", &WHOLE[..end]);
                let after = WHOLE.find("\"uid\"").unwrap();
                assert!(end < after || written == "7" || read == written, "{end}: no {written}");
            }
        }
        assert_eq!(read(WHOLE.as_bytes()).version, "7");
        for nonsense in ["", "7", "[", "{\"type\":7", "\u{fffd}"] {
            assert_eq!(read(nonsense.as_bytes()), Head::default());
        }
    }
}
