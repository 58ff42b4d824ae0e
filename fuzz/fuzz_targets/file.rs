//! Any bytes as the file of a store. `crates/store/src/tests/formats` is the corpus to begin with.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Refused is as good as opened; what must not be is asserted within.
    store::fuzz::file(folder.path(), bytes).ok();
});
