//! A folder of manifests that changes, one object a file, and what a proxy should hold by it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Result;

use crate::shown::Shown;

/// Services, slices of each, and pods that there may be: more than a listing hands on at once.
const SERVICES: u64 = 8;
const SLICES: u64 = 3;
const PODS: u64 = 240;

/// Endpoints of a slice, at most.
const ENDPOINTS_MAX: u64 = 40;

/// A small generator of numbers: the same seed, the same world.
pub struct Random(u64);

impl Random {
    /// Seeds that are near each other give worlds that are not.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// An endpoint of a slice: a pod, or an address with nothing behind it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Pod(u64),
    Bare(u64),
}

/// What a client is told of an address: the pod and its ServiceAccount, if there is one.
type Answer = BTreeMap<SocketAddr, Option<(String, String)>>;

/// What is in the folder.
pub struct World {
    folder: PathBuf,
    services: BTreeSet<u64>,
    /// The endpoints of each slice of each Service, and which are ready.
    slices: BTreeMap<(u64, u64), BTreeMap<Target, bool>>,
    /// The ServiceAccount of each pod.
    pods: BTreeMap<u64, u64>,
}

impl World {
    /// A folder with something of everything.
    pub fn new(folder: PathBuf, random: &mut Random) -> Result<World> {
        std::fs::create_dir_all(&folder)?;
        let (services, slices, pods) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let mut world = World { folder, services, slices, pods };
        for pod in 0..PODS {
            world.put_pod(pod, random)?;
        }
        for service in 0..SERVICES {
            world.put_service(service)?;
            for slice in 0..SLICES {
                world.put_slice(service, slice, random)?;
            }
        }
        Ok(world)
    }

    /// Something comes, changes or goes.
    pub fn edit(&mut self, random: &mut Random) -> Result<()> {
        let gone = random.below(100) < 30;
        let (service, slice, pod) =
            (random.below(SERVICES), random.below(SLICES), random.below(PODS));
        match (random.below(8), gone) {
            (0, true) => {
                self.services.remove(&service);
                self.remove(&format!("service-{service}"))
            }
            (0, false) => self.put_service(service),
            (1..=4, true) => {
                self.slices.remove(&(service, slice));
                self.remove(&format!("slice-{service}-{slice}"))
            }
            (1..=4, false) => self.put_slice(service, slice, random),
            (_, true) => {
                self.pods.remove(&pod);
                self.remove(&format!("pod-{pod}"))
            }
            (_, false) => self.put_pod(pod, random),
        }
    }

    /// What a proxy asks for to get each Service.
    pub fn authorities() -> Vec<String> {
        (0..SERVICES).map(|n| format!("svc-{n}.shop.svc.cluster.local:8000")).collect()
    }

    /// Does a client of this Service hold what it should? If not, what is different.
    pub fn difference(&self, service: usize, held: &Shown) -> Option<String> {
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let told = |value: &serde_json::Value| {
            let labels = &value["labels"];
            Some((text(&labels["pod"])?, text(&labels["serviceaccount"])?))
        };
        let held: Answer = held.iter().map(|(addr, value)| (*addr, told(value))).collect();
        let expected = self.answer(service as u64);
        (held != expected).then(|| format!("svc-{service}: {held:?}, not {expected:?}"))
    }

    /// A ready endpoint is seen if it is bare or its pod is there, and its Service, too.
    fn answer(&self, service: u64) -> Answer {
        let mut answer = Answer::new();
        if !self.services.contains(&service) {
            return answer;
        }
        let slices = self.slices.range((service, 0)..=(service, u64::MAX));
        for (target, _) in slices.flat_map(|(_, it)| it).filter(|(_, ready)| **ready) {
            let told = match target {
                Target::Bare(_) => None,
                Target::Pod(pod) => match self.pods.get(pod) {
                    Some(account) => Some((format!("pod-{pod}"), format!("sa-{account}"))),
                    None => continue,
                },
            };
            answer.insert(SocketAddr::new(target.ip(service), 8_001), told);
        }
        answer
    }

    // === files ===

    fn put_service(&mut self, service: u64) -> Result<()> {
        self.services.insert(service);
        let text = format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: svc-{service}, namespace: shop}},\n \
             spec: {{ports: [{{name: http, port: 8000, protocol: TCP}}]}}}}\n"
        );
        self.write(&format!("service-{service}"), &text)
    }

    fn put_pod(&mut self, pod: u64, random: &mut Random) -> Result<()> {
        let account = random.below(4);
        self.pods.insert(pod, account);
        let ip = Target::Pod(pod).ip(0);
        let text = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: pod-{pod}, namespace: shop}},\n \
             spec: {{serviceAccountName: sa-{account}, nodeName: node-{account}, containers: [{{name: app}}]}},\n \
             status: {{phase: Running, podIP: {ip}, podIPs: [{{ip: {ip}}}]}}}}\n"
        );
        self.write(&format!("pod-{pod}"), &text)
    }

    fn put_slice(&mut self, service: u64, slice: u64, random: &mut Random) -> Result<()> {
        let mut endpoints = BTreeMap::new();
        for _ in 0..random.below(ENDPOINTS_MAX) {
            let target = match random.below(4) {
                // Slices of a Service share no bare address: which of two such endpoints counts is not the matter.
                0 => Target::Bare(slice * ENDPOINTS_MAX + random.below(ENDPOINTS_MAX)),
                _ => Target::Pod(random.below(PODS)),
            };
            endpoints.insert(target, random.below(5) > 0);
        }
        let mut text = format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\n\
             metadata: {{name: svc-{service}-{slice}, namespace: shop, \
             labels: {{kubernetes.io/service-name: svc-{service}}}}}\n\
             ports: [{{name: http, port: 8001, protocol: TCP}}]\nendpoints:\n"
        );
        for (target, ready) in &endpoints {
            let ip = target.ip(service);
            text += &format!("- {{addresses: [{ip}], conditions: {{ready: {ready}}}");
            if let Target::Pod(pod) = target {
                text += &format!(", targetRef: {{kind: Pod, name: pod-{pod}, namespace: shop}}");
            }
            text += "}\n";
        }
        if endpoints.is_empty() {
            text += "  []\n";
        }
        self.slices.insert((service, slice), endpoints);
        self.write(&format!("slice-{service}-{slice}"), &text)
    }

    /// All of a file is there, or nothing of it.
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let made = self.folder.join(".made");
        std::fs::write(&made, text)?;
        Ok(std::fs::rename(made, self.folder.join(format!("{name}.yaml")))?)
    }

    fn remove(&self, name: &str) -> Result<()> {
        match std::fs::remove_file(self.folder.join(format!("{name}.yaml"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Target {
    fn ip(self, service: u64) -> IpAddr {
        let (net, host, last) = match self {
            Target::Pod(pod) => (1, 0, pod),
            Target::Bare(bare) => (2, service, bare),
        };
        Ipv4Addr::new(10, net, host as u8, last as u8).into()
    }
}
