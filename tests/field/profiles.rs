//! What is dialled: addresses that are used again, hosts' ports, hostnames, opaque ports.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::client::{Question, Seen};
use serde_json::{Value, json};
use tonic::Code;

use crate::mesh::{CART, Mesh, cart, endpoint, endpoints, pod, service, slice, slice_with, with};

/// The same pod, with a proxy.
fn meshed(pod: Value) -> Value {
    let labels = json!({"app": "cart", "linkerd.io/control-plane-ns": "mesh-sys"});
    let env = [("INBOUND_LISTEN_ADDR", 4143), ("ADMIN_LISTEN_ADDR", 4191), ("CONTROL_LISTEN_ADDR", 4190)]
        .map(|(name, port)| json!({"name": format!("LINKERD2_PROXY_{name}"), "value": format!("0.0.0.0:{port}")}));
    let containers = json!([{"name": "app"}, {"name": "linkerd-proxy", "env": env}]);
    with(with(pod, "/metadata", "labels", labels), "/spec", "containers", containers)
}

fn in_phase(pod: Value, phase: &str) -> Value {
    with(pod, "/status", "phase", json!(phase))
}

#[tokio::test]
async fn f11_a_finished_pod_leaves_its_address_to_the_next() -> Result<()> {
    let batch = in_phase(pod("batch-1", 8), "Succeeded");
    let running = meshed(pod("cart-1", 8));
    for objects in [[batch.clone(), running.clone()], [running, batch]] {
        let mut mesh = Mesh::of(&[]).await?;
        mesh.dial("10.1.0.9:8080").await?;
        for object in objects {
            mesh.apply(&[object]).await?;
        }
        mesh.dial("10.1.0.9:8081").await?;
        for path in ["10.1.0.9:8080", "10.1.0.9:8081"] {
            ensure!(mesh.pod(path)? == "cart-1", "{}", mesh.profile(path)?);
            ensure!(mesh.profile(path)?.pointer("/endpoint/tls_identity").is_some());
        }
    }
    Ok(())
}

#[tokio::test]
async fn f12_an_evicted_pod_that_is_touched_is_nothing_to_the_next() -> Result<()> {
    let evicted = in_phase(pod("cart-0", 8), "Failed");
    let mut mesh = Mesh::of(&[evicted.clone(), meshed(pod("cart-1", 8))]).await?;
    mesh.dial("10.1.0.9:8080").await?;
    mesh.stream("10.1.0.9:8080")?.news();
    let touched = with(evicted, "/metadata", "labels", json!({"app": "cart", "seen": "yes"}));
    mesh.apply(&[touched]).await?;
    ensure!(mesh.stream("10.1.0.9:8080")?.news().is_empty());
    ensure!(mesh.pod("10.1.0.9:8080")? == "cart-1");
    Ok(())
}

#[tokio::test]
async fn f13_two_pods_of_one_address_are_a_short_error() -> Result<()> {
    let heavy = |name| {
        let notes = json!({"notes": "x".repeat(60_000)});
        with(pod(name, 8), "/metadata", "annotations", notes)
    };
    let mut mesh = Mesh::of(&[heavy("a"), heavy("b")]).await?;
    for _ in 0..100 {
        mesh.dial("10.1.0.9:8080").await?;
        let stream = mesh.stream("10.1.0.9:8080")?;
        ensure!(stream.seen() == Seen::Ended(Code::FailedPrecondition), "{:?}", stream.seen());
        let said = stream.status_message().unwrap_or_default();
        ensure!(said == "found 2 pods with a conflicting pod network IP 10.1.0.9", "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn f14_a_port_of_the_host_is_the_pods() -> Result<()> {
    let port = json!([{"containerPort": 7000, "hostPort": 9000}]);
    let edge = with(meshed(pod("edge-1", 19)), "/spec/containers/0", "ports", port);
    let edge = with(edge, "/status", "hostIP", json!("192.0.2.10"));
    let other = with(pod("agent", 30), "/spec", "hostNetwork", json!(true));
    let other = with(other, "/status", "hostIP", json!("192.0.2.10"));
    let mut mesh = Mesh::of(&[edge, other]).await?;
    mesh.dial("192.0.2.10:9000").await?;
    mesh.dial("192.0.2.10:22").await?;
    let profile = mesh.profile("192.0.2.10:9000")?;
    ensure!(mesh.pod("192.0.2.10:9000")? == "edge-1", "{profile}");
    ensure!(profile.pointer("/endpoint/addr/port") == Some(&json!(9000)), "{profile}");
    ensure!(profile.pointer("/endpoint/tls_identity").is_some(), "{profile}");
    let plain = mesh.profile("192.0.2.10:22")?;
    ensure!(plain.pointer("/endpoint/tls_identity").is_none(), "{plain}");
    Ok(())
}

/// What the report wants of an open stream, to follow the hostname to the new address, the original doesn't do, and so
/// neither do we (spec §3.4.2, `jl/by-instance-name-new-ip`): a proxy that asks anew gets it.
#[tokio::test]
async fn f19_a_hostname_is_one_pod() -> Result<()> {
    let named = |name: &str, number| with(endpoint(name, number), "", "hostname", json!(name));
    let headless = with(cart(), "/spec", "clusterIP", json!("None"));
    let both = |first| vec![named("cart-0", first), named("cart-1", 1)];
    let objects = [headless, pod("cart-0", 0), pod("cart-1", 1), slice("s1", both(0))];
    let mut mesh = Mesh::of(&objects).await?;
    let path = "cart-0.cart.shop.svc.k.test:5432";
    mesh.dial(path).await?;
    ensure!(mesh.pod(path)? == "cart-0", "{}", mesh.profile(path)?);
    mesh.delete(&["Pod/shop/cart-0"]).await?;
    ensure!(mesh.pod(path)?.is_empty(), "{}", mesh.profile(path)?);
    mesh.apply(&[pod("cart-0", 5), slice("s1", both(5))]).await?;
    mesh.dial(path).await?;
    ensure!(mesh.pod(path)? == "cart-0", "{}", mesh.profile(path)?);
    let addr = mesh.profile(path)?.pointer("/endpoint/addr/ip/ipv4").cloned();
    ensure!(addr == Some(json!(u32::from_be_bytes([10, 1, 0, 6]))), "{addr:?}");
    Ok(())
}

#[tokio::test]
async fn f20_odd_authorities_hurt_nobody() -> Result<()> {
    let mut mesh = Mesh::of(&[cart(), pod("p0", 4), slice("s1", endpoints(0..1))]).await?;
    mesh.dial("10.1.0.5:8080").await?;
    mesh.stream("10.1.0.5:8080")?.news();
    let long = format!("{}.cart.shop.svc.k.test:80", "x".repeat(300));
    let cases = [
        ("10-1-0-5.cart.shop.svc.k.test:80", Code::NotFound),
        ("", Code::InvalidArgument),
        (":80", Code::InvalidArgument),
        ("10.1.0.5:", Code::InvalidArgument),
        ("10.1.0.5:0", Code::InvalidArgument),
        ("10.1.0.5:70000", Code::InvalidArgument),
        (long.as_str(), Code::NotFound),
        ("cart.shop.svc.other.test:80", Code::InvalidArgument),
        ("CART.shop.SVC.k.test:80", Code::InvalidArgument),
        ("cart.shop.svc.k.test.:80", Code::InvalidArgument),
    ];
    for (path, code) in cases {
        mesh.dial(path).await?;
        ensure!(
            mesh.stream(path)?.seen() == Seen::Ended(code),
            "{path}: {:?}",
            mesh.stream(path)?.seen()
        );
        mesh.streams.remove(path);
    }
    mesh.dial("[10.1.0.5]:8080").await?;
    ensure!(mesh.pod("[10.1.0.5]:8080")? == "p0");
    ensure!(mesh.stream("10.1.0.5:8080")?.news().is_empty());
    Ok(())
}

#[tokio::test]
async fn f21_labels_of_a_running_pod_are_followed() -> Result<()> {
    let hash = |hash: &str| {
        let pod = meshed(pod("p0", 4));
        with(pod, "/metadata/labels", "pod-template-hash", json!(hash))
    };
    let mut mesh = Mesh::of(&[hash("a")]).await?;
    let path = "10.1.0.5:8080";
    mesh.dial(path).await?;
    mesh.apply(&[hash("b")]).await?;
    let label = mesh.profile(path)?.pointer("/endpoint/metric_labels/pod_template_hash").cloned();
    ensure!(label == Some(json!("b")), "{label:?}");
    mesh.delete(&["Pod/shop/p0"]).await?;
    ensure!(mesh.profile(path)?.pointer("/endpoint/tls_identity").is_none());
    ensure!(mesh.stream(path)?.is_open());
    Ok(())
}

#[tokio::test]
async fn f22_each_address_of_a_dual_stack_object_is_it() -> Result<()> {
    let ips = json!(["10.9.0.1", "fd00:9::1"]);
    let cart =
        with(with(cart(), "/spec", "clusterIPs", ips), "/spec", "clusterIP", json!("10.9.0.1"));
    let ips = json!([{"ip": "10.1.0.5"}, {"ip": "fd00:1:0::5"}]);
    let mut mesh = Mesh::of(&[cart, with(pod("p0", 4), "/status", "podIPs", ips)]).await?;
    for path in ["10.9.0.1:8080", "[fd00:9::1]:8080"] {
        mesh.dial(path).await?;
        let name = mesh.profile(path)?["fully_qualified_name"].clone();
        ensure!(name == "cart.shop.svc.k.test", "{path}: {name}");
    }
    for path in ["10.1.0.5:8080", "[fd00:1::5]:8080"] {
        mesh.dial(path).await?;
        ensure!(mesh.pod(path)? == "p0", "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn f23_opaque_ports_by_name_number_and_range() -> Result<()> {
    let port = json!([{"name": "mysql", "containerPort": 3306}]);
    let pod = with(meshed(pod("p0", 0)), "/spec/containers/0", "ports", port);
    let list = json!({"config.linkerd.io/opaque-ports": "25,4320-4330,mysql,no-such,70000"});
    let pod = with(pod, "/metadata", "annotations", list);
    let objects =
        [service("cart", &[("db", 80)]), slice_with("s1", &[("db", 3306)], endpoints(0..1)), pod];
    let mut mesh = Mesh::of(&objects).await?.opened(&["cart.shop:80"]).await?;
    let hint = format!("{:?}", mesh.shown("cart.shop:80")?);
    ensure!(hint.contains("opaque"), "{hint}");
    for (port, opaque) in [(3306, true), (25, true), (4325, true), (4331, false), (8080, false)] {
        let path = format!("10.1.0.1:{port}");
        mesh.dial(&path).await?;
        let profile = mesh.profile(&path)?;
        ensure!((profile["opaque_protocol"] == json!(true)) == opaque, "{path}: {profile}");
    }
    Ok(())
}

#[tokio::test]
async fn f24_f25_opaque_without_a_proxy_and_by_a_server() -> Result<()> {
    let mut mesh = Mesh::of(&[pod("bare", 1), meshed(pod("p0", 0))]).await?;
    let (unmeshed, path) = ("10.1.0.2:3306", "10.1.0.1:8080");
    mesh.dial(unmeshed).await?;
    let profile = mesh.profile(unmeshed)?;
    ensure!(profile["opaque_protocol"] == json!(true), "{profile}");
    ensure!(profile.pointer("/endpoint/protocol_hint").is_none(), "{profile}");
    mesh.dial(path).await?;
    let is_opaque = |mesh: &Mesh| anyhow::Ok(mesh.profile(path)?["opaque_protocol"] == json!(true));
    ensure!(!is_opaque(&mesh)?);
    let server = json!({
        "apiVersion": "policy.linkerd.io/v1beta3", "kind": "Server",
        "metadata": {"name": "s", "namespace": "shop"},
        "spec": {"port": 8080, "proxyProtocol": "opaque", "podSelector": {}},
    });
    mesh.apply(&[server]).await?;
    ensure!(is_opaque(&mesh)?);
    mesh.delete(&["Server/shop/s"]).await?;
    ensure!(!is_opaque(&mesh)?);
    Ok(())
}

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ten rounds instead of fifty, and as many profiles.
#[tokio::test(flavor = "multi_thread")]
async fn f33_a_herd_that_dies_again_and_again() -> Result<()> {
    let pods: Vec<Value> = (0..1_400).map(|at| pod(&format!("p{at}"), at)).collect();
    let mut objects = vec![cart(), slice("s1", endpoints(0..2))];
    objects.extend(pods);
    let mut mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
    for round in 0..10 {
        let client = mesh.server.another_client().await?;
        let mut streams = Vec::new();
        for at in 0..1_400 {
            let path = format!("{}:8080", crate::mesh::ip(at));
            let question = Question { path, profile: true, ..Question::default() };
            streams.push(client.open(question, false).await);
        }
        ensure!(streams.iter().all(harness::client::Stream::is_open));
        drop((streams, client));
        // A calm client hears of a change meanwhile.
        let begun = tokio::time::Instant::now();
        let slice = slice("s1", endpoints(0..2 + round % 2));
        let changes = mesh.cluster.apply(&[slice])?;
        mesh.server.deliver(changes).await?;
        while mesh.shown(CART)?.len() != 2 + round % 2 {
            ensure!(begun.elapsed() < PATIENCE, "round {round}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    mesh.streams.clear();
    let begun = tokio::time::Instant::now();
    while mesh.server.streams_known() != (0, 0) {
        ensure!(begun.elapsed() < PATIENCE, "{:?}", mesh.server.streams_known());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
