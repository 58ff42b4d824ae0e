//! Which requests are refused, and how (spec §1.5).

use expect_test::expect;
use model::{Discovery, Kind, Object, Service};

use super::fixture::{Choice, Server, USUAL, web};

#[tokio::test]
async fn each_refusal_has_its_status() {
    let mut server = Server::start(USUAL);
    let with = |discovery: Discovery| Object::Service(Service { discovery, ..web() });
    let some = |text: &str| Some(text.to_owned());
    server.put(Kind::Service, "ext", Object::Service(Service { external_name: true, ..web() }));
    let remote = Discovery { cluster: some("east"), service: some("web"), ..Discovery::default() };
    server.put(Kind::Service, "remote", with(remote));
    let half = Discovery { cluster: some("east"), ..Discovery::default() };
    server.put(Kind::Service, "half", with(half));
    let mut refusals = Vec::new();
    for path in [
        "web.shop.svc.k.test:x",
        "10.0.0.1:80",
        "foo",
        "web.shop.svc.k.test:80",
        "half.shop.svc.k.test:80",
        "remote.shop.svc.k.test:80",
        "ext.shop.svc.k.test:80",
    ] {
        refusals.push(server.refused(path).await);
    }
    expect![[r#"
        InvalidArgument: Invalid authority: web.shop.svc.k.test:x
        InvalidArgument: IP queries not supported by Get API: host=10.0.0.1
        InvalidArgument: Invalid authority: foo
        NotFound: Service web.shop not found
        FailedPrecondition: Remote discovery service missing remote service name half.shop.svc.k.test:80
        NotFound: Remote cluster not found: east
        InvalidArgument: Invalid authority: ext.shop.svc.k.test:80"#]]
    .assert_eq(&refusals.join("\n"));
    assert_eq!(server.hub.stream_count(), 0);
}

#[tokio::test]
async fn nothing_is_denied_before_the_sources_are_known() {
    let mut server = Server::start(Choice { synced: false, ..USUAL });
    let refusal = server.refused("web.shop.svc.k.test:80").await;
    assert_eq!(refusal, "Unavailable: Service web.shop is not known yet: still loading");
    server.web();
    let mut client = server.open_web().await;
    assert!(futures::poll!(Box::pin(client.next())).is_pending());
    assert_eq!(server.metrics.messages_sent(), 0);
}

#[tokio::test]
async fn an_answer_waits_for_the_sources() {
    let mut server = Server::start(Choice { synced: false, ..USUAL });
    server.web();
    let mut client = server.open_web().await;
    let next = tokio::spawn(async move {
        client.next().await;
        client
    });
    tokio::task::yield_now().await;
    server.sync();
    // The listings mentioned no Service, so it is gone by now: the view is empty.
    let client = next.await.unwrap();
    assert!(client.held.is_empty());
    assert_eq!(server.metrics.messages_sent(), 1);
}
