//! Who owns an object: only the kind and name reach a label (spec §2.9.2).

/// An owner reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerRef {
    /// `kind`, as written.
    pub kind: String,
    /// `name`.
    pub name: String,
}
