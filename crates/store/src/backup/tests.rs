//! A backup taken while commits go on is one revision; one that is not whole leaves nothing behind.

use model::Kind;

use crate::tests::fixture::{NOW, Random, config, key, pod, put, random_object};
use crate::{Birth, Error, open, restore};

/// A backup of a store with something of every kind, with its digest and revision.
fn backup() -> (Vec<u8>, u64, crate::Backup) {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader, _) = open(folder.path(), config(1_000_000)).unwrap();
    let mut random = Random(11);
    for n in 0..60 {
        let kind = [Kind::Pod, Kind::EndpointSlice, Kind::Service, Kind::Server, Kind::ReplicaSet]
            [random.below(5) as usize];
        let object = random_object(&mut random, kind);
        writer.commit(NOW, vec![put(kind, &format!("pod-{}", n % 7), n, object)]).unwrap();
    }
    let pods = (0..5_000).map(|n| put(Kind::Pod, &format!("many-{n}"), 1, pod("sa"))).collect();
    writer.commit(NOW, pods).unwrap();
    let mut bytes = Vec::new();
    let digest = reader.digest().unwrap();
    let backup = reader.backup(&mut bytes).unwrap();
    assert_eq!(backup.revision, reader.stats().revision);
    (bytes, digest, backup)
}

#[test]
fn what_is_taken_back_is_what_there_was() {
    let (bytes, digest, backup) = backup();
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(restore(folder.path(), &mut &*bytes, &config(1_000_000)).unwrap(), backup);
    let (mut writer, reader, birth) = open(folder.path(), config(1_000_000)).unwrap();
    assert_eq!(birth, Birth::Opened(backup.revision));
    assert_eq!(reader.digest().unwrap(), digest);
    assert_eq!(writer.check().unwrap(), []);
    writer.commit(NOW, vec![put(Kind::Pod, "more", 1, pod("sa"))]).unwrap();
    let taken = reader.snapshot().unwrap();
    assert!(taken.checkpoint(key(Kind::Pod, "any").source).unwrap().is_none());
    drop((taken, writer, reader));
    let Err(Error::Folder { reason, .. }) =
        restore(folder.path(), &mut &*bytes, &config(1_000_000))
    else {
        panic!("it was taken back over a store")
    };
    assert!(reason.contains("move it away first"), "{reason}");
}

#[test]
fn one_that_is_not_whole_is_refused_and_leaves_nothing() {
    let (bytes, ..) = backup();
    let folder = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8]| {
        let Err(Error::Backup { reason }) = restore(folder.path(), &mut &*bytes, &config(1)) else {
            panic!("it was taken back")
        };
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "only the lock is left: {left:?}");
        reason
    };
    assert_eq!(refused(b"something else, and quite long"), "it is no backup of a Spillway store");
    let mut random = Random(5);
    for _ in 0..20 {
        let cut = random.below(bytes.len() as u64) as usize;
        assert_eq!(refused(&bytes[..cut]), "it ends too early");
        let mut flipped = bytes.clone();
        flipped[cut] ^= 1 << random.below(8);
        refused(&flipped);
    }
    let mut other = bytes.clone();
    other[23] = 9;
    assert_eq!(refused(&other), "it has layout 1 and format 9, not 1 and 5");
}
