//! Text in, text out: every test goes through one `check`.

mod render;

mod endpoints;
mod link;
mod metadata;
mod profile;
mod profile_faults;
mod profile_laws;
mod reject;
mod server;
mod service;
mod slice;
mod workload;

use expect_test::Expect;
use model::{ClusterId, Kind};

use super::decode;

/// Decodes an object and compares what it comes to, in words.
fn check(kind: Kind, json: &str, expected: Expect) {
    expected.assert_eq(&match decode(ClusterId::LOCAL, kind, json) {
        Ok(observed) => render::observed(&observed),
        Err(reject) => format!("reject {reject}\n"),
    });
}
