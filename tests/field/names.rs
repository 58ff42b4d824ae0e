//! Ports, names, and what an address stands for.

use anyhow::{Context as _, Result, ensure};
use harness::client::Seen;
use serde_json::{Value, json};
use tonic::Code;

use crate::mesh::{CART, Mesh, cart, endpoint, endpoints, pod, service, slice, slice_with, with};

#[tokio::test]
async fn f15_the_number_in_the_slice_is_the_port() -> Result<()> {
    let target = |name: &str, port: u16, to: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {"ports": [{"name": name, "port": port, "targetPort": to}]},
        })
    };
    for (name, to) in [("web", json!("app")), ("", json!("app")), ("web", json!(7777))] {
        let slice = slice_with("s1", &[(name, 7777)], endpoints(0..1));
        let objects = [target(name, 8080, to), pod("p0", 0), slice];
        let mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
        mesh.holds(CART, &["10.1.0.1:7777"])?;
    }
    Ok(())
}

#[tokio::test]
async fn f16_an_address_without_a_pod_is_an_address() -> Result<()> {
    let bare = json!({"addresses": ["198.51.100.5"], "conditions": {"ready": true}});
    let mesh = Mesh::of(&[cart(), slice("s1", vec![bare])]).await?.opened(&[CART]).await?;
    mesh.holds(CART, &["198.51.100.5:8080"])?;
    let shown = mesh.shown(CART)?.into_values().next().context("one address")?;
    ensure!(shown.get("tls_identity").is_none_or(Value::is_null), "{shown}");
    ensure!(shown.get("protocol_hint").is_none_or(Value::is_null), "{shown}");
    Ok(())
}

#[tokio::test]
async fn f17_f18_what_is_no_service_yet_is_asked_for_again() -> Result<()> {
    let external = with(cart(), "", "spec", json!({"type": "ExternalName", "externalName": "x.y"}));
    let mut mesh = Mesh::of(&[external, slice("s1", endpoints(0..1)), pod("p0", 0)]).await?;
    mesh.open(CART).await?;
    ensure!(mesh.stream(CART)?.seen() == Seen::Ended(Code::InvalidArgument));
    // Where the report and Linkerd differ, it is NotFound, after which a proxy asks again.
    mesh.open("nope.shop:8080").await?;
    ensure!(mesh.stream("nope.shop:8080")?.seen() == Seen::Ended(Code::NotFound));
    let nope = with(
        slice("nope-1", endpoints(0..1)),
        "/metadata",
        "labels",
        json!({"kubernetes.io/service-name": "nope"}),
    );
    mesh.apply(&[cart(), service("nope", &[("http", 8080)]), nope]).await?;
    for name in [CART, "nope.shop:8080"] {
        mesh.open(name).await?;
        mesh.holds(name, &["10.1.0.1:8080"])?;
    }
    Ok(())
}

#[tokio::test]
async fn f26_the_identity_of_a_machine_is_followed() -> Result<()> {
    let machine = |server_name: &str| {
        json!({
            "apiVersion": "workload.linkerd.io/v1beta1", "kind": "ExternalWorkload",
            "metadata": {"name": "vm-1", "namespace": "shop"},
            "spec": {
                "meshTLS": {"identity": "spiffe://id.test/vm-1", "serverName": server_name},
                "workloadIPs": [{"ip": "192.0.2.7"}],
            },
        })
    };
    let target = json!({"kind": "ExternalWorkload", "name": "vm-1", "namespace": "shop"});
    let machine_endpoint = json!({"addresses": ["192.0.2.7"], "targetRef": target});
    let objects = [cart(), machine("one.test"), slice("s1", vec![machine_endpoint.clone()])];
    let mut mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
    let identity = |mesh: &Mesh| anyhow::Ok(format!("{:?}", mesh.shown(CART)?));
    ensure!(identity(&mesh)?.contains("one.test"), "{}", identity(&mesh)?);
    mesh.apply(&[machine("two.test")]).await?;
    ensure!(identity(&mesh)?.contains("two.test"), "{}", identity(&mesh)?);
    let mixed = vec![machine_endpoint, endpoint("p0", 0)];
    mesh.apply(&[pod("p0", 0), slice("s1", mixed)]).await?;
    mesh.holds(CART, &["10.1.0.1:8080", "192.0.2.7:8080"])
}
