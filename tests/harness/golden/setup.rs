//! The settings of a case, as options of our server.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use model::{EndpointsFrom, PortSet};
use serde_json::Value;
use spillway::Options;

/// What a server is told besides its folder.
pub struct Setup {
    settings: resolve::Settings,
    http2_params: Option<serve::Http2ClientParams>,
    /// Which objects say where endpoints are.
    pub endpoints: EndpointsFrom,
}

impl Setup {
    /// What all cases were run with, save for what a case says.
    pub fn read(said: &BTreeMap<String, Value>) -> Result<Setup> {
        let opaque = text(said, "default-opaque-ports", "25,443,587,3306,5432,11211")?;
        let http2 = text(said, "http2-params", "")?;
        let http2_params = match http2.as_str() {
            "" => None,
            json => Some(serve::parse_http2_params(json)?),
        };
        let slices = flag(said, "endpoint-slices", true)?;
        let settings = resolve::Settings {
            cluster_domain: text(said, "cluster-domain", "k.test")?,
            trust_domain: match text(said, "trust-domain", "id.test")?.as_str() {
                // What the program makes of an empty flag.
                "" => "cluster.local".to_owned(),
                given => given.to_owned(),
            },
            controller_namespace: text(said, "controller-namespace", "mesh-sys")?,
            transport_header: text(said, "transport-mode", "transparent")? == "transport-header",
            h2_upgrade: flag(said, "h2-upgrade", true)?,
            ipv6: flag(said, "ipv6", slices)?,
            // Items that are no ports are skipped, as the original does.
            default_opaque: PortSet::parse(&opaque, |_| None).0,
            zone_weights: flag(said, "zone-weights", false)?,
            http2: http2_params.is_some(),
        };
        let endpoints = if slices { EndpointsFrom::Slices } else { EndpointsFrom::Endpoints };
        Ok(Setup { settings, http2_params, endpoints })
    }

    /// Where the Secrets are that declare links.
    pub fn controller_namespace(&self) -> &str {
        &self.settings.controller_namespace
    }

    /// Tells a server.
    pub fn put_into(&self, options: &mut Options) {
        options.settings = self.settings.clone();
        options.http2_params = self.http2_params;
        options.endpoints = self.endpoints;
        // What a stream says of each step is compared, however fast they come.
        options.coalesce_max = std::time::Duration::ZERO;
    }
}

fn text(said: &BTreeMap<String, Value>, name: &str, usual: &str) -> Result<String> {
    match said.get(name) {
        None => Ok(usual.to_owned()),
        Some(value) => Ok(value.as_str().with_context(|| format!("{name}: {value}"))?.to_owned()),
    }
}

fn flag(said: &BTreeMap<String, Value>, name: &str, usual: bool) -> Result<bool> {
    match said.get(name) {
        None => Ok(usual),
        Some(value) => value.as_bool().with_context(|| format!("{name}: {value}")),
    }
}
