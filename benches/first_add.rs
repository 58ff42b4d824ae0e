//! How soon a server answers after its process starts, with 1 M endpoints on disk: ready within 1 s, then the
//! first Add of a Service of 1,000 within 20 ms.

use std::time::Duration;

use data::{Server, ms, say};
use serde_json::json;

const STARTS: usize = 5;

const LISTED_WITHIN: Duration = Duration::from_secs(600);

fn main() -> anyhow::Result<()> {
    let program = data::build()?;
    let runtime = tokio::runtime::Runtime::new()?;
    for endpoints in data::sizes(&[1_000_000]) {
        let folder = data::folder()?;
        let spec = data::spec(endpoints);
        let mut server = Server::start(&program, folder.path(), &spec)?;
        let listed = server.ready(LISTED_WITHIN)?;
        say(&format!("{endpoints} endpoints are on disk after {:.1} s", listed.as_secs_f64()));
        server.stop()?;
        let (mut readies, mut adds) = (Vec::new(), Vec::new());
        for start in 0..STARTS {
            let mut server = Server::start(&program, folder.path(), &spec)?;
            let ready = server.ready(Duration::from_secs(60))?;
            let asked = data::now();
            let mut client = runtime.block_on(server.connect())?;
            // Another Service each time: this one has been read by no process before.
            let stream = runtime.block_on(client.first_add(&data::authority(start)))?;
            anyhow::ensure!(stream.addresses == 1_000, "{} addresses", stream.addresses);
            // The connection counts as well: a proxy has none yet.
            let add = asked.elapsed();
            say(&format!(
                "start {start}: ready after {} ms, first Add {} ms later",
                ms(ready),
                ms(add)
            ));
            readies.push(ready);
            adds.push(add);
            drop(stream);
            server.stop()?;
        }
        readies.sort_unstable();
        adds.sort_unstable();
        data::result(&json!({
            "bench": "first_add",
            "endpoints": endpoints,
            "starts": STARTS,
            "ready_ms": ms(readies[STARTS / 2]),
            "ready_ms_worst": ms(readies[STARTS - 1]),
            "first_add_ms": ms(adds[STARTS / 2]),
            "first_add_ms_worst": ms(adds[STARTS - 1]),
        }));
    }
    Ok(())
}
