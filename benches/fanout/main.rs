//! What streams cost: memory, time until all are told, and how a change reaches them. Our server, a trivial tonic server
//! that sends the same bytes, and a client, each in a process of its own.
//!
//! `cargo bench -p benches --bench fanout` runs all cases; with names (`idle`, `fill`, `flip`, `large`, `stall`, `herd`)
//! those.

mod ours;
mod trivial;

use data::child::Child;
use data::client::{Asks, Client};
use data::{mib, say};
use serde_json::json;

/// As the server has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measures and says.
type Case = fn() -> anyhow::Result<()>;

/// Changes that are told one after the other.
const FLIPS: usize = 50;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["child", "ours", spec, admin] => return ours::run(spec, admin),
        ["child", "trivial", spec] => return trivial::run(spec),
        ["child", "client", addr, connections, streams, services, how] => {
            let number = |text: &str| text.parse::<usize>();
            let client = Client {
                addr: addr.parse()?,
                connections: number(connections)?,
                streams: number(streams)?,
                asks: Asks::Services(number(services)?),
                reads: *how != "holds",
                named: *how == "named",
            };
            return client.run();
        }
        _ => {}
    }
    let cases: [(&str, Case); 6] = [
        ("idle", idle),
        ("fill", fill),
        ("flip", flip),
        ("large", large),
        ("stall", stall),
        ("herd", herd),
    ];
    let asked = |name: &str| words.contains(&name);
    let all = !cases.iter().any(|(name, _)| asked(name));
    for (_, case) in cases.iter().filter(|(name, _)| all || asked(name)) {
        case()?;
    }
    Ok(())
}

/// A client of so many streams on so many Services, on a tenth as many connections as a proxy each would have.
fn client(addr: &str, streams: usize, services: usize, how: &str) -> anyhow::Result<Child> {
    let connections = (streams / 10).clamp(1, 100).to_string();
    let (streams, services) = (streams.to_string(), services.to_string());
    Child::start(&["client", addr, &connections, &streams, &services, how])
}

/// Streams that have been told all, and wait.
fn idle() -> anyhow::Result<()> {
    let streams = 10_000;
    let mut server = Child::start(&["ours", "services=0,big=100x10,churn=0", "-"])?;
    let addr = server.word("ready")?;
    let before = server.number("rss")?;
    let mut client = client(&addr, streams, 100, "reads")?;
    full(&mut client)?;
    data::pause(std::time::Duration::from_secs(3));
    let after = server.number("rss")?;
    let each = (after - before) as f64 / 1_024.0 / streams as f64;
    say(&format!("{streams} idle streams on 100 Services: {each:.2} KiB each"));
    data::result(&json!({"bench": "fanout", "case": "idle_10000", "kib_per_stream": each,
        "rss_before_mib": mib(before), "rss_mib": mib(after)}));
    Ok(())
}

const THOUSAND: &str = "services=0,big=1x1000,churn=0";

/// All streams are opened at once, and told a thousand endpoints each.
fn fill() -> anyhow::Result<()> {
    let streams = 1_000;
    let mut times = Vec::new();
    let mut memory = (0, 0);
    for kind in ["ours", "trivial", "ours", "trivial"] {
        let args = [kind, THOUSAND, "-"];
        let mut server = Child::start(if kind == "ours" { &args } else { &args[..2] })?;
        let addr = server.word("ready")?;
        let before = server.number("rss")?;
        let mut client = client(&addr, streams, 1, "reads")?;
        times.push((kind, full(&mut client)?[2]));
        if kind == "ours" {
            data::pause(std::time::Duration::from_secs(1));
            memory = (before, server.number("rss")?);
        }
    }
    let best = |of: &str| {
        let times = times.iter().filter(|(kind, _)| *kind == of).map(|(_, ms)| *ms);
        times.fold(f64::INFINITY, f64::min)
    };
    let (ours, trivial) = (best("ours"), best("trivial"));
    let grown = mib(memory.1.saturating_sub(memory.0));
    say(&format!(
        "{streams} streams of 1,000 endpoints: all full after {ours:.0} ms, {:.2} of a trivial server's {trivial:.0} ms; \
         RSS + {grown} MiB",
        ours / trivial
    ));
    data::result(&json!({"bench": "fanout", "case": "fill_1000", "full_ms": ours,
        "vs_trivial": ours / trivial, "rss_grown_mib": grown}));
    Ok(())
}

/// One endpoint becomes ready, or isn't any more.
fn flip() -> anyhow::Result<()> {
    let streams = 1_000;
    let mut measured = Vec::new();
    for kind in ["ours", "trivial"] {
        let args = [kind, THOUSAND, "-"];
        let mut server = Child::start(if kind == "ours" { &args } else { &args[..2] })?;
        let addr = server.word("ready")?;
        let mut client = client(&addr, streams, 1, "reads")?;
        full(&mut client)?;
        let made = server.number("made")?;
        let (mut p50, mut p99) = (Vec::new(), Vec::new());
        for number in 0..FLIPS {
            data::pause(std::time::Duration::from_millis(100));
            let begun = server.number(&format!("flip {number}"))?;
            let told = client.numbers("round")?;
            p50.push(told[0].saturating_sub(begun));
            p99.push(told[1].saturating_sub(begun));
        }
        let made = server.number("made")? - made;
        measured.push((median(p50), median(p99), made));
    }
    let [ours, trivial] = measured[..] else { anyhow::bail!("two were measured") };
    let encodings = ours.2 as f64 / FLIPS as f64;
    say(&format!(
        "a change to {streams} streams: p50 {:.2} ms, p99 {:.2} ms, {:.2} of a trivial server's; {encodings} encodings each",
        ours.0,
        ours.1,
        ours.1 / trivial.1
    ));
    data::result(
        &json!({"bench": "fanout", "case": "flip_1000", "p50_ms": ours.0, "p99_ms": ours.1,
        "trivial_p99_ms": trivial.1, "vs_trivial": ours.1 / trivial.1, "encodings": encodings}),
    );
    Ok(())
}

/// A Service that doesn't fit into a message, and twenty streams of it.
fn large() -> anyhow::Result<()> {
    large_as("subset", "named")?;
    large_as("chunk", "reads")
}

fn large_as(decision: &str, how: &str) -> anyhow::Result<()> {
    let mut server = Child::start(&["ours", "services=0,big=1x50000,churn=0", "-"])?;
    let addr = server.word("ready")?;
    let mut first = client(&addr, 1, 1, how)?;
    let first_add = full(&mut first)?[2];
    data::pause(std::time::Duration::from_secs(2));
    let messages = server.number("sent")?;
    drop(first);
    let mut clients = client(&addr, 20, 1, how)?;
    full(&mut clients)?;
    for _ in 1..messages {
        clients.word("round")?;
    }
    let mut told = Vec::new();
    let begun = data::now();
    // A change in another part is none of these clients'.
    let mut number = 0;
    while told.len() < FLIPS && number < 100 * FLIPS {
        let sent = server.number("sent")?;
        let begun = server.number(&format!("flip {number}"))?;
        data::pause(std::time::Duration::from_millis(10));
        if server.number("sent")? > sent {
            told.push(clients.numbers("round")?[2].saturating_sub(begun));
        }
        number += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    // Asked at once, so that the asking costs nothing.
    let cost = server.ask("cost 200")?;
    let cost: Vec<f64> =
        cost.split(' ').map(|ns| Ok(ns.parse::<f64>()? / 1e6)).collect::<anyhow::Result<_>>()?;
    let [writer, others] = *cost else { anyhow::bail!("{cost:?} is not two numbers") };
    let cpu_ms = writer + others;
    let flip = median(told);
    say(&format!(
        "50,000 endpoints, {decision}: first Add after {first_add:.0} ms; a change to 20 streams {flip:.2} ms, {cpu_ms:.2} \
         ms of CPU, {writer:.2} of it the writer's ({number} changes in {seconds:.1} s)"
    ));
    data::result(
        &json!({"bench": "fanout", "case": format!("large_50000_{decision}"), "first_add_ms": first_add,
        "flip_20_ms": flip, "cpu_ms_per_event": cpu_ms,
        "writer_cpu_ms_per_event": writer}),
    );
    Ok(())
}

/// Clients that take nothing, while everything changes.
fn stall() -> anyhow::Result<()> {
    let streams = 10_000;
    let mut server = Child::start(&["ours", "services=0,big=20x500,churn=0", "-"])?;
    let addr = server.word("ready")?;
    let mut client = client(&addr, streams, 20, "holds")?;
    full(&mut client)?;
    data::pause(std::time::Duration::from_secs(2));
    let before = server.number("rss")?;
    let mut most = before;
    for _ in 0..100 {
        server.number("flood 10000")?;
        most = most.max(server.number("rss")?);
    }
    let grown = mib(most.saturating_sub(before));
    say(&format!("{streams} streams that take nothing, 1,000,000 changes: RSS + {grown} MiB"));
    data::result(&json!({"bench": "fanout", "case": "stalled_10000", "rss_grown_mib": grown,
        "rss_before_mib": mib(before), "changes": 1_000_000}));
    Ok(())
}

/// All proxies come back at once.
fn herd() -> anyhow::Result<()> {
    let streams = 10_000;
    let mut server = Child::start(&["ours", "services=0,big=100x100,churn=0", "-"])?;
    let addr = server.word("ready")?;
    let mut client = client(&addr, streams, 100, "reads")?;
    let begun = client.number_of("begun")?;
    let full = client.numbers("full")?;
    let ms = |at: u64| (at - begun) as f64 / 1e6;
    say(&format!(
        "{streams} streams on 100 Services: p99 {:.0} ms, all full {:.0} ms",
        ms(full[1]),
        ms(full[2])
    ));
    data::result(&json!({"bench": "fanout", "case": "herd_10000", "p50_ms": ms(full[0]),
        "p99_ms": ms(full[1]), "full_ms": ms(full[2])}));
    Ok(())
}

/// Waits until all streams have their first message: the median, the 99th percentile and the last, in milliseconds
/// since the client began.
fn full(client: &mut Child) -> anyhow::Result<[f64; 3]> {
    let begun = client.number_of("begun")?;
    let told = client.numbers("full")?;
    let ms = |at: usize| told.get(at).map_or(0.0, |at| at.saturating_sub(begun) as f64 / 1e6);
    Ok([ms(0), ms(1), ms(2)])
}

/// The median, in milliseconds.
fn median(mut ns: Vec<u64>) -> f64 {
    ns.sort_unstable();
    ns.get(ns.len() / 2).copied().unwrap_or_default() as f64 / 1e6
}

fn rss() -> anyhow::Result<u64> {
    data::memory(std::process::id(), "VmRSS")
}
