//! The real program from its command line: a server of a folder of manifests, and what its commands print.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use expect_test::{Expect, expect};
use harness::client::{Question, Seen};
use harness::program::{Program, Server};
use tempfile::TempDir;
use tonic::Code;

const MANIFESTS: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop}
spec: {nodeName: node-1, serviceAccountName: web, containers: []}
status: {phase: Running, podIP: 10.1.0.4, podIPs: [{ip: 10.1.0.4}]}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {topology.kubernetes.io/zone: zone-a}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-abc, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- addresses: [10.1.0.4]
  targetRef: {kind: Pod, name: web-0, namespace: shop}
  zone: zone-a
  hints: {forZones: [{name: zone-a}]}
- addresses: [10.1.0.5]
  targetRef: {kind: Pod, name: web-1, namespace: shop}
  hints: {forZones: [{name: zone-b}]}
- addresses: [10.1.0.6]
  zone: zone-b
  hints: {forZones: [{name: zone-b}]}
"#;

const WEB: &str = "web.shop.svc.cluster.local:80";

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server, and what asks it.
struct Asking {
    program: Program,
    server: Option<Server>,
    addr: SocketAddr,
    admin: SocketAddr,
    _folder: TempDir,
}

/// The words with which a client on that node asks.
fn from_node_1(authority: &str) -> String {
    format!(r#"{authority} --token {{"nodeName":"node-1"}}"#)
}

impl Asking {
    async fn begin() -> Result<Asking> {
        let program = Program::build()?;
        let folder = TempDir::new()?;
        std::fs::create_dir(folder.path().join("manifests"))?;
        std::fs::write(folder.path().join("manifests").join("shop.yaml"), MANIFESTS)?;
        let mut server = program.serve(folder.path(), false)?;
        let (addr, admin) = server.serving().await?;
        let asking = Asking { program, server: Some(server), addr, admin, _folder: folder };
        asking.until_ready_says(200, "ok\n").await?;
        Ok(asking)
    }

    /// Returns when `/ready` says so.
    async fn until_ready_says(&self, status: u16, body: &str) -> Result<()> {
        let waiting = harness::http::until(self.admin, "/ready", status, body);
        tokio::time::timeout(PATIENCE, waiting).await.with_context(|| format!("never {body}"))?
    }

    /// Runs `spillway get`; gives its exit code, and what it printed.
    async fn get(&self, args: &str) -> Result<(i32, String)> {
        let (addr, admin) = (self.addr.to_string(), self.admin.to_string());
        let mut words = vec!["get", "--addr", &addr];
        words.extend(args.split(' '));
        if args.contains("--explain") {
            words.extend(["--admin-addr", &admin]);
        }
        let output = self.program.run(&words).await?;
        let printed = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(printed)?.replace(&admin, "ADMIN").replace(&addr, "ADDR");
        Ok((output.status.code().unwrap_or(-1), text))
    }

    async fn prints(&self, args: &str, code: i32, expected: Expect) -> Result<()> {
        let (exit, printed) = self.get(args).await?;
        expected.assert_eq(&printed);
        ensure!(exit == code, "{args} exits with {exit}:\n{printed}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_proxy_would_get() -> Result<()> {
    let asking = Asking::begin().await?;
    asking
        .prints(
            WEB,
            0,
            expect![[r#"
        NAMESPACE   IP         PORT   POD     SERVICE
        shop        10.1.0.4   8080   web-0   web.shop
        shop        10.1.0.6   8080   -       web.shop
    "#]],
        )
        .await?;
    asking
        .prints(
            &from_node_1(WEB),
            0,
            expect![[r#"
        NAMESPACE   IP         PORT   POD     SERVICE
        shop        10.1.0.4   8080   web-0   web.shop
    "#]],
        )
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn why_an_address_is_in_the_answer_or_is_not() -> Result<()> {
    let asking = Asking::begin().await?;
    asking
        .prints(
            &format!("{} --explain 10.1.0.4", from_node_1(WEB)),
            0,
            expect![[r#"
        10.1.0.4 is in the answer to web.shop.svc.cluster.local:80.
        The answer, at revision 1, has: port http, hinted to zone zone-a.

        EndpointSlice shop/web-abc, Pod shop/web-0
          in the answer at port 8080: it passes all rules (spec §2.5)
    "#]],
        )
        .await?;
    asking
        .prints(
            &format!("{WEB} --explain 10.1.0.5"),
            0,
            expect![[r#"
        10.1.0.5 is not in the answer to web.shop.svc.cluster.local:80.
        The answer, at revision 1, has: port http.

        EndpointSlice shop/web-abc, Pod shop/web-1
          not in the answer: its target is not known: there is no Pod shop/web-1 (spec §2.4)
    "#]],
        )
        .await?;
    asking.prints(&format!("{} --explain 10.1.0.6 -o json", from_node_1(WEB)), 0, expect![[r#"
        {"authority":"web.shop.svc.cluster.local:80","address":"10.1.0.6","revision":1,"in_answer":false,"view":"port http, hinted to zone zone-a","reason":null,"rule":null,"endpoints":[{"slice":"EndpointSlice shop/web-abc","target":null,"in_answer":false,"port":null,"reason":"its hints are not for zone zone-a","rule":"spec §2.5"}],"more":false,"links":[]}
    "#]]).await?;
    asking.prints(&format!("{WEB} --explain 10.1.0.7"), 0, expect![[r#"
        10.1.0.7 is not in the answer to web.shop.svc.cluster.local:80.
        The answer, at revision 1, has: port http.
        Reason: no EndpointSlice of the Service has an endpoint there (of a target that has several addresses in one, the last counts) (spec §2.4).
    "#]]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_explained() -> Result<()> {
    let mut asking = Asking::begin().await?;
    asking
        .prints(
            "none.shop.svc.cluster.local:80 --explain 10.1.0.4",
            0,
            expect![[r#"
        10.1.0.4 is not in the answer to none.shop.svc.cluster.local:80.
        The answer, at revision 1, has: nothing: there is no such Service.
        Reason: refused with NotFound: Service none.shop not found (spec §1.5).
    "#]],
        )
        .await?;
    asking
        .prints(
            "10.1.0.4:80 --explain 10.1.0.4",
            1,
            expect![[r#"
        error: IP queries not supported by Get API: host=10.1.0.4
    "#]],
        )
        .await?;
    let (code, printed) = asking.get(&format!("{WEB} --explain web-0")).await?;
    ensure!(code == 2 && printed.contains("invalid IP address"), "{code}: {printed}");
    asking.server.take().context("it runs")?.kill()?;
    asking.prints(&format!("{WEB} --explain 10.1.0.4"), 1, expect![[r#"
        error: cannot ask ADMIN: client error (Connect): tcp connect error: Connection refused (os error 111)
    "#]]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_streams_one_after_the_other_and_a_second_one_all() -> Result<()> {
    let mut asking = Asking::begin().await?;
    let client = harness::client::Client::connect(asking.addr).await?;
    let mut streams = Vec::new();
    for _ in 0..50 {
        let question = Question { path: WEB.to_owned(), ..Question::default() };
        streams.push(client.open(question, false).await);
    }
    asking.server.as_mut().context("it runs")?.signal("TERM")?;
    let first = async {
        while streams[0].is_open() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, first).await.context("it does not end")?;
    // Ten seconds are the default: by now only some have ended.
    let open = streams.iter().filter(|stream| stream.is_open()).count();
    ensure!(open > 5, "only {open} of 50 are still open when one ends");
    asking.until_ready_says(503, "not ready\n- the server is ending\n").await?;
    let late = harness::client::Client::connect(asking.addr).await;
    ensure!(late.is_err(), "somebody is let in while the server ends");
    for stream in streams.iter().filter(|stream| !stream.is_open()) {
        ensure!(stream.seen() == Seen::Ended(Code::Unavailable), "{:?}", stream.seen());
    }
    let server = asking.server.as_mut().context("it runs")?;
    server.signal("TERM")?;
    let status = server.wait().await?;
    ensure!(status.code() == Some(1), "a second signal: {status}");

    // Without streams there is nothing to wait for.
    let mut asking = Asking::begin().await?;
    let server = asking.server.as_mut().context("it runs")?;
    server.signal("INT")?;
    let status = server.wait().await?;
    ensure!(status.code() == Some(0), "one signal: {status}");
    Ok(())
}
