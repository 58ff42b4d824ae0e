//! The words of the fixtures' language, and what they stand for.

use model::{ContainerPort, Operator, OwnerRef, Requirement, Selector};

/// All keys of the language, so that a misspelt one is noticed.
#[rustfmt::skip]
const KEYS: [&str; 28] = [
    "ipv6", "h2", "trust", "default-opaque", "mirror", "remote", "gateway", "host", "zone", "linked", "hint", "node",
    "label", "owner", "above", "sa", "port", "opaque", "skip", "id", "sni", "proxy", "cp", "inbound",
    "admin", "control", "pods", "ews",
];

/// The words of a line: plain ones, and those of the form `key=value`.
pub(super) struct Words<'t> {
    pub(super) plain: Vec<&'t str>,
    pub(super) named: Vec<(&'t str, &'t str)>,
}

impl<'t> Words<'t> {
    pub(super) fn of(line: &'t str) -> Words<'t> {
        let (mut plain, mut named) = (Vec::new(), Vec::new());
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some(pair) => {
                    assert!(KEYS.contains(&pair.0), "unknown key in {line}");
                    named.push(pair);
                }
                None => plain.push(word),
            }
        }
        Words { plain, named }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.plain.contains(&word)
    }

    pub(super) fn all(&self, key: &str) -> impl Iterator<Item = &'t str> {
        self.named.iter().filter(move |(it, _)| *it == key).map(|(_, value)| *value)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'t str> {
        self.all(key).next()
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(str::to_owned)
    }
}

/// `namespace/name`, or a name in `shop`.
pub(super) fn qualified(name: &str) -> (String, String) {
    let (namespace, name) = name.split_once('/').unwrap_or(("shop", name));
    (namespace.to_owned(), name.to_owned())
}

/// `Kind/name`.
pub(super) fn owner(text: &str) -> OwnerRef {
    let (kind, name) = pair_of(text, '/');
    OwnerRef { kind, name }
}

/// `name:port`, or `name:port:host port`.
pub(super) fn container_port(text: &str) -> ContainerPort {
    let mut parts = text.split(':');
    ContainerPort {
        name: parts.next().unwrap().to_owned(),
        port: parts.next().unwrap().parse().unwrap(),
        host_port: parts.next().map(|port| port.parse().unwrap()),
    }
}

/// `all`, or `key:value` of one label.
pub(super) fn selector(text: &str) -> Selector {
    let requirement =
        |(key, value)| Requirement { key, operator: Operator::In, values: vec![value] };
    let one = (text != "all").then(|| requirement(pair_of(text, ':')));
    Selector { requirements: one.into_iter().collect() }
}

pub(super) fn pair_of(text: &str, separator: char) -> (String, String) {
    let (key, value) = text.split_once(separator).unwrap();
    (key.to_owned(), value.to_owned())
}
