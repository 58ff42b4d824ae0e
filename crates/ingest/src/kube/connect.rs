//! From a kubeconfig, or from within a pod, to a client.

use std::path::{Path, PathBuf};

use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use model::Credentials;

use super::failure::{chain, one_line};
use super::limits::{IDENTITY_BYTES_MAX, UID_BYTES_MAX};
use super::transport::{self, Unanswered};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig isn't there.
    #[error("kubeconfig {} does not exist", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The kubeconfig is there, and can't be read.
    #[error("kubeconfig {} can't be read: {reason}", path.display())]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The kubeconfig isn't one.
    #[error("{file} can't be parsed: {reason}")]
    Unparsable {
        /// Which one.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The kubeconfig doesn't have the context.
    #[error("{file} has no context {context:?}; it has {}", list(known))]
    UnknownContext {
        /// Which kubeconfig.
        file: String,
        /// What was asked for.
        context: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The kubeconfig doesn't say which context to use.
    #[error("{file} has no current-context, and none is named by --context")]
    NoContext {
        /// Which kubeconfig.
        file: String,
    },
    /// Neither in a pod, nor with a kubeconfig.
    #[error(
        "no cluster to connect to: not in a pod ({in_cluster}), and no usable kubeconfig ({kubeconfig}); name one with --kubeconfig"
    )]
    Nowhere {
        /// Why not as a pod.
        in_cluster: String,
        /// Why not with the usual kubeconfig.
        kubeconfig: String,
    },
    /// The configuration was read, and can't be used.
    #[error("{file} can't be used: {reason}")]
    Unusable {
        /// Which configuration.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The API server of a linked cluster doesn't answer, or not to us.
    #[error("its API server is not reached: {reason}")]
    Unreached {
        /// What happened instead.
        reason: String,
    },
    /// The API server of a linked cluster doesn't take the credentials.
    #[error("its API server doesn't accept our credentials (401): {reason}")]
    Denied {
        /// What it says.
        reason: String,
    },
    /// The API server didn't say which cluster it serves.
    #[error("can't tell which cluster this is (get namespace kube-system): {reason}")]
    Identity {
        /// What it said instead.
        reason: String,
    },
}

fn list(known: &[String]) -> String {
    match known {
        [] => "none".to_owned(),
        known => known.join(", "),
    }
}

/// A client for the API server that the kubeconfig names, with its own or the given context. Without a
/// kubeconfig: that of the pod's own cluster, else that of `$KUBECONFIG` or `~/.kube/config`.
///
/// Nothing is sent yet: whether the API server is there is seen by the watches, which go on trying.
pub async fn connect(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Client, ConnectError> {
    let (config, file) = match (kubeconfig, context) {
        (Some(path), context) => from_file(path, context).await?,
        // A context can only be one of a kubeconfig.
        (None, Some(_)) => usual(context).await?,
        (None, None) => match Config::incluster() {
            Ok(config) => (config, "the pod's own configuration".to_owned()),
            Err(in_cluster) => usual(None).await.map_err(|error| nowhere(&in_cluster, error))?,
        },
    };
    client(config, file)
}

fn client(mut config: Config, file: String) -> Result<Client, ConnectError> {
    // Waiting and retrying are the driver's, which does it with jitter and says so.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| ConnectError::Unusable { file, reason: chain(&error) })
}

/// A client for a linked cluster.
pub async fn connect_linked(credentials: &Credentials) -> Result<Client, ConnectError> {
    let kubeconfig = read_credentials(credentials)?;
    let (config, file) = choose(kubeconfig, LINKED.to_owned(), None).await?;
    client(config, file)
}

/// Can there be a client with these credentials? Nothing is asked for.
pub fn check_credentials(credentials: &Credentials) -> Result<(), ConnectError> {
    read_credentials(credentials).map(drop)
}

/// How credentials are named: the text is a secret.
const LINKED: &str = "data.kubeconfig";

/// Whoever may write a Secret must not thereby run programs here, or read files.
fn read_credentials(Credentials(text): &Credentials) -> Result<Kubeconfig, ConnectError> {
    let unusable = |reason: &str| ConnectError::Unusable {
        file: LINKED.to_owned(),
        reason: reason.to_owned(),
    };
    // What is wrong in it is not repeated, since it may be a part of the secret.
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| unusable("it is no kubeconfig"))?;
    let Some(context) = kubeconfig.current_context.as_deref() else {
        return Err(unusable("it has no current-context"));
    };
    let context = kubeconfig.contexts.iter().find(|it| it.name == context);
    let context = context.and_then(|it| it.context.as_ref());
    let context = context.ok_or_else(|| unusable("its current context isn't in it"))?;
    let cluster = kubeconfig.clusters.iter().find(|it| it.name == context.cluster);
    let cluster = cluster.and_then(|it| it.cluster.as_ref());
    let cluster = cluster.ok_or_else(|| unusable("the cluster of its context isn't in it"))?;
    let server = cluster.server.as_deref().unwrap_or_default();
    if server.parse::<http::Uri>().ok().and_then(|it| it.host().map(drop)).is_none() {
        return Err(unusable("its cluster has no server that is a URL"));
    }
    let users = || kubeconfig.auth_infos.iter().filter_map(|it| it.auth_info.as_ref());
    if users().any(|it| it.exec.is_some() || it.auth_provider.is_some()) {
        return Err(unusable("it names a program to run (exec, auth-provider), which is not done"));
    }
    let files =
        users().flat_map(|it| [&it.token_file, &it.client_certificate, &it.client_key]).chain(
            kubeconfig
                .clusters
                .iter()
                .filter_map(|it| it.cluster.as_ref())
                .map(|it| &it.certificate_authority),
        );
    if files.flatten().next().is_some() {
        return Err(unusable("it names a file; put what is in it into the kubeconfig"));
    }
    Ok(kubeconfig)
}

async fn from_file(path: &Path, context: Option<&str>) -> Result<(Config, String), ConnectError> {
    let file = format!("kubeconfig {}", path.display());
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unread(error, &file))?;
    choose(kubeconfig, file, context).await
}

async fn usual(context: Option<&str>) -> Result<(Config, String), ConnectError> {
    let file = "the usual kubeconfig ($KUBECONFIG or ~/.kube/config)".to_owned();
    let kubeconfig = Kubeconfig::read().map_err(|error| unread(error, &file))?;
    choose(kubeconfig, file, context).await
}

async fn choose(
    kubeconfig: Kubeconfig,
    file: String,
    context: Option<&str>,
) -> Result<(Config, String), ConnectError> {
    let known: Vec<_> = kubeconfig.contexts.iter().map(|it| it.name.clone()).collect();
    let context = context.map(str::to_owned);
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    match Config::from_custom_kubeconfig(kubeconfig, &options).await {
        Ok(config) => Ok((config, file)),
        Err(KubeconfigError::CurrentContextNotSet) => Err(ConnectError::NoContext { file }),
        Err(KubeconfigError::LoadContext(context)) => {
            Err(ConnectError::UnknownContext { file, context, known })
        }
        Err(error) => Err(ConnectError::Unusable { file, reason: chain(&error) }),
    }
}

fn unread(error: KubeconfigError, file: &str) -> ConnectError {
    match error {
        KubeconfigError::ReadConfig(error, path) => match error.kind() {
            std::io::ErrorKind::NotFound => ConnectError::Missing { path },
            _ => ConnectError::Unreadable { path, reason: error.to_string() },
        },
        error => ConnectError::Unparsable { file: file.to_owned(), reason: chain(&error) },
    }
}

/// Outside of a pod and without a kubeconfig both ways are worth naming; a kubeconfig that is bad is its own news.
fn nowhere(in_cluster: &InClusterError, error: ConnectError) -> ConnectError {
    match error {
        ConnectError::Missing { .. } | ConnectError::NoContext { .. } => {
            ConnectError::Nowhere { in_cluster: chain(in_cluster), kubeconfig: error.to_string() }
        }
        error => error,
    }
}

/// What makes a cluster this one: the uid of its namespace `kube-system`. A stored version means something
/// only to the cluster that gave it, whatever the name under which it is reached.
pub async fn cluster_uid(client: &Client) -> Result<String, ConnectError> {
    let uid = uid_of(client, "/api/v1/namespaces", "kube-system").await;
    uid.map_err(|unanswered| ConnectError::Identity { reason: unanswered.to_string() })
}

/// The same of a linked cluster, where namespaces are mostly not to be seen: the uid of Service `default/kubernetes`, which
/// each API server makes for itself. `None`: that is not to be seen either.
pub async fn linked_uid(client: &Client) -> Result<Option<String>, ConnectError> {
    match uid_of(client, "/api/v1/namespaces/default/services", "kubernetes").await {
        Ok(uid) => Ok(Some(uid)),
        Err(Unanswered::Status(status)) if matches!(status.code, 403 | 404) => Ok(None),
        Err(Unanswered::Status(status)) if status.code == 401 => {
            Err(ConnectError::Denied { reason: one_line(&status.message) })
        }
        Err(unanswered) => Err(ConnectError::Unreached { reason: unanswered.to_string() }),
    }
}

async fn uid_of(client: &Client, path: &str, name: &str) -> Result<String, Unanswered> {
    #[derive(serde::Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    struct Metadata {
        uid: String,
    }
    let failed = |error: &dyn std::error::Error| Unanswered::Failed(chain(error));
    let request =
        kube::core::Request::new(path).get(name, &kube::core::params::GetParams::default());
    let request = request.map_err(|error| failed(&error))?;
    let object = transport::short(client, request, IDENTITY_BYTES_MAX).await?;
    let object: Object = serde_json::from_slice(&object).map_err(|error| failed(&error))?;
    match object.metadata.uid {
        uid if uid.len() > UID_BYTES_MAX => {
            Err(Unanswered::Failed(format!("its uid is longer than {UID_BYTES_MAX} bytes")))
        }
        uid => Ok(uid),
    }
}
