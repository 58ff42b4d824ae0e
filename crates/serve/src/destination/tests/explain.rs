//! Why an address is or isn't in an answer.

use expect_test::expect;
use model::{Kind, Object, ObjectName, Service, Slice, SliceEndpoint, Target};

use super::fixture::{Choice, Server, USUAL, endpoint, of_pod, slice, web};
use crate::Explanation;

async fn why(server: &Server, path: &str, address: &str) -> Explanation {
    let token = r#"{"ns":"shop","nodeName":"n1"}"#;
    server.destination.explain(path, token, address.parse().unwrap()).await.unwrap()
}

fn text(explanation: &Explanation) -> String {
    let mut text = format!(
        "{} {} {}; {}",
        explanation.address,
        if explanation.in_answer { "in" } else { "not in" },
        explanation.authority,
        explanation.view,
    );
    if let (Some(reason), Some(rule)) = (&explanation.reason, &explanation.rule) {
        text += &format!("\n  {reason} ({rule})");
    }
    for it in &explanation.endpoints {
        let target = it.target.as_deref().unwrap_or("-");
        text += &format!("\n  {} {target} {:?}: {} ({})", it.slice, it.port, it.reason, it.rule);
    }
    text + "\n"
}

const WEB: &str = "web.shop.svc.k.test:80";

#[tokio::test]
async fn from_the_slice_to_the_rule() {
    let mut server = Server::start(USUAL);
    server.web();
    server.pod("w1", "n1", "10.0.0.1");
    let unready = SliceEndpoint { ready: false, ..of_pod("10.0.0.2", "w2", "z1") };
    let named = vec![
        of_pod("10.0.0.1", "w1", "z1"),
        unready,
        of_pod("10.0.0.3", "gone", "z1"),
        endpoint("10.0.0.4", Target::ExternalWorkload(ObjectName::new("shop", "v1").unwrap())),
    ];
    server.put(Kind::EndpointSlice, "web-1", Object::Slice(slice("web", 8080, named)));
    let bare = vec![endpoint("10.0.0.1", Target::Bare)];
    server.put(Kind::EndpointSlice, "other", Object::Slice(slice("other", 8080, bare.clone())));
    let orphan = Slice { service: None, ..slice("web", 8080, bare) };
    server.put(Kind::EndpointSlice, "orphan", Object::Slice(orphan));
    server.bare("web-2", &["10.0.0.5"]);
    let mut texts = String::new();
    for address in ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "fd00::9"] {
        texts += &text(&why(&server, WEB, address).await);
    }
    // Endpoints are told of as EndpointSlices are.
    let subsets = vec![slice("web", 9090, vec![of_pod("10.0.0.9", "w1", "z1")])];
    server.put(Kind::Endpoints, "web", Object::Subsets(subsets));
    texts += &text(&why(&server, WEB, "10.0.0.9").await);
    expect![[r#"
        10.0.0.1 in web.shop.svc.k.test:80; the port without a name
          EndpointSlice shop/orphan - None: it belongs to no Service: it has neither the label nor an owner that says so (spec §2.4)
          EndpointSlice shop/web-1 Pod shop/w1 Some(8080): it passes all rules (spec §2.5)
        10.0.0.2 not in web.shop.svc.k.test:80; the port without a name
          EndpointSlice shop/web-1 Pod shop/w2 None: the endpoint is not ready (spec §2.4)
        10.0.0.3 not in web.shop.svc.k.test:80; the port without a name
          EndpointSlice shop/web-1 Pod shop/gone None: its target is not known: there is no Pod shop/gone (spec §2.4)
        10.0.0.4 not in web.shop.svc.k.test:80; the port without a name
          EndpointSlice shop/web-1 ExternalWorkload shop/v1 None: its target is not known: there is no ExternalWorkload shop/v1 (spec §2.4)
        10.0.0.5 in web.shop.svc.k.test:80; the port without a name
          EndpointSlice shop/web-2 - Some(8080): it passes all rules (spec §2.5)
        fd00::9 not in web.shop.svc.k.test:80; the port without a name
          no EndpointSlice of the Service has an endpoint there (of a target that has several addresses in one, the last counts) (spec §2.4)
        10.0.0.9 in web.shop.svc.k.test:80; the port without a name
          Endpoints shop/web Pod shop/w1 Some(9090): it passes all rules (spec §2.5)
    "#]].assert_eq(&texts);
}

#[tokio::test]
async fn whatever_is_refused_has_nothing_in_it() {
    let mut server = Server::start(Choice { synced: false, ..USUAL });
    server.web();
    server.bare("web-1", &["10.0.0.1"]);
    server.bare("gone-1", &["10.0.0.1"]);
    let mut texts = text(&why(&server, WEB, "10.0.0.1").await);
    server.sync();
    texts += &text(&why(&server, "none.shop.svc.k.test:80", "10.0.0.1").await);
    server.bare("ext-1", &["10.0.0.1"]);
    server.put(Kind::Service, "web", Object::Service(Service { external_name: true, ..web() }));
    server.bare("web-1", &["10.0.0.1"]);
    texts += &text(&why(&server, WEB, "10.0.0.1").await);
    expect![[r#"
        10.0.0.1 not in web.shop.svc.k.test:80; the port without a name
          nothing is answered before all is listed once (spec §1.5)
          EndpointSlice shop/gone-1 - None: it passes all rules (spec §2.5)
          EndpointSlice shop/web-1 - None: another EndpointSlice names the same target, and comes first (spec §2.4)
        10.0.0.1 not in none.shop.svc.k.test:80; nothing: there is no such Service
          refused with NotFound: Service none.shop not found (spec §1.5)
        10.0.0.1 not in web.shop.svc.k.test:80; the port without a name
          refused with InvalidArgument: Invalid authority: web.shop.svc.k.test:80 (spec §1.5)
          EndpointSlice shop/ext-1 - None: another EndpointSlice names the same target, and comes first (spec §2.4)
          EndpointSlice shop/web-1 - None: it passes all rules (spec §2.5)
    "#]].assert_eq(&texts);
    let refused = server.destination.explain("web", "", "10.0.0.1".parse().unwrap()).await;
    assert_eq!(refused.unwrap_err().message(), "Invalid authority: web");
}

#[tokio::test]
async fn one_address_in_very_many_slices_is_no_long_answer() {
    let mut server = Server::start(USUAL);
    server.web();
    for number in 0..150 {
        server.bare(&format!("web-{number}"), &["10.0.0.1"]);
    }
    let explanation = why(&server, WEB, "10.0.0.1").await;
    assert_eq!((explanation.endpoints.len(), explanation.more), (100, true));
    assert!(explanation.in_answer);
}
