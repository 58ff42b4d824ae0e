//! Who owns an address: changed by the Service, pod or ExternalWorkload that does, and by nothing else. And which slices
//! have endpoints of a hostname.

use std::collections::BTreeSet;

use model::{Kind, ObjectName, Source};

use crate::key::{self, NAME_WHOLE, Named, Owner, SliceId};
use crate::record::v3;
use crate::write::Work;
use crate::{Error, WakeKey};

/// Keys of addresses, in their order.
pub(crate) type Keys = BTreeSet<Vec<u8>>;

impl Work<'_> {
    /// The addresses that a workload owns, if it is there.
    pub(crate) fn owned(
        &mut self,
        source: Source,
        name: &ObjectName,
        workload: Option<&v3::Workload>,
    ) -> Result<Keys, Error> {
        let Some(workload) = workload else { return Ok(Keys::new()) };
        let joined = self.joined(workload.template)?;
        Ok(of_workload(source, name, workload, &joined.name_prefix, &joined.host_ports))
    }

    /// A workload is another one now. Whoever asks for one of its addresses may depend on it, though it owns none.
    pub(crate) fn workload_moved(
        &mut self,
        source: Source,
        (before, owned_before): (Option<&v3::Workload>, &Keys),
        (now, owned_now): (Option<&v3::Workload>, &Keys),
    ) -> Result<(), Error> {
        if before == now {
            return Ok(());
        }
        for workload in [before, now].into_iter().flatten() {
            for ip in workload.ips.iter().chain(&workload.host_ips) {
                self.touched.insert(WakeKey::address(source.cluster, (*ip).into()));
            }
        }
        self.own(owned_before, owned_now)
    }

    /// A Service has other ClusterIPs now.
    pub(crate) fn service_moved(
        &mut self,
        source: Source,
        name: &ObjectName,
        before: Option<&v3::Service>,
        now: Option<&v3::Service>,
    ) -> Result<(), Error> {
        let (before, now) = (of_service(source, name, before), of_service(source, name, now));
        for key in before.symmetric_difference(&now) {
            if let Some(ip) = key::KeyReader(key::rest(key, 2)).ip() {
                self.touched.insert(WakeKey::address(source.cluster, ip));
            }
        }
        self.own(&before, &now)
    }

    fn own(&mut self, before: &Keys, now: &Keys) -> Result<(), Error> {
        self.tables.addresses.exchange(before, now)
    }

    /// A slice has endpoints of other hostnames now, or is of another Service.
    pub(crate) fn instances_changed(
        &mut self,
        id: SliceId,
        before: Option<&v3::Slice>,
        now: Option<&v3::Slice>,
    ) -> Result<(), Error> {
        let (before, now) = (instances(id, before), instances(id, now));
        self.tables.instances.exchange(&before, &now)
    }
}

/// The addresses that a workload owns, whose template says this much. A pod that is over or about to be owns none: its
/// address may be another's.
pub(crate) fn of_workload(
    source: Source,
    name: &ObjectName,
    workload: &v3::Workload,
    name_prefix: &str,
    host_ports: &[u16],
) -> Keys {
    let mut owned = Keys::new();
    if workload.phase() == v3::Workload::FINISHED || workload.is_deleting() {
        return owned;
    }
    let text = match name.name().strip_prefix(name_prefix) {
        Some(suffix) => suffix.as_bytes().to_vec(),
        None => [&[NAME_WHOLE], name.name().as_bytes()].concat(),
    };
    let named = || Named { template: workload.template, name: &text };
    let write = |owner: Owner<'_>, ip: &v3::Ip| owner.write(source.cluster, (*ip).into());
    if source.kind == Kind::ExternalWorkload {
        return workload.ips.iter().map(|ip| write(Owner::External(named()), ip)).collect();
    }
    if !workload.is_on_host_network() {
        owned.extend(workload.ips.iter().map(|ip| write(Owner::Pod(named()), ip)));
    }
    for ip in &workload.host_ips {
        owned.extend(host_ports.iter().map(|port| write(Owner::HostPort(*port, named()), ip)));
    }
    owned
}

/// The addresses that a Service owns.
pub(crate) fn of_service(source: Source, name: &ObjectName, service: Option<&v3::Service>) -> Keys {
    let ips = service.map(|it| it.cluster_ips.as_slice()).unwrap_or_default();
    let owner = Owner::Service { namespace: name.namespace(), name: name.name() };
    ips.iter().map(|ip| owner.write(source.cluster, (*ip).into())).collect()
}

/// The keys of instances that a slice has.
pub(crate) fn instances(id: SliceId, slice: Option<&v3::Slice>) -> BTreeSet<Vec<u8>> {
    let Some((slice, service)) = slice.and_then(|it| Some((it, it.service?))) else {
        return BTreeSet::new();
    };
    let hostnames = slice.endpoints.iter().filter_map(|it| it.hostname.as_deref());
    hostnames.map(|hostname| key::instance(service, hostname, id)).collect()
}
