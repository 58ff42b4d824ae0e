//! No row of the specification is forgotten: each of those that are about Get and GetProfile has a golden case that passes, or a test of ours
//! that names it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use harness::golden::{Case, Ledger, folder};

/// Part 7 of the specification: sections and how many rows they have.
const SECTIONS: [(&str, u32); 14] = [
    ("A", 19),
    ("B", 12),
    ("C", 28),
    ("D", 11),
    ("E", 14),
    ("F", 35),
    ("G", 9),
    ("H", 12),
    ("I", 18),
    ("J", 28),
    ("K", 15),
    ("L", 15),
    ("M", 12),
    ("N", 10),
];

/// Rows of 7.Q.
const OTHERS: [&str; 19] = [
    "Q-1", "Q-2", "Q-3", "Q-4", "Q-5", "Q-6", "Q-7", "Q-8", "Q-9", "Q-10", "Q-11", "Q-12", "Q-13",
    "Q-14", "Q-15", "Q-16", "Q-17", "Q-18", "Q-19",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rows() -> impl Iterator<Item = String> {
    let numbered =
        |(letter, count): (&'static str, u32)| (1..=count).map(move |n| format!("{letter}{n:02}"));
    SECTIONS.into_iter().flat_map(numbered).chain(OTHERS.map(str::to_owned))
}

/// The rows of golden cases that pass.
fn golden() -> BTreeMap<String, String> {
    let ledger = Ledger::read(root()).expect("the list of expected failures");
    let mut rows = BTreeMap::new();
    for name in ["abc", "def", "ghik", "jl", "mno"] {
        for case in folder(root(), name).expect("a folder of cases") {
            let read = Case::read(root(), name, &case).expect("a case");
            if ledger.reason(name, &case).is_none() {
                rows.extend(read.rows.into_iter().map(|row| (row, format!("{name}/{case}"))));
            }
        }
    }
    rows
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
}

/// The rows that a test's name has: `c02_c10_…`, `lists_of_spec_f18_to_f20`, `of_q_1`.
fn named(test: &str) -> BTreeSet<String> {
    let words: Vec<&str> = test.split('_').collect();
    let number = |word: &str| word.parse::<u32>().ok();
    let row = |word: &str| {
        let (letter, digits) = word.split_at_checked(1)?;
        let is_row = ("a"..="n").contains(&letter) && digits.len() == 2;
        is_row.then(|| Some((letter.to_uppercase(), number(digits)?))).flatten()
    };
    let mut named = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        let next = |ahead: usize| words.get(at + ahead).copied().unwrap_or_default();
        if *word == "q" && number(next(1)).is_some() {
            named.insert(format!("Q-{}", next(1)));
        }
        let Some((letter, first)) = row(word) else { continue };
        let last = match (next(1), row(next(2))) {
            ("to", Some((same, last))) if same == letter => last,
            _ => first,
        };
        named.extend((first..=last).map(|n| format!("{letter}{n:02}")));
    }
    named
}

/// The rows that our own tests name.
fn own() -> BTreeMap<String, String> {
    let mut files = Vec::new();
    sources(&root().join("../crates"), &mut files);
    sources(&root().join("apiserver"), &mut files);
    let mut rows = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source");
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let after = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            if let Some((name, _)) = after.and_then(|rest| rest.split_once('('))
                && std::mem::take(&mut is_test)
            {
                rows.extend(named(name).into_iter().map(|row| (row, name.to_owned())));
            }
        }
    }
    rows
}

#[test]
#[expect(clippy::print_stdout, reason = "what shows a row is worth knowing")]
fn each_row_has_a_case_or_a_test() {
    let (golden, own) = (golden(), own());
    let (mut by_golden, mut by_own, mut missing) = (0, 0, Vec::new());
    for row in rows() {
        let shown = (golden.get(&row), own.get(&row));
        by_golden += u32::from(shown.0.is_some());
        by_own += u32::from(shown.1.is_some());
        if shown == (None, None) {
            missing.push(row);
        }
    }
    println!("{} rows: {by_golden} have golden cases, {by_own} tests of ours", rows().count());
    assert!(missing.is_empty(), "no case and no test of ours for {missing:?}");
}

/// The names in backticks of a document.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn what_the_document_cites_is_there() {
    let text = std::fs::read_to_string(root().join("../docs/compatibility.md")).expect("the page");
    let ledger = Ledger::read(root()).expect("the list of expected failures");
    let mut files = Vec::new();
    sources(&root().join("../crates"), &mut files);
    sources(&root().join("apiserver"), &mut files);
    let read = |file: &PathBuf| std::fs::read_to_string(file).expect("a source");
    let code: String = files.iter().map(read).collect();
    let mut cited = 0;
    for name in quoted(&text) {
        let is_case =
            name.split_once('/').filter(|(folder, _)| root().join("golden").join(folder).is_dir());
        if let Some((folder, case)) = is_case {
            let path = root().join("golden").join(folder).join(format!("{case}.yaml"));
            assert!(path.exists(), "{name} is no golden case");
            assert!(ledger.reason(folder, case).is_none(), "{name} does not pass");
            cited += 1;
        } else if name.matches('_').count() > 2 && !name.contains([' ', '{', '-', '=']) {
            assert!(code.contains(&format!("fn {name}(")), "{name} is no test");
            cited += 1;
        }
    }
    assert!(cited >= 50, "only {cited} cases and tests are cited");
}
