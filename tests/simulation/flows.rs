//! Whose endpoints answer a Get, and until when, from nothing but the objects and what was said of the linked clusters: the
//! rules of spec §1.5, §1.6 and §2.10 to §2.12.

use std::collections::{BTreeMap, BTreeSet};

use harness::shown::Shown;
use model::{Discovery, Kind, Link, Object, Service};
use resolve::Settings;
use tonic::Code;

use crate::far::{Told, Watched};
use crate::oracle::{Question, seen, truth, zone};
use crate::world::{CONTROLLERS, World};

/// What a stream was opened for. It keeps that, whatever becomes of the Service.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Own,
    /// A Service of a linked cluster.
    Mirror(Item),
    Federated,
}

/// A Service, and the name of its cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) service: String,
    pub(crate) cluster: String,
}

/// What is to come of a stream.
#[derive(Debug)]
pub(crate) enum Now {
    /// One of these is held, where the objects alone don't say which.
    Shows(Vec<Shown>),
    /// Nothing is known of the clusters asked for. Who was told nothing yet isn't told so.
    Silent,
    /// It ends with OK; what it had told of clusters that are gone is taken back before, what is told otherwise now isn't.
    Ends { taken_back: bool },
}

/// All that answers depend on.
pub(crate) struct Rules<'r> {
    pub(crate) here: &'r World,
    pub(crate) settings: &'r Settings,
    pub(crate) parts: &'r BTreeMap<String, Watched>,
}

/// The links that count: of several Secrets for a cluster that with the lowest name.
pub(crate) fn links(here: &World) -> BTreeMap<String, &Link> {
    let mut links = BTreeMap::new();
    for (key, (_, object)) in &here.objects {
        if let Object::Link(Ok(link)) = object
            && key.name.namespace() == CONTROLLERS
        {
            links.entry(link.cluster.clone()).or_insert(link);
        }
    }
    links
}

/// The clusters that Services ask for.
pub(crate) fn in_use(here: &World) -> BTreeSet<String> {
    let services = here.all(Kind::Service).filter_map(|(_, _, object)| match object {
        Object::Service(service) => Some(&service.discovery),
        _ => None,
    });
    let items = services.flat_map(|discovery| match discovery.cluster.clone() {
        _ if is_federated(discovery) => items(discovery),
        Some(cluster) => {
            discovery.service.clone().map(|service| Item { service, cluster }).into_iter().collect()
        }
        None => Vec::new(),
    });
    items.map(|item| item.cluster).collect()
}

/// An annotation counts, be it empty, and before labels.
fn is_federated(discovery: &Discovery) -> bool {
    discovery.members.is_some() || discovery.local_member.is_some()
}

/// The remote members, each once: what has no `@`, or more than one, is none.
fn items(discovery: &Discovery) -> Vec<Item> {
    let mut items = Vec::new();
    for item in discovery.members.as_deref().unwrap_or_default().split(',') {
        if let [service, cluster] = item.split('@').collect::<Vec<_>>()[..] {
            let item = Item { service: service.to_owned(), cluster: cluster.to_owned() };
            if !items.contains(&item) {
                items.push(item);
            }
        }
    }
    items
}

impl Rules<'_> {
    /// What a request is answered with, or refused with.
    pub(crate) fn ask(&self, question: &Question) -> Result<Asked, Code> {
        let service = self.here.service(&question.service).ok_or(Code::NotFound)?;
        let Discovery { cluster, service: named, .. } = &service.discovery;
        match (cluster, named) {
            _ if is_federated(&service.discovery) => Ok(Asked::Federated),
            (Some(_), None) => Err(Code::FailedPrecondition),
            (Some(cluster), _) if !self.is_linked(cluster) => Err(Code::NotFound),
            (Some(cluster), Some(named)) => {
                let elsewhere = self.told(cluster).and_then(|told| told.world.service(named));
                match elsewhere.is_some_and(|service| service.external_name) {
                    true => Err(Code::InvalidArgument),
                    false => {
                        let (service, cluster) = (named.clone(), cluster.clone());
                        Ok(Asked::Mirror(Item { service, cluster }))
                    }
                }
            }
            (None, _) if service.external_name => Err(Code::InvalidArgument),
            (None, _) => Ok(Asked::Own),
        }
    }

    /// What is to come of a stream that was opened for that.
    pub(crate) fn now(&self, question: &Question, asked: &Asked) -> Now {
        match asked {
            Asked::Own => Now::Shows(vec![truth(self.here, self.settings, question)]),
            Asked::Mirror(item) if !self.is_linked(&item.cluster) => Now::Ends { taken_back: true },
            Asked::Mirror(item) => match self.told(&item.cluster) {
                None => Now::Silent,
                Some(_) => Now::Shows(self.elsewhere(question, item, false)),
            },
            Asked::Federated => match self.here.service(&question.service) {
                None => Now::Ends { taken_back: true },
                Some(it) if !is_federated(&it.discovery) => Now::Ends { taken_back: false },
                Some(it) => self.federated(question, it),
            },
        }
    }

    /// All members that are known, those that come first first: what two have is what the first of them says.
    fn federated(&self, question: &Question, service: &Service) -> Now {
        let items = items(&service.discovery).into_iter();
        let linked = items.filter(|item| self.is_linked(&item.cluster)).collect::<Vec<_>>();
        let local = service.discovery.local_member.as_deref().filter(|name| !name.is_empty());
        let known: Vec<_> = linked.iter().filter(|it| self.told(&it.cluster).is_some()).collect();
        if known.is_empty() && local.is_none() && !linked.is_empty() {
            return Now::Silent;
        }
        let mut sets = vec![Shown::new()];
        let here = local.map(|name| {
            let question = Question { service: name.to_owned(), ..question.clone() };
            let external = self.here.service(name).is_some_and(|it| it.external_name);
            vec![if external { Shown::new() } else { truth(self.here, self.settings, &question) }]
        });
        let there = known.into_iter().map(|item| self.elsewhere(question, item, true));
        for members in there.chain(here) {
            let with =
                |set: &Shown| members.iter().map(|more| joined(set, more)).collect::<Vec<_>>();
            sets = sets.iter().flat_map(with).collect();
        }
        Now::Shows(sets)
    }

    /// A Service of a linked cluster, with the trust domain of that, and unfiltered. Where the Service was never seen a port
    /// is what it is; where it has been deleted there is nothing. That it was there is forgotten at some time, if it has no
    /// slices.
    fn elsewhere(&self, question: &Question, item: &Item, member: bool) -> Vec<Shown> {
        let Some(told) = self.told(&item.cluster) else { return vec![Shown::new()] };
        let settings =
            Settings { trust_domain: told.origin.trust_domain.clone(), ..self.settings.clone() };
        let asked = Question { service: item.service.clone(), ..question.clone() };
        let here = zone(self.here, question);
        let see = |service: &Service| seen(&told.world, &settings, &asked, service, (here, false));
        match (told.world.service(&item.service), told.gone.get(&item.service)) {
            (Some(service), _) if member && service.external_name => vec![Shown::new()],
            (Some(service), _) => vec![see(service)],
            (None, None) => vec![see(&Service::default())],
            (None, Some(true)) => vec![Shown::new()],
            (None, Some(false)) => vec![Shown::new(), see(&Service::default())],
        }
    }

    fn is_linked(&self, cluster: &str) -> bool {
        links(self.here).contains_key(cluster)
    }

    /// What was said of a cluster, once it was all listed.
    fn told(&self, cluster: &str) -> Option<&Told> {
        let told = &self.parts.get(cluster)?.told;
        told.is_listed().then_some(told)
    }
}

fn joined(set: &Shown, more: &Shown) -> Shown {
    more.iter().chain(set).map(|(addr, value)| (*addr, value.clone())).collect()
}
