//! Command lines → what they mean, or the refusal.

use clap::Parser as _;

use super::{Args, Command};

fn parse(line: &str) -> Result<Command, clap::Error> {
    Args::try_parse_from(line.split_whitespace()).map(|args| args.command)
}

fn serve(line: &str) -> Result<spillway::Options, clap::Error> {
    match parse(&format!("spillway serve {line}"))? {
        Command::Serve(args) => args.meaning(),
        other => panic!("{other:?}"),
    }
}

/// Asserts that a command line is refused with exit code 2 and a message with this in it.
fn refused(line: &str, part: &str) {
    let error = match line.strip_prefix("serve ") {
        Some(line) => serve(line).err(),
        None => parse(&format!("spillway {line}")).err(),
    };
    let error = error.unwrap_or_else(|| panic!("{line:?} is taken"));
    assert_eq!(error.exit_code(), 2, "{line}");
    let text = error.to_string();
    assert!(text.contains(part), "{line}: {text}");
}

#[test]
fn the_grammar_holds_together() {
    use clap::CommandFactory as _;
    Args::command().debug_assert();
}

#[test]
fn go_style_addresses() {
    let options = serve("--addr :1 --admin-addr 127.0.0.1:2").unwrap();
    assert_eq!(options.addr.to_string(), "[::]:1");
    assert_eq!(options.admin_addr.unwrap().to_string(), "127.0.0.1:2");
    assert_eq!(serve("--metrics-addr [::1]:3").unwrap().admin_addr.unwrap().port(), 3);
    refused("serve --addr 8086", "expected IP:PORT");
    refused("serve --addr :99999", "not a port");
}

#[test]
fn settings_default_to_linkerds() {
    let settings = serve("").unwrap().settings;
    assert_eq!(settings.cluster_domain, "cluster.local");
    assert_eq!(settings.controller_namespace, "linkerd");
    assert!(settings.h2_upgrade && settings.ipv6 && !settings.transport_header);
    let settings = serve("--enable-ipv6=false --enable-h2-upgrade=false --default-opaque-ports 25,80-82 --outbound-transport-mode transport-header").unwrap().settings;
    assert!(!settings.h2_upgrade && !settings.ipv6 && settings.transport_header);
    assert!(settings.default_opaque.contains(81) && !settings.default_opaque.contains(83));
}

#[test]
fn durability_is_a_setting() {
    let interval = |line| serve(line).unwrap().fsync_interval;
    assert_eq!(interval(""), Some(std::time::Duration::from_millis(200)));
    assert_eq!(interval("--fsync interval=1s"), Some(std::time::Duration::from_secs(1)));
    assert_eq!(interval("--fsync commit"), None);
    let undo = serve("--undo-age 2h --undo-bytes 1MiB").unwrap().undo;
    assert_eq!((undo.age_max, undo.bytes_max), (7_200_000, 1 << 20));
}

#[test]
fn memory_is_divided() {
    let memory = |line| serve(line).unwrap().memory;
    assert_eq!(memory("--memory 160MiB").cache_bytes, 5 << 20);
    assert_eq!(memory("--memory 160MiB --cache-bytes 3MiB").cache_bytes, 3 << 20);
    assert_eq!(memory(""), spillway::Budget::of_cgroup());
}

#[test]
fn sources_exclude_each_other() {
    refused("serve --kubeconfig k --manifests m", "cannot be used with");
    refused("serve --context c --synthetic endpoints=10", "cannot be used with");
    refused("serve --manifests m --synthetic endpoints=10", "cannot be used with");
    refused("serve --synthetic nonsense=1", "--synthetic");
}

#[test]
fn bad_values_are_refused_with_a_sentence() {
    refused("serve --memory 1MiB", "less than the 16 MiB");
    refused("serve --cache-bytes 3parsecs", "not a unit");
    refused("serve --fsync never", "neither commit nor interval=TIME");
    refused("serve --fsync interval=soon", "not a span of time");
    refused("serve --undo-age 3parsecs", "use ms, s, m or h");
    refused("serve --default-opaque-ports 25,db", "\"db\" is neither a port");
    refused("serve --cluster-domain a..b", "not a DNS name");
    refused("serve --outbound-transport-mode magic", "magic");
    refused("serve --enable-ipv6=perhaps", "perhaps");
    refused("serve --meshed-http2-client-params {", "--meshed-http2-client-params");
    refused("serve --log-level loud", "loud");
    refused("serve --bogus", "--bogus");
    refused("get", "AUTHORITY");
    refused("get a:1 --addr nowhere", "HOST:PORT");
    refused("get a:1 --addr [web]:1", "HOST:PORT");
    refused("get a:1 --timeout 3parsecs", "not a unit");
    refused("get a:1 -o yaml", "yaml");
    refused("demo --endpoints 5", "5");
}

#[test]
fn values_with_units() {
    use super::values::{bytes, duration, target};
    assert_eq!(bytes("64MiB"), Ok(64 << 20));
    assert_eq!(bytes("1024"), Ok(1024));
    assert!(bytes("99999999999GiB").is_err());
    assert_eq!(duration("250ms"), Ok(std::time::Duration::from_millis(250)));
    assert_eq!(duration("1.5"), Ok(std::time::Duration::from_millis(1500)));
    assert!(duration("-1s").is_err());
    assert_eq!(target("[::1]:8086"), Ok("http://[::1]:8086".to_owned()));
    assert_eq!(target(":8086"), Ok("http://127.0.0.1:8086".to_owned()));
    assert_eq!(target("http://dst.linkerd:8086/"), Ok("http://dst.linkerd:8086".to_owned()));
}
