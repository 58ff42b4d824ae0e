//! What becomes of a link while the cluster at its far end fails: it falls silent, is killed, restored, compacted, or another
//! one, and its credentials or its certificate are good no more.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use harness::apiserver::{ApiServer, Cut, Line, Load, Objects, User, equal_part, mirror, secret};
use harness::http;
use harness::program::{Program, Server};
use serde_json::{Value, json};

use crate::links::{
    Far, MIRROR, linked, open, open_at, parts, until_metrics_at, until_metrics_say,
};
use crate::rig::{PATIENCE, Rig, Watched};

const STALE: &str = "spillway_link_state{cluster=\"far\",state=\"stale\"} 1";
const REFUSED: &str = "spillway_link_state{cluster=\"far\",state=\"refused\"} 1";
const LIVE: &str = "spillway_link_state{cluster=\"far\",state=\"live\"} 1";
/// But for Servers, a kind that it doesn't have.
const ALL_LIVE: &str = "spillway_link_watches_live{cluster=\"far\"} 4";
const NONE_LIVE: &str = "spillway_link_watches_live{cluster=\"far\"} 0";

const PLURALS: [&str; 4] = ["services", "pods", "endpointslices", "replicasets"];

/// Objects that come and go in a namespace that nobody asks for: they make versions grow.
const ELSEWHERE: Load<'static> = Load {
    namespace: "elsewhere",
    name: "junk",
    services: 0,
    pods: 500,
    first: 0,
    bytes: 0,
    phase: "Running",
    per_second: None,
};

/// When everything that the cluster had said was last stored.
async fn synced(rig: &Rig) -> Result<u64> {
    let (_, page) = rig.admin("/metrics").await?;
    let synced = http::metric(&page, "spillway_link_synced_timestamp_seconds{cluster=\"far\"}");
    synced.context("it was heard once")
}

/// How often each kind was listed.
fn listings(far: &Far) -> Result<BTreeMap<&'static str, usize>> {
    PLURALS.into_iter().map(|plural| Ok((plural, far.api.listings(plural)?))).collect()
}

/// Streams, one that is open and one that is opened now, see these pods.
async fn is_served(rig: &Rig, mirror: &Watched, pods: &[u8]) -> Result<()> {
    mirror.until_pods(pods).await?;
    open(rig, MIRROR).await?.until_pods(pods).await
}

/// Returns when what is stored is what the cluster has, and nothing else is stored.
async fn exact(rig: &Rig, objects: &Objects) -> Result<()> {
    let stored = parts(rig)?;
    ensure!(stored.len() == 1, "one part is stored: {stored:?}");
    equal_part(objects, &rig.running()?.reader(), &stored[0]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_cluster_is_served_when_it_falls_silent() -> Result<()> {
    let (mut rig, far) = linked(&[3, 4]).await?;
    let mirror = open(&rig, MIRROR).await?;
    mirror.until_pods(&[3, 4]).await?;
    far.line.set(Cut::Silent);
    far.has(&[4, 5]).await?;
    let (heard, listed) = (synced(&rig).await?, listings(&far)?);
    until_metrics_say(&rig, STALE).await?;
    is_served(&rig, &mirror, &[3, 4]).await?;
    ensure!(synced(&rig).await? == heard, "the age counts from when it was heard");
    // As a firewall does in the end that has forgotten the connections.
    far.line.set(Cut::Closed);
    far.line.set(Cut::Through);
    mirror.until_pods(&[4, 5]).await?;
    until_metrics_say(&rig, ALL_LIVE).await?;
    exact(&rig, &far.objects).await?;
    ensure!(listings(&far)? == listed, "it was listed again: {:?}", listings(&far)?);
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_cluster_is_served_when_its_api_server_is_killed() -> Result<()> {
    let (mut rig, mut far) = linked(&[3, 4]).await?;
    let mirror = open(&rig, MIRROR).await?;
    mirror.until_pods(&[3, 4]).await?;
    until_metrics_say(&rig, ALL_LIVE).await?;
    let listed = listings(&far)?;
    far.api.stop();
    until_metrics_say(&rig, NONE_LIVE).await?;
    is_served(&rig, &mirror, &[3, 4]).await?;
    far.api.restart().await?;
    far.has(&[4, 5]).await?;
    mirror.until_pods(&[4, 5]).await?;
    until_metrics_say(&rig, ALL_LIVE).await?;
    exact(&rig, &far.objects).await?;
    ensure!(listings(&far)? == listed, "it was listed again: {:?}", listings(&far)?);
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_has_lost_is_gone_when_it_was_restored_from_a_backup() -> Result<()> {
    let (mut rig, mut far) = linked(&[3]).await?;
    let mirror = open(&rig, MIRROR).await?;
    mirror.until_pods(&[3]).await?;
    far.api.back_up().await?;
    // A restart writes some versions as well; more than those are lost.
    far.api.load(ELSEWHERE).await?;
    far.has(&[3, 4, 5]).await?;
    mirror.until_pods(&[3, 4, 5]).await?;
    exact(&rig, &far.objects).await?;
    far.api.restore().await?;
    mirror.until_pods(&[3]).await?;
    exact(&rig, &far.objects).await?;
    // From here on its history is another one.
    far.has(&[3, 6]).await?;
    mirror.until_pods(&[3, 6]).await?;
    exact(&rig, &far.objects).await?;
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_listed_once_when_its_past_was_compacted_meanwhile() -> Result<()> {
    let (mut rig, mut far) = linked(&[3, 4]).await?;
    let mirror = open(&rig, MIRROR).await?;
    mirror.until_pods(&[3, 4]).await?;
    until_metrics_say(&rig, ALL_LIVE).await?;
    far.line.set(Cut::Closed);
    until_metrics_say(&rig, NONE_LIVE).await?;
    // Gone while nobody watches: only a listing can find out.
    far.objects.delete(&["Pod/shop/w3".to_owned()]).await?;
    far.has(&[4, 5]).await?;
    far.api.compact().await?;
    far.api.restart().await?;
    is_served(&rig, &mirror, &[3, 4]).await?;
    let before = listings(&far)?;
    far.line.set(Cut::Through);
    mirror.until_pods(&[4, 5]).await?;
    until_metrics_say(&rig, ALL_LIVE).await?;
    exact(&rig, &far.objects).await?;
    let once = before.into_iter().map(|(plural, count)| (plural, count + 1)).collect();
    ensure!(listings(&far)? == once, "{:?}, not {once:?}", listings(&far)?);
    rig.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_is_noticed_when_it_answers_at_the_same_address() -> Result<()> {
    let (mut rig, far) = linked(&[3]).await?;
    let mirror = open(&rig, MIRROR).await?;
    mirror.until_pods(&[3]).await?;
    let other = Far::start(&[]).await?;
    // Where the one has come to is long ago in the other, so a watch goes on there without a word.
    other.api.load(ELSEWHERE).await?;
    far.line.lead_to(other.api.addr());
    until_metrics_say(&rig, ALL_LIVE).await?;
    let one = parts(&rig)?;
    other.has(&[4]).await?;
    let learnt_anew = async {
        while parts(&rig)?.iter().any(|stored| one.contains(stored)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, learnt_anew).await.context("it is taken for the same")??;
    exact(&rig, &other.objects).await?;
    mirror.until_pods(&[4]).await?;
    far.has(&[3, 5]).await?;
    other.has(&[4, 6]).await?;
    is_served(&rig, &mirror, &[4, 6]).await?;
    exact(&rig, &other.objects).await?;
    rig.stop().await
}

/// The program with a mirror of `web`, linked by a Secret.
struct Home {
    rig: Rig,
    server: Server,
    addr: SocketAddr,
    admin: SocketAddr,
}

impl Home {
    async fn start(kubeconfig: &str) -> Result<Home> {
        let program = Program::build()?;
        let rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
        rig.objects
            .apply(&[mirror("shop", "far", "web"), secret("far", "far", kubeconfig)])
            .await?;
        let own = rig.kubeconfig(User::Admin)?.display().to_string();
        let mut server = program.serve_with(rig.folder(), "data", &["--kubeconfig", &own])?;
        let (addr, admin) = server.serving().await?;
        tokio::time::timeout(PATIENCE, http::until(admin, "/ready", 200, "ok\n")).await??;
        Ok(Home { rig, server, addr, admin })
    }

    async fn open(&self) -> Result<Watched> {
        open_at(self.addr, MIRROR).await
    }

    /// Returns when the link is said not to be usable for now, with a reason that has these words.
    async fn until_told(&self, state: &str, words: &str) -> Result<()> {
        until_metrics_at(self.admin, state).await?;
        let log = self.rig.folder().join("log");
        let told = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            let fields = &line["fields"];
            let message = fields["message"].as_str().unwrap_or_default();
            line["level"] == "WARN" && fields["cluster"] == "far" && message.contains(words)
        };
        let waiting = async {
            while !std::fs::read_to_string(&log)?.lines().any(told) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            anyhow::Ok(())
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.with_context(|| format!("no reason with {words:?}"))?
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_says_so_and_loses_nothing_when_the_certificate_is_of_another_authority()
-> Result<()> {
    let mut far = Far::start(&[3, 4]).await?;
    let kubeconfig = |far: &Far| far.api.kubeconfig_with_authority(far.line.addr(), User::Admin);
    let mut home = Home::start(&kubeconfig(&far)?).await?;
    let mirror = home.open().await?;
    mirror.until_pods(&[3, 4]).await?;
    until_metrics_at(home.admin, ALL_LIVE).await?;
    let listed = listings(&far)?;
    far.api.change_certificate().await?;
    far.has(&[4, 5]).await?;
    home.until_told(STALE, "certificate").await?;
    until_metrics_at(home.admin, NONE_LIVE).await?;
    mirror.until_pods(&[3, 4]).await?;
    home.open().await?.until_pods(&[3, 4]).await?;
    home.rig.objects.apply(&[secret("far", "far", &kubeconfig(&far)?)]).await?;
    mirror.until_pods(&[4, 5]).await?;
    until_metrics_at(home.admin, LIVE).await?;
    ensure!(listings(&far)? == listed, "it was listed again: {:?}", listings(&far)?);
    home.server.alive()
}

/// A service account that may do everything; the kubeconfig of whoever has its token.
async fn granted(far: &Far) -> Result<String> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "reader", "namespace": "linkerd"},
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "linkerd"}],
    });
    far.objects.apply(&[account, binding]).await?;
    let token = far.objects.token("linkerd", "reader").await?;
    Ok(ApiServer::kubeconfig_with_token(far.line.addr(), &token))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_says_so_and_loses_nothing_when_its_token_is_good_no_more() -> Result<()> {
    let far = Far::start(&[3, 4]).await?;
    let mut home = Home::start(&granted(&far).await?).await?;
    let mirror = home.open().await?;
    mirror.until_pods(&[3, 4]).await?;
    until_metrics_at(home.admin, ALL_LIVE).await?;
    let listed = listings(&far)?;
    far.objects.delete(&["ServiceAccount/linkerd/reader".to_owned()]).await?;
    home.until_told(REFUSED, "401").await?;
    // What is open goes on for as long as the API server lets it.
    far.line.set(Cut::Closed);
    far.line.set(Cut::Through);
    until_metrics_at(home.admin, NONE_LIVE).await?;
    far.has(&[4, 5]).await?;
    mirror.until_pods(&[3, 4]).await?;
    home.open().await?.until_pods(&[3, 4]).await?;
    home.rig.objects.apply(&[secret("far", "far", &granted(&far).await?)]).await?;
    mirror.until_pods(&[4, 5]).await?;
    until_metrics_at(home.admin, LIVE).await?;
    ensure!(listings(&far)? == listed, "it was listed again: {:?}", listings(&far)?);
    home.server.alive()
}

const LINKS: usize = 30;
/// Those that come first by name: the even ones refuse connections, the odd ones take them and say nothing.
const DEAD: usize = 10;

fn name(number: usize) -> String {
    format!("c{number:02}")
}

/// How many links are in each state.
async fn states(rig: &Rig) -> Result<BTreeMap<String, usize>> {
    let (_, page) = rig.admin("/metrics").await?;
    let mut states = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("spillway_link_state{")) {
        let state = line.split("state=\"").nth(1).and_then(|rest| rest.split('"').next());
        *states.entry(state.context("a state")?.to_owned()).or_default() += 1;
    }
    Ok(states)
}

/// Returns when so many links are live, and all others connecting.
async fn until_live(rig: &Rig, live: usize) -> Result<()> {
    let expected = [("connecting", LINKS - live), ("live", live)];
    let expected: BTreeMap<_, _> =
        expected.into_iter().map(|(state, count)| (state.to_owned(), count)).collect();
    let mut last = BTreeMap::new();
    let waiting = async {
        while last != expected {
            last = states(rig).await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.with_context(|| format!("not {live} are live: {last:?}"))?
}

/// Links to one cluster under many names.
async fn link(rig: &Rig, far: &Far, silent: &Line) -> Result<()> {
    // Nobody listens there any more.
    let refusing = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    for number in 0..LINKS {
        let addr = match (number < DEAD, number % 2) {
            (true, 0) => refusing,
            (true, _) => silent.addr(),
            (false, _) => far.line.addr(),
        };
        let (name, kubeconfig) = (name(number), ApiServer::kubeconfig_for(addr, User::Admin));
        let secret = secret(&name, &name, &kubeconfig);
        rig.objects.apply(&[mirror("shop", &name, "web"), secret]).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_of_all_links_holds_up_nobody_when_it_is_dead() -> Result<()> {
    let far = Far::start(&[3]).await?;
    let silent = far.api.line().await?;
    silent.set(Cut::Silent);
    let mut rig = Rig::new(&["Server", "ExternalWorkload"]).await?;
    link(&rig, &far, &silent).await?;
    // The dead stay so for as long as the test wants: whatever waited for one of them would wait for ever.
    rig.start(User::Admin).await?;
    rig.until_ready_says(|status, _| status == 200).await?;
    rig.open().await?.until_pods(&[1, 2]).await?;
    let mut mirrors = Vec::new();
    for number in 0..LINKS {
        let path = format!("web-{}.shop.svc.cluster.local:80", name(number));
        mirrors.push(open(&rig, &path).await?);
    }
    for mirror in &mirrors[DEAD..] {
        mirror.until_pods(&[3]).await?;
    }
    until_live(&rig, LINKS - DEAD).await?;
    for mirror in &mirrors[..DEAD] {
        ensure!(mirror.stream.is_open(), "it is told nothing, and not refused");
        ensure!(mirror.stream.seen().held().is_empty());
    }
    far.has(&[3, 4]).await?;
    silent.set(Cut::Closed);
    silent.set(Cut::Through);
    for (number, mirror) in mirrors.iter().enumerate() {
        if number >= DEAD || number % 2 == 1 {
            mirror.until_pods(&[3, 4]).await?;
        }
    }
    until_live(&rig, LINKS - DEAD / 2).await?;
    rig.stop().await
}
