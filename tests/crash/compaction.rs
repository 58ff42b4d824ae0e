//! The same while the store is compacted: the copy is cut off, does not fit, or takes the file's place just now.

use std::ops::Range;

use super::*;

/// The bytes that are said to be free in the file, so that it is worth a copy.
const WASTE_BYTES: u64 = 1 << 30;

/// A store of which much has been swept, and what the commits before left to be changed.
fn wasted(spec: Spec) -> (Image, Vec<Vec<Change>>) {
    let volume = CrashVolume::of(Image::new());
    let (mut writer, _reader, _) = open(&volume, Fsync::Commit).expect("it opens");
    let large = Cluster::new(Spec { services: spec.services * 2, ..spec });
    let small = Cluster::new(spec);
    let listings = large.listing().chain(small.listing()).map(|delivery| delivery.changes);
    for changes in listings {
        writer.commit(Time(0), changes).expect("it can be written");
        while writer.tick(Time(0)).expect("it can be written").is_some() {}
    }
    drop((writer, _reader));
    let churn = Churn::new(small).take(60).map(|delivery| delivery.changes);
    (volume.image(), churn.collect())
}

/// Begins a compaction as the server does: by asking whether there is something to do.
fn begin(volume: &CrashVolume, writer: &mut Writer) -> Result<bool, Error> {
    volume.set_waste(WASTE_BYTES);
    let begun = writer.compact();
    volume.set_waste(0);
    begun
}

/// What was written, and which of it while the store was compacted.
struct Recorded {
    steps: Vec<Step>,
    log: Vec<Op>,
    compaction: Range<usize>,
}

/// Commits, of which some are made between the steps of a compaction.
fn record(image: &Image, churn: &[Vec<Change>], fsync: Fsync) -> Recorded {
    let volume = CrashVolume::logged(image.clone());
    let (mut writer, reader, birth) = open(&volume, fsync).expect("it opens");
    assert!(matches!(birth, Birth::Opened(_)), "{birth:?}");
    let step = |durable| Step {
        digest: reader.digest().expect("it can be read"),
        ops: volume.count(),
        durable,
    };
    let mut steps = vec![Step { ops: 0, ..step(true) }];
    let mut churn = churn.iter().cloned().zip(0..);
    let mut commit = |writer: &mut Writer, steps: &mut Vec<Step>| {
        let (changes, now) = churn.next().expect("there are more changes than steps");
        writer.commit(Time(now), changes).expect("it can be written");
        steps.push(step(fsync == Fsync::Commit));
        while writer.tick(Time(now)).expect("it can be written").is_some() {
            steps.push(step(fsync == Fsync::Commit));
        }
    };
    commit(&mut writer, &mut steps);
    let from = volume.count();
    assert!(begin(&volume, &mut writer).expect("it can be written"), "there is much to save");
    while writer.compact().expect("it can be written") {
        commit(&mut writer, &mut steps);
    }
    // The copy is made durable before it takes the file's place, and with it all that was committed.
    let compaction = from..volume.count();
    steps.push(step(true));
    (0..3).for_each(|_| commit(&mut writer, &mut steps));
    drop((writer, reader));
    Recorded { steps, log: volume.log(), compaction }
}

/// Cuts the power after each operation of a compaction, and after one in so many of the rest.
fn cut_a_compaction(spec: Spec, fsync: Fsync, every: usize, images: usize) {
    let (image, churn) = wasted(spec);
    let Recorded { steps, log, compaction } = record(&image, &churn, fsync);
    let renames = log[compaction.clone()].iter().filter(|op| matches!(op, Op::Rename(..))).count();
    assert_eq!(renames, 2, "the copy took the file's place");
    let (mut replay, mut points, mut checked) = (Replay::of(&image), 0, 0);
    for (index, op) in log.iter().enumerate() {
        replay.step(op);
        if !compaction.contains(&index) && index % every != 0 {
            continue;
        }
        points += 1;
        let mut kinds = kinds(replay.pending(), index);
        // Another one first each time.
        let first = index % kinds.len();
        kinds.rotate_left(first);
        for kept in kinds.into_iter().take(images) {
            let told = format!("{fsync:?}, cut after operation {index} of {}, {kept:?}", log.len());
            check_cut(replay.cut(kept), fsync, &steps, index + 1, &told);
            checked += 1;
        }
    }
    println!(
        "{fsync:?}: a compaction of {} operations among {}, {} KiB, {} commits: {points} cut points, {checked} images",
        compaction.len(),
        log.len(),
        image["spillway.redb"].len() >> 10,
        steps.len(),
    );
}

#[test]
fn a_power_cut_in_a_compaction_leaves_the_state_of_one_commit() {
    for fsync in [Fsync::Commit, Fsync::Together] {
        cut_a_compaction(SPEC_LATER, fsync, 7, if long() { 6 } else { 1 });
    }
    if long() {
        // Tables that are copied in several steps.
        let spec = Spec { services: 30, endpoints: 60, nodes: 20, ..SPEC };
        cut_a_compaction(spec, Fsync::Together, 11, 2);
    }
}

/// How a compaction ended when an operation failed.
#[derive(Debug, Default)]
struct Ends {
    /// As if nothing had been.
    well: usize,
    /// With the copy given up.
    given_up: usize,
    /// The store must come back from disk.
    poisoned: usize,
}

/// Compacts and commits whatever the disk does, and says how the compaction ended.
fn compact_all(
    volume: &CrashVolume,
    writer: &mut Writer,
    reader: &Reader,
    churn: &[Vec<Change>],
    digests: &mut Vec<u64>,
) -> Result<bool, Error> {
    let main = |volume: &CrashVolume| volume.file("spillway.redb");
    let before = main(volume);
    let mut more = begin(volume, writer);
    for (now, changes) in (0..).zip(churn) {
        match more {
            Ok(_) | Err(Error::DiskFailing { .. }) => {}
            Err(error) => return Err(error),
        }
        until_written(volume, writer, reader, digests);
        writer.commit(Time(now), changes.clone())?;
        digests.push(reader.digest()?);
        more = writer.compact();
    }
    // It may take more steps than there are commits.
    loop {
        match more {
            Ok(true) => more = writer.compact(),
            Ok(false) | Err(Error::DiskFailing { .. }) => return Ok(main(volume) != before),
            Err(error) => return Err(error),
        }
    }
}

/// A store to be compacted, and what goes well if the disk does.
struct Undisturbed {
    image: Image,
    churn: Vec<Vec<Change>>,
    digests: Vec<u64>,
    ops: Vec<Op>,
}

fn undisturbed() -> Undisturbed {
    let (image, mut churn) = wasted(SPEC_LATER);
    churn.truncate(24);
    let volume = CrashVolume::logged(image.clone());
    let (mut writer, reader, _) = open(&volume, Fsync::Commit).expect("it opens");
    let begun = volume.count();
    let mut digests = vec![reader.digest().expect("it can be read")];
    let ended = compact_all(&volume, &mut writer, &reader, &churn, &mut digests);
    assert!(ended.expect("the disk is well"), "it is compacted");
    Undisturbed { image, churn, digests, ops: volume.log().split_off(begun) }
}

impl Undisturbed {
    /// How it goes if an operation fails, or all writes from that one on.
    fn disturbed(&self, from: usize, code: i32, lasting: bool, ends: &mut Ends) {
        let told = format!("{from}: {:?}, code {code}, lasting: {lasting}", kind(&self.ops[from]));
        let volume = CrashVolume::of(self.image.clone());
        let (mut writer, reader, _) = open(&volume, Fsync::Commit).expect("it opens");
        let mut digests = vec![reader.digest().expect("it can be read")];
        volume.set_fault(Some(Box::new(move |number, op| {
            let fails = number == from || lasting && number > from && is_write(op);
            fails.then(|| io::Error::from_raw_os_error(code))
        })));
        let ended = compact_all(&volume, &mut writer, &reader, &self.churn, &mut digests);
        volume.set_fault(None);
        let seen = digests.len();
        assert_eq!(digests, self.digests[..seen], "{told}");
        match &ended {
            Ok(true) => ends.well += 1,
            Ok(false) => ends.given_up += 1,
            Err(error) => {
                assert!(matches!(writer.ready(), Err(Error::Poisoned)), "{told}: {error}");
                ends.poisoned += 1;
            }
        }
        if ended.is_ok() {
            assert_eq!(seen, self.digests.len(), "{told}");
            check_next_compaction(&volume, &mut writer, &told);
        }
        drop((writer, reader));
        let (mut writer, reader, birth) = open(&volume, Fsync::Commit).expect("it opens");
        assert!(matches!(birth, Birth::Opened(_)), "{told}: {birth:?}");
        // A commit that failed may be there or not.
        let allowed = &self.digests[seen - 1..(seen + 1).min(self.digests.len())];
        let left = reader.digest().expect("it can be read");
        assert!(allowed.contains(&left), "{told}: not the last state");
        if ended.is_err() {
            check_next_compaction(&volume, &mut writer, &told);
        }
    }
}

pub(super) fn is_write(op: &Op) -> bool {
    matches!(op, Op::Write(..) | Op::SetLen(..) | Op::Create(..))
}

/// The operation without what was written.
pub(super) fn kind(op: &Op) -> Op {
    match op {
        Op::Write(file, at, _) => Op::Write(*file, *at, Arc::default()),
        other => other.clone(),
    }
}

/// Once the disk is well, the store can be compacted, and is whole.
fn check_next_compaction(volume: &CrashVolume, writer: &mut Writer, told: &str) {
    let before = volume.file("spillway.redb");
    writer.begin_compaction().unwrap_or_else(|e| panic!("{told}: {e}"));
    while writer.compact().unwrap_or_else(|e| panic!("{told}: {e}")) {}
    assert_ne!(volume.file("spillway.redb"), before, "{told}: it is not compacted");
    assert_eq!(writer.check().expect("it can be read"), [], "{told}");
}

#[test]
fn a_full_disk_ends_a_compaction_and_nothing_else() {
    let undisturbed = undisturbed();
    // Of writes there are many that are alike.
    let every = if long() { 1 } else { 9 };
    let chosen =
        undisturbed.ops.iter().enumerate().filter(|(index, op)| {
            is_write(op) && (index % every == 0 || !matches!(op, Op::Write(..)))
        });
    let chosen: Vec<usize> = chosen.map(|(index, _)| index).collect();
    for (lasting, code) in [(false, ENOSPC), (false, EIO), (true, ENOSPC), (true, EIO)] {
        let mut ends = Ends::default();
        for from in chosen.iter().copied() {
            undisturbed.disturbed(from, code, lasting, &mut ends);
        }
        println!(
            "error {code} of {} writes of {}, lasting: {lasting}: {ends:?}",
            chosen.len(),
            undisturbed.ops.len()
        );
        assert!(ends.given_up > 0 && ends.well > 0 && ends.poisoned == 0, "{ends:?}");
    }
}

#[test]
fn after_a_sync_or_name_that_failed_in_a_compaction_nothing_is_lost() {
    let undisturbed = undisturbed();
    // Most syncs are those of commits, to the files that were there first.
    let (every, first) = (if long() { 1 } else { 9 }, undisturbed.image.len());
    let chosen = undisturbed.ops.iter().enumerate().filter(|(index, op)| match op {
        Op::Sync(file) if *file < first => index % every == 0,
        op => !is_write(op),
    });
    let mut ends = Ends::default();
    chosen.for_each(|(from, _)| undisturbed.disturbed(from, EIO, false, &mut ends));
    println!("a sync, a rename or a removal fails: {ends:?}");
    assert!(ends.given_up > 0 && ends.poisoned > 0, "{ends:?}");
}

/// What is written to a store in a folder with room for so much, while a copy of it is under way or not. Gives how
/// much there was at most, and whether the copy is still there at the end.
fn on_a_small_file_system(commits: &[Vec<Change>], room: u64, compact: bool) -> (u64, bool) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let small = SmallVolume::new(Folder::make(folder.path()).expect("the folder can be used"));
    let opened = store::open_on(Arc::new(small.clone()), config(Fsync::Commit));
    let (mut writer, reader, _) = opened.expect("it opens");
    // The store grows with each commit, as no page becomes free.
    let held = reader.snapshot().expect("it can be read");
    small.limit(room);
    if compact {
        // That there is no room for it is no error of ours.
        writer.begin_compaction().ok();
    }
    let mut filled_bytes = small.filled_bytes();
    for (now, changes) in (0..).zip(commits) {
        let told = "a copy doesn't stop the writing";
        writer.commit(Time(now), changes.clone()).expect(told);
        filled_bytes = filled_bytes.max(small.filled_bytes());
    }
    writer.ready().expect("all is on disk");
    assert_eq!(writer.check().expect("it can be read"), []);
    drop(held);
    (filled_bytes, small.file("spillway.redb.new").is_some())
}

/// There is room for the store, and not for the copy: then there is room for the store.
#[test]
fn a_copy_that_fills_the_disk_does_not_stop_the_writing() {
    let commits = workload(if long() { 60 } else { 12 });
    let (alone, _) = on_a_small_file_system(&commits, u64::MAX, false);
    let (both, copying) = on_a_small_file_system(&commits, u64::MAX, true);
    assert!(copying && both > alone, "{both} bytes, and {alone} without a copy");
    let rooms = (alone..both).step_by(if long() { 4_096 } else { 4 * 4_096 });
    let ends = rooms.map(|room| on_a_small_file_system(&commits, room, true).1);
    let (copying, given_up): (Vec<bool>, Vec<bool>) = ends.partition(|copying| *copying);
    println!(
        "room for the store, not for the copy: {} given up, {} not",
        given_up.len(),
        copying.len()
    );
    assert!(!given_up.is_empty());
}
