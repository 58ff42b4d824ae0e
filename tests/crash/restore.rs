//! The same while a backup is taken back: there is all of it, or there is no store. A backup of which a part is missing
//! is refused.

use store::restore_on;

use super::compaction::{is_write, kind};
use super::*;

/// What a disk loses at once, if it loses something that was not synced.
const BLOCK: usize = 4_096;

/// A backup, and the digest of what it holds.
fn backup() -> (Vec<u8>, u64) {
    let volume = CrashVolume::of(Image::new());
    let (mut writer, reader, _) = open(&volume, Fsync::Commit).expect("it opens");
    for (now, changes) in (0..).zip(workload(20)) {
        writer.commit(Time(now), changes).expect("it can be written");
    }
    let mut bytes = Vec::new();
    reader.backup(&mut bytes).expect("it can be read");
    (bytes, reader.digest().expect("it can be read"))
}

fn take_back(volume: &CrashVolume, bytes: &[u8]) -> Result<store::Backup, Error> {
    restore_on(Arc::new(volume.clone()), &mut &*bytes, &config(Fsync::Commit))
}

/// Is there all of it? If there is nothing, all of it can be taken back now.
fn check_whole_or_none(image: Image, bytes: &[u8], digest: u64, told: &str) -> bool {
    let volume = CrashVolume::of(image);
    let whole = volume.file("spillway.redb").is_some();
    if !whole {
        take_back(&volume, bytes).unwrap_or_else(|e| panic!("{told}: {e}"));
    }
    let (mut writer, reader, birth) =
        open(&volume, Fsync::Commit).unwrap_or_else(|e| panic!("{told}: {e}"));
    assert!(matches!(birth, Birth::Opened(_)), "{told}: {birth:?}");
    assert_eq!(reader.digest().ok(), Some(digest), "{told}: it is not what there was");
    assert_eq!(writer.check().expect("it can be read"), [], "{told}");
    assert!(volume.image().keys().all(|name| !name.ends_with(".new")), "{told}: a copy is left");
    whole
}

/// A backup that is taken back, all that this did, and after how many operations that was said.
fn restored(bytes: &[u8]) -> Vec<Op> {
    let volume = CrashVolume::logged(Image::new());
    take_back(&volume, bytes).expect("it is whole");
    volume.log()
}

#[test]
fn a_power_cut_in_a_restore_leaves_all_or_nothing() {
    let (bytes, digest) = backup();
    let log = restored(&bytes);
    let (mut replay, mut whole, mut none) = (Replay::of(&Image::new()), 0, 0);
    for (index, op) in log.iter().enumerate() {
        replay.step(op);
        for kept in kinds(replay.pending(), index) {
            let told = format!("cut after operation {index} of {}, {kept:?}", log.len());
            match check_whole_or_none(replay.cut(kept), &bytes, digest, &told) {
                true => whole += 1,
                false => none += 1,
            }
        }
    }
    println!("a restore of {} operations: {whole} images with all, {none} with nothing", log.len());
    assert!(whole > 0 && none > 0, "{whole} whole, {none} empty");
    let end = replay.cut(Kept::None);
    assert!(end.contains_key("spillway.redb"), "it was said to be there");
}

#[test]
fn a_disk_that_fails_in_a_restore_leaves_all_or_nothing() {
    let (bytes, digest) = backup();
    let log = restored(&bytes);
    let (mut done, mut refused) = (0, 0);
    for (from, op) in log.iter().enumerate() {
        for (code, lasting) in [(ENOSPC, false), (ENOSPC, true), (EIO, false), (EIO, true)] {
            if code == ENOSPC && !is_write(op) {
                continue;
            }
            let told = format!("{from}: {:?}, code {code}, lasting: {lasting}", kind(op));
            let volume = CrashVolume::of(Image::new());
            volume.set_fault(Some(Box::new(move |number, op| {
                let fails = number == from || lasting && number > from && is_write(op);
                fails.then(|| io::Error::from_raw_os_error(code))
            })));
            let taken = take_back(&volume, &bytes);
            volume.set_fault(None);
            let whole = check_whole_or_none(volume.image(), &bytes, digest, &told);
            match taken {
                Ok(_) => {
                    assert!(whole, "{told}: it was said to be there");
                    done += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    println!("a restore on a disk that fails: {refused} refused, {done} went well all the same");
    assert!(done > 0 && refused > 0, "{done} went well, {refused} did not");
}

/// What a power cut leaves of a backup that was just being written to a file: its beginning, or its length with
/// blocks that are not there.
#[test]
fn a_backup_that_was_cut_is_refused() {
    let (bytes, _) = backup();
    let edges = (0..bytes.len().min(80)).chain(bytes.len() - 24..bytes.len());
    let every = if long() { 61 } else { 997 };
    let cuts = edges.chain((0..bytes.len()).step_by(every)).map(|end| bytes[..end].to_vec());
    let zeroed = |from: usize, end: usize| {
        let mut torn = bytes.clone();
        torn[from..end.min(bytes.len())].fill(0);
        torn
    };
    let holes = (0..bytes.len()).step_by(BLOCK);
    let torn = holes.flat_map(|at| [zeroed(at, at + BLOCK), zeroed(at, bytes.len())]);
    let mut refused = 0;
    for damaged in cuts.chain(torn) {
        let volume = CrashVolume::of(Image::new());
        let taken = take_back(&volume, &damaged);
        let Err(Error::Backup { reason }) = taken else {
            panic!("{} bytes of {}: {taken:?}", damaged.len(), bytes.len());
        };
        // In words, and nothing of it is left.
        assert!(reason.starts_with("it ") || reason.starts_with("a row "), "{reason}");
        assert_eq!(volume.image(), Image::new(), "{reason}");
        refused += 1;
    }
    println!("{refused} parts of a backup of {} bytes refused", bytes.len());
}
