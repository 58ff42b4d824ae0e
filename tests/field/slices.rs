//! EndpointSlices: what they hold, and what moves between them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::mesh::{
    CART, Mesh, cart, endpoint, endpoints, ip, pod, pods, service, slice, slice_with, with,
};

#[tokio::test]
async fn f01_a_slice_goes_and_only_its_addresses_go() -> Result<()> {
    let mut objects =
        vec![cart(), slice("s1", endpoints(0..100)), slice("s2", endpoints(100..120))];
    objects.extend(pods(0..120));
    let mut mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
    mesh.delete(&["EndpointSlice/shop/s2"]).await?;
    mesh.heard(0, 20, 0)?;
    ensure!(mesh.shown(CART)?.len() == 100);
    Ok(())
}

#[tokio::test]
async fn f02_a_slice_without_endpoints_or_ports_is_no_news() -> Result<()> {
    let mut objects = vec![cart(), slice("s1", endpoints(0..3))];
    objects.extend(pods(0..3));
    let mut mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
    mesh.apply(&[slice("s2", Vec::new())]).await?;
    mesh.apply(&[slice_with("s2", &[], Vec::new())]).await?;
    mesh.heard(0, 0, 0)
}

#[tokio::test]
async fn f03_an_address_that_moves_between_slices_stays() -> Result<()> {
    let mut mesh = Mesh::of(&[cart(), pod("p7", 7)]).await?.opened(&[CART]).await?;
    mesh.apply(&[slice("s1", endpoints(7..8))]).await?;
    mesh.apply(&[slice("s2", endpoints(7..8))]).await?;
    mesh.apply(&[slice("s1", Vec::new())]).await?;
    mesh.heard(1, 0, 0)?;
    mesh.delete(&["EndpointSlice/shop/s2"]).await?;
    mesh.holds(CART, &[])
}

/// An endpoint whose pod is not known yet isn't served (spec §2.4), and is as soon as the pod is.
#[tokio::test]
async fn f04_all_pods_are_replaced_at_once_and_some_are_late() -> Result<()> {
    let ports = [("http", 8080), ("adm", 9090), ("trace", 9411)];
    let names = [CART, "cart.shop:9090", "cart.shop:9411"];
    let mut objects = vec![service("cart", &ports), slice_with("s1", &ports, endpoints(0..20))];
    objects.extend(pods(0..20));
    let mut mesh = Mesh::of(&objects).await?.opened(&names).await?;
    mesh.delete(&["Pod/shop/p0", "Pod/shop/p1"]).await?;
    let mut late = pods(20..40);
    let early = late.split_off(3);
    mesh.apply(&early).await?;
    mesh.apply(&[slice_with("s1", &ports, endpoints(20..40))]).await?;
    for (name, port) in names.into_iter().zip([8080, 9090, 9411]) {
        let expected: Vec<_> = (23..40).map(|it| format!("{}:{port}", ip(it))).collect();
        mesh.holds(name, &expected.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    mesh.apply(&late).await?;
    for (name, port) in names.into_iter().zip([8080, 9090, 9411]) {
        let expected: Vec<_> = (20..40).map(|it| format!("{}:{port}", ip(it))).collect();
        mesh.holds(name, &expected.iter().map(String::as_str).collect::<Vec<_>>())?;
        let named = |value: &Value| value["labels"]["pod"].is_string();
        ensure!(mesh.shown(name)?.values().all(named), "an endpoint without its pod");
    }
    Ok(())
}

#[tokio::test]
async fn f05_slices_and_pods_change_while_nobody_looks() -> Result<()> {
    let before = [cart(), slice("s1", endpoints(0..2)), pod("p0", 0), pod("p1", 1)];
    let mut mesh = Mesh::of(&before).await?.opened(&[CART]).await?;
    let moved = vec![endpoint("p0", 10), endpoint("p1", 11)];
    mesh.relist(&[cart(), slice("s9", moved), pod("p0", 10), pod("p1", 11)]).await?;
    // A listing is swept after it has ended.
    mesh.settle().await?;
    mesh.holds(CART, &["10.1.0.11:8080", "10.1.0.12:8080"])
}

#[tokio::test]
async fn f06_one_address_has_a_port_for_each_name() -> Result<()> {
    let ports = [("http", 8080), ("admin", 8082)];
    let objects = [
        service("cart", &ports),
        pod("p0", 0),
        slice_with("a", &ports[..1], endpoints(0..1)),
        slice_with("b", &ports[1..], endpoints(0..1)),
    ];
    let mesh = Mesh::of(&objects).await?.opened(&[CART, "cart.shop:8082"]).await?;
    mesh.holds(CART, &["10.1.0.1:8080"])?;
    mesh.holds("cart.shop:8082", &["10.1.0.1:8082"])
}

#[tokio::test]
async fn f07_ready_decides_and_nothing_else() -> Result<()> {
    let mut objects = vec![cart()];
    objects.extend(pods(0..8));
    let conditions = [
        json!({"ready": true, "serving": true, "terminating": false}),
        json!({"ready": false, "serving": false, "terminating": false}),
        json!({"serving": true}),
        json!({}),
        json!({"ready": false, "serving": true, "terminating": true}),
        json!({"ready": false, "serving": false, "terminating": true}),
        // As a Service has it that publishes addresses that are not ready.
        json!({"ready": true, "serving": false, "terminating": true}),
        json!({"ready": null, "terminating": true}),
    ];
    let of = |(at, it): (usize, Value)| with(endpoint(&format!("p{at}"), at), "", "conditions", it);
    objects.push(slice("s1", conditions.into_iter().enumerate().map(of).collect()));
    let mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
    let ready = [0, 2, 3, 6, 7].map(|it| format!("{}:8080", ip(it)));
    mesh.holds(CART, &ready.each_ref().map(String::as_str))
}

#[tokio::test]
async fn f08_orphans_change_nothing_and_managers_add_up() -> Result<()> {
    let labels = |slice: Value, labels: Value| with(slice, "/metadata", "labels", labels);
    let by = |who: &str| json!({"kubernetes.io/service-name": "cart", "endpointslice.kubernetes.io/managed-by": who});
    let mut objects = vec![
        cart(),
        labels(slice("s1", endpoints(0..2)), by("endpointslice-controller.k8s.io")),
        labels(slice("s2", endpoints(2..3)), by("somebody-else")),
        labels(slice("s3", endpoints(3..4)), json!({})),
        labels(slice("s4", endpoints(4..5)), json!({"kubernetes.io/service-name": "none"})),
    ];
    objects.extend(pods(0..5));
    let mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
    mesh.holds(CART, &["10.1.0.1:8080", "10.1.0.2:8080", "10.1.0.3:8080"])?;
    let orphan = labels(slice("s3", endpoints(3..4)), json!({})).to_string();
    let read =
        ingest::objects::decode(model::ClusterId::LOCAL, model::Kind::EndpointSlice, &orphan)
            .map_err(|rejected| anyhow::anyhow!("{rejected:?}"))?;
    ensure!(read.warnings == ["it belongs to no Service, by label or by owner"], "it is counted");
    Ok(())
}

#[tokio::test]
async fn f09_endpoints_cut_at_a_thousand_are_not_what_counts() -> Result<()> {
    let slices = (0..25).map(|at| slice(&format!("s{at}"), endpoints(at * 100..at * 100 + 100)));
    let mut objects: Vec<Value> = slices.collect();
    objects.extend(pods(0..2_500));
    objects.push(cart());
    let addresses: Vec<Value> = (0..1_000).map(|it| json!({"ip": ip(it)})).collect();
    objects.push(json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": "cart", "namespace": "shop",
            "annotations": {"endpoints.kubernetes.io/over-capacity": "truncated"},
        },
        "subsets": [{"addresses": addresses, "ports": [{"name": "http", "port": 8080}]}],
    }));
    let mesh = Mesh::of(&objects).await?.opened(&[CART]).await?;
    ensure!(mesh.shown(CART)?.len() == 2_500);
    Ok(())
}

#[tokio::test]
async fn f10_kube_system_is_a_namespace_like_any_other() -> Result<()> {
    let there = |value: Value| with(value, "/metadata", "namespace", json!("kube-system"));
    let endpoint = |number: usize| {
        with(
            endpoint(&format!("p{number}"), number),
            "/targetRef",
            "namespace",
            json!("kube-system"),
        )
    };
    let slice = |numbers: [usize; 2]| there(slice("s1", numbers.map(endpoint).to_vec()));
    let objects = [there(cart()), there(pod("p0", 0)), there(pod("p1", 1)), slice([0, 1])];
    let early = "cart.kube-system:8080";
    let mut mesh = Mesh::of(&objects).await?.opened(&[early]).await?;
    mesh.change(&["Pod/kube-system/p0"], &[there(pod("p2", 2)), slice([1, 2])]).await?;
    mesh.open("cart.kube-system:8080@n1").await?;
    for name in [early, "cart.kube-system:8080@n1"] {
        mesh.holds(name, &["10.1.0.2:8080", "10.1.0.3:8080"])?;
    }
    Ok(())
}
