//! Every table on one page. Numbers in names are versions: a name once used is never used for anything else.
//!
//! Integers in keys are big-endian, so that bytes sort as values do; the layouts are in [`crate::key`].
//! Values are records of [`crate::record`], behind a version byte, unless it says otherwise.

use std::cell::OnceCell;

use redb::{ReadOnlyTable, ReadTransaction, TableDefinition, WriteTransaction};

use crate::table::{Rows, Size};

/// The number of this file format. A file of a higher one is refused, one of a lower one is rebuilt.
pub(crate) const FORMAT: u32 = 5;

type Bytes = &'static [u8];

macro_rules! tables {
    ($($(#[$doc:meta])* $field:ident = $name:literal;)*) => {
        /// All tables, open for writing in one transaction.
        pub(crate) struct Tables<'txn> { $($(#[$doc])* pub(crate) $field: Rows<'txn>,)* }

        /// All tables, for reading at one revision. Each is opened when it is first read: an answer needs few.
        pub(crate) struct ReadTables {
            txn: ReadTransaction,
            $($field: OnceCell<ReadOnlyTable<Bytes, Bytes>>,)*
        }

        impl<'txn> Tables<'txn> {
            /// All tables; what is written to them is written to those of `copy` as well.
            pub(crate) fn open(
                txn: &'txn WriteTransaction,
                copy: Option<&'txn WriteTransaction>,
            ) -> Result<Tables<'txn>, redb::TableError> {
                let open = |name| {
                    let name = TableDefinition::new(name);
                    let copy = copy.map(|copy| copy.open_table(name)).transpose()?;
                    Ok::<_, redb::TableError>(Rows::new(txn.open_table(name)?, copy))
                };
                Ok(Tables { $($field: open($name)?,)* })
            }

            /// Writes what is pending in all tables.
            pub(crate) fn flush(&mut self) -> Result<(), crate::Error> {
                $(self.$field.flush()?;)*
                Ok(())
            }

            /// How much larger all tables but `meta` are than when the transaction began.
            pub(crate) fn grown(&self) -> Size {
                let mut grown = Size::default();
                $(if $name != "meta.1" { grown += self.$field.grown(); })*
                grown
            }

            /// Why the copy is of no use any more, if it isn't.
            pub(crate) fn take_copy_failure(&mut self) -> Option<crate::Error> {
                let mut failure = None;
                $(failure = failure.or(self.$field.take_copy_failure());)*
                failure
            }
        }

        /// The names of all tables.
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        impl ReadTables {
            pub(crate) fn new(txn: ReadTransaction) -> ReadTables {
                ReadTables { txn, $($field: OnceCell::new(),)* }
            }

            /// The transaction, for what reads all tables alike.
            pub(crate) fn txn(&self) -> &ReadTransaction {
                &self.txn
            }

            $($(#[$doc])*
            pub(crate) fn $field(&self) -> Result<&ReadOnlyTable<Bytes, Bytes>, crate::Error> {
                if let Some(opened) = self.$field.get() {
                    return Ok(opened);
                }
                let opened = self.txn.open_table(TableDefinition::<Bytes, Bytes>::new($name))?;
                Ok(self.$field.get_or_init(|| opened))
            })*

            /// Rows and bytes of each table.
            pub(crate) fn measured(&self) -> Result<Vec<crate::TableStats>, crate::Error> {
                Ok(vec![$(crate::stats::table_stats($name, self.$field()?)?,)*])
            }
        }
    };
}

tables! {
    /// name → what is true of the whole file: format, revision, counters (`record::Meta`).
    meta = "meta.1";
    /// cluster, kind → where the source's watch goes on. Written with the data that it speaks of.
    checkpoints = "checkpoints.1";
    /// cluster, kind, namespace, name → the object, or a stub if others only name it.
    objects = "objects.1";
    /// service → its key in `objects`.
    service_keys = "service_keys.1";
    /// slice → the EndpointSlice's endpoints: what it says, whether or not anything stands behind it.
    slices = "slices.1";
    /// template, workload, slice → nothing: the slice has an endpoint for the workload. The template is that of
    /// the workload now, 0 if it isn't there; so one range has all rows that depend on a template.
    claims = "claims.2";
    /// slice, service, workload, ip → nothing: the claim competes with another one, so the slice's version matters.
    contested = "contested.2";
    /// service, ip, slice, workload → the row that a client may see, already joined.
    endpoints = "endpoints.1";
    /// service, hostname, ip, slice, workload → nothing.
    hostnames = "hostnames.1";
    /// cluster, ip, whose → nothing: a Service, pod or ExternalWorkload that owns the address.
    addresses = "addresses.1";
    /// service, hostname, slice → nothing: the slice has an endpoint of that hostname, whether or not it is ready.
    instances = "instances.1";
    /// service, signature → how many targets have it (8 bytes).
    contexts = "contexts.1";
    /// service, revision, what → what was there before that revision.
    undo = "undo.1";
    /// revision → the services that it touched, and how many undo entries it made.
    revisions = "revisions.1";
    /// id → what many records share, counted.
    interned = "interned.1";
    /// hash, id → nothing.
    interned_ids = "interned_ids.1";
    /// revision, id → nothing: interned, but with no record that refers to it since that revision.
    freed = "freed.1";
    /// revision, object key → nothing: a Service that neither exists nor is named by a slice, since then.
    vacant = "vacant.1";
    /// cluster, namespace, owner kind, owner name, template → the metadata that it joins to (4 bytes).
    templates = "templates.1";
    /// cluster, namespace → a part of a linked cluster that is stored: its number, and which cluster it is.
    parts = "parts.1";
    /// number → the part that has it or had it; a number that it had is not given again while anything is left.
    part_ids = "part_ids.1";
    /// cluster, namespace, name → nothing: a local Service that is answered with endpoints from there.
    remotes = "remotes.1";
    /// service, workload or bare address → the slices that tell of it (4 bytes each): it has no rows yet.
    waiting = "waiting.1";
    /// service; cluster and namespace; or name of a cluster → how much there is of it.
    sizes = "sizes.1";
}
