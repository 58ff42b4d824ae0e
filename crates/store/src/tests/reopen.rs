//! The disk loses what it had said it would write, and the store goes on from what is left.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use model::{Change, Key, Kind, Object, ResourceVersion, Revision};
use parking_lot::Mutex;

use super::fixture::{NOW, Random, config, key, pod, put, random_object, source};
use super::{KINDS, Oracle, Seen, deltas_lead_from, service, stored};
use crate::{Birth, Config, Disk, Error, Fsync, Lost, Reader, Volume, Writer, open_on};

/// Files in memory, of which what was not synced can be lost.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, File>,
    /// Nothing can be synced.
    fails: bool,
}

#[derive(Debug, Default)]
struct File {
    now: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug)]
struct MemoryDisk(Memory, String);

impl Memory {
    /// What was not synced is lost.
    fn forget(&self) {
        self.0.lock().files.values_mut().for_each(|file| file.now.clone_from(&file.synced));
    }
}

impl Volume for Memory {
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>> {
        let mut state = self.0.lock();
        if !create && !state.files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.files.entry(name.to_owned()).or_default();
        Ok(Box::new(MemoryDisk(self.clone(), name.to_owned())))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.0.lock().files.contains_key(name))
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        Ok(self.0.lock().files[name].now.len() as u64)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let files = &mut self.0.lock().files;
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().files.remove(name);
        Ok(())
    }
}

impl MemoryDisk {
    fn file<T>(&self, with: impl FnOnce(&mut File) -> T) -> T {
        with(self.0.0.lock().files.entry(self.1.clone()).or_default())
    }
}

impl Disk for MemoryDisk {
    fn len(&self) -> io::Result<u64> {
        self.0.len(&self.1)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file(|file| {
            let from = file.now.get(offset as usize..offset as usize + out.len());
            out.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file(|file| file.now.resize(len as usize, 0));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.0.0.lock().fails {
            return Err(io::Error::other("the disk is gone"));
        }
        self.file(|file| file.synced.clone_from(&file.now));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file(|file| {
            let end = offset as usize + data.len();
            file.now.resize(file.now.len().max(end), 0);
            file.now[offset as usize..end].copy_from_slice(data);
        });
        Ok(())
    }
}

struct Store {
    disk: Memory,
    writer: Writer,
    reader: Reader,
}

impl Store {
    fn new() -> Store {
        let disk = Memory::default();
        let config = Config { fsync: Fsync::Together, ..config(60_000) };
        let (writer, reader, birth) = open_on(Arc::new(disk.clone()), config).unwrap();
        assert_eq!(birth, Birth::Created);
        Store { disk, writer, reader }
    }

    /// A sync fails, and the store is opened again. What was not synced may be there or not.
    fn lose(&mut self, forget: bool) -> Lost {
        self.writer.commit(NOW, Vec::new()).unwrap();
        self.disk.0.lock().fails = true;
        assert!(self.writer.sync().is_err());
        assert!(matches!(self.writer.commit(NOW, Vec::new()), Err(Error::Poisoned)));
        if forget {
            self.disk.forget();
        }
        let seen = self.reader.stats().revision;
        self.disk.0.lock().fails = false;
        let lost = self.writer.reopen().unwrap();
        assert!(lost.after <= seen && seen < lost.upto, "{lost:?}, seen {seen:?}");
        lost
    }

    /// All objects, each with its version.
    fn versions(&self) -> BTreeMap<Key, u64> {
        let snapshot = self.reader.snapshot().unwrap();
        let mut versions = BTreeMap::new();
        for kind in Kind::ALL {
            let source = source(kind);
            let visit = &mut |name, version: ResourceVersion| {
                versions.insert(Key { source, name }, version.order());
            };
            snapshot.objects(source, visit).unwrap();
        }
        versions
    }

    fn reaches(&self, since: Revision) -> bool {
        match self.reader.snapshot().unwrap().reaches(since) {
            Ok(()) => true,
            Err(Error::Trimmed { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Random slices until one changes what clients see; gives its revision.
fn change(store: &mut Store, random: &mut Random) -> Revision {
    let before = store.reader.stats().revision;
    loop {
        let version = 1 + random.below(1 << 40);
        let slice = random_object(random, Kind::EndpointSlice);
        let put = put(Kind::EndpointSlice, "slice-0", version, slice);
        let revision = store.writer.commit(NOW, vec![put]).unwrap().revision;
        if revision > before {
            return revision;
        }
    }
}

#[test]
fn what_was_seen_and_is_lost_is_never_said_again() {
    let (mut store, mut random) = (Store::new(), Random(3));
    let pods = (0..5).map(|n| put(Kind::Pod, &format!("pod-{n}"), n, pod("sa")));
    store.writer.commit(NOW, pods.collect()).unwrap();
    change(&mut store, &mut random);
    store.writer.sync().unwrap();
    let kept = store.reader.stats();
    let seen = [0, 1].map(|_| change(&mut store, &mut random));
    let lost = store.lose(true);
    assert_eq!(lost, Lost { after: kept.revision, upto: Revision(seen[1].0 + 1) });
    assert_eq!(store.reader.stats().endpoints, kept.endpoints);
    assert!(store.reaches(lost.after) && !store.reaches(seen[0]) && !store.reaches(lost.upto));
    let next = change(&mut store, &mut random);
    assert!(next > lost.upto && store.reaches(next));
    // Of another loss the first one is not forgotten.
    let more = store.lose(true);
    assert!(!store.reaches(seen[0]) && !store.reaches(more.upto));
    assert_eq!(store.writer.check().unwrap(), []);
}

#[test]
fn readers_wait_while_the_store_is_opened_again() {
    let mut store = Store::new();
    store.writer.commit(NOW, vec![put(Kind::Pod, "a", 1, pod("sa"))]).unwrap();
    let reader = store.reader.clone();
    let held = reader.snapshot().unwrap();
    let reading = std::thread::spawn(move || {
        let seen = held.revision();
        drop(held);
        // The pause may have begun by now: then this waits for its end.
        reader.snapshot().map(|snapshot| (seen, snapshot.revision()))
    });
    let lost = store.lose(true);
    let (seen, read) = reading.join().unwrap().unwrap();
    assert!([seen, lost.after, Revision(lost.upto.0 + 1)].contains(&read), "{read:?}, {lost:?}");
}

fn versions(objects: &BTreeMap<Key, (u64, Object)>) -> BTreeMap<Key, u64> {
    objects.iter().map(|(key, (version, _))| (key.clone(), *version)).collect()
}

fn history(seed: u64, steps: u64) {
    let mut store = Store::new();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut oracle, mut synced) = (BTreeMap::new(), BTreeMap::new());
    let mut past: Vec<(Revision, [Seen; 2])> = Vec::new();
    let mut losses: Vec<Lost> = Vec::new();
    let mut version = 0;
    for step in 1..=steps {
        let mut changes = Vec::new();
        for _ in 0..=random.below(3) {
            version += 1;
            let (kind, prefix, count) = KINDS[random.below(KINDS.len() as u64) as usize];
            let name = format!("{prefix}-{}", random.below(count));
            if random.chance(25) {
                oracle.remove(&key(kind, &name));
                changes.push(Change::Delete { key: key(kind, &name) });
            } else {
                let object = random_object(&mut random, kind);
                oracle.insert(key(kind, &name), (version, object.clone()));
                changes.push(put(kind, &name, version, object));
            }
        }
        store.writer.commit(NOW, changes).unwrap();
        if random.chance(20) {
            store.writer.sync().unwrap();
            synced = oracle.clone();
        }
        if random.chance(15) {
            let forget = random.chance(60);
            let lost = store.lose(forget);
            // What the disk was told of may be there all the same, unless redb had no chance to name it.
            if forget || store.versions() != versions(&oracle) {
                oracle = synced.clone();
            }
            assert_eq!(store.versions(), versions(&oracle), "seed {seed}, step {step}");
            synced = oracle.clone();
            losses.push(lost);
            let trimmed = store.reader.stats().trimmed;
            past.retain(|(since, _)| {
                let reaches = store.reaches(*since);
                let is_lost = losses.iter().any(|it| it.after < *since && *since <= it.upto);
                let told = format!("seed {seed}, step {step}: {since:?}, {losses:?}");
                assert_eq!(reaches, !is_lost && *since >= trimmed, "{told}");
                reaches
            });
        }
        assert_eq!(store.writer.check().unwrap(), [], "seed {seed}, step {step}");
        let truth = Oracle { objects: oracle.clone() };
        let now = [0, 1].map(|n| truth.claims(&service(n).object));
        for n in [0, 1] {
            assert_eq!(stored(&store.reader, &service(n)), now[n], "seed {seed}, step {step}");
            for (since, before) in past.iter().filter(|(since, _)| store.reaches(*since)) {
                deltas_lead_from(&store.reader, &service(n), *since, &before[n], &now[n]);
            }
        }
        past.push((store.reader.stats().revision, now));
        if past.len() > 12 {
            past.remove(0);
        }
    }
    assert!(losses.len() > 3, "{losses:?}");
}

#[test]
fn histories_with_losses_equal_the_oracle() {
    for seed in 1..=4 {
        history(seed, 80);
    }
}
