//! Secrets that declare links to other clusters (spec §2.12).

use k8s_openapi::ByteString;
use model::{Credentials, Link, Object};
use serde::Deserialize;

use super::meta::Meta;
use super::{Decoded, labels, nullable};

/// The type of such a Secret. Others don't come here: the watch leaves them out.
const TYPE: &str = "mirror.linkerd.io/remote-kubeconfig";

#[derive(Deserialize)]
struct Secret {
    #[serde(default, deserialize_with = "nullable::default")]
    metadata: Meta,
    #[serde(rename = "type", default, deserialize_with = "nullable::default")]
    type_: String,
    #[serde(default, deserialize_with = "nullable::default")]
    data: Data,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    kubeconfig: Option<ByteString>,
}

/// Reads a Secret. One that declares nothing is kept with the reason, so that it can be told.
pub(super) fn decode(json: &str) -> Result<Decoded, serde_json::Error> {
    let Secret { mut metadata, type_, data } = serde_json::from_str(json)?;
    let link = link(&mut metadata, &type_, data);
    Ok(Decoded { meta: metadata, object: Object::Link(link) })
}

fn link(meta: &mut Meta, type_: &str, data: Data) -> Result<Link, String> {
    if type_ != TYPE {
        return Err(format!("its type is {type_:?}, not {TYPE}"));
    }
    let missing = |what: &'static str| move || format!("it has no {what}");
    let cluster = meta.labels.remove(labels::CLUSTER_NAME).filter(|name| !name.is_empty());
    let cluster = cluster.ok_or_else(missing("label multicluster.linkerd.io/cluster-name"))?;
    let annotations = std::mem::take(&mut meta.annotations);
    let trust_domain = annotations.trust_domain;
    let cluster_domain = annotations.cluster_domain;
    let (trust_domain, cluster_domain) = (
        trust_domain.ok_or_else(missing("annotation multicluster.linkerd.io/trust-domain"))?,
        cluster_domain.ok_or_else(missing("annotation multicluster.linkerd.io/cluster-domain"))?,
    );
    let ByteString(kubeconfig) = data.kubeconfig.ok_or_else(missing("data.kubeconfig"))?;
    let kubeconfig =
        String::from_utf8(kubeconfig).map_err(|_| "data.kubeconfig is no text".to_owned())?;
    let credentials = Credentials(kubeconfig.into());
    crate::kube::check_credentials(&credentials).map_err(|error| error.to_string())?;
    Ok(Link { cluster, trust_domain, cluster_domain, credentials })
}
