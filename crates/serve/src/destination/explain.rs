//! Why an address is or isn't in an answer: for those who look at a server, not for proxies.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use model::{ClusterId, Flow, Source, Time};
use resolve::Lens;
use serde::{Deserialize, Serialize};
use store::{Mention, Snapshot};
use tonic::Status;

use super::delta::lens;
use super::get::{absent, accept, accept_linked, not_linked};
use super::look::{Question, head_of};
use super::members::{Members, State};
use super::reads::Reader;
use super::shared::{Failure, Shared};

/// Endpoints that are told of. More EndpointSlices than these name one address only by mistake.
const ENDPOINTS_MAX: usize = 100;

/// Why an address is not in an answer if that is not said of any endpoint.
const UNNAMED: &str = "no EndpointSlice of the Service has an endpoint there (of a target that has several addresses \
                       in one, the last counts)";

/// Why an address is or isn't in the answer to a Get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// What was asked for.
    pub authority: String,
    /// The address in question.
    pub address: String,
    /// The revision of the store that was looked at.
    pub revision: u64,
    /// Is it in the answer?
    pub in_answer: bool,
    /// What the answer has of the Service's endpoints.
    pub view: String,
    /// What decides, if it isn't said of an endpoint.
    pub reason: Option<String>,
    /// The section of the specification that says so.
    pub rule: Option<String>,
    /// What EndpointSlices, or Endpoints, say of the address.
    pub endpoints: Vec<ExplainedEndpoint>,
    /// There are more of them, which are left out.
    pub more: bool,
    /// The linked clusters that answer.
    pub links: Vec<ExplainedLink>,
}

/// How well a linked cluster is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedLink {
    /// Its name.
    pub cluster: String,
    /// `connecting`, `listing`, `live`, `stale` or `refused`.
    pub state: String,
    /// Why, if it isn't live.
    pub reason: Option<String>,
    /// When all that each of its sources had said was last stored, in seconds since 1970.
    pub synced: Option<u64>,
}

/// What an EndpointSlice says of an address, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedEndpoint {
    /// The EndpointSlice or Endpoints, such as `EndpointSlice shop/web-abc`.
    pub slice: String,
    /// The endpoint's target, such as `Pod shop/web-0`; none is a bare address.
    pub target: Option<String>,
    /// Is it in the answer?
    pub in_answer: bool,
    /// At which port it is in the answer.
    pub port: Option<u16>,
    /// Why.
    pub reason: String,
    /// The section of the specification that says so.
    pub rule: String,
}

/// Looks at an address with the eyes of a client.
pub(super) async fn explain(
    shared: &Arc<Shared>,
    path: &str,
    token: &str,
    address: IpAddr,
) -> Result<Explanation, Status> {
    let authority = resolve::authority(path, &shared.answers.settings.cluster_domain)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let question = Question::new(authority, token);
    let failed = |failure: Failure| Status::unavailable(failure.to_string());
    let synced = shared.synced().await.map_err(failed)?;
    let about = Explanation {
        authority: path.to_owned(),
        address: address.to_string(),
        ..Explanation::default()
    };
    let read = move |shared: &Shared, snapshot: &Snapshot, _| {
        Ok(explain_at(shared, snapshot, question, synced, address, about)?)
    };
    shared.read(&Reader::Server, read).await.map_err(failed)
}

fn explain_at(
    shared: &Shared,
    snapshot: &Snapshot,
    mut question: Question,
    synced: bool,
    address: IpAddr,
    about: Explanation,
) -> Result<Explanation, store::Error> {
    let asked = head_of(&snapshot.service(&question.asked.service)?, snapshot)?;
    let mut refused = match asked.object.service().map(|it| accept(it, &about.authority)) {
        Some(Ok(flow)) => {
            question.asked.flow = flow;
            None
        }
        Some(Err(status)) => Some(status),
        None => Some(absent(&question.asked.service, synced)),
    };
    let namespace = &shared.answers.settings.controller_namespace;
    let members = Members::read(&question.asked, snapshot, namespace, shared.endpoints())?;
    if let (Flow::Mirror(cluster, _), State::NotLinked) = (&question.asked.flow, members.state) {
        refused = refused.or_else(|| Some(not_linked(cluster, synced)));
    }
    let rows = members.list.iter().map(|member| snapshot.service(&member.service));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let heads = rows.iter().map(|rows| head_of(rows, snapshot)).collect::<Result<Vec<_>, _>>()?;
    if let Flow::Mirror(..) = &question.asked.flow {
        let services = heads.iter().filter_map(|head| head.object.service());
        let linked = services.map(|service| accept_linked(service, &about.authority));
        refused = refused.or_else(|| linked.filter_map(Result::err).next());
    }
    let zone = match &question.node {
        Some(node) => snapshot.zone(ClusterId::LOCAL, node)?,
        None => None,
    };
    let position = question.position(&members.list, &heads, zone.as_deref(), &shared.levels);
    let (mut endpoints, mut views, mut more) = (Vec::new(), Vec::new(), false);
    for at in &position.views {
        let service = &at.view.service;
        let lens = lens(at, &snapshot.service(service)?, &shared.answers)?;
        let mut mentions = Vec::new();
        snapshot.mentions(service, address, &mut |mention| {
            if endpoints.len() + mentions.len() < ENDPOINTS_MAX {
                mentions.push(mention);
            } else {
                more = true;
            }
        })?;
        endpoints.extend(explained(&lens, &mentions));
        views.push(lens.keeps());
    }
    views.dedup();
    let loading = !synced || members.state == State::Loading;
    if refused.is_some() || loading {
        endpoints.iter_mut().for_each(|it| (it.in_answer, it.port) = (false, None));
    }
    let (reason, rule) = match (&refused, loading, endpoints.is_empty()) {
        (Some(status), ..) => {
            (format!("refused with {:?}: {}", status.code(), status.message()), "spec §1.5")
        }
        (_, true, _) => ("nothing is answered before all is listed once".to_owned(), "spec §1.5"),
        (.., true) => (UNNAMED.to_owned(), "spec §2.4"),
        _ => (String::new(), ""),
    };
    let said = |text: String| (!text.is_empty()).then_some(text);
    Ok(Explanation {
        revision: snapshot.revision().0,
        in_answer: endpoints.iter().any(|it| it.in_answer),
        view: views.join("; "),
        reason: said(reason),
        rule: said(rule.to_owned()),
        endpoints,
        more,
        links: links(&members, snapshot)?,
        ..about
    })
}

/// The linked clusters of the members, as far as the store knows them.
fn links(members: &Members, snapshot: &Snapshot) -> Result<Vec<ExplainedLink>, store::Error> {
    let is_member = |id| members.list.iter().any(|member| member.service.cluster == id);
    let parts: BTreeMap<_, _> =
        snapshot.parts()?.into_iter().map(|it| (it.id, it.part.cluster)).collect();
    let mut links = BTreeMap::<_, ExplainedLink>::new();
    for (id, cluster) in parts.iter().filter(|(id, _)| is_member(**id)) {
        let link = links.entry(cluster).or_default();
        cluster.clone_into(&mut link.cluster);
        let of_part =
            |(source, at): (Source, Time)| (source.cluster == *id).then_some(at.0 / 1_000);
        link.synced = snapshot.synced()?.into_iter().filter_map(of_part).chain(link.synced).min();
    }
    Ok(links.into_values().collect())
}

/// What becomes of each mention in a view.
fn explained(lens: &Lens, mentions: &[Mention]) -> Vec<ExplainedEndpoint> {
    // Whether one is in the answer may depend on the others.
    let claims: Vec<_> = mentions.iter().filter_map(|mention| mention.claim.clone()).collect();
    let mut verdicts = lens.explain(&claims).into_iter();
    let mut one = |mention: &Mention| {
        let verdict = mention.claim.as_ref().and_then(|_| verdicts.next());
        let port = verdict.as_ref().and_then(|it| it.as_ref().ok()).map(|address| address.port);
        let (reason, rule) = match verdict {
            Some(Ok(_)) => ("it passes all rules".to_owned(), "spec §2.5"),
            Some(Err(exclusion)) => (lens.words(exclusion), exclusion.rule()),
            None => unclaimed(mention),
        };
        ExplainedEndpoint {
            slice: format!("{} {}", mention.kind, mention.slice),
            target: mention.target.as_ref().map(|(kind, name)| format!("{kind} {name}")),
            in_answer: port.is_some(),
            port,
            reason,
            rule: rule.to_owned(),
        }
    };
    mentions.iter().map(&mut one).collect()
}

/// Why no client of the Service can see it.
fn unclaimed(mention: &Mention) -> (String, &'static str) {
    let reason = if !mention.belongs {
        "it belongs to no Service: it has neither the label nor an owner that says so".to_owned()
    } else if !mention.ready {
        "the endpoint is not ready".to_owned()
    } else if let Some((kind, name)) = mention.target.as_ref().filter(|_| !mention.target_known) {
        format!("its target is not known: there is no {kind} {name}")
    } else if mention.waits {
        let reason = "it waits to be let in: its Service grew too fast, or the Service, its namespace or its cluster \
                      has as many endpoints as it may have";
        return (reason.to_owned(), "docs/flood.md");
    } else {
        "its row is missing, which is a fault of the store".to_owned()
    };
    (reason, "spec §2.4")
}
