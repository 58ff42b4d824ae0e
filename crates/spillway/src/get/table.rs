//! How answers look: tables as `linkerd diagnostics endpoints` prints them, and JSON.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::held::{Change, Endpoint, Held};

const NARROW: [&str; 5] = ["NAMESPACE", "IP", "PORT", "POD", "SERVICE"];
const WIDE: [&str; 5] = ["ZONE", "IDENTITY", "HINT", "WEIGHT", "LABELS"];

/// Labels that have a column of their own.
const SHOWN: [&str; 4] = ["namespace", "pod", "service", "zone"];

/// All that is held, as a table.
pub(super) fn text(held: &Held, wide: bool) -> String {
    match (held.endpoints.is_empty(), held.exists) {
        (true, true) => "No endpoints found.\n".to_owned(),
        (true, false) => "No endpoints found: the service does not exist.\n".to_owned(),
        (false, _) => table(header(wide), held.endpoints.values().map(|one| row(one, wide))),
    }
}

/// A change, as one line for each endpoint: `+` came or differs, `-` went.
pub(super) fn change_text(change: &Change, wide: bool) -> String {
    let gone = change.removed.iter().map(|endpoint| ("-", endpoint));
    let come = change.added.iter().map(|endpoint| ("+", endpoint));
    let mut text = String::new();
    for (sign, endpoint) in come.chain(gone) {
        text.push_str(sign);
        text.push(' ');
        text.push_str(row(endpoint, wide).join("  ").trim_end());
        text.push('\n');
    }
    match change.none {
        Some(true) => text.push_str("no endpoints\n"),
        Some(false) => text.push_str("the service does not exist\n"),
        None => {}
    }
    text
}

fn header(wide: bool) -> Vec<String> {
    let columns = NARROW.iter().chain(WIDE.iter().filter(|_| wide));
    columns.map(|name| (*name).to_owned()).collect()
}

fn row(endpoint: &Endpoint, wide: bool) -> Vec<String> {
    let label = |name: &str| endpoint.labels.get(name).filter(|value| !value.is_empty()).cloned();
    let dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let service = match (label("service"), label("namespace")) {
        (Some(service), Some(namespace)) => Some(format!("{service}.{namespace}")),
        (service, _) => service,
    };
    let mut row = vec![
        dash(label("namespace")),
        endpoint.address.ip.to_string(),
        endpoint.address.port.to_string(),
        dash(label("pod").or_else(|| label("external_workload"))),
        dash(service),
    ];
    if wide {
        let labels = endpoint.labels.iter().filter(|(name, _)| !SHOWN.contains(&name.as_str()));
        let labels: Vec<_> = labels.map(|(name, value)| format!("{name}={value}")).collect();
        row.push(dash(label("zone")));
        row.push(dash(endpoint.identity.clone()));
        row.push(dash(hint(endpoint)));
        row.push(endpoint.weight.to_string());
        row.push(labels.join(","));
    }
    row
}

/// `h2`, `opaque`, or `opaque:4143` if the proxy's own port carries it.
fn hint(endpoint: &Endpoint) -> Option<String> {
    Some(match (endpoint.hint?, endpoint.inbound_port) {
        (protocol, Some(port)) => format!("{protocol}:{port}"),
        (protocol, None) => protocol.to_owned(),
    })
}

/// Columns as wide as their widest value, three spaces between, nothing after the last.
fn table(header: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("   ").trim_end());
        text.push('\n');
    }
    text
}

#[derive(serde::Serialize)]
struct AnswerJson<'a> {
    authority: &'a str,
    exists: bool,
    endpoints: Vec<EndpointJson<'a>>,
}

#[derive(serde::Serialize)]
struct ChangeJson<'a> {
    added: Vec<EndpointJson<'a>>,
    removed: Vec<AddressJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exists: Option<bool>,
}

#[derive(serde::Serialize)]
struct AddressJson {
    ip: IpAddr,
    port: u16,
}

#[derive(serde::Serialize)]
struct EndpointJson<'a> {
    namespace: Option<&'a str>,
    ip: IpAddr,
    port: u16,
    pod: Option<&'a str>,
    service: Option<&'a str>,
    weight: u32,
    identity: Option<&'a str>,
    server_name: Option<&'a str>,
    protocol_hint: Option<&'static str>,
    inbound_port: Option<u32>,
    authority_override: Option<&'a str>,
    http2: bool,
    labels: &'a BTreeMap<String, String>,
}

impl<'a> EndpointJson<'a> {
    fn new(endpoint: &'a Endpoint) -> EndpointJson<'a> {
        let label = |name: &str| endpoint.labels.get(name).map(String::as_str);
        EndpointJson {
            namespace: label("namespace"),
            ip: endpoint.address.ip,
            port: endpoint.address.port,
            pod: label("pod"),
            service: label("service"),
            weight: endpoint.weight,
            identity: endpoint.identity.as_deref(),
            server_name: endpoint.server_name.as_deref(),
            protocol_hint: endpoint.hint,
            inbound_port: endpoint.inbound_port,
            authority_override: endpoint.authority_override.as_deref(),
            http2: endpoint.http2,
            labels: &endpoint.labels,
        }
    }
}

/// All that is held, as one JSON object on one line.
pub(super) fn json(authority: &str, held: &Held) -> anyhow::Result<String> {
    line(&AnswerJson {
        authority,
        exists: held.exists,
        endpoints: held.endpoints.values().map(EndpointJson::new).collect(),
    })
}

/// A change, as one JSON object on one line.
pub(super) fn change_json(change: &Change) -> anyhow::Result<String> {
    let address =
        |endpoint: &Endpoint| AddressJson { ip: endpoint.address.ip, port: endpoint.address.port };
    line(&ChangeJson {
        added: change.added.iter().map(EndpointJson::new).collect(),
        removed: change.removed.iter().map(address).collect(),
        exists: change.none,
    })
}

fn line(value: &impl serde::Serialize) -> anyhow::Result<String> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    Ok(line)
}
