//! Kubeconfigs, good and bad.

use std::path::Path;

use expect_test::{Expect, expect};

use model::Credentials;

use crate::kube::{check_credentials, connect, connect_linked};

const GOOD: &str = r#"
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: one, context: {cluster: c, user: u}}, {name: two, context: {cluster: gone}}]
users: [{name: u, user: {token: t}}]
current-context: one
"#;

async fn check(text: &str, context: Option<&str>, expected: Expect) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, text).unwrap();
    compare(&path, folder.path(), context, expected).await;
}

async fn compare(path: &Path, folder: &Path, context: Option<&str>, expected: Expect) {
    let out = match connect(Some(path), context).await {
        Ok(_) => "connected".to_owned(),
        Err(error) => error.to_string().replace(folder.to_str().unwrap(), "FOLDER"),
    };
    expected.assert_eq(&out);
}

#[tokio::test]
async fn credentials_of_a_linked_cluster() {
    let check = async |text: &str, expected: Expect| {
        let credentials = Credentials(text.into());
        let checked = check_credentials(&credentials).map_err(|error| error.to_string());
        expected.assert_eq(&checked.err().unwrap_or_else(|| "good".to_owned()));
        // Without a program and without a file, there is a client for all that are good.
        assert_eq!(
            connect_linked(&credentials).await.is_ok(),
            check_credentials(&credentials).is_ok()
        );
    };
    check(GOOD, expect!["good"]).await;
    check("no: kubeconfig", expect!["data.kubeconfig can't be used: it has no current-context"])
        .await;
    check("{token: s3cret", expect!["data.kubeconfig can't be used: it is no kubeconfig"]).await;
    check(
        &GOOD.replace("current-context: one", "current-context: three"),
        expect!["data.kubeconfig can't be used: its current context isn't in it"],
    )
    .await;
    check(
        &GOOD.replace("current-context: one", "current-context: two"),
        expect!["data.kubeconfig can't be used: the cluster of its context isn't in it"],
    )
    .await;
    check(
        &GOOD.replace("https://127.0.0.1:1", "not a url"),
        expect!["data.kubeconfig can't be used: its cluster has no server that is a URL"],
    )
    .await;
    check(&GOOD.replace("{token: t}", "{exec: {command: sh}}"), expect!["data.kubeconfig can't be used: it names a program to run (exec, auth-provider), which is not done"]).await;
    check(
        &GOOD.replace("{token: t}", "{tokenFile: /etc/shadow}"),
        expect![
            "data.kubeconfig can't be used: it names a file; put what is in it into the kubeconfig"
        ],
    )
    .await;
    let file = "{server: \"https://127.0.0.1:1\", certificate-authority: ca.pem}";
    check(
        &GOOD.replace("{server: \"https://127.0.0.1:1\"}", file),
        expect![
            "data.kubeconfig can't be used: it names a file; put what is in it into the kubeconfig"
        ],
    )
    .await;
    assert_eq!(format!("{:?}", Credentials(GOOD.into())), "Credentials(..)");
}

#[tokio::test]
async fn a_client_or_a_sentence() {
    check(GOOD, None, expect!["connected"]).await;
    check(GOOD, Some("one"), expect!["connected"]).await;
    check(
        GOOD,
        Some("three"),
        expect![[r#"kubeconfig FOLDER/config has no context "three"; it has one, two"#]],
    )
    .await;
    check(
        GOOD,
        Some("two"),
        expect![
            "kubeconfig FOLDER/config can't be used: failed to load the cluster of context: gone"
        ],
    )
    .await;
    check(
        "",
        None,
        expect!["kubeconfig FOLDER/config has no current-context, and none is named by --context"],
    )
    .await;
    check(
        "",
        Some("one"),
        expect![[r#"kubeconfig FOLDER/config has no context "one"; it has none"#]],
    )
    .await;
    check("a: [b", None, expect!["kubeconfig FOLDER/config can't be parsed: failed to parse kubeconfig YAML: error: line 1 column 4: unclosed bracket '['"]).await;
    check(&GOOD.replace("token: t", "client-certificate: nope.pem, client-key: nope.key"), None, expect![[r#"kubeconfig FOLDER/config can't be used: Failed to infer provided configuration: failed to load client certificate: failed to read file '"FOLDER/nope.pem"': No such file or directory (os error 2)"#]]).await;
    check(
        &GOOD.replace("https://127.0.0.1:1", "::"),
        None,
        expect![
            "kubeconfig FOLDER/config can't be used: failed to parse cluster url: invalid authority"
        ],
    )
    .await;
}

#[tokio::test]
async fn no_file_or_none_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    compare(
        &folder.path().join("nope"),
        folder.path(),
        None,
        expect!["kubeconfig FOLDER/nope does not exist"],
    )
    .await;
    compare(
        folder.path(),
        folder.path(),
        None,
        expect!["kubeconfig FOLDER can't be read: Is a directory (os error 21)"],
    )
    .await;
}
