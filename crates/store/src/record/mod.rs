//! Records: bytes of values, behind a version byte. The only room that knows bincode.

pub(crate) mod convert;
mod endpoint;
mod profile;
pub(crate) mod v3;

use bincode::config::{Configuration, Limit, LittleEndian, Varint};

use crate::Error;

/// The version byte of records written now.
const VERSION: u8 = 3;

/// Most records are shorter, so that encoding them takes one allocation.
const ENCODED_BYTES_USUAL: usize = 96;

/// Bytes that decoding one record may claim: 1,000 endpoints with long names fit many times.
const DECODE_BYTES_MAX: usize = 16 * 1024 * 1024;

const CONFIG: Configuration<LittleEndian, Varint, Limit<DECODE_BYTES_MAX>> =
    bincode::config::standard().with_limit::<DECODE_BYTES_MAX>();

/// The bytes of a record.
pub(crate) fn encode<T: bincode::Encode>(record: &T) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(ENCODED_BYTES_USUAL);
    bytes.push(VERSION);
    bincode::encode_into_std_write(record, &mut bytes, CONFIG)
        .map_err(|error| Error::Encode { reason: error.to_string() })?;
    Ok(bytes)
}

/// The record of bytes. All of them must belong to it.
pub(crate) fn decode<T: bincode::Decode<()>>(bytes: &[u8]) -> Result<T, Error> {
    let damaged = |reason: String| Error::Damaged { what: std::any::type_name::<T>(), reason };
    let (version, body) = bytes.split_first().ok_or_else(|| damaged("it is empty".to_owned()))?;
    if *version != VERSION {
        return Err(damaged(format!("its version is {version}, not {VERSION}")));
    }
    let (record, read) =
        bincode::decode_from_slice(body, CONFIG).map_err(|e| damaged(e.to_string()))?;
    if read != body.len() {
        return Err(damaged(format!("{} bytes are left over", body.len() - read)));
    }
    Ok(record)
}

#[cfg(test)]
pub(crate) mod sample;

#[cfg(test)]
mod tests;
