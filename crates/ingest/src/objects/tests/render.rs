//! What an object comes to, as a few lines that are quick to read.

use std::fmt::Write as _;

use model::{
    ContainerPort, Object, PortSet, RequestMatch, ResponseMatch, Server, Service, ServiceProfile,
    Slice, Target, Workload,
};

use crate::objects::Observed;

/// The whole object; what is empty or absent has no line.
pub(super) fn observed(observed: &Observed) -> String {
    let mut out = format!("{} @{}\n", observed.key, observed.version.0);
    match &observed.object {
        Object::Service(it) => service(&mut out, it),
        Object::Slice(it) => slice(&mut out, it),
        Object::Subsets(subsets) => subsets.iter().for_each(|it| slice(&mut out, it)),
        Object::Workload(it) => workload(&mut out, it),
        Object::Server(it) => server(&mut out, it),
        Object::Profile(Some(it)) => profile(&mut out, it),
        Object::Profile(None) => flag(&mut out, "nothing that holds", true),
        Object::Link(Ok(it)) => line(&mut out, "link", Some(it)),
        Object::Link(Err(reason)) => line(&mut out, "no link", Some(reason)),
        Object::Node { zone } => line(&mut out, "zone", zone.as_ref()),
        Object::Owned { owner } => {
            line(&mut out, "owner", owner.as_ref().map(|it| (&it.kind, &it.name)));
        }
    }
    for warning in &observed.warnings {
        writeln!(out, "warning: {warning}").unwrap();
    }
    out
}

fn line(out: &mut String, name: &str, value: Option<impl std::fmt::Debug>) {
    if let Some(value) = value {
        writeln!(out, "  {name}: {value:?}").unwrap();
    }
}

fn flag(out: &mut String, name: &str, set: bool) {
    if set {
        writeln!(out, "  {name}").unwrap();
    }
}

fn ranges(ports: &PortSet) -> &[(u16, u16)] {
    ports.ranges()
}

fn service(out: &mut String, service: &Service) {
    for port in &service.ports {
        let protocol = if port.tcp { "tcp" } else { "other" };
        writeln!(out, "  port {:?} {}/{protocol}", port.name, port.port).unwrap();
    }
    flag(out, "external name", service.external_name);
    flag(out, "local traffic", service.local_traffic);
    line(out, "cluster ips", Some(&service.cluster_ips).filter(|it| !it.is_empty()));
    line(out, "opaque", service.opaque.as_ref().map(ranges));
    line(out, "cluster", service.discovery.cluster.as_ref());
    line(out, "service", service.discovery.service.as_ref());
    line(out, "members", service.discovery.members.as_ref());
    line(out, "local member", service.discovery.local_member.as_ref());
}

fn slice(out: &mut String, slice: &Slice) {
    let service = slice.service.as_ref().map_or("nobody".to_owned(), ToString::to_string);
    writeln!(out, "  {:?} of {service}", slice.family).unwrap();
    line(
        out,
        "ports",
        slice.meta.ports.as_ref().map(|ports| {
            ports.iter().map(|port| (port.name.as_str(), port.port)).collect::<Vec<_>>()
        }),
    );
    line(out, "mirror cluster", slice.meta.mirror_cluster.as_ref());
    line(out, "remote service", slice.meta.remote_service.as_ref());
    line(out, "gateway identity", slice.meta.gateway_identity.as_ref());
    for endpoint in &slice.endpoints {
        let target = match &endpoint.target {
            Target::Bare => "bare".to_owned(),
            Target::Pod(name) => format!("pod {name}"),
            Target::ExternalWorkload(name) => format!("workload {name}"),
        };
        write!(out, "  {} {target}", endpoint.ip).unwrap();
        let unready = if endpoint.ready { "" } else { " unready" };
        let hostname = endpoint.hostname.as_ref().map(|it| format!(" hostname {it:?}"));
        let zone = endpoint.zone.as_ref().map(|it| format!(" zone {it:?}"));
        let hints = (!endpoint.hints.is_empty()).then(|| format!(" hints {:?}", endpoint.hints));
        let words = [hostname, zone, hints].into_iter().flatten().collect::<String>();
        writeln!(out, "{unready}{words}").unwrap();
    }
}

fn workload(out: &mut String, workload: &Workload) {
    let template = &workload.template;
    writeln!(out, "  {:?} in {}, {:?}", template.kind, template.namespace, workload.phase).unwrap();
    flag(out, "deleting", workload.deleting);
    flag(out, "host network", workload.host_network);
    line(out, "node", workload.node.as_ref());
    line(out, "ips", Some(&workload.ips).filter(|it| !it.is_empty()));
    line(out, "host ips", Some(&workload.host_ips).filter(|it| !it.is_empty()));
    line(out, "labels", Some(&template.labels).filter(|it| !it.is_empty()));
    line(out, "owner", template.owner.as_ref().map(|it| (&it.kind, &it.name)));
    line(out, "account", Some(&template.service_account).filter(|it| !it.is_empty()));
    for ContainerPort { name, port, host_port } in &template.ports {
        let host_port = host_port.map(|it| format!(" on host {it}")).unwrap_or_default();
        writeln!(out, "  port {name:?} {port}{host_port}").unwrap();
    }
    line(out, "opaque", template.opaque.as_ref().map(ranges));
    line(out, "skip", Some(ranges(&template.skip_inbound)).filter(|it| !it.is_empty()));
    line(out, "proxy", template.proxy.as_ref().map(|it| (it.inbound, it.admin, it.control)));
    line(out, "tls", template.mesh_tls.as_ref().map(|it| (&it.identity, &it.server_name)));
}

fn server(out: &mut String, server: &Server) {
    writeln!(out, "  {:?} opaque: {}", server.port, server.opaque).unwrap();
    for (name, selector) in [("pods", &server.pods), ("workloads", &server.workloads)] {
        line(
            out,
            name,
            selector.as_ref().map(|selector| {
                let requirement = |it: &model::Requirement| {
                    format!("{} {:?} {:?}", it.key, it.operator, it.values)
                };
                selector.requirements.iter().map(requirement).collect::<Vec<_>>()
            }),
        );
    }
}

fn profile(out: &mut String, profile: &ServiceProfile) {
    for route in &profile.routes {
        write!(out, "  route {:?}: {}", route.name, request(&route.condition)).unwrap();
        let retryable = if route.retryable { ", retryable" } else { "" };
        let timeout = Some(route.timeout_ns).filter(|it| *it != 0);
        let timeout = timeout.map(|it| format!(", timeout {it} ns")).unwrap_or_default();
        writeln!(out, "{retryable}{timeout}").unwrap();
        for class in &route.responses {
            let verdict = if class.failure { "failure" } else { "success" };
            writeln!(out, "    {verdict}: {}", response(&class.condition)).unwrap();
        }
    }
    line(
        out,
        "retry budget",
        profile.retry_budget.as_ref().map(|it| (it.ratio.0, it.min_retries_per_second, it.ttl_ns)),
    );
    for it in &profile.dst_overrides {
        writeln!(out, "  override {:?}: {}", it.authority, it.weight).unwrap();
    }
}

fn request(condition: &RequestMatch) -> String {
    let list = |list: &[RequestMatch]| list.iter().map(request).collect::<Vec<_>>().join(", ");
    match condition {
        RequestMatch::All(all) => format!("all[{}]", list(all)),
        RequestMatch::Any(any) => format!("any[{}]", list(any)),
        RequestMatch::Not(not) => format!("not {}", request(not)),
        RequestMatch::Path(regex) => format!("path {regex}"),
        RequestMatch::Method(method) => format!("method {method}"),
    }
}

fn response(condition: &ResponseMatch) -> String {
    let list = |list: &[ResponseMatch]| list.iter().map(response).collect::<Vec<_>>().join(", ");
    match condition {
        ResponseMatch::All(all) => format!("all[{}]", list(all)),
        ResponseMatch::Any(any) => format!("any[{}]", list(any)),
        ResponseMatch::Not(not) => format!("not {}", response(not)),
        ResponseMatch::Status { min, max } => format!("status {min}..{max}"),
    }
}
