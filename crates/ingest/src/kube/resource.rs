//! Where the API server has each kind, and the requests for it.

use kube::core::Request;
use kube::core::params::{ListParams, WatchParams};
use model::Kind;

use super::failure::Failure;

/// A request as kube's client takes it.
pub(super) type HttpRequest = http::Request<Vec<u8>>;

/// A kind at an API server.
pub(super) struct Resource {
    /// Its name in paths and RBAC rules.
    pub(super) plural: &'static str,
    /// A cluster may not have it.
    pub(super) optional: bool,
    /// Only the metadata is asked for.
    metadata_only: bool,
    /// Which objects of the kind.
    fields: Option<&'static str>,
    requests: Request,
}

/// The Secrets that are read: nobody needs to hand out others.
const LINKS: &str = "type=mirror.linkerd.io/remote-kubeconfig";

impl Resource {
    /// Where a kind is: that of a namespace, or all.
    pub(super) fn new(kind: Kind, namespace: Option<&str>) -> Resource {
        let (group, plural) = match kind {
            Kind::Service => ("/api/v1", "services"),
            Kind::EndpointSlice => ("/apis/discovery.k8s.io/v1", "endpointslices"),
            Kind::Endpoints => ("/api/v1", "endpoints"),
            Kind::Pod => ("/api/v1", "pods"),
            Kind::ExternalWorkload => ("/apis/workload.linkerd.io/v1beta1", "externalworkloads"),
            Kind::Node => ("/api/v1", "nodes"),
            Kind::ReplicaSet => ("/apis/apps/v1", "replicasets"),
            Kind::Job => ("/apis/batch/v1", "jobs"),
            Kind::Server => ("/apis/policy.linkerd.io/v1beta3", "servers"),
            Kind::ServiceProfile => ("/apis/linkerd.io/v1alpha2", "serviceprofiles"),
            Kind::Secret => ("/api/v1", "secrets"),
        };
        let path = match namespace {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
            None => format!("{group}/{plural}"),
        };
        Resource {
            plural,
            optional: matches!(kind, Kind::ExternalWorkload | Kind::Server | Kind::ServiceProfile),
            metadata_only: matches!(kind, Kind::Node | Kind::ReplicaSet | Kind::Job),
            fields: (kind == Kind::Secret).then_some(LINKS),
            requests: Request::new(path),
        }
    }

    /// A page of a consistent list: the first, or the one after `token`, if it isn't empty.
    pub(super) fn page(&self, items: u32, token: &str) -> Result<HttpRequest, Failure> {
        let params = self.paged(items, token);
        Ok(match self.metadata_only {
            true => self.requests.list_metadata(&params)?,
            false => self.requests.list(&params)?,
        })
    }

    /// The same page with one object, of which only the metadata is asked for.
    pub(super) fn page_of_metadata(&self, token: &str) -> Result<HttpRequest, Failure> {
        Ok(self.requests.list_metadata(&self.paged(1, token))?)
    }

    fn paged(&self, items: u32, token: &str) -> ListParams {
        let continue_token = Some(token.to_owned()).filter(|token| !token.is_empty());
        ListParams { continue_token, ..self.listed().limit(items) }
    }

    /// The smallest consistent list, to see at which version the API server is.
    pub(super) fn probe(&self) -> Result<HttpRequest, Failure> {
        Ok(self.requests.list_metadata(&self.listed().limit(1))?)
    }

    fn listed(&self) -> ListParams {
        ListParams { field_selector: self.fields.map(str::to_owned), ..ListParams::default() }
    }

    /// A watch that begins with all objects there are.
    pub(super) fn initial(&self, secs: u32) -> Result<HttpRequest, Failure> {
        self.watch(true, secs, "")
    }

    /// A watch that goes on after a version.
    pub(super) fn follow(&self, version: &str, secs: u32) -> Result<HttpRequest, Failure> {
        self.watch(false, secs, version)
    }

    fn watch(&self, initial: bool, secs: u32, version: &str) -> Result<HttpRequest, Failure> {
        let params = WatchParams {
            timeout: Some(secs),
            bookmarks: true,
            send_initial_events: initial,
            field_selector: self.fields.map(str::to_owned),
            ..WatchParams::default()
        };
        Ok(match self.metadata_only {
            true => self.requests.watch_metadata(&params, version)?,
            false => self.requests.watch(&params, version)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn requests() {
        let check = |request: Result<HttpRequest, Failure>, expected: Expect| {
            let request = request.unwrap();
            let accept = request.headers().get("accept").map(|it| it.to_str().unwrap());
            expected.assert_eq(&format!("{}\n{}", request.uri(), accept.unwrap_or("any")));
        };
        let (slices, jobs) =
            (Resource::new(Kind::EndpointSlice, None), Resource::new(Kind::Job, None));
        check(
            slices.page(500, ""),
            expect![[r#"
            /apis/discovery.k8s.io/v1/endpointslices?&limit=500
            any"#]],
        );
        check(
            jobs.page(500, "tok"),
            expect![[r#"
            /apis/batch/v1/jobs?&limit=500&continue=tok
            application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"#]],
        );
        check(
            Resource::new(Kind::ServiceProfile, None).page(500, ""),
            expect![[r#"
            /apis/linkerd.io/v1alpha2/serviceprofiles?&limit=500
            any"#]],
        );
        check(
            slices.probe(),
            expect![[r#"
            /apis/discovery.k8s.io/v1/endpointslices?&limit=1
            application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"#]],
        );
        check(
            slices.initial(250),
            expect![[r#"
            /apis/discovery.k8s.io/v1/endpointslices?&watch=true&timeoutSeconds=250&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=
            any"#]],
        );
        check(
            slices.follow("17", 250),
            expect![[r#"
            /apis/discovery.k8s.io/v1/endpointslices?&watch=true&timeoutSeconds=250&allowWatchBookmarks=true&resourceVersion=17
            any"#]],
        );
        check(
            jobs.follow("17", 250),
            expect![[r#"
            /apis/batch/v1/jobs?&watch=true&timeoutSeconds=250&allowWatchBookmarks=true&resourceVersion=17
            application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"#]],
        );
    }
}
