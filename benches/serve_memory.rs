//! How much memory the real server takes, with 10 k, 100 k and 1 M endpoints, and one stream each on a Service
//! of 1,000. It must not grow with the cluster: at most 1.3 times, and 96 MiB.

use std::time::Duration;

use data::{Server, mib, say};
use serde_json::json;

/// Streams settle, and the allocator gives back what the listing took.
const SETTLE: Duration = Duration::from_secs(3);

const LISTED_WITHIN: Duration = Duration::from_secs(600);

fn main() -> anyhow::Result<()> {
    let program = data::build()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut measured = Vec::new();
    say("endpoints    listed    RSS        peak       file");
    for endpoints in data::sizes(&[10_000, 100_000, 1_000_000]) {
        let folder = data::folder()?;
        let spec = data::spec(endpoints);
        let mut server = Server::start(&program, folder.path(), &spec)?;
        let listed = server.ready(LISTED_WITHIN)?;
        let mut client = runtime.block_on(server.connect())?;
        let stream = runtime.block_on(client.first_add(&data::authority(0)))?;
        anyhow::ensure!(stream.addresses == 1_000, "{} addresses", stream.addresses);
        data::pause(SETTLE);
        let (rss, peak) = (server.memory("VmRSS")?, server.memory("VmHWM")?);
        let file = data::folder_bytes(folder.path())?;
        say(&format!(
            "{endpoints:<12} {:<9} {:<10} {:<10} {} MiB",
            format!("{:.1} s", listed.as_secs_f64()),
            format!("{} MiB", mib(rss)),
            format!("{} MiB", mib(peak)),
            mib(file),
        ));
        data::result(&json!({
            "bench": "serve_memory",
            "endpoints": endpoints,
            "rss_mib": mib(rss),
            "rss_peak_mib": mib(peak),
            "file_mib": mib(file),
            "listed_s": listed.as_secs_f64(),
        }));
        drop(stream);
        server.stop()?;
        measured.push(rss);
    }
    if let (Some(first), Some(last)) = (measured.first(), measured.last()) {
        let ratio = *last as f64 / *first as f64;
        say(&format!(
            "the largest takes {ratio:.2} times the memory of the smallest (at most 1.3)"
        ));
        data::result(&json!({ "bench": "serve_memory", "ratio": ratio, "ratio_max": 1.3 }));
    }
    Ok(())
}
