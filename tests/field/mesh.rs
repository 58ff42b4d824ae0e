//! A server that is told of a cluster, clients that hold what they hear, and the objects that cases are made of.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use harness::client::{Question, Seen, Stream};
use harness::golden::{Cluster, Server, Setup};
use harness::shown::{PROFILE, Said, Shown};
use model::EndpointsFrom;
use serde_json::{Value, json};
use spillway::SourceOptions;

/// A server, the cluster that it is told of, and clients.
pub(crate) struct Mesh {
    pub(crate) cluster: Cluster,
    pub(crate) server: Server,
    pub(crate) streams: BTreeMap<String, Stream>,
}

impl Mesh {
    /// A server that has listed these.
    pub(crate) async fn of(objects: &[Value]) -> Result<Mesh> {
        let setup = Setup::read(&BTreeMap::new())?;
        let mut cluster = Cluster::new(EndpointsFrom::Slices);
        let mut server = Server::start(setup, SourceOptions::Fed).await?;
        server.deliver(cluster.list(objects)?).await?;
        Ok(Mesh { cluster, server, streams: BTreeMap::new() })
    }

    /// Opens a stream of `NAME.NAMESPACE:PORT[@NODE]`, which is its name from now on.
    pub(crate) async fn open(&mut self, name: &str) -> Result<()> {
        let (authority, node) = name.split_once('@').unwrap_or((name, ""));
        let (service, port) = authority.rsplit_once(':').context("no port")?;
        let path = format!("{service}.svc.k.test:{port}");
        let token = json!({"ns": "shop", "nodeName": node}).to_string();
        let question = Question { path, token, ..Question::default() };
        let stream = self.server.client().open(question, false).await;
        self.streams.insert(name.to_owned(), stream);
        self.settle().await
    }

    /// Opens a profile's stream of `HOST:PORT`, which is its name from now on.
    pub(crate) async fn dial(&mut self, path: &str) -> Result<()> {
        let question = Question { path: path.to_owned(), profile: true, ..Question::default() };
        let stream = self.server.client().open(question, false).await;
        self.streams.insert(path.to_owned(), stream);
        self.settle().await
    }

    /// The profile that a client holds.
    pub(crate) fn profile(&self, path: &str) -> Result<Value> {
        self.shown(path)?.remove(&PROFILE).with_context(|| format!("{path} was told nothing"))
    }

    /// The pod of the profile that a client holds; empty if it is nobody's.
    pub(crate) fn pod(&self, path: &str) -> Result<String> {
        let profile = self.profile(path)?;
        let pod = profile.pointer("/endpoint/metric_labels/pod");
        Ok(pod.and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    pub(crate) async fn opened(mut self, names: &[&str]) -> Result<Mesh> {
        for name in names {
            self.open(name).await?;
        }
        self.news();
        Ok(self)
    }

    pub(crate) async fn apply(&mut self, objects: &[Value]) -> Result<()> {
        self.change(&[], objects).await
    }

    pub(crate) async fn delete(&mut self, objects: &[&str]) -> Result<()> {
        self.change(objects, &[]).await
    }

    /// Deletes and writes, in one commit, and waits until all clients have heard of it.
    pub(crate) async fn change(&mut self, deleted: &[&str], written: &[Value]) -> Result<()> {
        let deleted: Vec<String> = deleted.iter().map(|name| (*name).to_owned()).collect();
        let mut changes = self.cluster.delete(&deleted)?;
        changes.extend(self.cluster.apply(written)?);
        self.server.deliver(changes).await?;
        self.settle().await
    }

    /// The watches were cut off, and list anew: this is all there is.
    pub(crate) async fn relist(&mut self, objects: &[Value]) -> Result<()> {
        let changes = self.cluster.list(objects)?;
        self.server.deliver(changes).await?;
        self.settle().await
    }

    pub(crate) async fn settle(&self) -> Result<()> {
        let streams: Vec<&Stream> = self.streams.values().collect();
        self.server.settle(&streams).await?;
        for (name, stream) in &self.streams {
            let faults = stream.faults();
            ensure!(faults.is_empty(), "{name}: {faults:?}");
        }
        Ok(())
    }

    pub(crate) fn stream(&self, name: &str) -> Result<&Stream> {
        self.streams.get(name).with_context(|| format!("{name} is not open"))
    }

    pub(crate) fn shown(&self, name: &str) -> Result<Shown> {
        match self.stream(name)?.seen() {
            Seen::Open(held) => Ok(held),
            Seen::Ended(code) => anyhow::bail!("{name} ended with {code:?}"),
        }
    }

    /// The addresses that a client holds must be these.
    pub(crate) fn holds(&self, name: &str, expected: &[&str]) -> Result<()> {
        let held = self.shown(name)?;
        let mut expected: Vec<SocketAddr> =
            expected.iter().map(|it| it.parse()).collect::<Result<_, _>>()?;
        expected.sort_unstable();
        let held: Vec<_> = held.keys().copied().collect();
        ensure!(held == expected, "{name} holds {held:?}, not {expected:?}");
        Ok(())
    }

    /// What all clients have heard since they were last asked: addresses added, addresses removed, and how often
    /// there were said to be none.
    pub(crate) fn news(&self) -> BTreeMap<String, (usize, usize, usize)> {
        let mut news = BTreeMap::new();
        for (name, stream) in &self.streams {
            let mut heard = (0, 0, 0);
            for said in stream.news() {
                match said {
                    Said::Add(addresses) => heard.0 += addresses.len(),
                    Said::Remove(addresses) => heard.1 += addresses.len(),
                    Said::NoEndpoints => heard.2 += 1,
                    Said::Profile(_) => {}
                }
            }
            if heard != (0, 0, 0) {
                news.insert(name.clone(), heard);
            }
        }
        news
    }

    /// The only client must have heard of so many addresses that came, that went, and of an end.
    pub(crate) fn heard(&self, added: usize, removed: usize, none: usize) -> Result<()> {
        let news = self.news();
        let heard = news.values().next().copied().unwrap_or_default();
        ensure!(heard == (added, removed, none), "heard {news:?}");
        Ok(())
    }
}

pub(crate) fn service(name: &str, ports: &[(&str, u16)]) -> Value {
    let ports: Vec<Value> =
        ports.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ports": ports},
    })
}

pub(crate) fn cart() -> Value {
    service("cart", &[("http", 8080)])
}

/// The address of a number.
pub(crate) fn ip(number: usize) -> String {
    format!("10.1.{}.{}", number / 250, number % 250 + 1)
}

pub(crate) fn pod(name: &str, number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "cart"}},
        "spec": {"serviceAccountName": "clerk", "containers": [{"name": "app"}]},
        "status": {"phase": "Running", "podIP": ip(number), "podIPs": [{"ip": ip(number)}]},
    })
}

pub(crate) fn pods(numbers: impl Iterator<Item = usize>) -> Vec<Value> {
    numbers.map(|number| pod(&format!("p{number}"), number)).collect()
}

pub(crate) fn endpoint(name: &str, number: usize) -> Value {
    json!({
        "addresses": [ip(number)],
        "conditions": {"ready": true},
        "targetRef": {"kind": "Pod", "name": name, "namespace": "shop"},
    })
}

pub(crate) fn endpoints(numbers: impl Iterator<Item = usize>) -> Vec<Value> {
    numbers.map(|number| endpoint(&format!("p{number}"), number)).collect()
}

/// A slice of `cart` with these ports.
pub(crate) fn slice_with(name: &str, ports: &[(&str, u16)], endpoints: Vec<Value>) -> Value {
    let ports: Vec<Value> =
        ports.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "namespace": "shop",
            "labels": {"kubernetes.io/service-name": "cart"},
        },
        "addressType": "IPv4", "ports": ports, "endpoints": endpoints,
    })
}

pub(crate) fn slice(name: &str, endpoints: Vec<Value>) -> Value {
    slice_with(name, &[("http", 8080)], endpoints)
}

pub(crate) fn with(mut value: Value, pointer: &str, key: &str, to: Value) -> Value {
    if let Some(place) = value.pointer_mut(pointer) {
        place[key] = to;
    }
    value
}

pub(crate) fn node(name: &str, zone: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
    })
}

pub(crate) const CART: &str = "cart.shop:8080";
