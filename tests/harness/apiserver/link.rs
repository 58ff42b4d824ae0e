//! What links a cluster, as `linkerd multicluster link` makes it.

use serde_json::{Value, json};

/// The Secret that links a cluster. Its domains are `<cluster>.org` and `<cluster>.test`.
pub fn secret(name: &str, cluster: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "mirror.linkerd.io/remote-kubeconfig",
        "metadata": {
            "name": name, "namespace": "linkerd",
            "labels": {"multicluster.linkerd.io/cluster-name": cluster},
            "annotations": {
                "multicluster.linkerd.io/trust-domain": format!("{cluster}.org"),
                "multicluster.linkerd.io/cluster-domain": format!("{cluster}.test"),
            },
        },
        "stringData": {"kubeconfig": kubeconfig},
    })
}

/// The Service `<service>-<cluster>`, which stands for a cluster's Service in the namespace of the same name.
pub fn mirror(namespace: &str, cluster: &str, service: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": format!("{service}-{cluster}"), "namespace": namespace,
            "labels": {
                "multicluster.linkerd.io/remote-discovery": cluster,
                "multicluster.linkerd.io/remote-service": service,
            },
        },
        "spec": {"ports": [{"port": 80, "targetPort": 8080}]},
    })
}
