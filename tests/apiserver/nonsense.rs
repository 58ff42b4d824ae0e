//! Objects that the API server takes and that make no sense: the answer stays right for everything else, and each is
//! counted and named.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use harness::apiserver::User;
use harness::http;
use harness::program::Program;
use serde_json::{Value, json};

use crate::rig::{PATIENCE, Rig, open, pod, server, service, slice};

fn with(mut value: Value, pointer: &str, to: Value) -> Value {
    if let Some((parent, key)) = pointer.rsplit_once('/')
        && let Some(place) = value.pointer_mut(parent)
    {
        place[key] = to;
    }
    value
}

/// Each with the name that the log must have; an empty one for what makes sense to Kubernetes.
fn nonsense() -> Vec<(&'static str, Value)> {
    let named = |name: &str, value: Value| with(value, "/metadata/name", json!(name));
    let pods = |endpoints: Value| with(slice("web", &[]), "/endpoints", endpoints);
    let at = |number: u8| json!([format!("10.1.0.{number}")]);
    let twice = json!([
        {"addresses": at(1), "targetRef": {"kind": "Pod", "name": "w1", "namespace": "shop"}},
        {"addresses": at(1), "targetRef": {"kind": "Pod", "name": "w1", "namespace": "shop"}},
    ]);
    let nowhere = json!([
        {"addresses": at(8), "targetRef": {"kind": "Pod", "name": "nobody", "namespace": "shop"}},
        {"addresses": at(9), "targetRef": {"kind": "Pod", "name": "w1", "namespace": "till"}},
        {"addresses": at(7), "targetRef": {"kind": "Node", "name": "n1"}},
    ]);
    let hints = json!([{"addresses": at(2), "hints": {"forZones": [{"name": "no-such-zone"}]},
        "targetRef": {"kind": "Pod", "name": "w2", "namespace": "shop"}}]);
    let long = "x".repeat(250_000);
    let annotated =
        json!({"example.org/long": long, "config.linkerd.io/opaque-ports": "8080x,99999,http"});
    let bogus =
        json!({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]});
    let machine = json!({
        "apiVersion": "workload.linkerd.io/v1beta1", "kind": "ExternalWorkload",
        "metadata": {"name": "odd-machine", "namespace": "shop",
            "annotations": {"config.linkerd.io/opaque-ports": "1-"}},
        "spec": {
            "meshTLS": {"identity": "spiffe://id/v1", "serverName": "v1.corp"},
            "workloadIPs": [{"ip": "192.0.2.1"}],
        },
    });
    vec![
        ("", named("no-ports", with(pods(twice.clone()), "/ports", json!([])))),
        ("shop/twice", named("twice", pods(twice))),
        ("shop/nowhere", named("nowhere", pods(nowhere))),
        ("", named("hints", pods(hints))),
        ("shop/orphan", named("orphan", with(slice("web", &[1]), "/metadata/labels", json!({})))),
        ("shop/w1", with(pod("w1", 1), "/metadata/annotations", annotated.clone())),
        ("shop/odd-service", with(service("odd-service"), "/metadata/annotations", annotated)),
        ("shop/odd-port", server("odd-port", json!(70_000))),
        (
            "shop/odd-selector",
            with(server("odd-selector", json!(8080)), "/spec/podSelector", bogus),
        ),
        ("shop/odd-machine", machine),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_counted_named_and_changes_nothing_else() -> Result<()> {
    let program = Program::build()?;
    let rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    let kubeconfig = rig.kubeconfig(User::Admin)?.display().to_string();
    let log = rig.folder().join("log");
    let mut server = program.serve_with(rig.folder(), "data", &["--kubeconfig", &kubeconfig])?;
    let (addr, admin) = server.serving().await?;
    tokio::time::timeout(PATIENCE, http::until(admin, "/ready", 200, "ok\n")).await??;
    let web = open(addr).await?;
    web.until_pods(&[1, 2]).await?;
    let nonsense = nonsense();
    let objects: Vec<Value> = nonsense.iter().map(|(_, object)| object.clone()).collect();
    rig.objects.apply(&objects).await?;
    // What comes after them is heard after them.
    rig.objects
        .apply(&[pod("w3", 3), with(slice("web", &[3]), "/metadata/name", json!("last"))])
        .await?;
    web.until_pods(&[1, 2, 3]).await?;
    let named = async {
        loop {
            let log = std::fs::read_to_string(&log)?;
            let missing = nonsense.iter().find(|(name, _)| {
                let lines = log.lines().filter(|line| line.contains("\"WARN\""));
                !name.is_empty() && !lines.clone().any(|line| line.contains(&format!("{name}\"")))
            });
            if missing.is_none() {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let told = || std::fs::read_to_string(&log).unwrap_or_default();
    tokio::time::timeout(PATIENCE, named).await.with_context(told)??;
    let (_, metrics) = http::get(admin, "/metrics").await?;
    for (kind, least) in
        [("EndpointSlice", 3), ("Pod", 1), ("Service", 1), ("Server", 2), ("ExternalWorkload", 1)]
    {
        let name = format!("spillway_partial_objects_total{{cluster=\"local\",kind=\"{kind}\"}}");
        let count = http::metric(&metrics, &name);
        ensure!(count.is_some_and(|count| count >= least), "{kind}: {count:?}, not {least}");
    }
    server.alive()
}
