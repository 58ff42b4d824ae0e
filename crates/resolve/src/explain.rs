//! Why a claim is or isn't an address of a view: what [`Lens::project`] decides, in words.

use model::{Claim, PortKey};

use crate::lens::{Filter, Lens};
use crate::render::Address;

/// What keeps a claim out of a view. The first in this order that applies is the one that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// There is no Service.
    NoService,
    /// The Service is too large, and it is in the part of other clients.
    Bucket,
    /// Another hostname is asked for.
    Hostname,
    /// The slice doesn't have the port.
    Port,
    /// It is a pod's IPv6 address, and IPv6 is off.
    Ipv6Off,
    /// Another slice says the same of the same target, and comes first.
    Outranked,
    /// It is for other zones or nodes than the client's.
    Elsewhere,
    /// The target is served at its address of the other family.
    OtherFamily,
    /// Its proxy can't be reached as it should be.
    ProxyUnknown,
    /// Another target has the same address and port, of which a client can be told one.
    Shared,
}

impl Exclusion {
    /// The section of the specification that says so.
    pub fn rule(self) -> &'static str {
        match self {
            Exclusion::NoService => "spec §1.5",
            Exclusion::Bucket => "--oversize=subset",
            Exclusion::Port => "spec §2.3",
            Exclusion::Outranked => "spec §2.4",
            Exclusion::Hostname
            | Exclusion::Ipv6Off
            | Exclusion::Elsewhere
            | Exclusion::OtherFamily => "spec §2.5",
            Exclusion::ProxyUnknown => "spec §2.9.3",
            Exclusion::Shared => "spec Q21",
        }
    }
}

impl Lens {
    /// For each claim on an ip the address that it is in the view, or what keeps it out.
    pub fn explain<'c>(&'c self, claims: &'c [Claim]) -> Vec<Result<Address<'c>, Exclusion>> {
        let addresses = self.project(claims);
        let explain = |claim: &'c Claim| {
            let key = self.key.as_ref().ok_or(Exclusion::NoService)?;
            let port = self.judge(key, claim, claims)?;
            let address = self.render(claim, port).map_err(|_| Exclusion::ProxyUnknown)?;
            if addresses.contains(&address) { Ok(address) } else { Err(Exclusion::Shared) }
        };
        claims.iter().map(explain).collect()
    }

    /// What the view keeps of a Service's endpoints, such as `port http, hinted to zone a`.
    pub fn keeps(&self) -> String {
        let port = match &self.key {
            None => return "nothing: there is no such Service".to_owned(),
            Some(PortKey::Named(name)) if name.is_empty() => "the port without a name".to_owned(),
            Some(PortKey::Named(name)) => format!("port {name}"),
            Some(PortKey::Numeric(number)) => {
                format!("port {number}, which the Service doesn't have")
            }
        };
        let filter = match &self.filter {
            Filter::All => String::new(),
            Filter::Zone(zone) => format!(", hinted to zone {zone}"),
            Filter::Node(Some(node)) => format!(", pods on node {node}"),
            Filter::Node(None) => ", pods on the client's node, which is not known".to_owned(),
        };
        let hostname =
            self.hostname.as_ref().map_or(String::new(), |name| format!(", hostname {name}"));
        let bucket = self.bucket.map_or(String::new(), |bucket| {
            format!(", subset {} of {}", bucket.index, 1_u64 << bucket.bits)
        });
        format!("{port}{hostname}{filter}{bucket}")
    }

    /// What an exclusion means in this view.
    pub fn words(&self, exclusion: Exclusion) -> String {
        match exclusion {
            Exclusion::NoService => "there is no such Service".to_owned(),
            Exclusion::Bucket => "it is in the subset of other clients".to_owned(),
            Exclusion::Hostname => {
                let hostname = self.hostname.as_deref().unwrap_or_default();
                format!("its hostname is not {hostname}")
            }
            Exclusion::Port => match &self.key {
                Some(PortKey::Named(name)) => format!("its slice has no port named {name:?}"),
                _ => "its slice has no ports".to_owned(),
            },
            Exclusion::Ipv6Off => "it is the IPv6 address of a pod, and IPv6 is off".to_owned(),
            Exclusion::Outranked => {
                "another EndpointSlice names the same target, and comes first".to_owned()
            }
            Exclusion::Elsewhere => match &self.filter {
                Filter::Zone(zone) => format!("its hints are not for zone {zone}"),
                Filter::Node(Some(node)) => format!("it is no pod on node {node}"),
                Filter::Node(None) | Filter::All => {
                    "it has a node, and the client's is not known".to_owned()
                }
            },
            Exclusion::OtherFamily => {
                "its target is served at an address of the other family".to_owned()
            }
            Exclusion::ProxyUnknown => {
                "it is meshed, and the ports of its proxy are not known".to_owned()
            }
            Exclusion::Shared => {
                "another target has the same address and port, and is served".to_owned()
            }
        }
    }
}
