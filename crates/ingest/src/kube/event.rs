//! The JSON of lists and watches, down to the text of each object, which stays unread.

use std::borrow::Cow;

use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::Failure;

/// One line of a watch.
#[derive(Debug)]
pub(super) enum Event<'a> {
    /// The object is now this.
    Put(&'a str),
    /// The object is gone; this is what it was.
    Deleted(&'a str),
    /// Everything up to this version was said.
    Bookmark {
        /// The version.
        version: String,
        /// All objects that there were at the beginning have been said.
        initial_end: bool,
    },
    /// The watch ends.
    Error(Box<Status>),
}

/// A page of a list.
pub(super) struct Page<'a> {
    /// The version that all pages of the list show.
    pub(super) version: String,
    /// Asks for the next page; empty if this is the last one.
    pub(super) token: String,
    /// The text of each object.
    pub(super) items: Vec<&'a RawValue>,
}

/// Reads a line of a watch.
pub(super) fn event(line: &[u8]) -> Result<Event<'_>, Failure> {
    #[derive(Deserialize)]
    struct Written<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let Written { kind, object } = read(line, "watch event")?;
    Ok(match &*kind {
        "ADDED" | "MODIFIED" => Event::Put(object.get()),
        "DELETED" => Event::Deleted(object.get()),
        "BOOKMARK" => bookmark(object.get())?,
        "ERROR" => Event::Error(read(object.get().as_bytes(), "error of the watch")?),
        other => {
            let other: String = other.chars().take(40).collect();
            return Err(Failure::Broken(format!("a watch event of unknown type {other:?}")));
        }
    })
}

fn bookmark(object: &str) -> Result<Event<'static>, Failure> {
    #[derive(Deserialize)]
    struct Bookmark {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
        #[serde(default)]
        annotations: Option<Annotations>,
    }
    #[derive(Deserialize)]
    struct Annotations {
        #[serde(rename = "k8s.io/initial-events-end", default)]
        initial_end: Option<String>,
    }
    let Bookmark { metadata } = read(object.as_bytes(), "bookmark")?;
    let initial_end = metadata.annotations.and_then(|it| it.initial_end).as_deref() == Some("true");
    Ok(Event::Bookmark { version: metadata.resource_version, initial_end })
}

/// Reads a page of a list.
pub(super) fn page(body: &[u8]) -> Result<Page<'_>, Failure> {
    #[derive(Deserialize)]
    struct Written<'a> {
        metadata: Metadata,
        #[serde(borrow, default)]
        items: Option<Vec<&'a RawValue>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
        #[serde(rename = "continue", default)]
        token: Option<String>,
    }
    let Written { metadata, items } = read(body, "list")?;
    Ok(Page {
        version: metadata.resource_version,
        token: metadata.token.unwrap_or_default(),
        items: items.unwrap_or_default(),
    })
}

/// The version of an object of which perhaps nothing else can be read.
pub(super) fn version_of(object: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Versioned {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    serde_json::from_str::<Versioned>(object).ok().map(|it| it.metadata.resource_version)
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> Result<T, Failure> {
    serde_json::from_slice(bytes)
        .map_err(|error| Failure::Broken(format!("a {what} that can't be read: {error}")))
}
