//! The JSON of lists and watches, down to the text of each object, which stays unread.

use std::borrow::Cow;

use kube::core::Status;
use model::ResourceVersion;
use model::limits::VERSION_BYTES_MAX;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::Failure;
use super::limits::{ERROR_BYTES_MAX, PAGE_ITEMS_TAKEN_MAX, TOKEN_BYTES_MAX};
use crate::objects::list;

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
    pub(super) version: ResourceVersion,
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
        "ERROR" if object.get().len() > ERROR_BYTES_MAX => {
            return Err(Failure::Broken("the watch ended with an error that is too long".into()));
        }
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
    Ok(Event::Bookmark { version: version(metadata.resource_version)?.0, initial_end })
}

/// Reads a page of a list.
pub(super) fn page(body: &[u8]) -> Result<Page<'_>, Failure> {
    #[derive(Deserialize)]
    struct Written<'a> {
        metadata: Metadata,
        #[serde(borrow, default, deserialize_with = "list::at_most::<PAGE_ITEMS_TAKEN_MAX, _, _>")]
        items: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
        #[serde(rename = "continue", default)]
        token: Option<String>,
    }
    let Written { metadata, items } = read(body, "list")?;
    let token = metadata.token.unwrap_or_default();
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Failure::Broken("the list goes on with a token that is too long".to_owned()));
    }
    Ok(Page { version: version(metadata.resource_version)?, token, items })
}

fn version(text: String) -> Result<ResourceVersion, Failure> {
    match text.len() > VERSION_BYTES_MAX {
        true => Err(Failure::Broken("the API server gives a version that is too long".to_owned())),
        false => Ok(ResourceVersion(text)),
    }
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
    let version = serde_json::from_str::<Versioned>(object).ok()?.metadata.resource_version;
    Some(version).filter(|version| version.len() <= VERSION_BYTES_MAX)
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> Result<T, Failure> {
    serde_json::from_slice(bytes)
        .map_err(|error| Failure::Broken(format!("a {what} that can't be read: {error}")))
}
