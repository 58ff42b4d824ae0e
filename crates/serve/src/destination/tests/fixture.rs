//! A server without a network: a store in a folder of its own, a hub, and streams that a test polls itself.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use model::limits::MESSAGE_BYTES_MAX;
use model::{
    Change, ClusterId, EndpointsFrom, Family, Key, Kind, Object, ObjectName, Phase, PortSet,
    ResourceVersion, Revision, Service, ServicePort, Slice, SliceEndpoint, SliceMeta, SlicePort,
    Source, Target, Template, Time, Workload, WorkloadKind,
};
use resolve::Settings;
use store::{Config, Fsync, Undo, Writer};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::super::delta::Answers;
use super::super::shared::Shared;
use super::super::wire::tests::text;
use super::super::wire::{Message, UpdateKind};
use crate::destination::Oversize;
use crate::{Answer, Destination, Hub, Metrics, Needed, StreamLimits, Turn};

pub(super) struct Server {
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) stop: CancellationToken,
    pub(super) destination: Destination,
    writer: Writer,
    versions: u64,
    _folder: tempfile::TempDir,
}

/// What a test may choose.
pub(super) struct Choice {
    pub(super) message_bytes_max: usize,
    pub(super) undo_bytes_max: u64,
    pub(super) hot_bytes: usize,
    pub(super) sending_bytes: usize,
    pub(super) oversize: Oversize,
    pub(super) synced: bool,
    pub(super) no_endpoints: bool,
    pub(super) default_opaque: Option<u16>,
}

pub(super) const USUAL: Choice = Choice {
    message_bytes_max: MESSAGE_BYTES_MAX,
    undo_bytes_max: 10_000_000,
    hot_bytes: 1 << 20,
    sending_bytes: 16 << 20,
    oversize: Oversize { subset: true, endpoints_max: None },
    synced: true,
    no_endpoints: true,
    default_opaque: None,
};

impl Server {
    pub(super) fn start(choice: Choice) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            cache_bytes: 1 << 20,
            hot_bytes: 1 << 20,
            join: resolve::join,
            join_version: resolve::JOIN_VERSION,
            undo: Undo { bytes_max: choice.undo_bytes_max, age_max: u64::MAX },
            fsync: Fsync::Together,
            disk_quota_bytes: None,
            admission: store::Admission::default(),
        };
        let (writer, reader, _) = store::open(folder.path(), config).unwrap();
        let (hub, metrics) = (Arc::new(Hub::new()), Arc::new(Metrics::new()));
        let stop = CancellationToken::new();
        let answers = Answers {
            settings: Settings {
                default_opaque: PortSet::from_ranges(
                    choice.default_opaque.map(|port| (port, port)),
                ),
                ..settings()
            },
            http2: None,
            no_endpoints: choice.no_endpoints,
            message_bytes_max: choice.message_bytes_max,
            oversize: choice.oversize,
        };
        let limits = StreamLimits {
            reads_max: 4,
            hot_bytes: choice.hot_bytes,
            sending_bytes: choice.sending_bytes,
        };
        let (for_hub, for_metrics) = (Arc::clone(&hub), Arc::clone(&metrics));
        let needed =
            Needed { kinds: EndpointsFrom::Slices.kinds().collect(), refused: Arc::new(|_| false) };
        let stopped = stop.clone();
        let shared = Shared::new(reader, for_hub, answers, for_metrics, limits, needed, stopped);
        let destination = Destination { shared: Arc::new(shared) };
        let versions = 0;
        let mut server =
            Server { hub, metrics, stop, destination, writer, versions, _folder: folder };
        if choice.synced {
            server.sync();
        }
        server
    }

    /// Lists the kinds that an answer needs, to their end; what there is of them is swept.
    pub(super) fn sync(&mut self) {
        for kind in EndpointsFrom::Slices.kinds() {
            let source = source(kind);
            let version = ResourceVersion("1".to_owned());
            self.commit(vec![Change::Begin { source }, Change::End { source, version }]);
        }
    }

    pub(super) fn commit(&mut self, changes: Vec<Change>) -> Revision {
        let commit = self.writer.commit(Time(0), changes).unwrap();
        self.hub.advance(&commit);
        while let Some(commit) = self.writer.tick(Time(0)).unwrap() {
            self.hub.advance(&commit);
        }
        commit.revision
    }

    pub(super) fn put(&mut self, kind: Kind, name: &str, object: Object) -> Revision {
        self.put_in(ClusterId::LOCAL, kind, name, object)
    }

    pub(super) fn put_in(
        &mut self,
        cluster: ClusterId,
        kind: Kind,
        name: &str,
        object: Object,
    ) -> Revision {
        let version = ResourceVersion(self.next_version());
        self.commit(vec![Change::Put { key: key_in(cluster, kind, name), version, object }])
    }

    pub(super) fn next_version(&mut self) -> String {
        self.versions += 1;
        self.versions.to_string()
    }

    pub(super) fn delete(&mut self, kind: Kind, name: &str) -> Revision {
        self.delete_in(ClusterId::LOCAL, kind, name)
    }

    pub(super) fn delete_in(&mut self, cluster: ClusterId, kind: Kind, name: &str) -> Revision {
        self.commit(vec![Change::Delete { key: key_in(cluster, kind, name) }])
    }

    /// Service `web` with port 80.
    pub(super) fn web(&mut self) -> Revision {
        self.put(Kind::Service, "web", Object::Service(web()))
    }

    /// Slice `name` of `web`: bare endpoints on port 8080.
    pub(super) fn bare(&mut self, name: &str, ips: &[&str]) -> Revision {
        let ips = ips.iter().map(|ip| endpoint(ip, Target::Bare)).collect();
        self.put(Kind::EndpointSlice, name, Object::Slice(slice("web", 8080, ips)))
    }

    pub(super) fn pod(&mut self, name: &str, node: &str, ip: &str) -> Revision {
        self.put(Kind::Pod, name, Object::Workload(pod(node, ip)))
    }

    pub(super) fn node(&mut self, name: &str, zone: Option<&str>) -> Revision {
        let zone = zone.map(str::to_owned);
        self.put(Kind::Node, name, Object::Node { zone })
    }

    pub(super) async fn open(&self, path: &str, node: &str) -> Result<Client, Status> {
        let context_token = format!("{{\"ns\":\"shop\",\"nodeName\":\"{node}\"}}\n");
        self.open_as(path, &context_token).await
    }

    pub(super) async fn open_as(&self, path: &str, token: &str) -> Result<Client, Status> {
        let stream = self.destination.get(path, token, &Turn::default()).await?;
        Ok(Client { stream, held: BTreeMap::new() })
    }

    pub(super) async fn open_web(&self) -> Client {
        self.open("web.shop.svc.k.test:80", "n1").await.unwrap()
    }

    pub(super) async fn refused(&self, path: &str) -> String {
        let status = self.open(path, "n1").await.err().expect("not refused");
        format!("{:?}: {}", status.code(), status.message())
    }
}

/// A client of one stream, that holds what it was told.
pub(super) struct Client {
    stream: Answer,
    pub(super) held: BTreeMap<String, String>,
}

impl Client {
    /// What an idle stream takes, besides the names in its question.
    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of_val(&self.stream)
    }

    /// The next message; there must be one.
    pub(super) async fn next(&mut self) -> Message {
        let next = tokio::time::timeout(Duration::from_secs(10), self.stream.next());
        let update = next.await.expect("no message came").expect("the stream ended").unwrap();
        self.hold(&update);
        update
    }

    pub(super) async fn says(&mut self, expected: expect_test::Expect) {
        expected.assert_eq(&text(&self.next().await));
    }

    /// The status that ends the stream; `None` is OK.
    pub(super) async fn end(&mut self) -> Option<Code> {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(10), self.stream.next());
            match next.await.expect("the stream goes on") {
                None => return None,
                Some(Err(status)) => return Some(status.code()),
                Some(Ok(_)) => {}
            }
        }
    }

    /// Takes messages until the stream has nothing more to say of all commits so far.
    pub(super) async fn settle(&mut self, hub: &Hub, revision: Revision) {
        while self.unsettled(hub, revision).await.is_some() {}
    }

    /// The same; false if the stream ends before, as one may.
    pub(super) async fn settle_or_end(&mut self, hub: &Hub, revision: Revision) -> bool {
        loop {
            tokio::select! {
                biased;
                update = self.stream.next() => match update {
                    Some(Ok(update)) => self.hold(&update),
                    Some(Err(status)) => panic!("{status}"),
                    None => return false,
                },
                () = hub.settled(revision) => return true,
            }
        }
    }

    /// The next message; `None` when the stream has nothing more to say of all commits so far.
    pub(super) async fn unsettled(&mut self, hub: &Hub, revision: Revision) -> Option<Message> {
        tokio::select! {
            biased;
            update = self.stream.next() => {
                let update = update.expect("the stream ended").unwrap();
                self.hold(&update);
                Some(update)
            }
            () = hub.settled(revision) => None,
        }
    }

    /// Does what a proxy does (spec/proxy.md 1.4).
    fn hold(&mut self, update: &Message) {
        match update.kind {
            UpdateKind::NoEndpoints => self.held.clear(),
            UpdateKind::KeepAlive | UpdateKind::Profile => {}
            UpdateKind::Remove => {
                for line in text(update).lines() {
                    self.held.remove(&line[2..]);
                }
            }
            UpdateKind::Add => {
                let text = text(update);
                let (set, addresses) = text.split_once('\n').unwrap();
                for line in addresses.lines() {
                    let (address, rest) = line[2..].split_once(' ').unwrap();
                    self.held.insert(address.to_owned(), format!("{set} {rest}"));
                }
            }
        }
    }
}

pub(super) fn settings() -> Settings {
    Settings {
        cluster_domain: "k.test".to_owned(),
        trust_domain: "id.test".to_owned(),
        controller_namespace: "mesh-sys".to_owned(),
        transport_header: false,
        h2_upgrade: true,
        ipv6: true,
        default_opaque: PortSet::default(),
        zone_weights: false,
        http2: false,
    }
}

fn source(kind: Kind) -> Source {
    Source { cluster: ClusterId::LOCAL, kind }
}

pub(super) fn key(kind: Kind, name: &str) -> Key {
    key_in(ClusterId::LOCAL, kind, name)
}

fn key_in(cluster: ClusterId, kind: Kind, name: &str) -> Key {
    let namespace = if kind == Kind::Node { "" } else { "shop" };
    Key { source: Source { cluster, kind }, name: ObjectName::new(namespace, name).unwrap() }
}

pub(super) fn web() -> Service {
    let port = ServicePort { name: String::new(), port: 80, tcp: true };
    Service { ports: vec![port], ..Service::default() }
}

pub(super) fn slice(service: &str, port: u16, endpoints: Vec<SliceEndpoint>) -> Slice {
    let ports = vec![SlicePort { name: String::new(), port: Some(port) }];
    Slice {
        service: Some(ObjectName::new("shop", service).unwrap()),
        family: Family::V4,
        meta: SliceMeta { ports: Some(ports), ..SliceMeta::default() },
        endpoints,
    }
}

pub(super) fn endpoint(ip: &str, target: Target) -> SliceEndpoint {
    SliceEndpoint {
        ip: ip.parse().unwrap(),
        ready: true,
        target,
        hostname: None,
        zone: None,
        hints: Vec::new(),
    }
}

pub(super) fn of_pod(ip: &str, name: &str, zone: &str) -> SliceEndpoint {
    let target = Target::Pod(ObjectName::new("shop", name).unwrap());
    SliceEndpoint { zone: Some(zone.to_owned()), ..endpoint(ip, target) }
}

pub(super) fn pod(node: &str, ip: &str) -> Workload {
    let ip: IpAddr = ip.parse().unwrap();
    Workload {
        template: Template {
            kind: WorkloadKind::Pod,
            namespace: "shop".to_owned(),
            labels: BTreeMap::new(),
            owner: None,
            name_prefix: String::new(),
            service_account: "default".to_owned(),
            ports: Vec::new(),
            opaque: None,
            skip_inbound: PortSet::default(),
            proxy: None,
            mesh_tls: None,
        },
        node: Some(node.to_owned()),
        phase: Phase::Running,
        deleting: false,
        host_network: false,
        ips: vec![ip],
        host_ips: Vec::new(),
    }
}
