//! How large a made-up cluster is, and how it behaves: `services=20,endpoints=50,big=250x1000,churn=10`.

use std::str::FromStr;

use model::limits::SYNTHETIC_ENDPOINTS_MAX;

/// Changes in a second.
const CHURN_MAX: u32 = 100_000;

/// A made-up cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Small Services, `cart-0.shop`, `cart-1.shop`, …
    pub services: u64,
    /// Endpoints of each small Service.
    pub endpoints: u64,
    /// Large Services, `stock-0.depot`, `stock-1.depot`, …
    pub big_services: u64,
    /// Endpoints of each large Service.
    pub big_endpoints: u64,
    /// Zones that the nodes are in.
    pub zones: u64,
    /// Nodes that the pods are on.
    pub nodes: u64,
    /// The pods have proxies.
    pub meshed: bool,
    /// Changes in a second after the listing.
    pub churn: u32,
    /// Failed pods that come after the listing.
    pub flood: u64,
    /// Decides what changes.
    pub seed: u64,
}

impl Spec {
    /// What is not said otherwise: a small, quiet cluster.
    pub const DEFAULT: Spec = Spec {
        services: 20,
        endpoints: 50,
        big_services: 0,
        big_endpoints: 0,
        zones: 3,
        nodes: 100,
        meshed: true,
        churn: 10,
        flood: 0,
        seed: 1,
    };
}

/// What is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Not `name=value`.
    #[error("{item:?} is not name=value; the names are {NAMES}")]
    Item {
        /// The item.
        item: String,
    },
    /// No such name.
    #[error("there is no {name:?} in a synthetic cluster; the names are {NAMES}")]
    Name {
        /// The name.
        name: String,
    },
    /// Not a value of that name.
    #[error("{name}={value} should be {expected}")]
    Value {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// More than there are addresses.
    #[error(
        "{endpoints} endpoints are more than the {SYNTHETIC_ENDPOINTS_MAX} that have an address"
    )]
    TooLarge {
        /// How many there would be.
        endpoints: u128,
    },
}

const NAMES: &str = "services, endpoints, big, zones, nodes, meshed, churn, flood, seed";

impl FromStr for Spec {
    type Err = SpecError;

    /// `name=value`, separated by commas; what isn't said is as in [`Spec::DEFAULT`]. `big` is
    /// `SERVICESxENDPOINTS`.
    fn from_str(text: &str) -> Result<Spec, SpecError> {
        let mut spec = Spec::DEFAULT;
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) =
                item.split_once('=').ok_or_else(|| SpecError::Item { item: item.to_owned() })?;
            spec.set(name.trim(), value.trim())?;
        }
        let all = u128::from(spec.services) * u128::from(spec.endpoints)
            + u128::from(spec.big_services) * u128::from(spec.big_endpoints);
        if all > u128::from(SYNTHETIC_ENDPOINTS_MAX) {
            return Err(SpecError::TooLarge { endpoints: all });
        }
        Ok(spec)
    }
}

impl Spec {
    fn set(&mut self, name: &str, value: &str) -> Result<(), SpecError> {
        let wrong = |expected| SpecError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            expected,
        };
        let number = || value.parse::<u64>().map_err(|_| wrong("a number"));
        match name {
            "services" => self.services = number()?,
            "endpoints" => self.endpoints = number()?,
            "big" => {
                let sides = value.split_once('x').and_then(|(services, endpoints)| {
                    Some((services.parse().ok()?, endpoints.parse().ok()?))
                });
                (self.big_services, self.big_endpoints) =
                    sides.ok_or_else(|| wrong("two numbers, as in 250x1000"))?;
            }
            "zones" => self.zones = number()?.max(1),
            "nodes" => self.nodes = number()?.max(1),
            "meshed" => self.meshed = value.parse().map_err(|_| wrong("true or false"))?,
            "churn" => {
                let rate = value.strip_suffix("/s").unwrap_or(value).parse().ok();
                self.churn = rate
                    .filter(|rate| *rate <= CHURN_MAX)
                    .ok_or_else(|| wrong("a number of changes a second, up to 100000"))?;
            }
            "flood" => self.flood = number()?,
            "seed" => self.seed = number()?,
            _ => return Err(SpecError::Name { name: name.to_owned() }),
        }
        Ok(())
    }
}
