//! Parts of an object that are looked at in a second step, so that what is wrong with them is theirs alone.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fault::Fault;

/// A part as it is written; `None` if it is absent or `null`.
pub(super) type Written<'a> = Option<&'a RawValue>;

/// The fields of an object that must be there. A list isn't one, though serde would take it for its fields in order.
pub(super) fn fields<'a, T: Deserialize<'a>>(written: Written<'a>) -> Result<T, Fault> {
    let written = written.ok_or(Fault::Null)?;
    match written.get().starts_with('{') {
        true => value(written),
        false => Err(Fault::NoObject),
    }
}

/// A value of any type.
pub(super) fn value<'a, T: Deserialize<'a>>(written: &'a RawValue) -> Result<T, Fault> {
    serde_json::from_str(written.get()).map_err(|error| {
        // The place is counted from where the part begins, which nobody knows who reads it.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let reason = error.to_string();
        Fault::Type { reason: reason.strip_suffix(&place).unwrap_or(&reason).to_owned() }
    })
}
