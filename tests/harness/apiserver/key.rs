//! The key that an API server signs tokens of service accounts with: it doesn't start without one.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};

/// A new key, as PEM.
pub(super) fn new_key() -> Result<String> {
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
    let key = key.map_err(|_| anyhow!("no key could be made"))?;
    let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
    for line in base64(key.as_ref()).as_bytes().chunks(64) {
        writeln!(pem, "{}", String::from_utf8_lossy(line))?;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    Ok(pem)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            let padding = digit > chunk.len();
            text.push(if padding { '=' } else { char::from(DIGITS[value as usize]) });
        }
    }
    text
}
