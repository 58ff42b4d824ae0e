//! What profiles cost: memory of a stream, whom an event wakes, the first message of a large cluster, and finding whose an
//! address is. The server and the client are processes of their own.
//!
//! `cargo bench -p benches --bench profile` runs all cases; with names (`streams`, `first`, `lookup`) those, and numbers are
//! numbers of endpoints of `lookup` (default: 10,000 and 10,000,000).

mod lookup;
mod reads;
mod server;

use data::child::Child;
use data::client::{Asks, Client};
use data::{mib, say};
use serde_json::json;

/// As the server has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const STREAMS: usize = 10_000;
const ADDRESSES: usize = 2_000;

/// Events that are told one after the other.
const EVENTS: u64 = 100;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["child", "server", spec] => return server::run(spec),
        ["child", "client", addr] => {
            let asks = Asks::Addresses(ADDRESSES);
            let addr = addr.parse()?;
            let client = Client {
                addr,
                connections: 100,
                streams: STREAMS,
                asks,
                reads: true,
                named: false,
            };
            return client.run();
        }
        _ => {}
    }
    let asked = |name: &str| words.contains(&name);
    let all = !["streams", "first", "lookup"].into_iter().any(asked);
    if all || asked("streams") {
        streams()?;
    }
    if all || asked("first") {
        first()?;
    }
    if all || asked("lookup") {
        lookup::run(&data::sizes(&[10_000, 10_000_000]))?;
    }
    Ok(())
}

/// Idle streams, five for each address; then pods change, one after the other.
fn streams() -> anyhow::Result<()> {
    let mut server = Child::start(&["server", "services=0,big=4x500,churn=0"])?;
    let addr = server.word("ready")?;
    let before = server.number("rss")?;
    let mut client = Child::start(&["client", &addr])?;
    client.number_of("begun")?;
    client.numbers("full")?;
    data::pause(std::time::Duration::from_secs(3));
    let each = server.number("rss")?.saturating_sub(before) as f64 / 1_024.0 / STREAMS as f64;
    let (sent, read) = (server.number("sent")?, server.number("made")?);
    for number in 0..EVENTS {
        server.number(&format!("relabel {number}"))?;
    }
    data::pause(std::time::Duration::from_secs(1));
    let told = (server.number("sent")? - sent) as f64 / EVENTS as f64;
    let read = (server.number("made")? - read) as f64 / EVENTS as f64;
    say(&format!(
        "{STREAMS} streams on {ADDRESSES} addresses: {each:.2} KiB each; an event of a pod is told to {told} of them, after \
         {read} looks at the store"
    ));
    data::result(&json!({"bench": "profile", "case": "streams_10000", "kib_per_stream": each,
        "told_per_event": told, "looks_per_event": read, "rss_before_mib": mib(before)}));
    Ok(())
}

/// All streams are opened at once, on a cluster of a million endpoints.
fn first() -> anyhow::Result<()> {
    let mut server = Child::start(&["server", "services=0,big=1000x1000,churn=0"])?;
    let addr = server.word("ready")?;
    // One after the other, as proxies dial; then all at once, as they come back.
    let alone = server.number("first 2000")? as f64 / 1e6;
    let mut client = Child::start(&["client", &addr])?;
    let begun = client.number_of("begun")?;
    let full = client.numbers("full")?;
    let ms = |at: usize| full.get(at).map_or(0.0, |at| at.saturating_sub(begun) as f64 / 1e6);
    say(&format!(
        "1,000,000 endpoints: the first message after {alone:.2} ms (p99 of 2,000 one after the other); of {STREAMS} streams at \
         once p50 {:.0}, p99 {:.0} ms",
        ms(0),
        ms(1)
    ));
    data::result(&json!({"bench": "profile", "case": "first_1000000", "p99_ms": alone,
        "herd_p50_ms": ms(0), "herd_p99_ms": ms(1)}));
    Ok(())
}
