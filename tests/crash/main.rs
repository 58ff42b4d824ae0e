//! The power is cut after every operation on the disk, the disk is full at every write, bits flip: the store holds
//! exactly the state of one commit, or says why it begins anew.

#![expect(clippy::print_stdout, reason = "how much was tried is worth knowing")]

mod compaction;
mod restore;

use std::io;
use std::sync::Arc;

use harness::crash::{CrashVolume, Image, Kept, Op, Replay};
use harness::small::SmallVolume;
use ingest::synthetic::{Churn, Cluster, Spec};
use model::{Change, Time};
use store::{Birth, Config, Error, Folder, Fsync, Reader, Undo, Writer};

/// The cluster after its first listing, and a smaller one, so that a second listing sweeps.
const SPEC: Spec = Spec { services: 6, endpoints: 8, nodes: 6, seed: 7, ..Spec::DEFAULT };
const SPEC_LATER: Spec = Spec { services: 4, endpoints: 7, ..SPEC };

fn config(fsync: Fsync) -> Config {
    Config {
        cache_bytes: 256 << 10,
        hot_bytes: 1 << 20,
        join: resolve::join,
        join_version: resolve::JOIN_VERSION,
        // Little, so that commits are followed by trims.
        undo: Undo { bytes_max: 8 << 10, age_max: 60_000 },
        fsync,
        disk_quota_bytes: None,
        admission: store::Admission::default(),
    }
}

fn open(volume: &CrashVolume, fsync: Fsync) -> Result<(Writer, Reader, Birth), Error> {
    store::open_on(Arc::new(volume.clone()), config(fsync))
}

#[expect(clippy::disallowed_methods, reason = "whoever has time says so to the test")]
fn long() -> bool {
    std::env::var("SPILLWAY_LONG").is_ok_and(|value| value == "1")
}

/// A listing, changes, a listing of less, changes.
fn workload(churn: usize) -> Vec<Vec<Change>> {
    let mut commits: Vec<Vec<Change>> = Vec::new();
    for spec in [SPEC, SPEC_LATER] {
        let cluster = Cluster::new(spec);
        commits.extend(cluster.listing().map(|delivery| delivery.changes));
        let changes = Churn::new(cluster);
        commits.extend(changes.take(churn).map(|delivery| delivery.changes));
    }
    commits
}

/// What there was after a step, and how many operations the disk had seen by then.
struct Step {
    digest: u64,
    ops: usize,
    /// It was acknowledged as durable.
    durable: bool,
}

/// Writes the workload, and what was acknowledged when. A commit in eight is followed by a sync, if that matters.
fn record(fsync: Fsync, churn: usize) -> (Vec<Step>, Vec<Op>) {
    let volume = CrashVolume::logged(Image::new());
    let (mut writer, reader, birth) = open(&volume, fsync).expect("it opens");
    assert_eq!(birth, Birth::Created);
    let step = |durable| Step {
        digest: reader.digest().expect("it can be read"),
        ops: volume.count(),
        durable,
    };
    let mut steps = vec![step(true)];
    for (index, changes) in workload(churn).into_iter().enumerate() {
        let now = Time(index as u64);
        writer.commit(now, changes).expect("it can be written");
        steps.push(step(fsync == Fsync::Commit));
        while writer.tick(now).expect("it can be written").is_some() {
            steps.push(step(fsync == Fsync::Commit));
        }
        if fsync == Fsync::Together && index % 8 == 7 {
            writer.sync().expect("it can be written");
            steps.push(step(true));
        }
    }
    drop((writer, reader));
    (steps, volume.log())
}

/// Opens what a cut left, and checks what is there against the steps that may be.
fn check_cut(image: Image, fsync: Fsync, steps: &[Step], ops: usize, told: &str) {
    let done = steps.iter().take_while(|step| step.ops <= ops).count();
    let oldest = steps[..done].iter().rposition(|step| step.durable);
    let allowed = &steps[oldest.unwrap_or(0)..(done + 1).min(steps.len())];
    let volume = CrashVolume::of(image);
    let (mut writer, reader, birth) =
        open(&volume, fsync).unwrap_or_else(|e| panic!("{told}: {e}"));
    match birth {
        Birth::Opened(_) => {}
        Birth::Created => assert!(oldest.is_none(), "{told}: the file is gone"),
        Birth::Rebuilt { reason, .. } => panic!("{told}: {reason}"),
    }
    let digest = reader.digest().unwrap_or_else(|e| panic!("{told}: {e}"));
    let is = allowed.iter().any(|step| step.digest == digest);
    assert!(is, "{told}: not the state of commit {oldest:?}..={done}");
    let faults = writer.check().unwrap_or_else(|e| panic!("{told}: {e}"));
    assert!(faults.is_empty(), "{told}: {faults:?}");
    assert!(volume.image().keys().all(|name| !name.ends_with(".new")), "{told}: a copy is left");
    writer
        .commit(Time(1 << 20), workload(0).swap_remove(0))
        .unwrap_or_else(|e| panic!("{told}: {e}"));
}

/// Which of the writes that were not synced survive, in each of the ways that are tried.
fn kinds(pending: usize, index: usize) -> Vec<Kept> {
    let mut kinds = vec![Kept::None];
    if pending > 0 {
        let seed = index as u64;
        kinds.extend([Kept::All, Kept::Half(seed), Kept::Half(seed + (1 << 32))]);
        kinds.extend([Kept::Only(index % pending), Kept::But(index / 2 % pending)]);
    }
    kinds
}

fn cuts(fsync: Fsync, churn: usize, images: usize) {
    let (steps, log) = record(fsync, churn);
    let wanted: usize = if long() { 13_000 } else { 500 };
    let every = (log.len() * images / wanted).max(1);
    let (mut replay, mut points, mut checked) = (Replay::of(&Image::new()), 0, 0);
    for (index, op) in log.iter().enumerate() {
        replay.step(op);
        // The birth is short and has the most to go wrong: each of its operations.
        if index % every != 0 && index >= steps[0].ops {
            continue;
        }
        points += 1;
        let kinds = kinds(replay.pending(), index);
        for kept in kinds.into_iter().take(images) {
            let told = format!("{fsync:?}, cut after operation {index} of {}, {kept:?}", log.len());
            check_cut(replay.cut(kept), fsync, &steps, index + 1, &told);
            checked += 1;
        }
    }
    println!(
        "{fsync:?}: {} commits, {} operations, {points} cut points, {checked} images",
        steps.len(),
        log.len()
    );
    assert!(checked >= if long() { 10_000 } else { 400 }, "only {checked} images");
}

#[test]
fn a_power_cut_leaves_the_state_of_one_commit() {
    cuts(Fsync::Commit, if long() { 250 } else { 60 }, 6);
}

#[test]
fn a_power_cut_takes_back_no_more_than_what_was_not_synced() {
    cuts(Fsync::Together, if long() { 250 } else { 60 }, 6);
}

/// Starts on what is there, writes a little, and ends: the power is cut after each operation of that. Gives how many
/// images were checked.
fn cut_a_restart(image: &Image, told: &str) -> usize {
    let volume = CrashVolume::logged(image.clone());
    let (mut writer, reader, birth) = open(&volume, Fsync::Commit).expect("it opens");
    assert!(matches!(birth, Birth::Opened(_)), "{told}: {birth:?}");
    let step = |ops| Step { digest: reader.digest().expect("it can be read"), ops, durable: true };
    let mut steps = vec![step(0)];
    for changes in workload(2).into_iter().rev().take(2) {
        writer.commit(Time(1 << 16), changes).expect("it can be written");
        steps.push(step(volume.count()));
    }
    drop((writer, reader));
    let (mut replay, mut checked) = (Replay::of(image), 0);
    for (index, op) in volume.log().iter().enumerate() {
        replay.step(op);
        let mut kinds = vec![Kept::None];
        match replay.pending() {
            0 => {}
            pending if long() => {
                kinds.extend([Kept::All, Kept::Half(index as u64)]);
                kinds.extend((0..pending).flat_map(|one| [Kept::Only(one), Kept::But(one)]));
            }
            _ => kinds = vec![[Kept::All, Kept::Only(0), Kept::Half(index as u64)][index % 3]],
        }
        for kept in kinds {
            let told = format!("{told}, then cut after operation {index}, {kept:?}");
            check_cut(replay.cut(kept), Fsync::Commit, &steps, index + 1, &told);
            checked += 1;
        }
    }
    checked
}

#[test]
fn a_power_cut_in_a_restart_is_no_worse_than_the_first() {
    let (_, log) = record(Fsync::Commit, 20);
    let mut replay = Replay::of(&Image::new());
    log.iter().for_each(|op| replay.step(op));
    let mut checked = cut_a_restart(&replay.cut(Kept::All), "after a clean end");
    let starts = if long() { 20 } else { 3 };
    let mut replay = Replay::of(&Image::new());
    for (index, op) in log.iter().enumerate() {
        replay.step(op);
        if index > log.len() / 4 && index % (log.len() / starts) == 1 {
            let told = format!("after a cut after operation {index}");
            checked += cut_a_restart(&replay.cut(Kept::Half(index as u64)), &told);
        }
    }
    println!("{checked} images of restarts");
}

/// Linux's numbers.
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// What is tried while nothing can be written, before there is room again.
const TRIES: usize = 3;

/// Operations that change a file fail from this one on.
fn full_from(volume: &CrashVolume, from: usize, code: i32) {
    volume.set_fault(Some(Box::new(move |number, op| {
        let changes = matches!(op, Op::Write(..) | Op::SetLen(..) | Op::Create(..));
        (changes && number >= from).then(|| io::Error::from_raw_os_error(code))
    })));
}

/// Waits as the server does until the disk takes writes; there is room again after a few tries.
fn until_written(volume: &CrashVolume, writer: &mut Writer, reader: &Reader, digests: &[u64]) {
    for tried in 0.. {
        match writer.ready() {
            Ok(()) => return,
            Err(Error::DiskFailing { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        assert_eq!(reader.digest().ok().as_ref(), digests.last(), "reading goes on");
        if tried == TRIES {
            // If the process ended now, at most the last commit would be missing.
            let (_writer, left, birth) =
                open(&CrashVolume::of(volume.image()), Fsync::Commit).expect("it opens");
            assert!(matches!(birth, Birth::Opened(_)), "{birth:?}");
            let recent = &digests[digests.len().saturating_sub(2)..];
            assert!(
                recent.contains(&left.digest().expect("it can be read")),
                "more than a commit is missing"
            );
            volume.set_fault(None);
        }
    }
}

/// Writes a short workload whatever the disk does. Gives the digest after each step.
fn commit_all(volume: &CrashVolume, writer: &mut Writer, reader: &Reader) -> Vec<u64> {
    let mut digests = vec![reader.digest().expect("it can be read")];
    for (index, changes) in workload(4).into_iter().enumerate() {
        let now = Time(index as u64);
        until_written(volume, writer, reader, &digests);
        writer.commit(now, changes).expect("it can be written");
        digests.push(reader.digest().expect("it can be read"));
        loop {
            until_written(volume, writer, reader, &digests);
            if writer.tick(now).expect("it can be written").is_none() {
                break;
            }
            digests.push(reader.digest().expect("it can be read"));
        }
    }
    digests
}

/// How many operations the short workload takes after the birth, and its digests.
fn undisturbed() -> (usize, Vec<u64>) {
    let volume = CrashVolume::of(Image::new());
    let (mut writer, reader, _) = open(&volume, Fsync::Commit).expect("it opens");
    volume.set_fault(None);
    let digests = commit_all(&volume, &mut writer, &reader);
    (volume.count(), digests)
}

#[test]
fn a_full_disk_stops_the_writing_and_not_the_reading() {
    let (ops, digests) = undisturbed();
    let every = if long() { 1 } else { (ops / 60).max(1) };
    for from in (0..ops).step_by(every) {
        for code in [ENOSPC, EIO] {
            let volume = CrashVolume::of(Image::new());
            let (mut writer, reader, _) = open(&volume, Fsync::Commit).expect("it opens");
            full_from(&volume, from, code);
            let seen = commit_all(&volume, &mut writer, &reader);
            assert_eq!(seen, digests, "full from operation {from} on");
            volume.set_fault(None);
            drop((writer, reader));
            let (_writer, reader, birth) = open(&volume, Fsync::Commit).expect("it opens");
            assert!(matches!(birth, Birth::Opened(_)), "full from operation {from} on: {birth:?}");
            assert_eq!(reader.digest().ok().as_ref(), digests.last());
        }
    }
    println!("{ops} operations, one in {every}: full, and again not");
}

/// Tries until it is written; after a few tries there is room again.
fn at_last<T>(
    small: &SmallVolume,
    reader: &Reader,
    mut write: impl FnMut() -> Result<T, Error>,
) -> T {
    for _ in 0..TRIES {
        match write() {
            Err(Error::DiskFailing { .. }) => drop(reader.digest().expect("reading goes on")),
            written => return written.expect("it is written, or can be tried again"),
        }
    }
    small.limit(u64::MAX);
    write().expect("there is room again")
}

/// Real files this time, of which a part of a write may be there when there is no more room.
#[test]
fn a_file_system_without_room_stops_the_writing_and_not_the_reading() {
    let (_, digests) = undisturbed();
    let (mut born, mut full, step) = (0, 0, if long() { 1 } else { 4 });
    for more in (0..).step_by(step).map(|blocks| blocks * 4_096) {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let folder = Folder::make(folder.path()).expect("the folder can be used");
        let small = SmallVolume::new(folder.clone());
        let opened = store::open_on(Arc::new(small.clone()), config(Fsync::Commit));
        let (mut writer, reader, _) = opened.expect("it opens");
        born = born.max(small.filled_bytes());
        small.limit(born + more);
        let mut failed = false;
        for (index, mut changes) in workload(4).into_iter().enumerate() {
            let now = Time(index as u64);
            at_last(&small, &reader, || writer.commit_from(now, &mut changes));
            failed |= reader.disk().failing().is_some();
            while at_last(&small, &reader, || writer.tick(now)).is_some() {
                failed |= reader.disk().failing().is_some();
            }
        }
        drop((writer, reader));
        let opened = store::open_on(Arc::new(folder), config(Fsync::Commit));
        let (_writer, reader, birth) = opened.expect("it opens");
        assert!(matches!(birth, Birth::Opened(_)), "{more} bytes more: {birth:?}");
        assert_eq!(reader.digest().ok().as_ref(), digests.last(), "{more} bytes more");
        full += usize::from(failed);
        if !failed {
            break;
        }
    }
    println!("{full} sizes of a file system were too small for a while");
    assert!(full > 0, "it was never full");
}

#[test]
fn after_a_sync_that_failed_the_store_comes_back_from_disk() {
    let (ops, digests) = undisturbed();
    let every = if long() { 1 } else { (ops / 120).max(1) };
    for from in (0..ops).step_by(every) {
        let volume = CrashVolume::of(Image::new());
        let (mut writer, reader, _) = open(&volume, Fsync::Commit).expect("it opens");
        volume.set_fault(Some(Box::new(move |number, op| {
            let fails = matches!(op, Op::Sync(_)) && number >= from;
            fails.then(|| io::Error::from_raw_os_error(EIO))
        })));
        let mut done = 0;
        let failed = workload(4).into_iter().enumerate().find_map(|(index, changes)| {
            let now = Time(index as u64);
            let committed = writer.commit(now, changes).err();
            done += usize::from(committed.is_none());
            committed.or_else(|| {
                loop {
                    match writer.tick(now) {
                        Ok(None) => return None,
                        Ok(Some(_)) => done += 1,
                        Err(error) => return Some(error),
                    }
                }
            })
        });
        assert!(failed.is_none() || matches!(writer.ready(), Err(Error::Poisoned)), "{failed:?}");
        drop((writer, reader));
        volume.set_fault(None);
        let (_writer, reader, birth) = open(&volume, Fsync::Commit).expect("it opens");
        assert!(matches!(birth, Birth::Opened(_)), "no sync from operation {from} on: {birth:?}");
        let allowed = &digests[done..(done + 2).min(digests.len())];
        assert!(
            allowed.contains(&reader.digest().expect("it can be read")),
            "no sync from operation {from} on"
        );
    }
}

#[test]
fn a_disk_that_is_full_from_the_beginning_is_no_panic() {
    let volume = CrashVolume::of(Image::new());
    volume.set_fault(None);
    drop(open(&volume, Fsync::Commit).expect("it opens"));
    for from in 0..volume.count() {
        let volume = CrashVolume::of(Image::new());
        full_from(&volume, from, ENOSPC);
        drop(open(&volume, Fsync::Commit));
        volume.set_fault(None);
        let (_writer, reader, birth) = open(&volume, Fsync::Commit).expect("it opens");
        assert!(
            !matches!(birth, Birth::Rebuilt { .. }),
            "full from operation {from} on: {birth:?}"
        );
        reader.digest().expect("it can be read");
    }
}

/// What is written when a quota is used up stays readable, and nothing more comes.
#[test]
fn a_quota_stops_the_writing() {
    let volume = CrashVolume::of(Image::new());
    drop(open(&volume, Fsync::Commit).expect("it opens"));
    let born = volume.image()["spillway.redb"].len() as u64;
    let config = Config { disk_quota_bytes: Some(born), ..config(Fsync::Commit) };
    let (mut writer, reader, _) =
        store::open_on(Arc::new(volume.clone()), config).expect("it opens");
    let big = Spec { services: 400, endpoints: 20, nodes: 50, ..SPEC };
    let mut commits = Cluster::new(big).listing().map(|delivery| delivery.changes);
    let failed = commits.find_map(|changes| writer.commit(Time(0), changes).err());
    let reason = failed.expect("a larger cluster than there is room for").to_string();
    assert!(reason.contains("the disk quota of"), "{reason}");
    assert!(reader.disk().failing().is_some());
    reader.digest().expect("it can be read");
    assert!(volume.image()["spillway.redb"].len() as u64 <= born);
}

/// Damages an image: flips a bit, or cuts, or clears, or replaces a part.
fn damage(bytes: &mut Vec<u8>, random: &mut impl FnMut(usize) -> usize) -> String {
    if bytes.is_empty() {
        bytes.extend(b"foreign");
        return "foreign content".to_owned();
    }
    // The header, and the beginnings of pages, are worth more than the rest.
    let at = match random(4) {
        0 => random(bytes.len().min(512)),
        1 => random(bytes.len()) / 4096 * 4096,
        _ => random(bytes.len()),
    };
    let end = bytes.len().min(at + 1 + random(8_192));
    match random(8) {
        0 => {
            bytes.truncate(at);
            format!("cut off at {at}")
        }
        1 => {
            bytes[at..end].fill(0);
            format!("zeros at {at}..{end}")
        }
        2 => {
            bytes[at..end].fill(0x5A);
            format!("foreign content at {at}..{end}")
        }
        _ => {
            let bit = random(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
    }
}

#[test]
fn a_damaged_file_is_never_a_wrong_answer() {
    let volume = CrashVolume::of(Image::new());
    let (mut writer, reader, _) = open(&volume, Fsync::Commit).expect("it opens");
    let right = *commit_all(&volume, &mut writer, &reader).last().unwrap();
    drop((writer, reader));
    let sound = volume.image();
    let mut state = 0x1234_5678_9ABC_DEF1_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let (mut untouched, mut refused, mut rebuilt) = (0, 0, 0);
    for round in 0..if long() { 10_000 } else { 400 } {
        let mut image = sound.clone();
        // With its sums, without them, and with damaged ones.
        let name = if round % 8 == 7 { "spillway.sums" } else { "spillway.redb" };
        let told = damage(image.get_mut(name).unwrap(), &mut random);
        let told = format!("round {round}: {name}: {told}");
        if round % 4 == 1 {
            image.remove("spillway.sums");
        }
        match open(&CrashVolume::of(image), Fsync::Commit) {
            Ok((_, _, Birth::Rebuilt { .. })) => rebuilt += 1,
            Ok((_writer, reader, Birth::Opened(_))) => match reader.digest() {
                Ok(digest) => {
                    assert_eq!(digest, right, "{told}");
                    untouched += 1;
                }
                Err(_) => refused += 1,
            },
            Ok((_, _, Birth::Created)) => panic!("{told}: it was there"),
            Err(_) => refused += 1,
        }
    }
    println!("damaged: {untouched} had no effect, {rebuilt} rebuilt, {refused} refused");
}
