//! Zones and nodes.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::mesh::{Mesh, cart, endpoint, node, pod, pods, slice, with};

fn hinted(number: usize, zones: &[&str]) -> Value {
    let zones: Vec<Value> = zones.iter().map(|zone| json!({"name": zone})).collect();
    with(endpoint(&format!("p{number}"), number), "", "hints", json!({"forZones": zones}))
}

#[tokio::test]
async fn f27_hints_never_leave_a_client_with_nothing() -> Result<()> {
    let hints = |zones: [&str; 4]| {
        let of = |(at, zone): (usize, &str)| match zone {
            "" => endpoint(&format!("p{at}"), at),
            zone => hinted(at, &[zone]),
        };
        slice("s1", zones.into_iter().enumerate().map(of).collect())
    };
    let mut objects =
        vec![cart(), node("n1", "z1"), node("n2", "z2"), hints(["z1", "z1", "z2", "z2"])];
    objects.extend(pods(0..4));
    let name = "cart.shop:8080@n1";
    let mut mesh = Mesh::of(&objects).await?.opened(&[name]).await?;
    ensure!(mesh.shown(name)?.len() == 2);
    for zones in [["z1", "", "z2", "z2"], ["z2", "z2", "z2", "z2"]] {
        mesh.apply(&[hints(zones)]).await?;
        ensure!(mesh.shown(name)?.len() == 4, "{zones:?}");
    }
    Ok(())
}

/// Linkerd doesn't look at hints for nodes, and neither do we.
#[tokio::test]
async fn f28_hints_for_nodes_alone_are_no_hints() -> Result<()> {
    let for_node = with(endpoint("p0", 0), "", "hints", json!({"forNodes": [{"name": "n1"}]}));
    let objects =
        [cart(), pod("p0", 0), pod("p1", 1), slice("s1", vec![for_node, endpoint("p1", 1)])];
    let names = ["cart.shop:8080@n1", "cart.shop:8080@n2"];
    let mesh = Mesh::of(&objects).await?.opened(&names).await?;
    for name in names {
        mesh.holds(name, &["10.1.0.1:8080", "10.1.0.2:8080"])?;
    }
    Ok(())
}

#[tokio::test]
async fn f29_local_policy_comes_before_hints() -> Result<()> {
    let local = with(cart(), "/spec", "internalTrafficPolicy", json!("Local"));
    let here = with(pod("p0", 0), "/spec", "nodeName", json!("n1"));
    let objects =
        [local, here, node("n1", "z1"), node("n2", "z2"), slice("s1", vec![hinted(0, &["z2"])])];
    let mut mesh = Mesh::of(&objects).await?;
    for name in ["cart.shop:8080@n1", "cart.shop:8080@n2"] {
        mesh.open(name).await?;
    }
    mesh.holds("cart.shop:8080@n1", &["10.1.0.1:8080"])?;
    mesh.holds("cart.shop:8080@n2", &[])?;
    let told = mesh.news().get("cart.shop:8080@n2").copied();
    ensure!(told == Some((0, 0, 1)), "that there is nothing for it is said: {told:?}");
    mesh.apply(&[cart()]).await?;
    mesh.holds("cart.shop:8080@n2", &["10.1.0.1:8080"])
}
