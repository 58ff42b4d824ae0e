//! Services of other clusters behind a gateway: what slices say of them, as labels.

use std::collections::BTreeSet;

use model::{PortKey, Signature, SliceMeta};

/// Where the labels go that name the mirrored Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MirrorLabels {
    /// To the set: all slices of the port agree.
    OnSet,
    /// To each address those of its slice.
    OnAddresses,
}

/// What a slice says of the cluster and Service that it mirrors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mirror<'s> {
    cluster: &'s str,
    service: Option<(&'s str, &'s str)>,
}

impl<'s> Mirror<'s> {
    /// `None` if the slice is no mirror's.
    pub(crate) fn of(slice: &'s SliceMeta) -> Option<Mirror<'s>> {
        let cluster = slice.mirror_cluster.as_deref()?;
        let service = slice.remote_service.as_deref().and_then(|name| {
            let mut parts = name.split('.');
            Some((parts.next()?, parts.next()?))
        });
        Some(Mirror { cluster, service })
    }

    /// The labels that say so (spec §2.9.1).
    pub(crate) fn labels(self) -> impl Iterator<Item = (&'static str, &'s str)> {
        let (name, namespace) = self.service.unzip();
        let labels = [
            ("target_cluster", Some(self.cluster)),
            ("target_service", name),
            ("target_service_namespace", namespace),
        ];
        labels.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }
}

/// What the slices that have the port mirror; more than one element if they disagree.
pub(crate) fn mirrors<'s>(
    key: &PortKey,
    signatures: impl Iterator<Item = &'s Signature>,
) -> BTreeSet<Option<Mirror<'s>>> {
    let items = signatures.flat_map(|signature| &signature.0);
    let with_port = items.filter(|item| item.slice.port(key).is_some());
    with_port.map(|item| Mirror::of(&item.slice)).collect()
}
