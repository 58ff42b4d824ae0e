//! `kill -9` of the real program, again and again: whatever the moment, the store that is left contradicts nothing,
//! has all that was promised to be durable, and leads to the right answers of the next process, whenever that starts.
//!
//! Twenty rounds, or two hundred with `SPILLWAY_LONG=1`. `SPILLWAY_SEED` gives another world.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use harness::client::{Client, Question, Seen, Stream};
use harness::kill::{Random, Remains, World, copy_data};
use harness::program::{Program, Sample, Server, now};

/// How long answers may take to become what the folder says: it is polled, and a machine may be busy.
const ANSWERS_MAX: Duration = Duration::from_secs(10);

/// How long a commit may wait until it is durable, by default.
const FSYNC_INTERVAL: Duration = Duration::from_millis(200);

/// What one sync may take on a disk that others use, too.
const SYNC_MAX: Duration = Duration::from_secs(1);

/// When a process is killed.
enum Moment {
    /// This long after it was started, whatever it does then.
    Started(Duration),
    /// This long after it began to serve, and so to list.
    Serving(Duration),
    /// Once its answers were right, this long into the edits that follow.
    Editing(Duration),
}

/// How the rounds went.
#[derive(Debug, Default)]
struct Tally {
    kills: u32,
    /// Before the listing that each start begins with had ended on disk.
    in_a_listing: u32,
    /// Of these, with a part of it on disk, or what was there before it.
    in_a_listing_with_rows: u32,
    /// With a file that was not closed.
    repaired: u32,
    /// With a revision that was known to be durable.
    with_a_promise: u32,
    edits: u32,
    /// Services whose answers were right after a restart.
    answers: usize,
    /// Seen by somebody, and taken back: what `--fsync commit` is for.
    revisions_lost: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn whenever_it_is_killed_nothing_is_wrong_afterwards() -> Result<()> {
    let rounds: u32 = if setting("SPILLWAY_LONG").is_some() { 200 } else { 20 };
    let seed = setting("SPILLWAY_SEED").map_or(Ok(1), |seed| seed.parse())?;
    let program = Program::build()?;
    let folder = tempfile::tempdir()?;
    let mut random = Random::new(seed);
    let mut world = World::new(folder.path().join("manifests"), &mut random)?;
    let mut tally = Tally::default();
    let begun = now();
    for number in 0..rounds {
        if is_first(number) {
            // What there is must be learnt anew now and then, or the first listing would have nothing to do.
            forget(&folder.path().join("data"))?;
        }
        round(&program, folder.path(), &mut world, &mut random, number, &mut tally)
            .await
            .with_context(|| format!("round {number} of seed {seed}"))?;
    }
    say(&format!("{tally:?} in {:.1} s", begun.elapsed().as_secs_f64()));
    let asked = rounds as usize * World::authorities().len();
    ensure!(
        tally.answers == asked,
        "{asked} answers after restarts were to be compared: {tally:?}"
    );
    ensure!(tally.in_a_listing > 0 && tally.repaired > 0, "the moments were all alike: {tally:?}");
    Ok(())
}

async fn round(
    program: &Program,
    folder: &Path,
    world: &mut World,
    random: &mut Random,
    number: u32,
    tally: &mut Tally,
) -> Result<()> {
    // The kinds of moments and the two promises go round at different speeds, so that they all meet.
    let fsync_commit = number.is_multiple_of(2);
    // Where all is learnt anew, the end comes before that is done, more often than not.
    let moment = match random.below(if is_first(number) { 4 } else { 8 }) {
        0 => Moment::Started(Duration::from_millis(random.below(250))),
        1..=3 => Moment::Serving(Duration::from_millis(random.below(80))),
        _ => Moment::Editing(Duration::from_millis(100 + random.below(1_200))),
    };
    let mut server = program.serve(folder, fsync_commit)?;
    match moment {
        Moment::Started(wait) => tokio::time::sleep(wait).await,
        Moment::Serving(wait) => {
            let (_, admin) = server.serving().await?;
            server.watch(admin);
            tokio::time::sleep(wait).await;
        }
        Moment::Editing(wait) => {
            let (addr, admin) = server.serving().await?;
            server.watch(admin);
            tally.edits += edit(&mut server, addr, wait, world, random).await?;
        }
    }
    let (samples, killed) = server.kill()?;
    let remains = Remains::examine(&folder.join("data"))?;
    tally.kills += 1;
    tally.in_a_listing += u32::from(remains.listing);
    tally.in_a_listing_with_rows += u32::from(remains.listing && remains.revision > 0);
    tally.repaired += u32::from(remains.repaired);
    let seen = samples.last().map_or(0, |sample| sample.revision);
    tally.revisions_lost += seen.saturating_sub(remains.revision);
    let promised = promised(&samples, killed, fsync_commit);
    tally.with_a_promise += u32::from(promised > 0);
    ensure!(
        remains.revision >= promised,
        "revision {promised} was durable, and {} is what there is; fsync at each commit: {fsync_commit}",
        remains.revision
    );
    tally.answers += answers_after(program, folder, world, fsync_commit).await?;
    Ok(())
}

/// The answers of a process that starts where the killed one was. It has a copy of the data: the next round goes on
/// with what is there, such as half a listing.
async fn answers_after(
    program: &Program,
    folder: &Path,
    world: &World,
    fsync_commit: bool,
) -> Result<usize> {
    let copy = "data-of-the-next";
    forget(&folder.join(copy))?;
    copy_data(&folder.join("data"), &folder.join(copy))?;
    let mut server = program.serve_data(folder, copy, fsync_commit)?;
    let (addr, _) = server.serving().await?;
    let streams = answers(&Client::connect(addr).await?, &mut server, world).await?;
    let faults: Vec<_> = streams.iter().flat_map(Stream::faults).collect();
    ensure!(faults.is_empty(), "a proxy would have refused: {faults:?}");
    server.kill()?;
    Ok(streams.len())
}

/// Waits for the right answers, then goes on editing, with streams open, for as long as it says.
async fn edit(
    server: &mut Server,
    addr: SocketAddr,
    wait: Duration,
    world: &mut World,
    random: &mut Random,
) -> Result<u32> {
    let client = Client::connect(addr).await?;
    let streams = answers(&client, server, world).await?;
    let begun = now();
    let mut edits = 0;
    while begun.elapsed() < wait {
        world.edit(random)?;
        edits += 1;
        let pause = Duration::from_millis(random.below(80));
        tokio::time::sleep(pause.min(wait.saturating_sub(begun.elapsed()))).await;
    }
    let faults: Vec<_> = streams.iter().flat_map(Stream::faults).collect();
    ensure!(faults.is_empty(), "a proxy would have refused: {faults:?}");
    Ok(edits)
}

/// Opens a stream for each Service, and waits until all hold what the folder says.
async fn answers(client: &Client, server: &mut Server, world: &World) -> Result<Vec<Stream>> {
    let authorities = World::authorities();
    let question = |n: usize| Question { path: authorities[n].clone(), ..Question::default() };
    let mut streams = Vec::new();
    for n in 0..authorities.len() {
        streams.push(client.open(question(n), false).await);
    }
    let begun = now();
    loop {
        let mut wrong = Vec::new();
        for (n, stream) in streams.iter_mut().enumerate() {
            let seen = stream.seen();
            if let Some(difference) = world.difference(n, &seen.held()) {
                if let Seen::Ended(_) = seen {
                    *stream = client.open(question(n), false).await;
                }
                wrong.push(difference);
            }
        }
        if wrong.is_empty() {
            return Ok(streams);
        }
        server.alive()?;
        ensure!(begun.elapsed() < ANSWERS_MAX, "wrong answers:\n{}", wrong.join("\n"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The revision that a crash may not take back any more.
fn promised(samples: &[Sample], killed: Instant, fsync_commit: bool) -> u64 {
    let is_durable = |sample: &Sample| {
        // Whoever can see a revision can be sure of it.
        fsync_commit
            // One sync may have been under way when the revision was seen; the next began later, and has ended.
            || samples.last().is_some_and(|last| last.syncs >= sample.syncs + 2)
            || killed.duration_since(sample.at) > FSYNC_INTERVAL + SYNC_MAX
    };
    let durable = samples.iter().filter(|sample| is_durable(sample));
    durable.map(|sample| sample.revision).max().unwrap_or(0)
}

/// Does the round begin without data?
fn is_first(number: u32) -> bool {
    number.is_multiple_of(5)
}

fn forget(data: &Path) -> Result<()> {
    match std::fs::remove_dir_all(data) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no args")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(clippy::print_stdout, reason = "how it went is for whoever runs it")]
fn say(line: &str) {
    println!("{line}");
}
