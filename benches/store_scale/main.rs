//! What the store costs as it grows: ingest, memory, bytes on disk, opening, a change, a snapshot, a relist.
//!
//! `cargo bench -p benches --bench store_scale` runs all parts; `-- ingest`, `-- latency`, `-- relist` one, and
//! numbers are numbers of endpoints (default: 10,000, 1,000,000 and 10,000,000).

mod child;
mod ingest;
mod latency;
mod relist;

/// As the server has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == "child") {
        return child::run(&args[1..]);
    }
    let parts = ["ingest", "latency", "relist"];
    let asked = |part: &&str| args.iter().any(|arg| arg == part);
    let all = !parts.iter().any(&asked);
    if all || asked(&"ingest") {
        ingest::run(&data::sizes(&[10_000, 1_000_000, 10_000_000]))?;
    }
    if all || asked(&"latency") {
        latency::run()?;
    }
    if all || asked(&"relist") {
        relist::run()?;
    }
    Ok(())
}
