//! Port numbers and port lists.

use std::collections::BTreeMap;

use model::PortSet;

use super::warnings::Warnings;

/// The number as a port, if it can be one.
pub(super) fn number(number: Option<i64>) -> Option<u16> {
    u16::try_from(number?).ok()
}

/// Parses a port list of an annotation. A later port of the same name wins.
pub(super) fn list<'a>(
    annotation: &str,
    text: Option<&str>,
    named: impl Iterator<Item = (&'a str, u16)>,
    warnings: &mut Warnings,
) -> Option<PortSet> {
    let text = text?;
    let named: BTreeMap<&str, u16> = named.collect();
    let (ports, errors) = PortSet::parse(text, |name| named.get(name).copied());
    for error in errors {
        warnings.push(format_args!("{annotation}: {error}"));
    }
    Some(ports)
}
