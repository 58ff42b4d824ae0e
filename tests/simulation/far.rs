//! Clusters elsewhere: what their API servers have, and what their watches have said of it, which are cut off, begin anew and
//! repeat themselves.

use std::collections::{BTreeMap, BTreeSet};

use harness::golden::of_cluster;
use model::{
    Change, ClusterId, Discovery, EndpointsFrom, Key, Kind, Object, Origin, ResourceVersion,
    Service, Source,
};

use crate::world::{Dice, SERVICES, World, key, service, source};

/// What is watched of a linked cluster (spec §4.2).
pub(crate) fn kinds() -> [Kind; 5] {
    EndpointsFrom::Slices.kinds_of_linked()
}

/// No two clusters say of an object that it is of the same version.
const VERSIONS: u64 = 1_000_000;

/// A cluster elsewhere.
pub(crate) struct Far {
    /// Which of all that there ever were.
    number: u64,
    /// What tells it from others; empty: that isn't to be seen.
    pub(crate) uid: String,
    world: World,
    /// All that ever happened there: a place in it is a version of a listing.
    log: Vec<Change>,
}

impl Far {
    pub(crate) fn new(number: u64, dice: &mut Dice) -> Far {
        let uid = if dice.percent(15) { String::new() } else { format!("u{number}") };
        let mut far = Far { number, uid, world: World::after(number * VERSIONS), log: Vec::new() };
        for name in SERVICES {
            far.log.push(far.world.put(key(Kind::Service, name), Object::Service(service(dice))));
        }
        (0..60).for_each(|_| far.change(dice));
        far
    }

    pub(crate) fn change(&mut self, dice: &mut Dice) {
        let change = match dice.percent(6) {
            true => self.world.put(key(Kind::Service, dice.of(&SERVICES)), stand_in(dice)),
            false => self.world.change(dice),
        };
        self.log.push(change);
    }
}

/// A Service without endpoints, or one that stands for others: where it is looked up from elsewhere that doesn't matter.
fn stand_in(dice: &mut Dice) -> Object {
    let discovery = Discovery {
        cluster: dice.maybe(20, |_| "east".to_owned()),
        service: dice.maybe(20, |_| "web".to_owned()),
        members: dice.maybe(20, |_| "web@west".to_owned()),
        local_member: None,
    };
    let external_name = dice.percent(50);
    Object::Service(Service { external_name, discovery, ..service(dice) })
}

/// What was said of a part of a linked cluster that is stored.
pub(crate) struct Told {
    pub(crate) origin: Origin,
    pub(crate) world: World,
    /// Services that were there, and of which that is sure to be remembered.
    pub(crate) gone: BTreeMap<String, bool>,
    /// Objects that could not be read when they were spoken of last.
    unread: BTreeSet<Key>,
    /// By the kinds that are being listed, what was mentioned.
    mentioned: BTreeMap<Kind, BTreeSet<Key>>,
    listed: BTreeSet<Kind>,
}

impl Told {
    pub(crate) fn new(origin: Origin) -> Told {
        Told {
            origin,
            world: World::default(),
            gone: BTreeMap::new(),
            unread: BTreeSet::new(),
            mentioned: BTreeMap::new(),
            listed: BTreeSet::new(),
        }
    }

    /// Has each kind been listed to its end once?
    pub(crate) fn is_listed(&self) -> bool {
        kinds().iter().all(|kind| self.listed.contains(kind))
    }

    fn hear(&mut self, change: &Change) {
        match change {
            Change::Begin { source } => drop(self.mentioned.insert(source.kind, BTreeSet::new())),
            Change::Put { key, version, object } => {
                self.mention(key);
                self.unread.remove(key);
                self.gone.remove(key.name.name());
                self.world.objects.insert(key.clone(), (version.order(), object.clone()));
            }
            Change::Keep { key } => {
                self.mention(key);
                self.unread.insert(key.clone());
            }
            Change::Delete { key } => self.delete(key),
            Change::End { source, .. } => {
                let mentioned = self.mentioned.remove(&source.kind).expect("a listing has begun");
                let of_kind = self.world.objects.keys().filter(|key| key.source == *source);
                let left: Vec<Key> =
                    of_kind.filter(|key| !mentioned.contains(*key)).cloned().collect();
                left.iter().for_each(|key| self.delete(key));
                self.listed.insert(source.kind);
            }
            _ => {}
        }
        let named = |name: &str| {
            self.world.all(Kind::EndpointSlice).any(|(_, _, object)| match object {
                Object::Slice(slice) => slice.service.as_ref().is_some_and(|it| it.name() == name),
                _ => false,
            })
        };
        self.gone.iter_mut().for_each(|(name, sure)| *sure &= named(name));
    }

    fn mention(&mut self, key: &Key) {
        if let Some(mentioned) = self.mentioned.get_mut(&key.source.kind) {
            mentioned.insert(key.clone());
        }
    }

    fn delete(&mut self, key: &Key) {
        self.unread.remove(key);
        if self.world.objects.remove(key).is_some() && key.source.kind == Kind::Service {
            self.gone.insert(key.name.name().to_owned(), true);
        }
    }
}

/// The watch of a kind.
enum Watch {
    /// It has to list anew.
    Lost,
    /// It was told what there was at a place in the log, and has yet to hand on what is left of it.
    Listing { left: Vec<Change>, at: usize },
    /// It goes on at a place in the log, and doesn't go back behind another.
    Watching { from: usize, at: usize },
}

/// A part that is stored, and its watches.
pub(crate) struct Watched {
    pub(crate) id: ClusterId,
    pub(crate) told: Told,
    /// Where it is watched, if it is.
    pub(crate) address: Option<String>,
    /// The number of the cluster that was found there.
    far: u64,
    watches: BTreeMap<Kind, Watch>,
    /// By kind, the number of the cluster that the checkpoint is of.
    checkpoints: BTreeMap<Kind, u64>,
}

impl Watched {
    /// Nobody watches it yet.
    pub(crate) fn new(id: ClusterId, origin: Origin) -> Watched {
        let told = Told::new(origin);
        let (watches, checkpoints) = (BTreeMap::new(), BTreeMap::new());
        Watched { id, told, address: None, far: 0, watches, checkpoints }
    }

    /// Whoever watched it is gone, and so are the listings that were under way, if the store was closed as well.
    pub(crate) fn disconnect(&mut self, closed: bool) {
        self.address = None;
        self.watches.clear();
        if closed {
            self.told.mentioned.clear();
        }
    }

    /// It is watched there, from these checkpoints on.
    pub(crate) fn connect(
        &mut self,
        address: &str,
        far: &Far,
        checkpoint: impl Fn(Source) -> Option<ResourceVersion>,
    ) {
        self.address = Some(address.to_owned());
        for kind in kinds() {
            let at = checkpoint(Source { cluster: self.id, kind }).map(|it| it.order() as usize);
            let watch = match at {
                // Of another cluster no version is known.
                Some(at) if self.checkpoints.get(&kind) == Some(&far.number) => {
                    Watch::Watching { from: at, at }
                }
                _ => Watch::Lost,
            };
            self.watches.insert(kind, watch);
        }
        self.far = far.number;
    }

    /// What watches say next of a cluster that is found where they look.
    pub(crate) fn hear(&mut self, far: &Far, dice: &mut Dice) -> Vec<Change> {
        self.hear_of(far, &mut |kind, watch| watch.step(kind, far, dice))
    }

    /// Goes on until they have said all there is.
    pub(crate) fn hear_all(&mut self, far: &Far) -> Vec<Change> {
        self.hear_of(far, &mut |kind, watch| watch.rest(kind, far))
    }

    fn hear_of(
        &mut self,
        far: &Far,
        step: &mut dyn FnMut(Kind, &mut Watch) -> Vec<Change>,
    ) -> Vec<Change> {
        if std::mem::replace(&mut self.far, far.number) != far.number {
            self.watches.values_mut().for_each(|watch| *watch = Watch::Lost);
        }
        let said = self.watches.iter_mut().flat_map(|(kind, watch)| step(*kind, watch));
        let said: Vec<Change> = said.collect();
        for change in &said {
            self.told.hear(change);
            if let Change::End { source, .. } | Change::Checkpoint { source, .. } = change {
                let source = *source;
                self.checkpoints.insert(source.kind, far.number);
            }
        }
        said.into_iter().map(|change| of_cluster(change, self.id)).collect()
    }

    /// What was said, and isn't so; for one who was told all.
    pub(crate) fn errors(&self, far: &Far) -> Vec<Key> {
        let there = &far.world.objects;
        let watched = |key: &&Key| {
            let same = there.get(*key) == self.told.world.objects.get(*key);
            kinds().contains(&key.source.kind) && !same && !self.told.unread.contains(*key)
        };
        there.keys().chain(self.told.world.objects.keys()).filter(watched).cloned().collect()
    }
}

impl Watch {
    fn step(&mut self, kind: Kind, far: &Far, dice: &mut Dice) -> Vec<Change> {
        if dice.percent(25) {
            return Vec::new();
        }
        match self {
            _ if dice.percent(4) => {
                *self = Watch::Lost;
                Vec::new()
            }
            Watch::Lost => vec![self.begin(kind, far)],
            Watch::Listing { left, at } => {
                let page = if dice.percent(60) { left.len() } else { dice.roll(4) as usize };
                let mut said: Vec<Change> = left.drain(..page.min(left.len())).collect();
                if left.is_empty() {
                    said.push(end(kind, *at));
                    *self = Watch::Watching { from: *at, at: *at };
                }
                with_unread(said, dice)
            }
            Watch::Watching { from, at } => {
                if dice.percent(8) {
                    *at = at.saturating_sub(dice.roll(8) as usize).max(*from);
                }
                let upto = far.log.len().min(*at + 1 + dice.roll(12) as usize);
                let mut said = events(kind, &far.log[*at..upto]);
                *at = upto;
                if dice.percent(30) {
                    let version = ResourceVersion(at.to_string());
                    said.push(Change::Checkpoint { source: source(kind), version });
                }
                with_unread(said, dice)
            }
        }
    }

    fn rest(&mut self, kind: Kind, far: &Far) -> Vec<Change> {
        let mut said = Vec::new();
        if let Watch::Lost = self {
            said.push(self.begin(kind, far));
        }
        let from = match self {
            Watch::Lost => 0,
            Watch::Watching { at, .. } => *at,
            Watch::Listing { left, at } => {
                said.append(left);
                said.push(end(kind, *at));
                *at
            }
        };
        said.extend(events(kind, &far.log[from..]));
        *self = Watch::Watching { from, at: far.log.len() };
        said
    }

    fn begin(&mut self, kind: Kind, far: &Far) -> Change {
        let of_kind = far.world.objects.iter().filter(|(key, _)| key.source.kind == kind);
        let put = |(key, (version, object)): (&Key, &(u64, Object))| {
            let version = ResourceVersion(version.to_string());
            Change::Put { key: key.clone(), version, object: object.clone() }
        };
        *self = Watch::Listing { left: of_kind.map(put).collect(), at: far.log.len() };
        Change::Begin { source: source(kind) }
    }
}

fn end(kind: Kind, at: usize) -> Change {
    Change::End { source: source(kind), version: ResourceVersion(at.to_string()) }
}

fn events(kind: Kind, log: &[Change]) -> Vec<Change> {
    let of_kind = |change: &&Change| change.source().is_some_and(|it| it.kind == kind);
    log.iter().filter(of_kind).cloned().collect()
}

/// Some of the objects can't be read.
fn with_unread(said: Vec<Change>, dice: &mut Dice) -> Vec<Change> {
    let one = |change| match change {
        Change::Put { key, .. } if dice.percent(4) => Change::Keep { key },
        change => change,
    };
    said.into_iter().map(one).collect()
}
