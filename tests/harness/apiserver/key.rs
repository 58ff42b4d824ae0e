//! The key that an API server signs tokens of service accounts with: it doesn't start without one.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

/// A key pair, each half as PEM: the API server reads the public half from a file of its own.
pub(super) struct KeyPair {
    pub(super) private: String,
    pub(super) public: String,
}

/// A new key pair.
pub(super) fn new_key() -> Result<KeyPair> {
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let failed = |_| anyhow!("no key could be made");
    let private = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).map_err(failed)?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref())?;
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().map_err(failed)?;
    Ok(KeyPair {
        private: pem("PRIVATE KEY", private.as_ref())?,
        public: pem("PUBLIC KEY", public.as_ref())?,
    })
}

fn pem(kind: &str, bytes: &[u8]) -> Result<String> {
    let mut pem = format!("-----BEGIN {kind}-----\n");
    for line in base64(bytes).as_bytes().chunks(64) {
        writeln!(pem, "{}", String::from_utf8_lossy(line))?;
    }
    writeln!(pem, "-----END {kind}-----")?;
    Ok(pem)
}

pub(super) fn base64(bytes: &[u8]) -> String {
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
