//! Text → documents: YAML or JSON, many a file, lists flattened.
//!
//! YAML is read as kubectl does: plain `yes` and `off` are booleans, `0644` is octal, merge keys are merged,
//! and what is quoted is a string. Only a key that is there twice is refused here, where kubectl takes either.

use model::limits::MANIFEST_BYTES_MAX;
use serde_json::{Map, Value};
use serde_saphyr::MessageFormatter;

/// An object as a file says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Which document of the file it is in, from 1. Empty ones don't count; the items of a list share theirs.
    pub number: usize,
    /// The line where the document starts, from 1.
    pub line: usize,
    /// The object. It has an `apiVersion` and a `kind`.
    pub value: Value,
}

/// Why a file could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}, document {document}: {reason}")]
pub struct ParseError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The document, counted as in [`Document::number`].
    pub document: usize,
    /// What is wrong there.
    pub reason: String,
}

/// All objects of a file: JSON if its name ends so, else YAML.
pub fn parse(text: &str, file: &str) -> Result<Vec<Document>, ParseError> {
    let mut objects = Vec::new();
    each(text, file, &mut |document| objects.push(document))?;
    Ok(objects)
}

/// Visits the objects of a file in their order. Only one document at a time is in memory.
pub(super) fn each(
    text: &str,
    file: &str,
    visit: &mut dyn FnMut(Document),
) -> Result<(), ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let result = if file.ends_with(".json") { json(text, visit) } else { yaml(text, visit) };
    result.map_err(|Fault { line, document, reason }| {
        // The parser's words may span lines; an error is one.
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        ParseError { file: file.to_owned(), line, document, reason }
    })
}

/// A `ParseError` that doesn't know its file.
struct Fault {
    line: usize,
    document: usize,
    reason: String,
}

fn json(text: &str, visit: &mut dyn FnMut(Document)) -> Result<(), Fault> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (mut number, mut line, mut counted) = (0, 1, 0);
    loop {
        let start = text.len() - text[values.byte_offset()..].trim_start().len();
        let Some(value) = values.next() else { return Ok(()) };
        line += text[counted..start].matches('\n').count();
        (number, counted) = (number + 1, start);
        let value = value.map_err(|error| Fault {
            line: error.line().max(1),
            document: number,
            reason: error.to_string(),
        })?;
        flatten(Document { number, line, value }, visit)?;
    }
}

fn yaml(text: &str, visit: &mut dyn FnMut(Document)) -> Result<(), Fault> {
    let written = split(text).into_iter().filter(|(_, part)| !is_blank(part));
    for (number, (line, part)) in (1..).zip(written) {
        // Usually one, but `...` may separate more, and `null` is none.
        let values: Vec<Value> = serde_saphyr::from_multiple_with_options(part, options())
            .map_err(|error| fault(&error, number, line))?;
        for value in values {
            flatten(Document { number, line, value }, visit)?;
        }
    }
    Ok(())
}

fn fault(error: &serde_saphyr::Error, document: usize, start: usize) -> Fault {
    let error = error.without_snippet();
    let line = error.location().map_or(0, |location| location.line().saturating_sub(1));
    Fault {
        line: start + usize::try_from(line).unwrap_or(0),
        document,
        reason: serde_saphyr::UserMessageFormatter.format_message(error).into_owned(),
    }
}

/// The size of a file is bounded, so its parts need no bounds of their own; what aliases repeat does.
fn options() -> serde_saphyr::Options {
    let bytes = usize::try_from(MANIFEST_BYTES_MAX).unwrap_or(usize::MAX);
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: bytes,
            max_nodes: bytes,
            max_total_scalar_bytes: bytes,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
        },
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

/// Cuts a file where a line starts with `---`: nothing in YAML, not even a block of text, may contain such
/// a line. Each part comes with the line where it starts.
fn split(text: &str) -> Vec<(usize, &str)> {
    let (mut parts, mut start, mut start_line, mut at) = (Vec::new(), 0, 1, 0);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let marker = line.strip_prefix("---");
        if marker.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            parts.push((start_line, &text[start..at]));
            (start, start_line) = (at, number);
        }
        at += line.len();
    }
    parts.push((start_line, &text[start..]));
    parts
}

/// Does a part hold nothing but comments, directives and markers?
fn is_blank(part: &str) -> bool {
    part.lines().all(|line| {
        let content = line.strip_prefix("---").unwrap_or(line).trim();
        content.is_empty() || content == "..." || content.starts_with('#') || line.starts_with('%')
    })
}

/// Visits an object, or the items of a list. The items of a typed list, such as a PodList, may leave out what
/// kind they are.
fn flatten(document: Document, visit: &mut dyn FnMut(Document)) -> Result<(), Fault> {
    let Document { number, line, mut value } = document;
    let fault = |reason: &str| Fault { line, document: number, reason: reason.to_owned() };
    let Value::Object(object) = &mut value else {
        return Err(fault("not a Kubernetes object, which is a mapping"));
    };
    let text = |object: &Map<String, Value>, field: &str| {
        object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let kind =
        text(object, "kind").ok_or_else(|| fault("not a Kubernetes object: kind is missing"))?;
    let version = text(object, "apiVersion")
        .ok_or_else(|| fault("not a Kubernetes object: apiVersion is missing"))?;
    let list = kind.strip_suffix("List").filter(|_| object.contains_key("items"));
    let items = match (list, object.get_mut("items").map(Value::take)) {
        (Some(item_kind), Some(items)) => Some((item_kind, items)),
        _ => None,
    };
    let Some((item_kind, items)) = items else {
        visit(Document { number, line, value });
        return Ok(());
    };
    let items = match items {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        _ => return Err(fault("the items of a list are no sequence")),
    };
    for mut item in items {
        if let Value::Object(item) = &mut item
            && !item_kind.is_empty()
        {
            item.entry("kind").or_insert_with(|| item_kind.into());
            item.entry("apiVersion").or_insert_with(|| version.as_str().into());
        }
        flatten(Document { number, line, value: item }, visit)?;
    }
    Ok(())
}
