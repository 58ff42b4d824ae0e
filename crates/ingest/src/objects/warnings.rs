//! What to say of an object of which a part was skipped; bounded, however bad the object is.

/// Warnings that are kept of one object. A port list of 64 KiB can have 32,000 bad items.
const WARNINGS_MAX: usize = 8;

/// Bytes of a warning or a reason. A bad value can be as long as the object that it is in.
const WARNING_BYTES_MAX: usize = 256;

/// The warnings of one object.
#[derive(Default)]
pub(super) struct Warnings {
    lines: Vec<String>,
    more: usize,
}

impl Warnings {
    /// Adds one, or counts it if there are enough already.
    pub(super) fn push(&mut self, warning: impl std::fmt::Display) {
        if self.lines.len() < WARNINGS_MAX {
            self.lines.push(shorten(&warning.to_string()));
        } else {
            self.more += 1;
        }
    }

    /// All of them, with the number of those that were not kept.
    pub(super) fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("and {} more like these", self.more));
        }
        self.lines
    }
}

/// The text, cut where it gets too long.
pub(crate) fn shorten(text: &str) -> String {
    let mut end = text.len().min(WARNING_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match end == text.len() {
        true => text.to_owned(),
        false => format!("{}…", &text[..end]),
    }
}
