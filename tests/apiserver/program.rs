//! The program in the place of Linkerd's own, with the arguments that its container has.

use anyhow::{Result, ensure};
use harness::apiserver::User;
use harness::http;
use harness::program::Program;

use crate::rig::{PATIENCE, Rig, open};

#[tokio::test(flavor = "multi_thread")]
async fn it_takes_linkerds_arguments_and_answers_its_probes() -> Result<()> {
    let program = Program::build()?;
    let rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    let kubeconfig = format!("-kubeconfig={}", rig.kubeconfig(User::Admin)?.display());
    // As the chart writes them, but for the ports.
    let args = [
        "destination",
        "-addr=127.0.0.1:0",
        "-metrics-addr=127.0.0.1:0",
        "-controller-namespace=linkerd",
        "-outbound-transport-mode=transport-header",
        "-enable-h2-upgrade=true",
        "-log-level=info",
        "-log-format=json",
        "-enable-endpoint-slices=true",
        "-cluster-domain=cluster.local",
        "-identity-trust-domain=cluster.local",
        "-default-opaque-ports=25,587,3306,4444,5432,6379,9300,11211",
        "-enable-ipv6=false",
        "-enable-pprof=false",
        "--meshed-http2-client-params",
        r#"{"keep_alive":{"interval":{"seconds":10},"timeout":{"seconds":3},"while_idle":true}}"#,
        &kubeconfig,
    ];
    let mut server = program.start(&args, &rig.folder().join("log"))?;
    let (addr, admin) = server.serving().await?;
    tokio::time::timeout(PATIENCE, http::until(admin, "/ready", 200, "ok\n")).await??;
    let ping = http::get(admin, "/ping").await?;
    ensure!(ping == (200, "pong\n".to_owned()), "{ping:?}");
    let web = open(addr).await?;
    web.until_pods(&[1, 2]).await?;
    web.until(|held| {
        held.values().all(|value| {
            // The proxies' own port, and the parameters of HTTP/2, are as the arguments say.
            value.to_string().contains("4143") && value.to_string().contains("while_idle")
        })
    })
    .await?;
    server.alive()
}
