//! What was logged already, so that a bad object is named once and not with each of its changes.

use std::collections::BTreeSet;

use model::ObjectName;

use super::limits::NOTED_NAMES_MAX;

/// Names that were logged. Bounded: a flood of bad objects fills it, and the rest is only counted.
#[derive(Debug, Default)]
pub(super) struct Noted {
    names: BTreeSet<ObjectName>,
    full: bool,
}

/// What to log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// This name is new.
    New,
    /// This name is new, and the last one that there is room for.
    Last,
    /// Nothing.
    Known,
}

impl Noted {
    /// Something is bad about an object.
    pub(super) fn bad(&mut self, name: &ObjectName) -> Note {
        if self.names.contains(name) || self.full {
            return Note::Known;
        }
        self.names.insert(name.clone());
        self.full = self.names.len() >= NOTED_NAMES_MAX;
        if self.full { Note::Last } else { Note::New }
    }

    /// The object is good, or gone: if it gets bad again, that is news.
    pub(super) fn good(&mut self, name: &ObjectName) {
        // Once full it stays so: names that come and go would otherwise log without end.
        if !self.names.is_empty() && !self.full {
            self.names.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_noted_once_and_up_to_a_limit() {
        let name = |i: usize| ObjectName::new("n", format!("o{i}")).unwrap();
        let mut noted = Noted::default();
        assert_eq!([noted.bad(&name(0)), noted.bad(&name(0))], [Note::New, Note::Known]);
        noted.good(&name(0));
        assert_eq!(noted.bad(&name(0)), Note::New);
        for i in 1..NOTED_NAMES_MAX - 1 {
            assert_eq!(noted.bad(&name(i)), Note::New);
        }
        assert_eq!(noted.bad(&name(NOTED_NAMES_MAX)), Note::Last);
        assert_eq!(noted.bad(&name(NOTED_NAMES_MAX + 1)), Note::Known);
    }
}
