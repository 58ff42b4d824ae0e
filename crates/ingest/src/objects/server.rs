//! Servers, which can make a port opaque.

use model::{Object, Server, ServerPort};
use serde::Deserialize;

use super::selector::{self, LabelSelector};
use super::warnings::Warnings;
use super::{Decoded, Document, nullable, ports};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    pod_selector: Option<LabelSelector>,
    external_workload_selector: Option<LabelSelector>,
    #[serde(deserialize_with = "nullable::default")]
    port: IntOrString,
    #[serde(deserialize_with = "nullable::default")]
    proxy_protocol: String,
}

/// A number or a name; `"80"` is a name.
#[derive(Deserialize)]
#[serde(untagged, expecting = "port is neither a number nor a name")]
enum IntOrString {
    Int(i64),
    String(String),
}

impl Default for IntOrString {
    fn default() -> IntOrString {
        IntOrString::Int(0)
    }
}

/// Reads a Server.
pub(super) fn decode(json: &str, warnings: &mut Warnings) -> Result<Decoded, serde_json::Error> {
    let Document::<Spec> { metadata, spec, .. } = serde_json::from_str(json)?;
    let mut selector = |name, written: Option<LabelSelector>| match selector::check(written?) {
        Ok(selector) => Some(selector),
        Err(error) => {
            warnings.push(format_args!("{name} selects nothing: {error}"));
            None
        }
    };
    let pods = selector("podSelector", spec.pod_selector);
    let workloads = selector("externalWorkloadSelector", spec.external_workload_selector);
    let port = match spec.port {
        IntOrString::String(name) => ServerPort::Name(name),
        // No address has port 0, so a number that no port can have matches nothing.
        IntOrString::Int(number) => {
            ServerPort::Number(ports::number(Some(number)).unwrap_or_else(|| {
                warnings.push(format_args!("port {number} is none that a workload can have"));
                0
            }))
        }
    };
    let opaque = spec.proxy_protocol == "opaque";
    let server = Server { opaque, pods, workloads, port };
    Ok(Decoded { meta: metadata, object: Object::Server(server) })
}
