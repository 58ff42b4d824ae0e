//! `spillway demo`: the real server on a made-up cluster. It fills up, is watched, is flooded, and answers all
//! the while. Every number that is shown was measured in this run.

mod cluster;
mod lookups;
mod screen;
mod stage;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context as _;

use crate::args::{DemoArgs, LogFormat, LogLevel};
use crate::process::{self, Signals};
use crate::{logs, print};
use cluster::Cluster;
use screen::{count, mib, ms};
use spillway::{Options, Running, SourceOptions};
use stage::Stage;

/// Where proxies, and `spillway get`, look by default.
const USUAL_ADDR: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8086);

/// Runs the command.
pub(crate) fn run(args: DemoArgs) -> anyhow::Result<()> {
    logs::install(LogLevel::Warn, LogFormat::Plain);
    process::block_on(async move {
        let mut signals = Signals::take()?;
        // Removed at the end, however that comes.
        let temporary = match args.data {
            Some(_) => None,
            None => Some(tempfile::Builder::new().prefix("spillway-demo-").tempdir()?),
        };
        let data = args.data.as_deref().or(temporary.as_ref().map(|folder| folder.path()));
        let data = data.context("no data folder")?.to_owned();
        tokio::select! {
            outcome = play(&args, data) => outcome,
            _ = signals.next() => print::line(""),
        }
    })
}

/// The whole play, one act after the other.
async fn play(args: &DemoArgs, data: std::path::PathBuf) -> anyhow::Result<()> {
    let cluster = Cluster::new(u64::from(args.endpoints));
    print::line(&format!(
        "A cluster of {} endpoints: {}.",
        count(cluster.endpoints()),
        cluster.words()
    ))?;
    let server = start(args, data.clone()).await?;
    let url = format!("http://{}", server.addr());
    print::line(&format!("Server on {}, data in {}\n", server.addr(), data.display()))?;
    let mut stage = Stage::new(&server, cluster, &url).await?;
    let acts = async {
        let filled = stage.fill().await?;
        let calm = stage.watch().await?;
        let flooded = stage.flood(u64::from(args.flood)).await?;
        anyhow::Ok((filled, calm, flooded))
    };
    let (filled, calm, flooded) = tokio::select! {
        acts = acts => acts?,
        reason = server.failed() => anyhow::bail!(reason),
    };
    let memory = |bytes: Option<u64>| bytes.map_or("?".to_owned(), mib);
    print::line(&format!(
        "\n\
        {} endpoints on disk in {:.1} s, {} of memory for the server and this demo's clients\n\
        first Add of {} endpoints:  p50 {}, p99 {}\n\
        during {} junk pods:  p50 {}, p99 {} ({} lookups, none failed), memory {}\n\
        \n\
        What a proxy would get (in another terminal):\n  {}",
        count(filled.endpoints),
        filled.time.as_secs_f64(),
        memory(filled.rss_bytes),
        count(calm.addresses),
        ms(calm.times.within(0.5)),
        ms(calm.times.within(0.99)),
        count(flooded.pods),
        ms(flooded.times.within(0.5)),
        ms(flooded.times.within(0.99)),
        count(flooded.times.len() as u64),
        memory(flooded.rss_bytes),
        try_it(stage.cluster(), server.addr()),
    ))?;
    drop(stage);
    if !args.exit {
        print::line("\nServing until Ctrl-C.")?;
        anyhow::bail!(server.failed().await);
    }
    server.stop().await
}

/// Starts the server on the usual port, or on a free one if that is taken and none was asked for.
async fn start(args: &DemoArgs, data: std::path::PathBuf) -> anyhow::Result<Running> {
    let addr = args.addr.unwrap_or(USUAL_ADDR);
    let options = Options { addr, ..Options::new(data, SourceOptions::Fed) };
    if args.addr.is_none() && tokio::net::TcpListener::bind(addr).await.is_err() {
        print::line(&format!("{addr} is taken, so the server gets a free port."))?;
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        return spillway::start(Options { addr, ..options }).await;
    }
    spillway::start(options).await
}

/// The command to try. The port is left out where it is the usual one.
fn try_it(cluster: &Cluster, addr: SocketAddr) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "spillway".to_owned());
    let addr = if addr == USUAL_ADDR { String::new() } else { format!(" --addr {addr}") };
    format!("{program} get {}{addr} -o wide", cluster.small())
}
