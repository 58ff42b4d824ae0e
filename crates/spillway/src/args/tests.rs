//! Command lines → what they mean, or the refusal.

use model::EndpointsFrom;

use super::{Args, Command, Meaning, Output, try_read};

fn parse(line: &str) -> Result<Command, clap::Error> {
    try_read(line.split_whitespace().map(Into::into)).map(|args| args.command)
}

fn destination(line: &str) -> Result<Meaning, clap::Error> {
    match parse(&format!("spillway destination {line}"))? {
        Command::Destination(args) => args.meaning(),
        other => panic!("{other:?}"),
    }
}

fn serve(line: &str) -> Result<spillway::Options, clap::Error> {
    match parse(&format!("spillway serve {line}"))? {
        Command::Serve(args) => args.meaning(),
        other => panic!("{other:?}"),
    }
}

/// Asserts that a command line is refused with exit code 2 and a message with this in it.
fn refused(line: &str, part: &str) {
    let error = match line.split_once(' ') {
        Some(("serve", line)) => serve(line).err(),
        Some(("destination", line)) => destination(line).err(),
        _ => parse(&format!("spillway {line}")).err(),
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
    let door = |line| serve(line).unwrap().door;
    let derived = door("--memory 96MiB");
    assert_eq!((derived.streams_max, derived.connections_max), (6_144, 512));
    let said = door("--memory 96MiB --max-streams 7 --max-connections 5");
    assert_eq!((said.streams_max, said.connections_max), (7, 5));
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
    refused("profile", "AUTHORITY|IP:PORT");
    refused("profile a:1 --addr nowhere", "HOST:PORT");
    refused("profile a:1 --timeout 3parsecs", "not a unit");
    refused("profile a:1 -o yaml", "yaml");
    refused("profile a:1 --admin-addr :9", "--explain");
    refused("profile a:1 --explain --watch", "cannot be used with");
    refused("profile a:1 --explain 10.1.0.4", "10.1.0.4");
    refused("demo --endpoints 5", "5");
}

#[test]
fn get_and_profile_ask_alike() {
    let line = "a:80 --addr :1 --token ns:shop -o wide --timeout 1m --explain";
    let Ok(Command::Profile(profile)) = parse(&format!("spillway profile {line}")) else {
        panic!("{line}");
    };
    let line = format!("{line} 10.1.0.4 --admin-addr [::1]:2");
    let Ok(Command::Get(get)) = parse(&format!("spillway get {line}")) else { panic!("{line}") };
    assert!(profile.explain && get.explain.is_some());
    assert_eq!((&*profile.authority, &*get.authority), ("a:80", "a:80"));
    for ask in [&profile.ask, &get.ask] {
        assert_eq!((&*ask.addr, &*ask.token), ("http://127.0.0.1:1", "ns:shop"));
        assert_eq!((ask.output, ask.watch), (Output::Wide, false));
        assert_eq!(ask.timeout, std::time::Duration::from_secs(60));
    }
    assert_eq!(profile.ask.admin_addr, "http://127.0.0.1:9996");
    assert_eq!(get.ask.admin_addr, "http://[::1]:2");
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

#[test]
fn endpoints_mode_knows_no_families() {
    let from = |line| serve(line).unwrap().endpoints;
    assert_eq!(from(""), EndpointsFrom::Slices);
    let line = "--enable-endpoint-slices=false --enable-ipv6=false";
    assert_eq!(from(line), EndpointsFrom::Endpoints);
    refused("serve --enable-endpoint-slices=false", "needs --enable-ipv6=false");
    refused(&format!("serve {line} --synthetic endpoints=10"), "no Endpoints");
    refused("destination -enable-endpoint-slices=false", "-enable-ipv6=true needs");
}

/// As Linkerd's chart writes it (spec §5.2).
const CHART: &str = "-addr=:8086 -controller-namespace=linkerd -outbound-transport-mode=transport-header \
    -enable-h2-upgrade=true -log-level=info -log-format=plain -enable-endpoint-slices=true \
    -cluster-domain=cluster.local -identity-trust-domain=mesh.test \
    -default-opaque-ports=25,587,3306,4444,5432,6379,9300,11211 -enable-ipv6=false -enable-pprof=false \
    --meshed-http2-client-params={\"keep_alive\":{\"interval\":{\"seconds\":10}}}";

#[test]
fn the_charts_command_line_does_as_it_is() {
    let Meaning { options, warnings } = destination(CHART).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(options.addr.to_string(), "[::]:8086");
    assert_eq!(options.admin_addr.unwrap().to_string(), "[::]:9996");
    assert_eq!(options.data.as_os_str(), "");
    let settings = options.settings;
    assert_eq!(settings.trust_domain, "mesh.test");
    assert!(settings.transport_header && settings.h2_upgrade && settings.http2 && !settings.ipv6);
    assert!(settings.default_opaque.contains(11_211));
}

#[test]
fn go_reads_flags_in_its_own_way() {
    let settings = |line| destination(line).unwrap().options.settings;
    assert!(!settings("-enable-ipv6=F").ipv6 && settings("-enable-ipv6").ipv6);
    assert!(!settings("--enable-ipv6 -enable-ipv6=0").ipv6, "the last one counts");
    assert_eq!(settings("-controller-namespace mesh").controller_namespace, "mesh");
    assert_eq!(settings("-controller-namespace -x").controller_namespace, "-x");
    refused("destination -enable-ipv6=maybe", "neither true nor false");
    refused("destination -enable-ipv6 false", "false");
    refused("destination -bogus=1", "--bogus");
    refused("destination stray", "stray");
    refused("destination -addr", "--addr");
    refused("destination -stream-queue-capacity=0", "0 is not in 1..");
    refused("destination -meshed-http2-client-params={", "--meshed-http2-client-params");
    let error = parse("spillway destination -h").unwrap_err();
    assert_eq!(error.exit_code(), 0);
}

#[test]
fn what_the_original_only_warns_of_is_taken() {
    let Meaning { options, warnings } = destination(
        "-outbound-transport-mode=magic -cluster-domain= -default-opaque-ports=25,db -enable-pprof \
         -trace-collector=c:1 -stream-queue-capacity=7 -export-queue-metrics=false",
    )
    .unwrap();
    assert!(!options.settings.transport_header && options.settings.default_opaque.contains(25));
    assert_eq!(options.settings.cluster_domain, "cluster.local");
    assert_eq!(options.settings.trust_domain, "cluster.local");
    expect_test::expect![[r#"
        -stream-queue-capacity has no meaning here
        -export-queue-metrics has no meaning here
        -enable-pprof has no meaning here
        -trace-collector has no meaning here
        -cluster-domain is empty: it is cluster.local
        -identity-trust-domain is empty: it is cluster.local
        -outbound-transport-mode=magic is unknown: it is transparent
        -default-opaque-ports: "db" is neither a port, a range of ports, nor the name of a port here"#]].assert_eq(&warnings.join("\n"));
}

#[test]
fn floods_are_limited_unless_it_is_said_otherwise() {
    let options = serve("").unwrap();
    let source = spillway::SourceOptions::Fed;
    assert_eq!(options.admission, spillway::Options::new("data".into(), source).admission);
    let none = "--surge-endpoints 0 --quota-service 0 --quota-namespace 0 --quota-cluster 0 --linked-disk-quota 0";
    assert_eq!(serve(none).unwrap().admission, store::Admission::default());
    let surge = serve("--surge-endpoints 5 --surge-window 10s").unwrap().admission.surge;
    assert_eq!(surge, Some(store::Surge { targets: 5, window_ms: 10_000 }));
    refused("serve --surge-window 0", "it can't be 0");
    refused("serve --quota-service many", "invalid digit");
}
