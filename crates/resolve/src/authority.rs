//! What a request asks for: `web.shop.svc.cluster.local:80` (spec §1.3).

use std::net::IpAddr;

use model::ObjectName;

/// The port of an authority that names none.
const PORT_DEFAULT: u16 = 80;

/// A Service, or an instance of it, and the port that a client wants there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The Service.
    pub service: ObjectName,
    /// The hostname that its endpoints must have, if any.
    pub instance: Option<String>,
    /// The requested port.
    pub port: u16,
}

/// Why an authority is none that Get resolves. All are final: asking again won't help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// It isn't `host` or `host:port`.
    #[error("Invalid authority: {path}")]
    Split {
        /// The authority as given.
        path: String,
    },
    /// Its host is an IP address.
    #[error("IP queries not supported by Get API: host={host}")]
    Ip {
        /// The host as given.
        host: String,
    },
    /// Its host is no Service name of this cluster.
    #[error("Invalid authority: {path}")]
    Name {
        /// The authority as given.
        path: String,
    },
}

/// Reads an authority. The name must be whole: there is no search path, and no trailing dot.
pub fn authority(path: &str, cluster_domain: &str) -> Result<Authority, AuthorityError> {
    let (host, port) =
        split(path).ok_or_else(|| AuthorityError::Split { path: path.to_owned() })?;
    if host.parse::<IpAddr>().is_ok() {
        return Err(AuthorityError::Ip { host: host.to_owned() });
    }
    let (service, instance) = service_name(host, cluster_domain)
        .ok_or_else(|| AuthorityError::Name { path: path.to_owned() })?;
    Ok(Authority { service, instance, port })
}

/// What a client dials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dialed {
    /// A Service, by its name as it was sent.
    Service {
        /// The Service.
        service: ObjectName,
        /// The name.
        fqn: String,
    },
    /// An endpoint of a Service, by its hostname.
    Instance {
        /// The Service.
        service: ObjectName,
        /// The hostname.
        hostname: String,
    },
    /// An address. One that is IPv4 mapped into IPv6 is the IPv4 address.
    Ip(IpAddr),
}

/// Why an authority is none that GetProfile resolves. Both are final.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialedError {
    /// It isn't `host` or `host:port`.
    #[error("invalid authority: {path:?}: \"not host or host:port\"")]
    Split {
        /// The authority as given.
        path: String,
    },
    /// Its host is neither an address nor a Service name of this cluster.
    #[error(
        "invalid service {host:?}: \"not an IP address, and not [hostname.]service.namespace.svc.{domain}\""
    )]
    Name {
        /// The host as given.
        host: String,
        /// The cluster's domain.
        domain: String,
    },
}

/// Reads what a client dials, and the port.
pub fn dialed(path: &str, cluster_domain: &str) -> Result<(Dialed, u16), DialedError> {
    let (host, port) = split(path).ok_or_else(|| DialedError::Split { path: path.to_owned() })?;
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok((Dialed::Ip(ip.to_canonical()), port));
    }
    let name = || DialedError::Name { host: host.to_owned(), domain: cluster_domain.to_owned() };
    let (service, instance) = service_name(host, cluster_domain).ok_or_else(name)?;
    let dialed = match instance {
        Some(hostname) => Dialed::Instance { service, hostname },
        None => Dialed::Service { service, fqn: host.to_owned() },
    };
    Ok((dialed, port))
}

/// A Service's whole name.
pub fn fqn(service: &ObjectName, cluster_domain: &str) -> String {
    format!("{}.{}.svc.{cluster_domain}", service.name(), service.namespace())
}

/// An authority with a port: its own, or else this one (spec §3.3.5). What has none, and a colon, gets brackets.
pub fn with_port(authority: &str, port: u16) -> String {
    if is_split(authority) {
        return authority.to_owned();
    }
    match authority.contains(':') {
        true => format!("[{authority}]:{port}"),
        false => format!("{authority}:{port}"),
    }
}

/// Does it split into a host and a port, be that what it may?
fn is_split(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(before, _)| host(before).is_some())
}

/// Splits `host:port` as Go's `net.SplitHostPort` does; without any colon, all of it is the host.
fn split(path: &str) -> Option<(&str, u16)> {
    let Some((before, port)) = path.rsplit_once(':') else {
        return Some((path, PORT_DEFAULT));
    };
    Some((host(before)?, parse_port(port)?))
}

/// The host of what comes before the last colon; one with colons must be in brackets, which are taken off.
fn host(before: &str) -> Option<&str> {
    let host = match before.strip_prefix('[') {
        Some(bracketed) => bracketed.strip_suffix(']')?,
        None if before.contains(':') => return None,
        None => before,
    };
    (!host.contains(['[', ']'])).then_some(host)
}

/// A port as Go's `Atoi` reads it: a sign and leading zeros are fine. 0 is no port.
fn parse_port(port: &str) -> Option<u16> {
    // Rust takes a plus sign as well, and refuses a minus sign for unsigned numbers.
    port.parse().ok().filter(|port| *port != 0)
}

/// Splits `[instance.]service.namespace.svc.<cluster domain>`. Labels may be empty: they then find nothing,
/// and an empty instance is none at all.
fn service_name(host: &str, cluster_domain: &str) -> Option<(ObjectName, Option<String>)> {
    let name = host.strip_suffix(cluster_domain)?.strip_suffix(".svc.")?;
    let (instance, service, namespace) = match *name.split('.').collect::<Vec<_>>() {
        [service, namespace] => ("", service, namespace),
        [instance, service, namespace] => (instance, service, namespace),
        _ => return None,
    };
    let instance = (!instance.is_empty()).then(|| instance.to_owned());
    Some((ObjectName::new(namespace, service).ok()?, instance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> String {
        match authority(path, "k.test") {
            Ok(Authority { service, instance, port }) => {
                let instance = instance.map(|it| format!("{it} of ")).unwrap_or_default();
                format!("{instance}{service} port {port}")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_of_spec_a07_and_odd_spellings() {
        assert_eq!(read("web.shop.svc.k.test"), "shop/web port 80");
        assert_eq!(read("db-3.db.shop.svc.k.test:5900"), "db-3 of shop/db port 5900");
        assert_eq!(read(".web.shop.svc.k.test:1"), "shop/web port 1");
        assert_eq!(read("[web.shop.svc.k.test]:80"), "shop/web port 80");
        assert_eq!(read("Web.SHOP.svc.k.test:+80"), "SHOP/Web port 80");
        assert_eq!(read(" web.shop.svc.k.test:0065535"), "shop/ web port 65535");
        assert_eq!(read("svc.svc.svc.k.test"), "svc/svc port 80");
        assert_eq!(read("web..svc.k.test"), "web port 80");
        assert_eq!(read("..svc.k.test"), " port 80");
        let deep = authority("web.shop.svc.a.b.c:80", "a.b.c").unwrap();
        assert_eq!(deep.service.to_string(), "shop/web");
    }

    #[test]
    fn ip_addresses_of_spec_a04() {
        for (path, host) in [
            ("10.4.0.9:80", "10.4.0.9"),
            ("10.4.0.9", "10.4.0.9"),
            ("[fd00::9]:80", "fd00::9"),
            ("[10.4.0.9]:80", "10.4.0.9"),
            ("[::ffff:10.4.0.9]:80", "::ffff:10.4.0.9"),
        ] {
            let expected = format!("IP queries not supported by Get API: host={host}");
            assert_eq!(read(path), expected, "{path}");
        }
    }

    #[test]
    fn refusals_of_spec_a01_a02_a05_a06() {
        let web = "web.shop.svc.k.test";
        let ports = ["0", "65536", "http", "", "80:80", "-80", "+", "8 0", "80 "];
        let ports = ports.iter().map(|port| format!("{web}:{port}"));
        let hosts = [
            "example.org",
            "ext.shop.svc.cluster.local",
            "fd00::9",
            "[fd00::9]",
            "[fd00::9]80:1",
            "[fe80::1%eth0]:80",
            "[[web.shop.svc.k.test]]:80",
            "[web.shop.svc.k.test]",
            "web.shop.svc.k.test]:80",
            "web",
            "web.shop",
            "web.shop.svc",
            "a.b.web.shop.svc.k.test",
            "web.shop.svc.k.test.",
            "web.shop.SVC.k.test",
            "web.shopsvc.k.test",
            "web.shop.svck.test",
            "shop.svc.k.test",
            "svc.k.test",
            "k.test",
            ":80",
            "",
        ];
        for path in ports.chain(hosts.map(str::to_owned)) {
            assert_eq!(read(&path), format!("Invalid authority: {path}"));
        }
        let long = format!("{}.shop.svc.k.test", "a".repeat(254));
        assert_eq!(read(&long), format!("Invalid authority: {long}"));
    }

    fn dialled(path: &str) -> String {
        match dialed(path, "k.test") {
            Ok((Dialed::Ip(ip), port)) => format!("{ip} port {port}"),
            Ok((Dialed::Service { service, fqn }, port)) => {
                format!("{service} as {fqn} port {port}")
            }
            Ok((Dialed::Instance { service, hostname }, port)) => {
                format!("{hostname} of {service} port {port}")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_can_be_dialled() {
        assert_eq!(dialled("web.shop.svc.k.test:1"), "shop/web as web.shop.svc.k.test port 1");
        assert_eq!(dialled(".web.shop.svc.k.test"), "shop/web as .web.shop.svc.k.test port 80");
        assert_eq!(dialled("db-0.db.shop.svc.k.test:5"), "db-0 of shop/db port 5");
        assert_eq!(dialled("10.1.0.1:8080"), "10.1.0.1 port 8080");
        assert_eq!(dialled("[fd00:0::9]:80"), "fd00::9 port 80");
        assert_eq!(dialled("[::ffff:10.1.0.1]:80"), "10.1.0.1 port 80");
        for path in ["fd00::9", "10.1.0.1:0", "10.1.0.1:http", "10.1.0.1:"] {
            assert!(dialled(path).starts_with("invalid authority: "), "{path}");
        }
        for path in ["example.org", "web.shop", "[fe80::1%eth0]:80", ""] {
            assert!(dialled(path).starts_with("invalid service "), "{path}");
        }
    }

    #[test]
    fn the_port_of_an_override() {
        let with = |authority| with_port(authority, 80);
        assert_eq!(with("a.shop.svc.k.test"), "a.shop.svc.k.test:80");
        for own in ["b:99", "c:", "c:http", "[fd00::1]:9"] {
            assert_eq!(with(own), own);
        }
        assert_eq!(with("fd00::1"), "[fd00::1]:80");
        assert_eq!(with("[fd00::1]"), "[[fd00::1]]:80");
        assert_eq!(with(""), ":80");
    }
}
