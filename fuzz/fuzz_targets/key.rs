//! Any bytes as a key.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| store::fuzz::key(bytes));
