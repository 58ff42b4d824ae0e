//! What a server's admin address explains.

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;

/// An explanation is a few KiB; whatever is larger is none.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Asks a page of a server's admin address, given as `http://HOST:PORT`.
pub(crate) async fn explanation<T: DeserializeOwned>(
    url: &str,
    page: &str,
    parameters: &[(&str, &str)],
) -> anyhow::Result<T> {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    let failed = || format!("cannot ask {}", super::shown(url));
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let uri = format!("{url}{page}?{query}").parse()?;
    let response = client.get(uri).await.with_context(failed)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!(error)).with_context(failed)?.to_bytes();
    if !status.is_success() {
        anyhow::bail!("{}", String::from_utf8_lossy(&body).trim_end());
    }
    serde_json::from_slice(&body)
        .context("the server's answer can't be read; is it as new as this?")
}
