//! What the tree must look like. Every rule that no compiler knows is a test here, and says what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Lines of a file, its tests left out. One that comes near is two rooms.
const FILE_LINES_MAX: usize = 500;

/// Lines of tests in a file of code; longer ones go beside it.
const INLINE_TEST_LINES_MAX: usize = 130;

/// Who may depend on whom, bottom layer first. The middle three are strangers to each other.
const LAYERS: [(&str, &[&str]); 8] = [
    ("model", &[]),
    ("store", &["model"]),
    ("resolve", &["model"]),
    ("ingest", &["model"]),
    ("serve", &["model", "store", "resolve"]),
    ("spillway", &["model", "store", "resolve", "ingest", "serve"]),
    ("tests", &["model", "store", "resolve", "ingest", "serve", "spillway"]),
    ("benches", &["model", "store", "resolve", "ingest", "serve", "spillway"]),
];

/// Libraries that are some packages' own: a change of one is then a change of those alone.
const OWNERS: [(&str, &[&str]); 9] = [
    ("redb", &["store", "benches"]),
    ("bincode", &["store"]),
    ("kube", &["ingest", "tests"]),
    ("k8s-openapi", &["ingest", "tests"]),
    ("notify", &["ingest"]),
    ("linkerd2-proxy-api", &["serve", "spillway", "tests", "benches"]),
    ("prometheus-client", &["serve"]),
    ("clap", &["spillway"]),
    ("anyhow", &["spillway", "tests", "benches"]),
];

/// Packages in which nothing waits: no runtime, no clock.
const WITHOUT_TOKIO: [&str; 3] = ["model", "store", "resolve"];

/// Words that a finished line doesn't have.
const LEFTOVERS: [&str; 5] = ["TODO", "FIXME", "XXX", "dbg!(", "#[ignore"];

/// Folders of whoever writes here.
const PLACES: [&str; 4] = ["/work/", "/root/", "/tmp/target", "../shared"];

/// What a stranger looks for at the root.
const DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE"];

#[test]
fn packages_depend_downwards_only() {
    let known: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    let mut faults = Vec::new();
    for package in packages() {
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == package.name) else {
            faults.push(format!("{} is in no layer: give it one in LAYERS", package.name));
            continue;
        };
        let ours = package.dependencies.iter().filter(|name| known.contains(&name.as_str()));
        let bad = ours.filter(|name| !allowed.contains(&name.as_str()));
        faults.extend(bad.map(|name| {
            format!("{} must not know {name}: pass values through a layer above", package.name)
        }));
    }
    check(faults);
}

#[test]
fn libraries_stay_with_their_owners() {
    let mut faults = Vec::new();
    for package in packages() {
        for (library, owners) in OWNERS {
            if package.dependencies.contains(library) && !owners.contains(&package.name.as_str()) {
                faults.push(format!(
                    "{} must not name {library}, which belongs to {owners:?}: move the line there",
                    package.name
                ));
            }
        }
        let tokio = package.dependencies.iter().find(|name| name.starts_with("tokio"));
        if let (true, Some(tokio)) = (WITHOUT_TOKIO.contains(&package.name.as_str()), tokio) {
            faults.push(format!("{} must not name {tokio}: it never waits", package.name));
        }
    }
    check(faults);
}

#[test]
fn every_package_takes_the_lints_of_the_workspace() {
    let without =
        packages().into_iter().filter(|p| !p.manifest.contains("[lints]\nworkspace = true"));
    check(without.map(|p| format!("{}: add `[lints]` with `workspace = true`", p.name)));
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = sources().into_iter().filter(|source| !source.text.starts_with("//! "));
    check(silent.map(|s| format!("{}: begin with `//!` and what the file is for", s.name())));
}

#[test]
fn files_fit_in_a_head() {
    let mut faults = Vec::new();
    for source in sources() {
        let (code, tests) = source.lines();
        if code > FILE_LINES_MAX {
            faults.push(format!(
                "{}: {code} lines, at most {FILE_LINES_MAX}: split it",
                source.name()
            ));
        }
        if tests > INLINE_TEST_LINES_MAX {
            faults.push(format!(
                "{}: {tests} lines of tests, at most {INLINE_TEST_LINES_MAX}: move them to a `tests.rs`",
                source.name()
            ));
        }
    }
    check(faults);
}

#[test]
fn no_file_is_dead() {
    let sources = sources();
    let mut alive: BTreeSet<PathBuf> = BTreeSet::new();
    for package in packages() {
        alive.extend(package.targets());
    }
    // A workspace of its own, which no rule about packages holds for.
    alive.extend(Package::read(&root().join("fuzz")).targets());
    for source in &sources {
        alive.extend(source.modules());
    }
    let dead = sources.iter().filter(|source| !alive.contains(&source.path));
    check(dead.map(|s| format!("{}: is in no `mod` line: name it or delete it", s.name())));
}

#[test]
fn nothing_is_left_over() {
    let this = Path::new(file!()).file_name();
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| source.path.file_name() != this) {
        for (index, line) in source.text.lines().enumerate() {
            let words = LEFTOVERS.iter().filter(|word| line.contains(**word));
            faults.extend(words.map(|word| {
                format!("{}:{}: {word}: do it, or leave it", source.name(), index + 1)
            }));
        }
    }
    check(faults);
}

#[test]
fn documents_are_there() {
    let missing = DOCUMENTS.iter().filter(|name| !root().join(name).is_file());
    check(missing.map(|name| format!("{name} is missing: write it")));
}

#[test]
fn the_readme_begins_with_the_two_commands() {
    let readme = read(&root().join("README.md"));
    let beginning: String = readme.lines().take(40).collect::<Vec<_>>().join("\n");
    let commands = ["cargo run --release -- demo", "cargo test --workspace"];
    let missing = commands.iter().filter(|command| !beginning.contains(**command));
    check(missing.map(|command| format!("README.md: `{command}` is not in the first 40 lines")));
    let ci = read(&root().join(".ci/run"));
    assert!(ci.contains("cargo test --workspace"), ".ci/run must run the README's test command");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut faults = Vec::new();
    for name in DOCUMENTS {
        let text = std::fs::read_to_string(root().join(name)).unwrap_or_default();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !root().join(path).exists() {
                faults.push(format!("{name}: {link} leads nowhere: mend the link"));
            }
        }
    }
    check(faults);
}

#[test]
fn the_architecture_says_what_is_absent() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let invariants = text.lines().filter(|line| line.contains("*Invariant:*")).count();
    assert!(invariants >= 5, "ARCHITECTURE.md has {invariants} lines with *Invariant:*: name them");
    let unnamed = LAYERS.iter().filter(|(name, _)| !text.contains(&format!("`{name}`")));
    let unnamed = unnamed.filter(|(name, _)| !text.contains(&format!("`{name}/`")));
    check(unnamed.map(|(name, _)| format!("ARCHITECTURE.md does not say what `{name}` is for")));
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let mut faults = Vec::new();
    for path in files(root()).iter().filter(|path| !path.ends_with("tests/tidy.rs")) {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        for (index, line) in text.lines().enumerate() {
            if PLACES.iter().any(|place| line.contains(place)) {
                faults.push(format!("{}:{}: a path of one machine", shown(path), index + 1));
            }
        }
    }
    check(faults);
}

/// A package of the workspace.
struct Package {
    name: String,
    folder: PathBuf,
    manifest: String,
    dependencies: BTreeSet<String>,
}

fn packages() -> Vec<Package> {
    let crates = entries(&root().join("crates"));
    let folders = crates.into_iter().chain([root().join("tests"), root().join("benches")]);
    folders
        .filter(|folder| folder.join("Cargo.toml").is_file())
        .map(|f| Package::read(&f))
        .collect()
}

impl Package {
    fn read(folder: &Path) -> Package {
        let manifest = read(&folder.join("Cargo.toml"));
        let mut sections: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut section = "";
        for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            match line.strip_prefix('[') {
                Some(header) => section = header.trim_matches(|c| c == '[' || c == ']'),
                None => sections.entry(section).or_default().push(line),
            }
        }
        let names = sections.iter().filter(|(name, _)| name.contains("dependencies"));
        let names = names.flat_map(|(_, lines)| lines);
        let names = names.filter_map(|line| line.split(['.', ' ', '=']).next());
        let dependencies = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let mut lines = manifest.lines();
        let name =
            lines.find_map(|line| line.strip_prefix("name = ")).expect("a package has a name");
        Package {
            name: name.trim_matches('"').to_owned(),
            folder: folder.to_owned(),
            dependencies,
            manifest: manifest.clone(),
        }
    }

    /// Files that cargo builds without anybody's naming them in Rust.
    fn targets(&self) -> Vec<PathBuf> {
        let named = self.manifest.lines().filter_map(|line| line.strip_prefix("path = \""));
        let named = named.filter_map(|line| line.split('"').next());
        let usual = ["src/lib.rs", "src/main.rs", "build.rs"];
        named.chain(usual).map(|path| self.folder.join(path)).collect()
    }
}

/// A file of Rust.
struct Source {
    path: PathBuf,
    text: String,
}

fn sources() -> Vec<Source> {
    let rust = files(root()).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    rust.map(|path| Source { text: read(&path), path }).collect()
}

impl Source {
    fn name(&self) -> String {
        shown(&self.path)
    }

    /// Is it all test?
    fn is_test(&self) -> bool {
        let parts: Vec<_> = self.path.iter().filter_map(|part| part.to_str()).collect();
        parts.iter().any(|part| *part == "tests" || *part == "tests.rs")
    }

    /// Lines of code, and of inline tests, which are last in a file.
    fn lines(&self) -> (usize, usize) {
        let all = self.text.lines().count();
        let marker = self.text.find("#[cfg(test)]\nmod tests {");
        let code = marker.map_or(all, |at| self.text[..at].lines().count());
        if self.is_test() { (code.min(FILE_LINES_MAX), 0) } else { (code, all - code) }
    }

    /// Files that its `mod` lines name.
    fn modules(&self) -> Vec<PathBuf> {
        let stem = self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let parent = self.path.parent().unwrap_or(root());
        let roots = packages().into_iter().flat_map(|package| package.targets());
        let here =
            ["mod", "lib", "main"].contains(&stem) || roots.into_iter().any(|r| r == self.path);
        let folder = if here { parent.to_owned() } else { parent.join(stem) };
        let names = self.text.lines().filter_map(|line| {
            let (visible, name) = line.trim_start().split_once("mod ")?;
            let is_mod = visible.is_empty() || visible.starts_with("pub");
            name.strip_suffix(';').filter(|_| is_mod)
        });
        let both = |name: &str| [format!("{name}.rs"), format!("{name}/mod.rs")];
        names.flat_map(both).map(|name| folder.join(name)).collect()
    }
}

fn check(faults: impl IntoIterator<Item = String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in the workspace")
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder entry").path()).collect();
    paths.sort();
    paths
}

/// All files that are ours: not what is built, nor what git keeps for itself, nor the observations.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name == ".git"
            || ["target", "golden"].contains(&name) && path.is_dir() && !is_source(&path)
        {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// `tests/harness/golden` is a folder of code, `tests/golden` one of observations.
fn is_source(folder: &Path) -> bool {
    folder.join("mod.rs").is_file()
}
