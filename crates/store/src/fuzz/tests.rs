//! The fuzzers' doors without a fuzzer: what is known to be good, changed in every way that damage comes in, from a
//! fixed seed. `SPILLWAY_LONG=1` goes on for much longer.

use bincode::Encode;

use super::{file, key, record};
use crate::key as keys;
use crate::record::v3::Name;
use crate::record::{encode, sample};
use crate::tests::fixture::{Random, ip, source};
use crate::{Birth, Error};

/// A file of this format, with rows in every table.
const FILE: &[u8] = include_bytes!("../tests/formats/format-5.redb");

/// How many mutations, of those that are usual and those of a long run.
fn rounds(usual: u64, long: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test has no args")]
    let is_long = std::env::var("SPILLWAY_LONG").is_ok();
    if is_long { long } else { usual }
}

/// Changes some bytes, as damage does: bits, bytes, runs, what is cut off, doubled or in the wrong place.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    const TELLING: [u8; 9] = [0, 1, 2, 0x7f, 0x80, 0xfb, 0xfc, 0xfd, 0xff];
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len() as u64) as usize;
        let length = (random.below(9) as usize + 1).min(bytes.len() - at);
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes[at] = TELLING[random.below(9) as usize],
            3 => bytes[at..at + length].fill(TELLING[random.below(9) as usize]),
            4 => bytes.truncate(at),
            5 => bytes.insert(at, TELLING[random.below(9) as usize]),
            6 => drop(bytes.drain(at..at + length)),
            _ => {
                let run = bytes[at..at + length].to_vec();
                let to = random.below(bytes.len() as u64) as usize;
                bytes.splice(to..to, run);
            }
        }
    }
}

fn records() -> Vec<Vec<u8>> {
    fn all<T: Encode>(values: &[T]) -> Vec<Vec<u8>> {
        values.iter().map(|value| encode(value).unwrap()).collect()
    }
    [
        all(&sample::objects()),
        all(&[Some(sample::service()), None]),
        all(&[sample::template()]),
        all(&[sample::metadata()]),
        all(&[sample::slice()]),
        all(&[sample::slice_meta()]),
        all(&[sample::row(Name::Suffix("x9".to_owned()))]),
        all(&[sample::signature()]),
        all(&[sample::undone_rows()]),
        all(&[sample::checkpoint()]),
        all(&[sample::touched()]),
        all(&[sample::interned()]),
        all(&[sample::size()]),
        all(&[sample::meta()]),
    ]
    .concat()
}

#[test]
fn damaged_records_are_refused_or_stable() {
    let seeds = records();
    let mut random = Random(0x5eed);
    for _ in 0..rounds(4_000, 2_000_000) {
        let mut bytes = seeds[random.below(seeds.len() as u64) as usize].clone();
        mutate(&mut random, &mut bytes);
        record(&bytes);
    }
}

#[test]
fn damaged_keys_are_none_or_what_they_say() {
    let name = model::ObjectName::new("shop", "cart").unwrap();
    let row = keys::RowKey { ip: ip(true, 9), slice: 7, workload: 300 };
    let claim = crate::workload::ClaimKey { template: 3, workload: 300, slice: 7 };
    let undo = |what| keys::undo(2, model::Revision(70_000), &what);
    let seeds = [
        row.write(2),
        keys::RowKey { ip: ip(false, 9), ..row }.write(2),
        keys::claim(claim),
        keys::contested(2, row),
        keys::hostname(2, "cart-0", row),
        undo(keys::Undone::Object),
        undo(keys::Undone::Signature(encode(&sample::signature()).unwrap())),
        undo(keys::Undone::Address(ip(false, 9))),
        keys::object(source(model::Kind::Pod), &name),
    ];
    let mut random = Random(0x5eed);
    for _ in 0..rounds(20_000, 5_000_000) {
        let mut bytes = seeds[random.below(seeds.len() as u64) as usize].clone();
        mutate(&mut random, &mut bytes);
        key(&bytes);
    }
}

/// Damage of a file is small and in place, or the end is missing: what is inserted moves all pages behind it.
fn mutate_file(random: &mut Random, bytes: &mut Vec<u8>) {
    const PAGE: usize = 4_096;
    match random.below(8) {
        0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
        1 => {
            // A page that was never written, or is another one.
            let page =
                |random: &mut Random| random.below((FILE.len() / PAGE) as u64) as usize * PAGE;
            let (from, to) = (page(random), page(random));
            let other =
                if random.chance(50) { [0; PAGE].to_vec() } else { FILE[from..][..PAGE].to_vec() };
            bytes[to..to + PAGE].copy_from_slice(&other);
        }
        2 => bytes[random.below(512) as usize] ^= 1 << random.below(8),
        _ => {
            // Where there is something: most of a file of this size is empty.
            for _ in 0..=random.below(3) {
                let from = random.below(bytes.len() as u64) as usize;
                let at = (from..bytes.len()).find(|at| bytes[*at] != 0).unwrap_or(from);
                bytes[at] ^= 1 << random.below(8);
            }
        }
    }
}

#[test]
fn damaged_files_are_opened_replaced_or_refused() {
    let mut random = Random(0x5eed);
    let (mut opened, mut rebuilt, mut refused) = (0_u64, 0_u64, 0_u64);
    let mut failed = Vec::new();
    for round in 0..rounds(300, 20_000) {
        let mut bytes = FILE.to_vec();
        mutate_file(&mut random, &mut bytes);
        let folder = tempfile::tempdir().unwrap();
        match file(folder.path(), &bytes) {
            Ok(Birth::Opened(_)) => opened += 1,
            Ok(_) => rebuilt += 1,
            Err(Error::Newer { .. }) => refused += 1,
            Err(error) => failed.push(format!("{round}: {error}")),
        }
    }
    let all = format!("{opened} opened, {rebuilt} replaced, {refused} refused");
    say(&all);
    assert!(opened > 0 && rebuilt > 0, "{all}");
    assert_eq!(failed, Vec::<String>::new(), "{all}");
}

#[expect(clippy::print_stdout, reason = "how it went is for whoever runs it")]
fn say(line: &str) {
    println!("{line}");
}
