//! Writes objects to an API server and reads them back, by plain requests: what is in the test's JSON is what
//! the API server is sent.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::Client;
use model::{EndpointsFrom, Kind, ObjectName, ResourceVersion};
use serde_json::{Value, json};

/// Custom kinds are served soon after they are defined.
const DEFINITION_SECS_MAX: u64 = 60;

/// The objects of an API server.
pub struct Objects {
    client: Client,
}

/// Where a kind is.
struct Place {
    group: &'static str,
    plural: &'static str,
    namespaced: bool,
    /// Its status is written apart.
    status: bool,
}

fn place(kind: &str) -> Option<Place> {
    let (group, plural, namespaced, status) = match kind {
        "Namespace" => ("/api/v1", "namespaces", false, false),
        "Node" => ("/api/v1", "nodes", false, false),
        "ClusterRoleBinding" => {
            ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", false, false)
        }
        "Service" => ("/api/v1", "services", true, false),
        "Endpoints" => ("/api/v1", "endpoints", true, false),
        "ServiceAccount" => ("/api/v1", "serviceaccounts", true, false),
        "Secret" => ("/api/v1", "secrets", true, false),
        "Pod" => ("/api/v1", "pods", true, true),
        "EndpointSlice" => ("/apis/discovery.k8s.io/v1", "endpointslices", true, false),
        "ReplicaSet" => ("/apis/apps/v1", "replicasets", true, false),
        "Job" => ("/apis/batch/v1", "jobs", true, false),
        "Server" => ("/apis/policy.linkerd.io/v1beta3", "servers", true, false),
        "ServiceProfile" => ("/apis/linkerd.io/v1alpha2", "serviceprofiles", true, false),
        "ExternalWorkload" => {
            ("/apis/workload.linkerd.io/v1beta1", "externalworkloads", true, true)
        }
        "CustomResourceDefinition" => {
            ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", false, false)
        }
        _ => return None,
    };
    Some(Place { group, plural, namespaced, status })
}

impl Place {
    fn all(&self, namespace: &str) -> String {
        match (self.namespaced, namespace) {
            (false, _) | (true, "") => format!("{}/{}", self.group, self.plural),
            (true, _) => format!("{}/namespaces/{namespace}/{}", self.group, self.plural),
        }
    }
}

/// An answer other than success.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: {code} {message}")]
struct Refused {
    method: String,
    path: String,
    code: u16,
    message: String,
}

impl Objects {
    pub(super) fn new(client: Client) -> Objects {
        Objects { client }
    }

    /// Creates or replaces objects, each with its status; those of kinds that we don't keep are left out.
    pub async fn apply(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            let kind = object["kind"].as_str().context("an object without kind")?;
            if let Some(place) = place(kind) {
                self.apply_one(&place, object).await.with_context(|| object.to_string())?;
            }
        }
        Ok(())
    }

    async fn apply_one(&self, place: &Place, object: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().context("an object without name")?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let all = place.all(namespace);
        let path = format!("{all}/{name}");
        let mut object = object.clone();
        let written = match found(self.request("GET", &path, None).await)? {
            None => self.create(&all, namespace, &object).await?,
            Some(old) => {
                object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
                match self.request("PUT", &path, Some(&object)).await {
                    // Some fields can't be changed: another object takes the name.
                    Err(refused) if refused.code == 422 => {
                        self.delete_path(&path).await?;
                        remove_version(&mut object);
                        self.create(&all, namespace, &object).await?
                    }
                    written => written?,
                }
            }
        };
        if let (true, Some(status)) = (place.status, object.get("status")) {
            let mut whole = written;
            whole["status"] = status.clone();
            self.request("PUT", &format!("{path}/status"), Some(&whole)).await?;
        }
        Ok(())
    }

    /// Creates an object, and its namespace first if that is missing.
    async fn create(&self, all: &str, namespace: &str, object: &Value) -> Result<Value> {
        match self.request("POST", all, Some(object)).await {
            Err(refused) if refused.code == 404 && !namespace.is_empty() => {
                let name = json!({"metadata": {"name": namespace}});
                self.request("POST", "/api/v1/namespaces", Some(&name)).await?;
                Ok(self.request("POST", all, Some(object)).await?)
            }
            written => Ok(written?),
        }
    }

    /// Deletes objects, given as Kind/namespace/name, at once.
    pub async fn delete(&self, objects: &[String]) -> Result<()> {
        for object in objects {
            let parts: Vec<&str> = object.split('/').collect();
            let (kind, namespace, name) = match parts[..] {
                [kind, name] => (kind, "", name),
                [kind, namespace, name] => (kind, namespace, name),
                _ => bail!("{object} is not Kind/namespace/name"),
            };
            if let Some(place) = place(kind) {
                self.delete_path(&format!("{}/{name}", place.all(namespace))).await?;
            }
        }
        Ok(())
    }

    async fn delete_path(&self, path: &str) -> Result<()> {
        let now = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        self.request("DELETE", path, Some(&now)).await?;
        Ok(())
    }

    /// Defines the custom kinds of these names, and returns when they are served.
    pub async fn define(&self, kinds: &[&str]) -> Result<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kube/crds.yaml");
        let all: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(path)?)?;
        for kind in kinds {
            let definition = all.iter().find(|crd| crd["spec"]["names"]["kind"] == *kind);
            let definition = definition.with_context(|| format!("no definition of {kind}"))?;
            self.apply(std::slice::from_ref(definition)).await?;
            let place = place(kind).with_context(|| format!("{kind} is unknown here"))?;
            let served = async {
                while self.request("GET", &place.all(""), None).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            let limit = Duration::from_secs(DEFINITION_SECS_MAX);
            tokio::time::timeout(limit, served).await.with_context(|| format!("no {kind}"))?;
        }
        Ok(())
    }

    /// An object, given as Kind/namespace/name.
    pub async fn get(&self, object: &str) -> Result<Value> {
        let [kind, namespace, name] = object.split('/').collect::<Vec<_>>()[..] else {
            bail!("{object} is not Kind/namespace/name")
        };
        let place = place(kind).context("a kind that is known here")?;
        let path = format!("{}/{name}", place.all(namespace));
        Ok(self.request("GET", &path, None).await?)
    }

    /// The uid of an object, given as Kind/namespace/name.
    pub async fn uid(&self, object: &str) -> Result<String> {
        let object = self.get(object).await?;
        Ok(object["metadata"]["uid"].as_str().context("it has a uid")?.to_owned())
    }

    /// A token of a service account, which is good for as long as that is there.
    pub async fn token(&self, namespace: &str, account: &str) -> Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let wanted =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let granted = self.request("POST", &path, Some(&wanted)).await?;
        Ok(granted["status"]["token"].as_str().context("an answer without a token")?.to_owned())
    }

    /// All objects of a kind that we keep, of Secrets those that declare links; none if the API server doesn't have the kind.
    pub async fn list(&self, kind: Kind) -> Result<BTreeMap<ObjectName, ResourceVersion>> {
        let place = place(kind.name()).context("a kind that we keep")?;
        let list = found(self.request("GET", &place.all(""), None).await)?;
        let items = list.as_ref().and_then(|list| list["items"].as_array()).into_iter().flatten();
        let is_kept = |item: &&Value| {
            kind != Kind::Secret || item["type"] == "mirror.linkerd.io/remote-kubeconfig"
        };
        items
            .filter(is_kept)
            .map(|item| {
                let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default();
                let name = ObjectName::new(text("namespace"), text("name"))?;
                Ok((name, ResourceVersion(text("resourceVersion").to_owned())))
            })
            .collect()
    }

    /// Does the API server refuse to watch a kind from this version on, since that is too long ago?
    pub async fn is_expired(&self, kind: Kind, version: &ResourceVersion) -> Result<bool> {
        let place = place(kind.name()).context("a kind that we keep")?;
        let path =
            format!("{}?watch=1&timeoutSeconds=1&resourceVersion={}", place.all(""), version.0);
        let request = ::http::Request::get(path).body(Vec::new())?;
        Ok(match self.client.request_text(request).await {
            Ok(text) => text.contains(r#""code":410"#),
            Err(kube::Error::Api(status)) => status.code == 410,
            Err(error) => return Err(error.into()),
        })
    }

    /// Deletes all objects of the kinds that we keep, but for what the API server itself makes.
    pub async fn clear(&self) -> Result<()> {
        for kind in EndpointsFrom::Slices.kinds() {
            for name in self.list(kind).await?.into_keys() {
                if (name.namespace(), name.name()) != ("default", "kubernetes") {
                    let path = [kind.name(), name.namespace(), name.name()].join("/");
                    self.delete(&[path]).await?;
                }
            }
        }
        Ok(())
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refused> {
        let refused = |code, message: String| Refused {
            method: method.to_owned(),
            path: path.to_owned(),
            code,
            message,
        };
        let request = ::http::Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", "application/json")
            .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
            .map_err(|error| refused(0, error.to_string()))?;
        self.client.request::<Value>(request).await.map_err(|error| match error {
            kube::Error::Api(status) => refused(status.code, status.message),
            error => refused(0, format!("{error:?}")),
        })
    }
}

/// `None` if there is no such object.
fn found(answer: Result<Value, Refused>) -> Result<Option<Value>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(refused) if refused.code == 404 => Ok(None),
        Err(refused) => Err(refused.into()),
    }
}

fn remove_version(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
}
