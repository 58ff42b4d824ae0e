//! Links to real API servers: unreachable, faulty, rotated, replaced, unlinked, and only as much of them as is used (field cases
//! F37 to F40).

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use harness::apiserver::{self, ApiServer, Cut, Line, Objects, User, secret};
use harness::client::{Client, Question};
use harness::http;
use model::{Kind, Source, StoredPart};
use serde_json::{Value, json};

use crate::rig::{PATIENCE, Rig, Watched, pod, service, slice};

/// Another cluster, and a line to it that can be cut.
pub(crate) struct Far {
    pub(crate) api: ApiServer,
    pub(crate) objects: Objects,
    pub(crate) line: Line,
}

impl Far {
    /// It has Service `web` with these pods.
    pub(crate) async fn start(pods: &[u8]) -> Result<Far> {
        let api = ApiServer::start().await?;
        let objects = api.objects().await?;
        objects.apply(&[service("web")]).await?;
        let line = api.line().await?;
        let far = Far { api, objects, line };
        far.has(pods).await?;
        Ok(far)
    }

    pub(crate) async fn has(&self, pods: &[u8]) -> Result<()> {
        let pods_of = pods.iter().map(|number| pod(&format!("w{number}"), *number));
        self.objects.apply(&pods_of.collect::<Vec<_>>()).await?;
        self.objects.apply(&[slice("web", pods)]).await
    }

    /// The Secret that links it, over the line.
    pub(crate) fn secret(&self, user: User) -> Value {
        secret("far", "far", &ApiServer::kubeconfig_for(self.line.addr(), user))
    }
}

/// A Service that stands for `web` of the cluster `far`.
pub(crate) fn mirror(namespace: &str) -> Value {
    apiserver::mirror(namespace, "far", "web")
}

pub(crate) async fn open(rig: &Rig, path: &str) -> Result<Watched> {
    open_at(rig.running()?.addr(), path).await
}

/// The same at any server.
pub(crate) async fn open_at(addr: SocketAddr, path: &str) -> Result<Watched> {
    let client = Client::connect(addr).await?;
    let question = Question { path: path.to_owned(), ..Question::default() };
    let stream = client.open(question, false).await;
    Ok(Watched::new(stream, client))
}

pub(crate) const MIRROR: &str = "web-far.shop.svc.cluster.local:80";

/// A server at home with a mirror of `web`, and what it is linked to.
pub(crate) async fn linked(pods: &[u8]) -> Result<(Rig, Far)> {
    let far = Far::start(pods).await?;
    let mut rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    rig.objects.apply(&[mirror("shop"), far.secret(User::Admin)]).await?;
    rig.start(User::Admin).await?;
    rig.equal().await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    Ok((rig, far))
}

pub(crate) fn parts(rig: &Rig) -> Result<Vec<StoredPart>> {
    Ok(rig.running()?.reader().snapshot()?.parts()?)
}

/// Returns when a page of metrics has a line that begins so.
pub(crate) async fn until_metrics_say(rig: &Rig, line: &str) -> Result<()> {
    until_metrics_at(rig.running()?.admin_addr().context("it has one")?, line).await
}

/// The same of any server.
pub(crate) async fn until_metrics_at(admin: SocketAddr, line: &str) -> Result<()> {
    let waiting = async {
        loop {
            let (_, page) = http::get(admin, "/metrics").await?;
            if page.lines().any(|it| it.starts_with(line)) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.with_context(|| format!("no {line}"))?
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_cannot_be_reached_holds_up_nobody_f37_of_q_14() -> Result<()> {
    let far = Far::start(&[3]).await?;
    far.line.set(Cut::Silent);
    let mut rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    rig.objects.apply(&[mirror("shop"), far.secret(User::Admin)]).await?;
    rig.start(User::Admin).await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    rig.open().await?.until_pods(&[1, 2]).await?;
    let mirror = open(&rig, MIRROR).await?;
    until_metrics_say(&rig, "spillway_link_state{cluster=\"far\",state=\"connecting\"} 1").await?;
    ensure!(mirror.stream.is_open(), "it is told nothing, and not refused");
    far.line.set(Cut::Through);
    mirror.until_pods(&[3]).await?;
    until_metrics_say(&rig, "spillway_link_state{cluster=\"far\",state=\"live\"} 1").await?;
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_of_a_cluster_is_served_while_it_is_away_and_goes_on_from_there()
-> Result<()> {
    let (mut rig, far) = linked(&[3, 4]).await?;
    open(&rig, MIRROR).await?.until_pods(&[3, 4]).await?;
    rig.stop().await?;
    far.line.set(Cut::Closed);
    rig.start(User::Admin).await?;
    let mirror = open(&rig, MIRROR).await?;
    mirror.until_pods(&[3, 4]).await?;
    // How old that is can be seen, also of what was stored by the process before.
    until_metrics_say(&rig, "spillway_link_state{cluster=\"far\",state=\"stale\"} 1").await?;
    until_metrics_say(&rig, "spillway_link_synced_timestamp_seconds{cluster=\"far\"} 1").await?;
    let path = "/explain?authority=web-far.shop.svc.cluster.local:80&address=10.1.0.4";
    let (_, why) = rig.admin(path).await?;
    ensure!(why.contains("\"in_answer\":true") && why.contains("\"state\":\"stale\""), "{why}");
    let before = far.api.listings("pods")?;
    far.has(&[4, 5]).await?;
    far.line.set(Cut::Through);
    mirror.until_pods(&[4, 5]).await?;
    ensure!(far.api.listings("pods")? == before, "its watch went on where it was");
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_changed_without_losing_anything_of_q_14() -> Result<()> {
    let (mut rig, far) = linked(&[3]).await?;
    let mirror = open(&rig, MIRROR).await?;
    mirror.until_pods(&[3]).await?;
    let before = parts(&rig)?;
    // A token that isn't known any more, as after it has expired.
    rig.objects.apply(&[far.secret(User::Stranger)]).await?;
    until_metrics_say(&rig, "spillway_link_state{cluster=\"far\",state=\"refused\"} 1").await?;
    let listings = far.api.listings("pods")?;
    far.has(&[3, 4]).await?;
    rig.objects.apply(&[far.secret(User::Admin)]).await?;
    mirror.until_pods(&[3, 4]).await?;
    ensure!(parts(&rig)? == before && far.api.listings("pods")? == listings, "it was listed again");
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_link_is_gone_nothing_of_it_is_served_f38() -> Result<()> {
    let (mut rig, far) = linked(&[3]).await?;
    open(&rig, MIRROR).await?.until_pods(&[3]).await?;
    let id = parts(&rig)?[0].id;
    rig.stop().await?;
    rig.objects.delete(&["Secret/linkerd/far".to_owned()]).await?;
    rig.start(User::Admin).await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    let waiting = async {
        while !parts(&rig)?.is_empty()
            || objects(&rig, Source { cluster: id, kind: Kind::Pod })? > 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .context("it is still stored")??;
    let refused = open(&rig, MIRROR).await?;
    refused.until_ended(tonic::Code::NotFound).await?;
    // Linked again while it runs, it is there again.
    rig.objects.apply(&[far.secret(User::Admin)]).await?;
    let waiting = async {
        loop {
            let again = open(&rig, MIRROR).await?;
            if again.stream.is_open() {
                return again.until_pods(&[3]).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.context("it stays refused")??;
    rig.stop().await
}

pub(crate) fn objects(rig: &Rig, source: Source) -> Result<usize> {
    let mut count = 0;
    rig.running()?.reader().snapshot()?.objects(source, &mut |_, _| count += 1)?;
    Ok(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn faulty_links_are_told_and_found_when_they_are_mended_f39() -> Result<()> {
    let (mut rig, far) = linked(&[3]).await?;
    let mut nameless = secret("nameless", "x", "x");
    nameless["metadata"]["labels"] = json!({});
    let garbage = secret("garbage", "other", "no: kubeconfig");
    let expired =
        secret("expired", "late", &ApiServer::kubeconfig_for(far.line.addr(), User::Stranger));
    rig.objects.apply(&[nameless, garbage, expired]).await?;
    until_metrics_say(&rig, "spillway_link_faults 2").await?;
    // Nobody uses `late`, and still it is said that it can't be.
    until_metrics_say(&rig, "spillway_link_state{cluster=\"late\",state=\"refused\"} 1").await?;
    // Of one that can't even be tried it is said so.
    let unusable = ApiServer::kubeconfig_for(far.line.addr(), User::Admin)
        .replace("\"insecure-skip-tls-verify\":true", "\"certificate-authority-data\":\"!\"");
    rig.objects.apply(&[secret("unusable", "unusable", &unusable)]).await?;
    let refused = "spillway_link_state{cluster=\"unusable\",state=\"refused\"} 1";
    until_metrics_say(&rig, refused).await?;
    open(&rig, MIRROR).await?.until_pods(&[3]).await?;
    let mended =
        secret("garbage", "other", &ApiServer::kubeconfig_for(far.line.addr(), User::Admin));
    rig.objects.apply(&[mended]).await?;
    until_metrics_say(&rig, "spillway_link_faults 1").await?;
    until_metrics_say(&rig, "spillway_link_state{cluster=\"other\",state=\"live\"} 1").await?;
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_under_the_name_is_noticed() -> Result<()> {
    let (mut rig, far) = linked(&[3]).await?;
    let mirror = open(&rig, MIRROR).await?;
    mirror.until_pods(&[3]).await?;
    let other = Far::start(&[4]).await?;
    rig.objects.apply(&[other.secret(User::Admin)]).await?;
    mirror.until_pods(&[4]).await?;
    // What the one before says is nothing to anybody.
    far.has(&[3, 5]).await?;
    other.has(&[4, 6]).await?;
    mirror.until_pods(&[4, 6]).await?;
    ensure!(parts(&rig)?.len() == 1, "one is stored: {:?}", parts(&rig)?);
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_namespaces_that_are_used_are_watched_f40() -> Result<()> {
    let (mut rig, far) = linked(&[3]).await?;
    let mut junk: Vec<Value> = (0..20).map(|n| pod(&format!("junk-{n}"), 9)).collect();
    junk.iter_mut().for_each(|pod| pod["metadata"]["namespace"] = "junk".into());
    far.objects.apply(&junk).await?;
    open(&rig, MIRROR).await?.until_pods(&[3]).await?;
    let namespaces = |rig: &Rig| -> Result<Vec<String>> {
        Ok(parts(rig)?.into_iter().map(|stored| stored.part.namespace).collect())
    };
    ensure!(namespaces(&rig)? == ["shop"], "{:?}", namespaces(&rig)?);
    // One that is used from now on is there within a second or so, and then what it has.
    rig.objects.apply(&[mirror("junk")]).await?;
    let waiting = async {
        while namespaces(&rig)? != ["junk", "shop"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let id = parts(&rig)?[0].id;
        while objects(&rig, Source { cluster: id, kind: Kind::Pod })? < 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, waiting).await.context("it is not stored")??;
    let watched = far.api.watched("pods")?;
    ensure!(watched.iter().all(|path| path.contains("/namespaces/")), "{watched:?}");
    rig.stop().await
}
