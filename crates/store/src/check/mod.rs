//! Do the indexes, the rows and the counts say what the records say?
//!
//! It runs in a transaction that is never committed, one record after the other, so it needs little memory; what
//! it keeps are counts for each Service, and the references of a window of interned values.

mod objects;
mod references;
mod rows;
mod sizes;

use std::fmt;

use model::Time;

use crate::Error;
use crate::write::Writer;

/// Something in the file that contradicts something else in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The table where it was seen.
    pub table: &'static str,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.table, self.what)
    }
}

/// Faults that are described; where there are more, the file is to be rebuilt anyway.
const FAULTS_MAX: usize = 100;

/// What has been found so far.
#[derive(Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, table: &'static str, what: impl fmt::Display) {
        if self.0.len() < FAULTS_MAX {
            self.0.push(Fault { table, what: what.to_string() });
        }
    }

    /// Two numbers that must be equal.
    fn equal(&mut self, table: &'static str, what: &str, is: u64, should: u64) {
        if is != should {
            self.add(table, format_args!("{what}: {is}, but there are {should}"));
        }
    }
}

impl Writer {
    /// Compares everything with everything that it depends on, and gives the contradictions, the first hundred of
    /// them. Reads the whole file; writes nothing.
    pub fn check(&mut self) -> Result<Vec<Fault>, Error> {
        self.look(Time::default(), |work| {
            let mut faults = Faults::default();
            work.check_objects(&mut faults)?;
            work.check_rows(&mut faults)?;
            work.check_references(&mut faults)?;
            work.check_undo(&mut faults)?;
            Ok(faults.0)
        })
    }
}

#[cfg(test)]
mod tests;
