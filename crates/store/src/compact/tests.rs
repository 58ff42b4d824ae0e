//! A compaction between commits leaves just what there was, in a smaller file.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{Change, Kind};

use crate::tests::fixture::{NOW, Random, config, key, pod, put, random_object};
use crate::{Birth, Disk, Error, Folder, Volume, open, open_on};

#[test]
fn commits_go_on_while_a_copy_is_made_and_a_restart_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(100_000)).unwrap();
    let pods = |range: std::ops::Range<u64>| range.map(|n| format!("pod-{n:05}"));
    let put_pods = pods(0..30_000).map(|name| put(Kind::Pod, &name, 1, pod("sa")));
    writer.commit(NOW, put_pods.collect()).unwrap();
    let delete = pods(5_000..30_000).map(|name| Change::Delete { key: key(Kind::Pod, &name) });
    writer.commit(NOW, delete.collect()).unwrap();
    writer.sync().unwrap();
    let before = reader.file_bytes();

    writer.begin_compaction().unwrap();
    let mut random = Random(7);
    let mut steps = 0;
    while writer.compact().unwrap() {
        steps += 1;
        // A snapshot that is held does not stop it, and keeps what it saw.
        let (seen, held) = (reader.stats().revision, reader.snapshot().unwrap());
        let kinds = [Kind::Pod, Kind::EndpointSlice, Kind::Service, Kind::Server];
        let kind = kinds[random.below(4) as usize];
        let name = format!("pod-{:05}", random.below(6));
        let change = match random.chance(30) {
            true => Change::Delete { key: key(kind, &name) },
            false => put(kind, &name, 10 + steps, random_object(&mut random, kind)),
        };
        writer.commit(NOW, vec![change]).unwrap();
        while writer.tick(NOW).unwrap().is_some() {}
        assert_eq!(held.revision(), seen);
    }
    assert!(steps > 17, "{steps} steps");
    assert!(reader.file_bytes() < before / 2, "{} of {before} bytes", reader.file_bytes());
    assert_eq!(writer.check().unwrap(), []);
    writer.commit(NOW, vec![put(Kind::Pod, "last", 9, pod("sa"))]).unwrap();
    let stats = reader.stats();
    drop((writer, reader));
    let (mut writer, reader, birth) = open(folder.path(), config(100_000)).unwrap();
    assert_eq!(birth, Birth::Opened(stats.revision));
    assert_eq!(reader.stats(), stats);
    assert_eq!(writer.check().unwrap(), []);
}

#[test]
fn a_copy_that_was_not_finished_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(100_000)).unwrap();
    writer.commit(NOW, vec![put(Kind::Pod, "a", 1, pod("sa"))]).unwrap();
    writer.begin_compaction().unwrap();
    assert!(writer.compact().unwrap());
    let stats = reader.stats();
    drop((writer, reader));
    let (mut writer, reader, birth) = open(folder.path(), config(100_000)).unwrap();
    assert_eq!(birth, Birth::Opened(stats.revision));
    assert_eq!(reader.stats(), stats);
    writer.begin_compaction().unwrap();
    while writer.compact().unwrap() {}
    assert_eq!(writer.check().unwrap(), []);
}

/// A folder in which a file gets its new name, and then there is an error all the same.
#[derive(Debug)]
struct Renames {
    folder: Folder,
    fail: Arc<AtomicBool>,
}

impl Volume for Renames {
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn Disk>> {
        self.folder.open(name, create)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.folder.exists(name)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.folder.len(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)?;
        match self.fail.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the folder could not be synced")),
            false => Ok(()),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }
}

#[test]
fn nothing_is_written_to_a_file_that_may_have_lost_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let fail = Arc::new(AtomicBool::new(false));
    let on = |path: &Path| Renames { folder: Folder::make(path).unwrap(), fail: fail.clone() };
    let (mut writer, reader, _) = open_on(Arc::new(on(folder.path())), config(100_000)).unwrap();
    writer.commit(NOW, vec![put(Kind::Pod, "a", 1, pod("sa"))]).unwrap();
    writer.begin_compaction().unwrap();
    fail.store(true, Ordering::Relaxed);
    let error = loop {
        match writer.compact() {
            Ok(true) => {}
            Ok(false) => panic!("it ended well"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Folder { .. }), "{error}");
    let refused = writer.commit(NOW, vec![put(Kind::Pod, "b", 2, pod("sa"))]);
    assert!(matches!(refused, Err(Error::Poisoned)), "{refused:?}");
    let stats = reader.stats();
    drop((writer, reader));
    let (mut writer, reader, birth) = open(folder.path(), config(100_000)).unwrap();
    assert_eq!(birth, Birth::Opened(stats.revision));
    assert_eq!(reader.stats(), stats);
    assert_eq!(writer.check().unwrap(), []);
}
