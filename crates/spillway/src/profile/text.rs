//! How profiles look to people: what it is a profile of, and a line for each thing that it says.

use super::held::{
    Condition, Endpoint, Method, Profile, Protocol, ProtocolHint, Reference, Request, Response,
    RetryBudget, Route, Strategy,
};

/// Labels that say no owner.
const LABELS_KNOWN: [&str; 8] = [
    "control_plane_ns",
    "external_workload",
    "namespace",
    "pod",
    "pod_template_hash",
    "serviceaccount",
    "zone",
    "zone_locality",
];

/// A profile's words.
struct Text {
    /// What it is.
    head: String,
    /// What it says, each with its name.
    lines: Vec<(&'static str, String)>,
    /// Its routes, of several lines each.
    routes: String,
}

/// A whole profile.
pub(super) fn whole(profile: &Profile, wide: bool) -> String {
    let Text { head, lines, routes } = Text::of(profile, wide);
    let mut text = head + "\n";
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in &lines {
        text += &format!("  {name:<width$}  {value}\n");
    }
    text + &routes
}

/// What is different: the lines that are, `-` as they were and `+` as they are. All of it, if it is of something else,
/// or its routes are others.
pub(super) fn change(before: &Profile, now: &Profile, wide: bool) -> String {
    let (from, to) = (Text::of(before, wide), Text::of(now, wide));
    if from.head != to.head || before.routes != now.routes {
        return whole(now, wide);
    }
    let mut text = String::new();
    for (sign, these, others) in [("-", &from.lines, &to.lines), ("+", &to.lines, &from.lines)] {
        for (name, value) in these.iter().filter(|line| !others.contains(line)) {
            text += &format!("{sign} {name}  {value}\n");
        }
    }
    match text.is_empty() {
        true => "other fields, which -o wide or -o json shows\n".to_owned(),
        false => text,
    }
}

impl Text {
    fn of(profile: &Profile, wide: bool) -> Text {
        match &profile.endpoint {
            Some(endpoint) => Text::of_endpoint(profile, endpoint, wide),
            None if profile.is_empty() => Text {
                head: "Empty profile: there is no such port, and a proxy asks for its policy"
                    .into(),
                lines: Vec::new(),
                routes: String::new(),
            },
            None => Text::of_service(profile, wide),
        }
    }

    fn of_service(profile: &Profile, wide: bool) -> Text {
        let overrides = profile.dst_overrides.iter();
        let overrides = overrides.map(|to| format!("{} weight {}", to.authority, to.weight));
        let reference = |it: &Option<Reference>| it.as_ref().and_then(reference);
        let lines = vec![
            ("parent", or_none(reference(&profile.parent_ref))),
            ("profile", or_none(reference(&profile.profile_ref))),
            ("opaque", yes(profile.opaque_protocol)),
            ("routes", profile.routes.len().to_string()),
            ("retry budget", or_none(profile.retry_budget.as_ref().map(retry_budget))),
            ("overrides", or_none(joined(overrides, ", "))),
        ];
        let routes = profile.routes.iter().filter(|_| wide).enumerate();
        Text {
            head: format!("Service profile of {}", profile.fully_qualified_name),
            lines,
            routes: routes.map(|(index, one)| route(index + 1, one)).collect(),
        }
    }

    fn of_endpoint(profile: &Profile, endpoint: &Endpoint, wide: bool) -> Text {
        let label = |name: &str| endpoint.metric_labels.get(name).filter(|it| !it.is_empty());
        let workload = match (label("pod"), label("external_workload")) {
            (Some(pod), _) => Some(("pod", pod.clone())),
            (None, Some(workload)) => Some(("workload", workload.clone())),
            (None, None) => None,
        };
        let labels = endpoint.metric_labels.iter();
        let owners = labels.clone().filter(|(name, _)| !LABELS_KNOWN.contains(&name.as_str()));
        let owners = owners.map(|(kind, name)| format!("{kind} {name}"));
        let identity = endpoint.tls_identity.as_ref();
        let name = identity.and_then(|it| it.strategy.as_ref()).map(|strategy| match strategy {
            Strategy::DnsLikeIdentity(dns) => dns.name.clone(),
            Strategy::UriLikeIdentity { uri } => uri.clone(),
        });
        let mut lines = vec![
            workload.unwrap_or(("pod", "none".to_owned())),
            ("namespace", or_none(label("namespace").cloned())),
            ("owner", or_none(joined(owners, ", "))),
            ("identity", or_none(name)),
            ("hint", or_none(endpoint.protocol_hint.as_ref().map(hint))),
            ("opaque", yes(profile.opaque_protocol)),
        ];
        if wide {
            let server_name = identity.and_then(|it| it.server_name.as_ref());
            let to = endpoint.authority_override.as_ref().map(|to| to.authority_override.clone());
            let labels = labels.map(|(name, value)| format!("{name}={value}"));
            lines.extend([
                ("server name", or_none(server_name.map(|dns| dns.name.clone()))),
                ("weight", endpoint.weight.to_string()),
                ("authority", or_none(to)),
                ("HTTP/2", or_none(endpoint.http2.as_ref().map(ToString::to_string))),
                ("retry budget", or_none(profile.retry_budget.as_ref().map(retry_budget))),
                ("labels", or_none(joined(labels, ","))),
            ]);
        }
        let head = format!("Endpoint profile of {}", endpoint.addr);
        Text { head, lines, routes: String::new() }
    }
}

fn route(number: usize, route: &Route) -> String {
    let classes = route.response_classes.iter().map(|class| {
        let verdict = if class.is_failure { "failure" } else { "success" };
        format!("{}: {verdict}", condition(&class.condition, &response, false))
    });
    let labels = route.metrics_labels.iter().map(|(name, value)| format!("{name}={value}"));
    let lines = [
        ("if", condition(&route.condition, &request, false)),
        ("responses", or_none(joined(classes, "; "))),
        ("retryable", yes(route.is_retryable)),
        ("timeout", or_none(route.timeout.clone())),
        ("labels", or_none(joined(labels, ","))),
    ];
    let lines = lines.map(|(name, value)| format!("    {name:<9}  {value}\n"));
    format!("  route {number}\n{}", lines.concat())
}

/// What is combined of others is in brackets if it is `within` such a one itself.
fn condition<C>(of: &Condition<C>, one: &dyn Fn(&C) -> String, within: bool) -> String {
    let all = |all: &[Condition<C>], word: &str, nothing: &str| match all {
        [] => nothing.to_owned(),
        [only] => condition(only, one, within),
        all => {
            let all = all.iter().map(|it| condition(it, one, true)).collect::<Vec<_>>();
            let all = all.join(word);
            if within { format!("({all})") } else { all }
        }
    };
    match of {
        Condition::All(of) => all(&of.matches, " and ", "always"),
        Condition::Any(of) => all(&of.matches, " or ", "never"),
        Condition::Not(of) => format!("not {}", condition(of, one, true)),
        Condition::One(it) => one(it),
    }
}

fn request(condition: &Request) -> String {
    match condition {
        Request::Path { regex } => format!("path {regex}"),
        Request::Method(Method::Registered(name) | Method::Unregistered(name)) => {
            format!("method {name}")
        }
    }
}

fn response(condition: &Response) -> String {
    let Response::Status { min, max } = condition;
    match (min, max) {
        (min, max) if *min == 0 || *max == 0 => {
            format!("status {min}-{max} (which proxies leave out)")
        }
        (min, max) if min == max => format!("status {min}"),
        (min, max) => format!("status {min}-{max}"),
    }
}

fn retry_budget(budget: &RetryBudget) -> String {
    let ttl = budget.ttl.as_deref().unwrap_or("no time");
    let (ratio, least) = (budget.retry_ratio, budget.min_retries_per_second);
    format!("{ratio} of the requests of {ttl}, and {least} a second")
}

/// `None`, if it names nothing.
fn reference(reference: &Reference) -> Option<String> {
    let it = match reference {
        Reference::Default(name) => return Some(format!("default {name}")),
        Reference::Resource(it) if it.name.is_empty() => return None,
        Reference::Resource(it) => it,
    };
    let kind = if it.kind.is_empty() { &it.group } else { &it.kind };
    let mut text = format!("{kind} {}/{}", it.namespace, it.name);
    if !it.section.is_empty() {
        text += &format!(", section {}", it.section);
    }
    if it.port != 0 {
        text += &format!(", port {}", it.port);
    }
    Some(text)
}

/// `h2`, `opaque`, or `opaque:4143` if the proxy's own port carries it.
fn hint(hint: &ProtocolHint) -> String {
    let protocol = match hint.protocol {
        None => "none",
        Some(Protocol::H2 {}) => "h2",
        Some(Protocol::Opaque {}) => "opaque",
    };
    match &hint.opaque_transport {
        Some(to) => format!("{protocol}:{}", to.inbound_port),
        None => protocol.to_owned(),
    }
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| "none".to_owned())
}

/// `None`, if there are none.
fn joined(all: impl Iterator<Item = String>, between: &str) -> Option<String> {
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then(|| all.join(between))
}
