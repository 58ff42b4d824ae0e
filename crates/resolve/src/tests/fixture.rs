//! A small language for clusters: text in, what clients see out.
//!
//! ```text
//! with ipv6=off transport-header        settings that differ from those of spec 7.0
//! service web 80 adm:90 d:53/udp local  ports, and local traffic policy
//! slice web-a v4 8080 adm:9090          family, ports as name:number (`-`: no number); later ones are newer
//!   10.1.0.1 pod w1 zone=z1 hint=z1,z2  an endpoint: of a pod, of a workload (`ew v1`), or bare
//!   10.1.0.2 !ready host=a
//! mpod w1 node=n1 owner=Job/j1          a meshed pod; `pod` is one without a proxy, `ew` an ExternalWorkload
//! server s pods=app:web port=80 opaque
//! get web:80 zone=z1 node=n1 host=a     prints the addresses of a view; `show` also what is said of them, `why` what
//!                                       becomes of each claim
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use model::{
    Claim, Class, ClusterId, Family, MeshTls, Metadata, ObjectName, OwnerRef, PortSet, ProxyPorts,
    Server, ServerPort, Service, ServiceName, ServicePort, SliceMeta, SlicePort, Template, Text,
    WorkloadKind,
};

use super::claims::{by_ip, lens, rank};
use super::show::{show, show_labels, why};
use super::words::{Words, container_port, owner, pair_of, qualified, selector};
use crate::{Settings, View, join};

/// What `text` prints must be as expected.
pub(super) fn check(text: &str, expected: expect_test::Expect) {
    expected.assert_eq(&printed(text));
}

/// What `text` prints.
pub(super) fn printed(text: &str) -> String {
    Cluster::read(text).printed
}

/// For each workload of `text` the ports that its Servers make opaque.
pub(super) fn opaque_by_server(text: &str) -> String {
    let cluster = Cluster::read(text);
    let lines = cluster.workloads.iter().map(|((name, _), workload)| {
        let ranges = cluster.join(name, workload).opaque_by_server.ranges().to_vec();
        let ranges = ranges.into_iter().map(|(low, high)| match low == high {
            true => format!(" {low}"),
            false => format!(" {low}-{high}"),
        });
        let kind = match workload.template.kind {
            WorkloadKind::Pod => "pod",
            WorkloadKind::External => "ew",
        };
        format!("{kind} {}:{}", name.1, ranges.collect::<String>())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The settings of spec 7.0.
pub(super) fn settings() -> Settings {
    Settings {
        cluster_domain: "k.test".to_owned(),
        trust_domain: "id.test".to_owned(),
        controller_namespace: "mesh-sys".to_owned(),
        transport_header: false,
        h2_upgrade: true,
        ipv6: true,
        default_opaque: ports("25,443,587,3306,5432,11211"),
        zone_weights: false,
        http2: false,
    }
}

fn ports(list: &str) -> PortSet {
    PortSet::parse(list, |_| None).0
}

/// What has been read so far.
struct Cluster {
    settings: Settings,
    services: BTreeMap<String, Service>,
    slices: Vec<Slice>,
    workloads: BTreeMap<(WorkloadName, bool), Workload>,
    servers: Vec<(String, Server)>,
    printed: String,
}

type WorkloadName = (String, String);

struct Slice {
    service: String,
    family: Family,
    meta: Arc<SliceMeta>,
    endpoints: Vec<Endpoint>,
}

struct Endpoint {
    ip: IpAddr,
    ready: bool,
    target: Option<(WorkloadName, WorkloadKind)>,
    hostname: Option<String>,
    zone: Option<String>,
    hints: Vec<String>,
}

struct Workload {
    template: Template,
    node: Option<String>,
    above: Option<Option<OwnerRef>>,
}

impl Cluster {
    fn read(text: &str) -> Cluster {
        let mut cluster = Cluster {
            settings: settings(),
            services: BTreeMap::new(),
            slices: Vec::new(),
            workloads: BTreeMap::new(),
            servers: Vec::new(),
            printed: String::new(),
        };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let words = Words::of(line);
            match words.plain[0] {
                "with" => cluster.with(&words),
                "service" => cluster.service(&words),
                "slice" => cluster.slice(&words),
                "mpod" | "pod" | "ew" => cluster.workload(&words),
                "server" => cluster.server(&words),
                "get" | "show" | "why" => cluster.print(&words),
                _ => cluster.slices.last_mut().unwrap().endpoints.push(endpoint(&words)),
            }
        }
        cluster
    }

    fn with(&mut self, words: &Words<'_>) {
        let settings = &mut self.settings;
        for (key, value) in &words.named {
            match *key {
                "ipv6" => settings.ipv6 = *value != "off",
                "h2" => settings.h2_upgrade = *value != "off",
                "trust" => settings.trust_domain = (*value).to_owned(),
                "default-opaque" => settings.default_opaque = ports(value),
                other => panic!("no setting {other}"),
            }
        }
        settings.transport_header |= words.has("transport-header");
        settings.zone_weights |= words.has("zone-weights");
        settings.http2 |= words.has("http2");
    }

    fn service(&mut self, words: &Words<'_>) {
        let ports = words.plain[2..].iter().filter(|word| **word != "local").map(|word| {
            let (word, protocol) = word.split_once('/').unwrap_or((word, "tcp"));
            let (name, port) = word.split_once(':').unwrap_or(("", word));
            ServicePort {
                name: name.to_owned(),
                port: port.parse().unwrap(),
                tcp: protocol == "tcp",
            }
        });
        let service = Service {
            ports: ports.collect(),
            local_traffic: words.has("local"),
            ..Service::default()
        };
        self.services.insert(words.plain[1].to_owned(), service);
    }

    fn slice(&mut self, words: &Words<'_>) {
        let ports = words.plain[3..].iter().filter(|word| **word != "no-ports").map(|word| {
            let (name, port) = word.split_once(':').unwrap_or(("", word));
            SlicePort { name: name.to_owned(), port: port.parse().ok() }
        });
        let meta = SliceMeta {
            ports: (!words.has("no-ports")).then(|| ports.collect()),
            mirror_cluster: words.text("mirror"),
            remote_service: words.text("remote"),
            gateway_identity: words.text("gateway"),
        };
        self.slices.push(Slice {
            service: words.plain[1].split('-').next().unwrap().to_owned(),
            family: if words.plain[2] == "v6" { Family::V6 } else { Family::V4 },
            meta: Arc::new(meta),
            endpoints: Vec::new(),
        });
    }

    fn workload(&mut self, words: &Words<'_>) {
        let (kind, meshed) = match words.plain[0] {
            "ew" => (WorkloadKind::External, false),
            word => (WorkloadKind::Pod, word == "mpod"),
        };
        let name = qualified(words.plain[1]);
        let mut template = Template {
            kind,
            namespace: name.0.clone(),
            labels: words.all("label").map(|pair| pair_of(pair, ':')).collect(),
            owner: words.get("owner").map(owner),
            name_prefix: String::new(),
            service_account: words.get("sa").unwrap_or("default").to_owned(),
            ports: words.all("port").map(container_port).collect(),
            opaque: words.get("opaque").map(ports),
            skip_inbound: ports(words.get("skip").unwrap_or_default()),
            proxy: None,
            mesh_tls: words.get("id").map(|identity| MeshTls {
                identity: identity.to_owned(),
                server_name: words.text("sni").unwrap_or_default(),
            }),
        };
        let port = |key, default: &str| words.get(key).unwrap_or(default).parse().ok();
        if kind == WorkloadKind::External {
            template.service_account = String::new();
            template.proxy =
                Some(ProxyPorts { inbound: port("proxy", ""), admin: None, control: None });
        } else if meshed {
            let label = "linkerd.io/control-plane-ns".to_owned();
            template.labels.insert(label, words.get("cp").unwrap_or("mesh-sys").to_owned());
            template.proxy = (!words.has("no-proxy")).then(|| ProxyPorts {
                inbound: port("inbound", "4143"),
                admin: port("admin", "4191"),
                control: port("control", "4190"),
            });
        }
        let above = words.get("above").map(|above| (above != "none").then(|| owner(above)));
        let workload = Workload { template, node: words.text("node"), above };
        self.workloads.insert((name, kind == WorkloadKind::External), workload);
    }

    fn server(&mut self, words: &Words<'_>) {
        let port = words.get("port").unwrap();
        let server = Server {
            opaque: words.has("opaque"),
            pods: words.get("pods").map(selector),
            workloads: words.get("ews").map(selector),
            port: match port.parse() {
                Ok(number) => ServerPort::Number(number),
                Err(_) => ServerPort::Name(port.to_owned()),
            },
        };
        self.servers.push((qualified(words.plain[1]).0, server));
    }

    fn print(&mut self, words: &Words<'_>) {
        let (name, port) = words.plain[1].split_once(':').unwrap();
        let view = View {
            service: ServiceName {
                cluster: ClusterId::LOCAL,
                object: ObjectName::new("shop", name).unwrap(),
            },
            port: port.parse().unwrap(),
            hostname: words.text("host"),
            zone: words.text("zone"),
            node: words.text("node"),
            bucket: None,
            linked: words.text("linked"),
            member: false,
        };
        let claims = self.claims(name);
        let lens = lens(&self.settings, &view, self.services.get(name), &claims);
        let by_ip = by_ip(&claims);
        if words.plain[0] == "why" {
            self.printed += &format!("{}\n", lens.keeps());
            for claim in by_ip.values().flat_map(|claims| claims.iter().zip(lens.explain(claims))) {
                self.printed += &why(&lens, claim);
            }
            return;
        }
        let addresses = by_ip.values().flat_map(|claims| lens.project(claims));
        if words.plain[0] == "get" {
            let shown: Vec<String> =
                addresses.map(|it| std::net::SocketAddr::new(it.ip, it.port).to_string()).collect();
            self.printed += &(shown.join(" ") + "\n");
            return;
        }
        self.printed += &format!("set {}\n", show_labels(lens.set_labels()));
        for address in addresses {
            self.printed += &show(&address);
        }
    }

    /// What the store would make of the slices of a Service: claims in no particular order.
    fn claims(&self, service: &str) -> Vec<Claim> {
        let mut targets: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
        for slice in self.slices.iter().rev().filter(|slice| slice.service == service) {
            for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.ready) {
                let Some(target) = self.target(endpoint, slice.family) else { continue };
                let key = match &endpoint.target {
                    Some(target) => format!("{target:?}"),
                    None => endpoint.ip.to_string(),
                };
                targets.entry(key).or_default().push(Claim {
                    ip: endpoint.ip,
                    class: target.0,
                    name: endpoint.target.as_ref().map(|it| it.0.1.clone()).unwrap_or_default(),
                    workload: target.1,
                    node: target.2,
                    slice: slice.meta.clone(),
                    hostname: endpoint.hostname.clone(),
                    zone: endpoint.zone.as_deref().map(Text::from),
                    hints: endpoint.hints.iter().map(|hint| Text::from(&**hint)).collect(),
                    rank: 0,
                    peers: Vec::new(),
                });
            }
        }
        targets.into_values().flat_map(rank).collect()
    }

    /// Class, metadata and node of what an endpoint stands for; `None` if that is not there.
    fn target(
        &self,
        endpoint: &Endpoint,
        family: Family,
    ) -> Option<(Class, Option<Arc<Metadata>>, Option<Text>)> {
        let Some((name, kind)) = &endpoint.target else {
            return Some((Class::Bare, None, None));
        };
        let class = match (kind, family) {
            (WorkloadKind::Pod, Family::V4) => Class::PodV4,
            (WorkloadKind::Pod, Family::V6) => Class::PodV6,
            (WorkloadKind::External, Family::V4) => Class::ExternalV4,
            (WorkloadKind::External, Family::V6) => Class::ExternalV6,
        };
        let workload = self.workloads.get(&(name.clone(), *kind == WorkloadKind::External))?;
        let metadata = self.join(name, workload);
        Some((class, Some(Arc::new(metadata)), workload.node.as_deref().map(Text::from)))
    }

    fn join(&self, name: &WorkloadName, workload: &Workload) -> Metadata {
        let servers = self.servers.iter().filter(|(namespace, _)| *namespace == name.0);
        let servers: Vec<Server> = servers.map(|(_, server)| server.clone()).collect();
        join(&workload.template, workload.above.as_ref().map(Option::as_ref), &servers)
    }
}

fn endpoint(words: &Words<'_>) -> Endpoint {
    let target = words.plain.get(1).filter(|word| !word.starts_with('!')).map(|word| {
        let kind = if *word == "ew" { WorkloadKind::External } else { WorkloadKind::Pod };
        (qualified(words.plain[2]), kind)
    });
    let hints = words.get("hint").map(|list| list.split(',').map(str::to_owned).collect());
    Endpoint {
        ip: words.plain[0].parse().unwrap(),
        ready: !words.has("!ready"),
        target,
        hostname: words.text("host"),
        zone: words.text("zone"),
        hints: hints.unwrap_or_default(),
    }
}
