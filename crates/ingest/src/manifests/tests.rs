//! Files → changes, through real folders and the real channel.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use model::Change;
use model::limits::DELIVERIES_WAITING_MAX;
use tempfile::TempDir;

use super::*;

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
";

const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n";

fn service(name: &str, port: u16) -> String {
    format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec: {{ports: [{{port: {port}}}]}}\n"
    )
}

fn check(file: &str, text: &str, expect: Expect) {
    let shown = match parse(text, file) {
        Ok(documents) => documents
            .iter()
            .map(|Document { number, line, value }| format!("{number} @{line} {value}\n"))
            .collect(),
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&shown);
}

#[test]
fn documents_are_numbered_and_empty_ones_skipped() {
    let text = format!("# a comment\n---\n---\n{SERVICE}---\nnull\n--- # node\n{NODE}...\n---\n");
    check(
        "a.yaml",
        &text,
        expect![[r#"
        1 @3 {"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{"ports":[{"port":80}]}}
        3 @11 {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}
    "#]],
    );
}

#[test]
fn lists_are_flattened() {
    let text = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}}
- apiVersion: v1
  kind: PodList
  items: [{metadata: {name: p}}]
- {apiVersion: v1, kind: List, items: null}
";
    check(
        "a.yaml",
        text,
        expect![[r#"
        1 @1 {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}
        1 @1 {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}
    "#]],
    );
}

#[test]
fn json_has_many_documents_too() {
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}"#;
    check(
        "a.json",
        &format!("{node}\n\n{node}\n"),
        expect![[r#"
        1 @1 {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}
        2 @3 {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}
    "#]],
    );
    check(
        "a.json",
        &format!("{node}\n{{\n\"kind\": }}"),
        expect!["a.json, line 3, document 2: expected value at line 3 column 9"],
    );
}

#[test]
fn scalars_are_as_kubectl_reads_them() {
    let text = "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {a: yes, b: 'yes', c: 8080, d: '8080', e: 0644, f: 1.10, g: off, h: ~, i: 010.1.0.2}
";
    check(
        "a.yaml",
        text,
        expect![[r#"
        1 @1 {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"a":true,"b":"yes","c":8080,"d":"8080","e":420,"f":1.1,"g":false,"h":null,"i":"010.1.0.2"}}
    "#]],
    );
    let merged = "
apiVersion: v1
kind: Pod
metadata: &m {name: p, namespace: shop}
spec: {copy: *m, merged: {<<: *m, name: q}}
";
    check(
        "a.yml",
        merged,
        expect![[r#"
        1 @1 {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},"spec":{"copy":{"name":"p","namespace":"shop"},"merged":{"name":"q","namespace":"shop"}}}
    "#]],
    );
}

#[test]
fn errors_name_file_line_and_document() {
    check(
        "a.yaml",
        &format!("{SERVICE}---\n\n---\na: b\nkind: [\n"),
        expect!["a.yaml, line 10, document 2: unclosed bracket '['"],
    );
    check(
        "a.yaml",
        &format!("{SERVICE}---\n  a: b\n c: d\n"),
        expect!["a.yaml, line 8, document 2: did not find expected <document start>"],
    );
    check(
        "a.yaml",
        "kind: Pod\nkind: Pod\n",
        expect!["a.yaml, line 2, document 1: duplicate mapping key `kind` is not allowed here"],
    );
    check(
        "a.yaml",
        "just words",
        expect!["a.yaml, line 1, document 1: not a Kubernetes object, which is a mapping"],
    );
    check(
        "a.yaml",
        "metadata: {name: p}",
        expect!["a.yaml, line 1, document 1: not a Kubernetes object: kind is missing"],
    );
    check(
        "a.yaml",
        "kind: Pod\n",
        expect!["a.yaml, line 1, document 1: not a Kubernetes object: apiVersion is missing"],
    );
    check(
        "a.yaml",
        "apiVersion: v1\nkind: List\nitems: 3\n",
        expect!["a.yaml, line 1, document 1: the items of a list are no sequence"],
    );
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = "apiVersion: v1\nkind: Pod\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    parse(&text, "a.yaml").unwrap_err();
}

/// A watched folder, and what the store would hold of it.
struct Watched {
    dir: TempDir,
    from: mpsc::Receiver<Delivery>,
    status: Arc<Status>,
    stored: BTreeMap<String, String>,
    marked: Option<Vec<String>>,
}

impl Watched {
    fn start(dir: TempDir) -> Watched {
        let (to, from) = mpsc::channel(DELIVERIES_WAITING_MAX);
        let status = Arc::new(Status::default());
        tokio::spawn(watch(dir.path().to_owned(), EndpointsFrom::Slices, to, Arc::clone(&status)));
        Watched { dir, from, status, stored: BTreeMap::new(), marked: None }
    }

    /// A new watch of the same folder, with the same store.
    fn restart(self) -> Watched {
        Watched { stored: self.stored, ..Watched::start(self.dir) }
    }

    fn write(&self, file: &str, text: impl AsRef<str>) {
        write(self.dir.path(), file, text.as_ref());
    }

    fn remove(&self, file: &str) {
        fs::remove_file(self.dir.path().join(file)).unwrap();
    }

    /// Takes one delivery, and returns what it changed in the store.
    async fn next(&mut self) -> Vec<String> {
        let wait = tokio::time::timeout(Duration::from_secs(20), self.from.recv());
        let delivery = wait.await.expect("no delivery came").expect("the watch ended");
        delivery.changes.into_iter().filter_map(|change| self.apply(change)).collect()
    }

    async fn listing(&mut self) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            seen.extend(self.next().await);
            if seen.iter().any(|line| line.starts_with("end") || line.starts_with("checkpoint")) {
                return seen;
            }
        }
    }

    fn apply(&mut self, change: Change) -> Option<String> {
        match change {
            Change::Begin { .. } => {
                self.marked.get_or_insert_default();
                None
            }
            Change::Put { key, version, object } => {
                let key = key.to_string();
                self.marked.iter_mut().for_each(|marked| marked.push(key.clone()));
                let says = match object {
                    model::Object::Service(service) => format!(":{}", service.ports[0].port),
                    _ => String::new(),
                };
                let row = format!("{says}@{}", version.0);
                let line = format!("put {key}{says}");
                (self.stored.insert(key, row.clone()) != Some(row)).then_some(line)
            }
            Change::Keep { key } => {
                self.marked.iter_mut().for_each(|marked| marked.push(key.to_string()));
                Some(format!("keep {key}"))
            }
            Change::Delete { key } => {
                self.stored.remove(&key.to_string());
                Some(format!("delete {key}"))
            }
            Change::End { source, .. } if source.kind == Kind::EndpointSlice => {
                let marked = self.marked.take().unwrap();
                self.stored.retain(|key, _| marked.contains(key));
                Some("end".to_owned())
            }
            Change::Checkpoint { source, .. } if source.kind == Kind::EndpointSlice => {
                self.marked = None;
                Some("checkpoint".to_owned())
            }
            Change::End { .. } | Change::Checkpoint { .. } => None,
            Change::Join { .. } | Change::Leave { .. } => panic!("there are no linked clusters"),
            Change::Forget { source } => panic!("{source} is forgotten"),
        }
    }

    fn stored(&self) -> Vec<String> {
        let row =
            |(key, row): (&String, &String)| format!("{key}{}", row.split('@').next().unwrap());
        self.stored.iter().map(row).collect()
    }

    /// Waits for a look at the folder after which this holds.
    async fn until(&self, holds: impl Fn(&Summary) -> bool) -> Summary {
        let looked = async {
            while !holds(&self.status.summary()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), looked).await.expect("it never held");
        self.status.summary()
    }
}

fn write(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    files.iter().for_each(|(file, text)| write(dir.path(), file, text));
    dir
}

#[tokio::test]
async fn an_edit_is_an_event_of_what_it_changes() {
    let files = service("web", 80) + &service("api", 80);
    let mut watched = Watched::start(folder(&[("a.yaml", &files), ("deep/er/n.yml", NODE)]));
    assert_eq!(
        watched.listing().await,
        ["put Node n1", "put Service shop/api:80", "put Service shop/web:80", "end"]
    );
    watched.write("a.yaml", "# the same\n".to_owned() + &files);
    watched.write("deep/er/n.yml", "{apiVersion: v1, kind: Node, metadata: {name: n2}}");
    assert_eq!(watched.next().await, ["put Node n2", "delete Node n1"]);
    watched.write("a.yaml", service("api", 81) + &service("db", 80));
    assert_eq!(
        watched.next().await,
        ["put Service shop/api:81", "put Service shop/db:80", "delete Service shop/web"]
    );
    watched.write("b.yaml", service("new", 80));
    assert_eq!(watched.next().await, ["put Service shop/new:80"]);
    watched.remove("a.yaml");
    assert_eq!(watched.next().await, ["delete Service shop/api", "delete Service shop/db"]);
    let summary = watched.until(|summary| summary.files == 2).await;
    assert_eq!((summary.objects, summary.problems_total, summary.listed), (2, 0, true));
}

#[tokio::test]
async fn a_broken_edit_keeps_the_last_good_state() {
    let mut watched = Watched::start(folder(&[("a.yaml", &service("web", 80))]));
    watched.listing().await;
    watched.write("a.yaml", service("web", 81) + "---\nkind: [\n");
    let summary = watched.until(|summary| summary.problems_total == 1).await;
    assert!(summary.problems[0].starts_with("a.yaml, line "), "{summary:?}");
    watched.write("b.yaml", service("other", 80));
    assert_eq!(watched.next().await, ["put Service shop/other:80"]);
    assert_eq!(watched.stored(), ["Service shop/other:80", "Service shop/web:80"]);
    watched.write("a.yaml", service("web", 82));
    assert_eq!(watched.next().await, ["put Service shop/web:82"]);
    assert_eq!(watched.until(|summary| summary.problems.is_empty()).await.files, 2);
}

#[tokio::test]
async fn a_file_broken_at_the_start_is_not_swept_until_it_can_be_read() {
    let dir = folder(&[("a.yaml", &service("web", 80)), ("b.yaml", &service("gone", 80))]);
    let mut watched = Watched::start(dir);
    watched.listing().await;
    watched.write("a.yaml", "kind: [");
    watched.remove("b.yaml");
    let mut watched = watched.restart();
    assert_eq!(watched.listing().await, ["checkpoint"]);
    assert_eq!(watched.stored(), ["Service shop/gone:80", "Service shop/web:80"]);
    watched.write("a.yaml", service("api", 80));
    assert_eq!(watched.next().await, ["put Service shop/api:80"]);
    assert_eq!(watched.listing().await, ["end"]);
    assert_eq!(watched.stored(), ["Service shop/api:80"]);
}

#[tokio::test]
async fn an_unreadable_object_is_kept_and_the_rest_of_its_file_goes_on() {
    let mut watched = Watched::start(folder(&[("a.yaml", &service("web", 80))]));
    watched.listing().await;
    let bad = service("web", 80).replace("[{port: 80}]", "[{port: eighty}]");
    let text = bad + &service("api", 80) + "---\n{apiVersion: x.io/v1, kind: Thing}\n";
    watched.write("a.yaml", &text);
    assert_eq!(watched.next().await, ["put Service shop/api:80"]);
    let summary = watched.until(|summary| summary.problems_total == 1).await;
    assert!(summary.problems[0].starts_with("a.yaml, line 1, document 1: Service shop/web"));
    assert_eq!((summary.objects, summary.ignored), (2, 1));
    let mut watched = watched.restart();
    assert_eq!(watched.listing().await, ["keep Service shop/web", "end"]);
    assert_eq!(watched.stored(), ["Service shop/api:80", "Service shop/web:80"]);
    watched.write("a.yaml", service("api", 80));
    assert_eq!(watched.next().await, ["delete Service shop/web"]);
}

#[tokio::test]
async fn of_two_files_the_later_path_counts() {
    let dir = folder(&[("a.yaml", &service("web", 1)), ("b.yaml", &service("web", 2))]);
    let mut watched = Watched::start(dir);
    assert_eq!(watched.listing().await, ["put Service shop/web:2", "end"]);
    watched.write("a.yaml", service("web", 3) + "---\n" + NODE);
    watched.write("c.yaml", service("web", 4));
    let mut seen = watched.next().await;
    if seen.len() < 2 {
        seen.extend(watched.next().await);
    }
    assert!(seen.contains(&"put Service shop/web:4".to_owned()), "{seen:?}");
    assert!(!seen.contains(&"put Service shop/web:3".to_owned()), "{seen:?}");
    watched.remove("c.yaml");
    assert_eq!(watched.next().await, ["put Service shop/web:2"]);
    watched.remove("b.yaml");
    assert_eq!(watched.next().await, ["put Service shop/web:3"]);
    watched.remove("a.yaml");
    assert!(watched.next().await.contains(&"delete Service shop/web".to_owned()));
}

#[tokio::test]
async fn an_object_may_move_between_files() {
    let dir = folder(&[("a.yaml", &service("web", 80)), ("b.yaml", NODE)]);
    let mut watched = Watched::start(dir);
    watched.listing().await;
    watched.write("b.yaml", NODE.to_owned() + &service("web", 80));
    watched.remove("a.yaml");
    // Perhaps nothing to write: the same text of the same millisecond is the same version.
    let seen = watched.next().await;
    assert!(!seen.contains(&"delete Service shop/web".to_owned()), "{seen:?}");
    watched.write("0.yaml", service("web", 81));
    watched.write("b.yaml", NODE);
    loop {
        if watched.next().await.contains(&"put Service shop/web:81".to_owned()) {
            break;
        }
    }
    assert_eq!(watched.stored(), ["Node n1", "Service shop/web:81"]);
}

#[tokio::test]
async fn a_restart_writes_nothing_again_and_sweeps_what_is_gone() {
    let dir = folder(&[("a.yaml", &service("web", 80)), ("b.yaml", &service("gone", 80))]);
    let mut watched = Watched::start(dir);
    watched.listing().await;
    watched.remove("b.yaml");
    let mut watched = watched.restart();
    assert_eq!(watched.listing().await, ["end"]);
    assert_eq!(watched.stored(), ["Service shop/web:80"]);
}

#[tokio::test]
async fn a_copy_from_an_api_server_may_be_edited() {
    let copy = |port: u16| {
        service("web", port).replace("name: web,", "name: web, resourceVersion: '123456789',")
    };
    let mut watched = Watched::start(folder(&[("a.yaml", &copy(80))]));
    watched.listing().await;
    watched.write("a.yaml", copy(81));
    assert_eq!(watched.next().await, ["put Service shop/web:81"]);
    watched.write("a.yaml", copy(82));
    let mut watched = watched.restart();
    assert_eq!(watched.listing().await, ["put Service shop/web:82", "end"]);
}

#[tokio::test]
async fn a_folder_that_is_not_there_yet_is_no_empty_one() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("later");
    let (to, mut from) = mpsc::channel(DELIVERIES_WAITING_MAX);
    let status = Arc::new(Status::default());
    tokio::spawn(watch(path.clone(), EndpointsFrom::Slices, to, Arc::clone(&status)));
    while status.summary().problems.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(from.try_recv().is_err());
    write(&path, "n.yaml", NODE);
    assert!(matches!(from.recv().await.unwrap().changes[0], Change::Begin { .. }));
}

#[cfg(unix)]
#[tokio::test]
async fn a_mounted_configmap_may_be_replaced() {
    use std::os::unix::fs::symlink;
    let dir = TempDir::new().unwrap();
    write(dir.path(), "..1/a.yaml", &service("web", 80));
    symlink("..1", dir.path().join("..data")).unwrap();
    symlink("..data/a.yaml", dir.path().join("a.yaml")).unwrap();
    let mut watched = Watched::start(dir);
    assert_eq!(watched.listing().await, ["put Service shop/web:80", "end"]);
    watched.write("..2/a.yaml", service("web", 81));
    symlink("..2", watched.dir.path().join("..new")).unwrap();
    fs::rename(watched.dir.path().join("..new"), watched.dir.path().join("..data")).unwrap();
    assert_eq!(watched.next().await, ["put Service shop/web:81"]);
}
