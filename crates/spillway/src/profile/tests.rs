//! Messages in, what is printed out; and who can't be asked.

use std::time::Duration;

use expect_test::{Expect, expect};
use linkerd2_proxy_api::destination::{self as pb, request_match, response_match};
use linkerd2_proxy_api::http_types::{HttpMethod, http_method};
use linkerd2_proxy_api::meta::{Metadata, Resource, metadata};
use serve::{ProfileExplanation, ProfileReason, ProfileVerdict};

use super::held::Profile;
use super::{explain, text, wire};
use crate::args::{self, Command};

fn check(actual: &str, expected: Expect) {
    expected.assert_eq(actual);
}

fn profile(message: pb::DestinationProfile) -> Profile {
    wire::profile(message).unwrap()
}

fn request(of: request_match::Match) -> pb::RequestMatch {
    pb::RequestMatch { r#match: Some(of) }
}

fn path(regex: &str) -> pb::RequestMatch {
    request(request_match::Match::Path(pb::PathMatch { regex: regex.to_owned() }))
}

fn method(method: http_method::Type) -> pb::RequestMatch {
    request(request_match::Match::Method(HttpMethod { r#type: Some(method) }))
}

fn status(min: u32, max: u32) -> pb::ResponseMatch {
    let range = pb::HttpStatusRange { min, max };
    pb::ResponseMatch { r#match: Some(response_match::Match::Status(range)) }
}

/// A route with every condition that there is.
fn books() -> pb::Route {
    let deleted = method(http_method::Type::Unregistered("PURGE".to_owned()));
    let other = request(request_match::Match::Not(Box::new(path("/admin/.*"))));
    let any =
        request(request_match::Match::Any(request_match::Seq { matches: vec![other, deleted] }));
    let get = method(http_method::Type::Registered(0));
    let all = request_match::Seq { matches: vec![get, path("/books"), any] };
    let none = response_match::Match::Any(response_match::Seq { matches: Vec::new() });
    let not = response_match::Match::Not(Box::new(status(404, 404)));
    let class = |of, is_failure| pb::ResponseClass { condition: Some(of), is_failure };
    pb::Route {
        condition: Some(request(request_match::Match::All(all))),
        response_classes: vec![
            class(status(500, 599), true),
            class(status(200, 0), false),
            class(pb::ResponseMatch { r#match: Some(none) }, true),
            class(pb::ResponseMatch { r#match: Some(not) }, false),
        ],
        metrics_labels: [("route".to_owned(), "books".to_owned())].into(),
        is_retryable: true,
        timeout: Duration::from_millis(1_500).try_into().ok(),
    }
}

fn reference(kind: &str, name: &str, port: u32) -> Option<Metadata> {
    let resource = Resource {
        group: "core".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: "shop".to_owned(),
        section: String::new(),
        port,
    };
    Some(Metadata { kind: Some(metadata::Kind::Resource(resource)) })
}

fn budget() -> pb::RetryBudget {
    let ttl = Duration::from_secs(10).try_into().ok();
    pb::RetryBudget { retry_ratio: 0.2, min_retries_per_second: 10, ttl }
}

fn of_service() -> pb::DestinationProfile {
    let to = |authority: &str, weight| pb::WeightedDst {
        authority: authority.to_owned(),
        weight,
        backend_ref: None,
    };
    pb::DestinationProfile {
        fully_qualified_name: "web.shop.svc.k.test".to_owned(),
        routes: vec![books()],
        retry_budget: Some(budget()),
        dst_overrides: vec![to("v1.shop.svc.k.test:80", 9_000), to("v2.shop.svc.k.test:80", 0)],
        parent_ref: reference("Service", "web", 80),
        profile_ref: reference("ServiceProfile", "web.shop.svc.k.test", 0),
        ..Default::default()
    }
}

fn of_pod(ip: &str) -> pb::DestinationProfile {
    let dns = pb::tls_identity::DnsLikeIdentity { name: "web.shop.id".to_owned() };
    let labels = [("pod", "web-0"), ("namespace", "shop"), ("deployment", "web"), ("zone", "")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let keep_alive = pb::http2_client_params::KeepAlive {
        interval: Duration::from_secs(10).try_into().ok(),
        timeout: Duration::from_micros(250).try_into().ok(),
        while_idle: false,
    };
    let endpoint = pb::WeightedAddr {
        addr: Some(std::net::SocketAddr::new(ip.parse().unwrap(), 8080).into()),
        weight: 10_000,
        metric_labels: labels.into(),
        tls_identity: Some(pb::TlsIdentity {
            strategy: Some(pb::tls_identity::Strategy::DnsLikeIdentity(dns.clone())),
            server_name: Some(dns),
        }),
        protocol_hint: Some(pb::ProtocolHint {
            protocol: Some(pb::protocol_hint::Protocol::Opaque(pb::protocol_hint::Opaque {})),
            opaque_transport: Some(pb::protocol_hint::OpaqueTransport { inbound_port: 4143 }),
        }),
        http2: Some(pb::Http2ClientParams { keep_alive: Some(keep_alive), ..Default::default() }),
        ..Default::default()
    };
    pb::DestinationProfile {
        opaque_protocol: true,
        retry_budget: Some(budget()),
        endpoint: Some(endpoint),
        ..Default::default()
    }
}

#[test]
fn a_services_profile() {
    let profile = profile(of_service());
    check(
        &text::whole(&profile, false),
        expect![[r#"
        Service profile of web.shop.svc.k.test
          parent        Service shop/web, port 80
          profile       ServiceProfile shop/web.shop.svc.k.test
          opaque        no
          routes        1
          retry budget  0.2 of the requests of 10s, and 10 a second
          overrides     v1.shop.svc.k.test:80 weight 9000, v2.shop.svc.k.test:80 weight 0
    "#]],
    );
    check(
        &text::whole(&profile, true),
        expect![[r#"
            Service profile of web.shop.svc.k.test
              parent        Service shop/web, port 80
              profile       ServiceProfile shop/web.shop.svc.k.test
              opaque        no
              routes        1
              retry budget  0.2 of the requests of 10s, and 10 a second
              overrides     v1.shop.svc.k.test:80 weight 9000, v2.shop.svc.k.test:80 weight 0
              route 1
                if         method GET and path /books and (not path /admin/.* or method PURGE)
                responses  status 500-599: failure; status 200-0 (which proxies leave out): success; never: failure; not status 404: success
                retryable  yes
                timeout    1.500s
                labels     route=books
        "#]],
    );
}

#[test]
fn an_endpoints_profile() {
    let known = profile(of_pod("10.1.0.5"));
    check(
        &text::whole(&known, false),
        expect![[r#"
        Endpoint profile of 10.1.0.5:8080
          pod        web-0
          namespace  shop
          owner      deployment web
          identity   web.shop.id
          hint       opaque:4143
          opaque     yes
    "#]],
    );
    check(
        &text::whole(&known, true),
        expect![[r#"
        Endpoint profile of 10.1.0.5:8080
          pod           web-0
          namespace     shop
          owner         deployment web
          identity      web.shop.id
          hint          opaque:4143
          opaque        yes
          server name   web.shop.id
          weight        10000
          authority     none
          HTTP/2        {"keep_alive":{"interval":"10s","timeout":"0.000250s"}}
          retry budget  0.2 of the requests of 10s, and 10 a second
          labels        deployment=web,namespace=shop,pod=web-0,zone=
    "#]],
    );
    let mut unknown = of_pod("fd00::1");
    let endpoint = unknown.endpoint.as_mut().unwrap();
    let addr = endpoint.addr;
    *endpoint = pb::WeightedAddr { addr, ..Default::default() };
    check(
        &text::whole(&profile(unknown), false),
        expect![[r#"
        Endpoint profile of [fd00::1]:8080
          pod        none
          namespace  none
          owner      none
          identity   none
          hint       none
          opaque     yes
    "#]],
    );
}

#[test]
fn json_is_proto3s() {
    let mut text = String::new();
    for message in [of_service(), of_pod("10.1.0.5"), of_pod("fd00::1"), Default::default()] {
        text += &profile(message).json().unwrap();
    }
    check(
        &text,
        expect![[r#"
        {"fully_qualified_name":"web.shop.svc.k.test","routes":[{"condition":{"all":{"matches":[{"method":{"registered":"GET"}},{"path":{"regex":"/books"}},{"any":{"matches":[{"not":{"path":{"regex":"/admin/.*"}}},{"method":{"unregistered":"PURGE"}}]}}]}},"response_classes":[{"condition":{"status":{"min":500,"max":599}},"is_failure":true},{"condition":{"status":{"min":200}}},{"condition":{"any":{}},"is_failure":true},{"condition":{"not":{"status":{"min":404,"max":404}}}}],"metrics_labels":{"route":"books"},"is_retryable":true,"timeout":"1.500s"}],"retry_budget":{"retry_ratio":0.2,"min_retries_per_second":10,"ttl":"10s"},"dst_overrides":[{"authority":"v1.shop.svc.k.test:80","weight":9000},{"authority":"v2.shop.svc.k.test:80"}],"parent_ref":{"resource":{"group":"core","kind":"Service","name":"web","namespace":"shop","port":80}},"profile_ref":{"resource":{"group":"core","kind":"ServiceProfile","name":"web.shop.svc.k.test","namespace":"shop"}}}
        {"opaque_protocol":true,"retry_budget":{"retry_ratio":0.2,"min_retries_per_second":10,"ttl":"10s"},"endpoint":{"addr":{"ip":{"ipv4":167837701},"port":8080},"weight":10000,"metric_labels":{"deployment":"web","namespace":"shop","pod":"web-0","zone":""},"tls_identity":{"dns_like_identity":{"name":"web.shop.id"},"server_name":{"name":"web.shop.id"}},"protocol_hint":{"opaque":{},"opaque_transport":{"inbound_port":4143}},"http2":{"keep_alive":{"interval":"10s","timeout":"0.000250s"}}}}
        {"opaque_protocol":true,"retry_budget":{"retry_ratio":0.2,"min_retries_per_second":10,"ttl":"10s"},"endpoint":{"addr":{"ip":{"ipv6":{"first":"18230571291595767808","last":"1"}},"port":8080},"weight":10000,"metric_labels":{"deployment":"web","namespace":"shop","pod":"web-0","zone":""},"tls_identity":{"dns_like_identity":{"name":"web.shop.id"},"server_name":{"name":"web.shop.id"}},"protocol_hint":{"opaque":{},"opaque_transport":{"inbound_port":4143}},"http2":{"keep_alive":{"interval":"10s","timeout":"0.000250s"}}}}
        {}
    "#]],
    );
    let ratio = |retry_ratio| {
        let retry_budget = Some(pb::RetryBudget { retry_ratio, ..Default::default() });
        let message = pb::DestinationProfile { retry_budget, ..Default::default() };
        profile(message).json().unwrap()
    };
    let ratios = [0.0, 0.1, f32::INFINITY, f32::NEG_INFINITY, f32::NAN].map(ratio).concat();
    check(
        &ratios,
        expect![[r#"
        {"retry_budget":{}}
        {"retry_budget":{"retry_ratio":0.1}}
        {"retry_budget":{"retry_ratio":"Infinity"}}
        {"retry_budget":{"retry_ratio":"-Infinity"}}
        {"retry_budget":{"retry_ratio":"NaN"}}
    "#]],
    );
}

#[test]
fn an_empty_profile_is_one() {
    check(
        &text::whole(&Profile::default(), true),
        expect![[r#"
        Empty profile: there is no such port, and a proxy asks for its policy
    "#]],
    );
}

#[test]
fn a_simple_change_is_told_by_its_lines_and_another_one_whole() {
    let before = profile(of_service());
    let opaque =
        pb::DestinationProfile { opaque_protocol: true, dst_overrides: Vec::new(), ..of_service() };
    check(
        &text::change(&before, &profile(opaque), true),
        expect![[r#"
        - opaque  no
        - overrides  v1.shop.svc.k.test:80 weight 9000, v2.shop.svc.k.test:80 weight 0
        + opaque  yes
        + overrides  none
    "#]],
    );
    let fewer = pb::DestinationProfile { routes: Vec::new(), ..of_service() };
    check(
        &text::change(&before, &profile(fewer), false),
        expect![[r#"
        Service profile of web.shop.svc.k.test
          parent        Service shop/web, port 80
          profile       ServiceProfile shop/web.shop.svc.k.test
          opaque        no
          routes        0
          retry budget  0.2 of the requests of 10s, and 10 a second
          overrides     v1.shop.svc.k.test:80 weight 9000, v2.shop.svc.k.test:80 weight 0
    "#]],
    );
    let at = profile(of_pod("10.1.0.5"));
    check(
        &text::change(&at, &Profile::default(), false),
        expect![[r#"
        Empty profile: there is no such port, and a proxy asks for its policy
    "#]],
    );
    let mut heavier = of_pod("10.1.0.5");
    heavier.endpoint.as_mut().unwrap().weight = 1;
    let heavier = profile(heavier);
    check(
        &text::change(&at, &heavier, false),
        expect![[r#"
            other fields, which -o wide or -o json shows
        "#]],
    );
    check(
        &text::change(&at, &heavier, true),
        expect![[r#"
        - weight  10000
        + weight  1
    "#]],
    );
}

#[test]
fn messages_that_say_nothing_where_they_must() {
    let routes = vec![pb::Route::default()];
    let route = pb::DestinationProfile { routes, ..Default::default() };
    let endpoint = Some(pb::WeightedAddr::default());
    let endpoint = pb::DestinationProfile { endpoint, ..Default::default() };
    let said = [route, endpoint].map(|it| wire::profile(it).unwrap_err().to_string());
    check(
        &said.join("\n"),
        expect![[r#"
        the server sent a route with a condition that says nothing
        the server sent an endpoint without an address"#]],
    );
}

#[test]
fn an_explanation_is_a_verdict_and_what_decides() {
    let reason = |about: &str, reason: &str| ProfileReason {
        about: about.to_owned(),
        reason: reason.to_owned(),
        rule: "spec §3.3".to_owned(),
    };
    let mut explanation = ProfileExplanation {
        authority: "web.shop.svc.k.test:80".to_owned(),
        revision: 7,
        answer: ProfileVerdict::Service,
        owner: Some("Service shop/web".to_owned()),
        service_profile: None,
        opaque: false,
        reasons: vec![reason("owner", "it is"), reason("service profile", "there is none")],
    };
    let mut said = explain::text(&explanation);
    use ProfileVerdict::{Empty, Endpoint, Refused, Silence};
    explanation.owner = None;
    explanation.reasons.clear();
    for answer in [Endpoint, Empty, Silence, Refused] {
        said += &explain::text(&ProfileExplanation { answer, ..explanation.clone() });
    }
    check(
        &said,
        expect![[r#"
        web.shop.svc.k.test:80 has the profile of Service shop/web, at revision 7.

        owner            it is (spec §3.3)
        service profile  there is none (spec §3.3)
        web.shop.svc.k.test:80 has the profile of an address that is nobody's, at revision 7.

        web.shop.svc.k.test:80 has an empty profile, at revision 7.

        web.shop.svc.k.test:80 is told nothing for now, at revision 7.

        web.shop.svc.k.test:80 is refused, at revision 7.

    "#]],
    );
}

/// What is said of a command that fails; `ADDR` stands for where nobody is, or nobody answers.
async fn fails(listening: bool, args: &str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let _listener = listening.then_some(listener);
    let line = format!("spillway profile {}", args.replace("ADDR", &addr));
    let command = args::read(line.split_whitespace().map(Into::into)).command;
    let Command::Profile(args) = command else { panic!("{command:?}") };
    format!("{:#}\n", super::run(args).await.unwrap_err()).replace(&addr, "ADDR")
}

#[tokio::test]
async fn a_server_that_is_not_there_or_says_nothing() {
    let mut said = fails(false, "10.1.0.5:80 --addr ADDR").await;
    said += &fails(false, "10.1.0.5:80 --explain --admin-addr ADDR").await;
    said += &fails(true, "10.1.0.5:80 --addr ADDR --timeout 20ms").await;
    said += &fails(true, "10.1.0.5:80 --explain --admin-addr ADDR --timeout 20ms").await;
    check(
        &said,
        expect![[r#"
        cannot connect to ADDR: Connection refused (os error 111)
        cannot ask ADDR: client error (Connect): tcp connect error: Connection refused (os error 111)
        no answer from ADDR within 20ms: deadline has elapsed
        no answer from ADDR within 20ms: deadline has elapsed
    "#]],
    );
}
