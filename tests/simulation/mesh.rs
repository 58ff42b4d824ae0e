//! Several clusters, the links between them, and who follows these as a server does: parts join and leave, and are watched
//! where a link leads.

use std::collections::{BTreeMap, BTreeSet};

use harness::crash::{CrashVolume, Image};
use model::{
    Change, Credentials, Discovery, Kind, Link, Object, ObjectName, Origin, Part, Service, Source,
};

use crate::far::{Far, Watched, kinds};
use crate::flows::{Rules, in_use, links};
use crate::world::{Dice, NAMESPACE, SERVICES, World, key, service};
use crate::{Server, settings};

/// How Services name other clusters.
const NAMES: [&str; 3] = ["east", "west", "north"];

/// Where clusters may be found.
const ADDRESSES: [&str; 3] = ["a", "b", "c"];

/// Services that stand for others.
const STAND_INS: [&str; 2] = ["mirror", "all"];

/// What has happened lately is shown for so many steps, if something goes wrong.
const SHOWN: usize = 40;

/// All clusters, and the server that knows of them.
pub(crate) struct Mesh {
    pub(crate) server: Server,
    here: World,
    /// By address.
    fars: BTreeMap<&'static str, Far>,
    /// Clusters elsewhere, so far.
    number: u64,
    /// What the server has stored of linked clusters, by their names.
    parts: BTreeMap<String, Watched>,
    /// The namespace of parts; empty: clusters are watched as a whole, be they in use or not.
    namespace: &'static str,
    pub(crate) story: Story,
}

/// What has happened, for whoever has to look for a fault.
pub(crate) struct Story {
    seed: u64,
    pub(crate) step: u64,
    lines: Vec<String>,
}

impl Story {
    fn tell(&mut self, line: String) {
        self.lines.push(format!("step {}: {line}", self.step));
    }
}

impl Drop for Story {
    #[expect(clippy::print_stderr, reason = "it is the history of a test that has failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lines = &self.lines[self.lines.len().saturating_sub(SHOWN)..];
            eprintln!("seed {}, in step {}, after\n{}", self.seed, self.step, lines.join("\n"));
        }
    }
}

impl Mesh {
    pub(crate) fn new(seed: u64, dice: &mut Dice) -> Mesh {
        let settings = settings(dice);
        let hot_bytes = [0, 20_000, 1 << 20][dice.roll(3) as usize];
        let mut mesh = Mesh {
            server: Server::start(CrashVolume::of(Image::new()), &settings, hot_bytes),
            here: World::default(),
            fars: BTreeMap::new(),
            number: 0,
            parts: BTreeMap::new(),
            namespace: dice.of(&["", NAMESPACE]),
            story: Story { seed, step: 0, lines: Vec::new() },
        };
        let count = 1 + dice.roll(3) as usize;
        ADDRESSES[..count].iter().for_each(|address| mesh.replace(address, dice));
        let mut changes = mesh.here.list_all();
        for name in SERVICES {
            changes.push(mesh.here.put(key(Kind::Service, name), Object::Service(service(dice))));
        }
        changes.extend((0..60).map(|_| mesh.here.change(dice)));
        let secrets = ["s0", "s1", "s2"].map(|name| key(Kind::Secret, name));
        for key in secrets {
            changes.push(mesh.here.put(key, link(&mesh.fars, dice)));
        }
        let stand_ins = STAND_INS.map(|name| (key(Kind::Service, name), stand_in(name, dice)));
        changes.extend(stand_ins.map(|(key, service)| mesh.here.put(key, service)));
        mesh.server.commit(changes);
        mesh
    }

    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules { here: &self.here, settings: &self.server.settings, parts: &self.parts }
    }

    /// At an address there is another cluster from here on.
    fn replace(&mut self, address: &'static str, dice: &mut Dice) {
        self.number += 1;
        let far = Far::new(self.number, dice);
        self.story.tell(format!("at {address} there is cluster {} ({})", self.number, far.uid));
        self.fars.insert(address, far);
    }

    /// Something happens, and somewhere somebody hears of it.
    pub(crate) fn happen(&mut self, dice: &mut Dice) {
        match dice.roll(100) {
            0 => {
                self.story.tell("the store is opened again".to_owned());
                self.server.reopen();
                self.parts.values_mut().for_each(|part| part.disconnect(true));
            }
            1..=2 => {
                let kind = dice.of(&[Kind::Service, Kind::Secret, Kind::Pod, Kind::EndpointSlice]);
                self.story.tell(format!("{kind}s are listed"));
                self.server.commit(self.here.relist(kind, dice));
            }
            3..=4 => {
                let there: Vec<_> = self.fars.keys().copied().collect();
                self.replace(dice.of(&there), dice);
            }
            5..=10 => self.relink(dice),
            11..=24 => {
                let changes = (0..=dice.roll(3)).map(|_| self.here.change(dice)).collect();
                self.server.commit(changes);
            }
            25..=30 => self.stand_otherwise(dice),
            31..=54 => self.follow(dice, false),
            _ => {
                for far in self.fars.values_mut() {
                    (0..dice.roll(4)).for_each(|_| far.change(dice));
                }
                self.hear(dice);
            }
        }
    }

    /// A Secret changes that declares a link, or might.
    fn relink(&mut self, dice: &mut Dice) {
        let mut key = key(Kind::Secret, &format!("s{}", dice.roll(4)));
        if dice.percent(8) {
            // Where it declares nothing.
            key.name = ObjectName::new(NAMESPACE, key.name.name()).expect("a name");
        }
        let change = match dice.percent(15) {
            true => self.here.delete(key),
            false => self.here.put(key, link(&self.fars, dice)),
        };
        self.here_changes(change);
    }

    /// A Service stands for others than before.
    fn stand_otherwise(&mut self, dice: &mut Dice) {
        let name = dice.of(&STAND_INS);
        let key = key(Kind::Service, name);
        let change = match dice.percent(8) {
            true => self.here.delete(key),
            false => self.here.put(key, stand_in(name, dice)),
        };
        self.here_changes(change);
    }

    fn here_changes(&mut self, change: Change) {
        self.story.tell(told(&change));
        self.server.commit(vec![change]);
    }

    /// What the watches of some parts say.
    fn hear(&mut self, dice: &mut Dice) {
        for (name, part) in &mut self.parts {
            let Some(far) = part.address.as_deref().and_then(|at| self.fars.get(at)) else {
                continue;
            };
            if dice.percent(70) {
                let said = part.hear(far, dice);
                if said.iter().any(|change| matches!(change, Change::Begin { .. })) {
                    self.story.tell(format!("{name} is listed"));
                }
                self.server.commit(said);
            }
        }
    }

    /// Who follows the links looks at them: parts leave that nobody wants, and those that are wanted join.
    fn follow(&mut self, dice: &mut Dice, at_once: bool) {
        let used = in_use(&self.here);
        let snapshot = self.server.reader.snapshot().expect("it can be read");
        let found = snapshot.parts_in_use().expect("it can be read");
        let found: BTreeSet<String> = found.into_iter().map(|part| part.cluster).collect();
        assert_eq!(found, used, "the clusters in use");
        let links = links(&self.here);
        let links = links.into_iter().map(|(name, link)| (name, link.clone()));
        let links: BTreeMap<String, Link> = links.collect();
        let used = |name: &String| self.namespace.is_empty() || used.contains(name);
        let mut left = Vec::new();
        for name in self.parts.keys() {
            let kept = links.contains_key(name) && (used(name) || dice.percent(85));
            left.extend((!kept).then(|| name.clone()));
        }
        let wanted: Vec<_> = links
            .into_iter()
            .filter(|(name, _)| used(name) || self.parts.contains_key(name))
            .collect();
        for name in left {
            self.leave(&name, dice);
        }
        for (name, link) in wanted {
            if at_once || dice.percent(80) {
                self.join(&name, &link, dice);
            }
        }
    }

    /// What is still on its way from a part is committed with what ends it, or after that.
    fn leave(&mut self, name: &str, dice: &mut Dice) {
        let Some(mut part) = self.parts.remove(name) else { return };
        self.story.tell(format!("{name} leaves, which was {}", part.id.0));
        let mut changes = vec![Change::Leave { id: part.id }];
        changes.extend(self.late(&mut part, dice));
        self.server.commit(changes);
    }

    fn late(&self, part: &mut Watched, dice: &mut Dice) -> Vec<Change> {
        let far = part.address.as_deref().and_then(|at| self.fars.get(at));
        far.map(|far| part.hear(far, dice)).unwrap_or_default()
    }

    /// The cluster that a link leads to is watched, if it can be reached and isn't already.
    fn join(&mut self, name: &str, link: &Link, dice: &mut Dice) {
        let address = &*link.credentials.0;
        if let Some(part) = self.parts.get_mut(name)
            && part.address.as_deref() != Some(address)
        {
            part.disconnect(false);
        }
        let Some(far) = self.fars.get(address) else { return };
        let trust_domain = link.trust_domain.clone();
        let origin = Origin { uid: far.uid.clone(), trust_domain };
        let known = self.parts.remove(name);
        if let Some(part) = known.as_ref().filter(|it| it.address.is_some())
            && part.told.origin == origin
        {
            self.parts.extend(known.map(|part| (name.to_owned(), part)));
            return;
        }
        let part = part_of(name, self.namespace);
        let mut changes = vec![Change::Join { part: part.clone(), origin: origin.clone() }];
        let (kept, mut other) = match known {
            Some(known) if known.told.origin.uid == origin.uid => (Some(known), None),
            other => (None, other),
        };
        changes
            .extend(other.iter_mut().flat_map(|other| self.late(other, dice)).collect::<Vec<_>>());
        self.server.commit(changes);
        let snapshot = self.server.reader.snapshot().expect("it can be read");
        let stored = snapshot.part(&part).expect("it can be read").expect("it is stored");
        assert_eq!(stored.origin, origin, "{name}");
        self.story.tell(format!("{name} joins as {}, from {address}: {origin:?}", stored.id.0));
        let checkpoint = |source| snapshot.checkpoint(source).expect("it can be read");
        let mut joined = match kept {
            Some(kept) => {
                assert_eq!(stored.id, kept.id, "{name} is the same cluster");
                kept
            }
            None => {
                let old = other.map(|other| other.id);
                assert_ne!(Some(stored.id), old, "{name} is another cluster");
                let source = |kind| Source { cluster: stored.id, kind };
                assert!(kinds().iter().all(|kind| checkpoint(source(*kind)).is_none()), "{name}");
                Watched::new(stored.id, origin.clone())
            }
        };
        joined.told.origin = origin;
        joined.disconnect(false);
        joined.connect(address, &self.fars[address], checkpoint);
        self.parts.insert(name.to_owned(), joined);
    }

    /// The server ends, and another one starts on what it has left.
    pub(crate) fn restart(mut self) -> Mesh {
        self.story.tell("the server is started again".to_owned());
        self.server = self.server.restart();
        self.parts.values_mut().for_each(|part| part.disconnect(true));
        self
    }

    /// Everything that is under way comes to its end: then all is known that there is.
    pub(crate) fn rest(&mut self, dice: &mut Dice) {
        for name in STAND_INS {
            let cluster = Some("east".to_owned());
            let discovery = Discovery {
                cluster,
                service: Some("web".to_owned()),
                members: (name == "all").then(|| "api@north,web@west,web@east".to_owned()),
                local_member: None,
            };
            let service = Service { discovery, ..service(dice) };
            let change = self.here.put(key(Kind::Service, name), Object::Service(service));
            self.here_changes(change);
        }
        // Once more, for those that another cluster has taken the place of.
        for _ in 0..2 {
            self.follow(dice, true);
            for part in self.parts.values_mut() {
                if let Some(far) = part.address.as_deref().and_then(|at| self.fars.get(at)) {
                    self.server.commit(part.hear_all(far));
                    assert_eq!(part.errors(far), [], "all was said");
                }
            }
        }
        self.story.tell("all is said".to_owned());
    }
}

fn part_of(cluster: &str, namespace: &str) -> Part {
    Part { cluster: cluster.to_owned(), namespace: namespace.to_owned() }
}

/// A Secret that declares a link, mostly.
fn link(fars: &BTreeMap<&str, Far>, dice: &mut Dice) -> Object {
    let there: Vec<_> = fars.keys().copied().collect();
    let address = if dice.percent(90) { dice.of(&there) } else { "nowhere" };
    let link = Link {
        cluster: dice.of(&NAMES).to_owned(),
        trust_domain: dice.of(&["one.test", "two.test", "three.test", ""]).to_owned(),
        cluster_domain: String::new(),
        credentials: Credentials(address.into()),
    };
    Object::Link(if dice.percent(90) { Ok(link) } else { Err("it has no data".to_owned()) })
}

/// A Service that stands for others, mostly in the way that its name says.
fn stand_in(name: &str, dice: &mut Dice) -> Object {
    let federated = dice.percent(if name == "all" { 85 } else { 10 });
    let cluster = |dice: &mut Dice| match dice.percent(90) {
        true => dice.of(&NAMES),
        false => dice.of(&["nowhere", ""]),
    };
    let item = |dice: &mut Dice| match dice.percent(90) {
        true => format!("{}@{}", dice.of(&["web", "api"]), cluster(dice)),
        false => dice.of(&["web", "web@east@west", "", " web@east", "@west"]).to_owned(),
    };
    let items =
        |dice: &mut Dice| (0..dice.roll(5)).map(|_| item(dice)).collect::<Vec<_>>().join(",");
    let local = |dice: &mut Dice| dice.of(&["web", "api", ""]).to_owned();
    let discovery = Discovery {
        cluster: dice.maybe(if federated { 20 } else { 97 }, |dice| cluster(dice).to_owned()),
        service: dice.maybe(96, |dice| dice.of(&["web", "api"]).to_owned()),
        members: dice.maybe(90, items).filter(|_| federated),
        local_member: dice.maybe(50, local).filter(|_| federated),
    };
    let external_name = dice.percent(8);
    Object::Service(Service { discovery, external_name, ..service(dice) })
}

fn told(change: &Change) -> String {
    match change {
        Change::Put { key, object: Object::Service(service), .. } => {
            format!("{key} is {:?}, elsewhere: {}", service.discovery, service.external_name)
        }
        Change::Put { key, object: Object::Link(Ok(link)), .. } => {
            let Link { cluster, trust_domain, credentials, .. } = link;
            format!("{key} links {cluster} of {trust_domain} at {}", credentials.0)
        }
        change => format!("{change:?}"),
    }
}
