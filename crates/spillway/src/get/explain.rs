//! `spillway get --explain`: why an address is or isn't in an answer.

use std::net::IpAddr;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serve::Explanation;

use crate::args::{GetArgs, Output};
use crate::print;

/// An explanation is a few KiB; whatever is larger is none.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Asks the server's admin address, and prints what it says.
pub(super) async fn run(args: &GetArgs, address: IpAddr) -> anyhow::Result<()> {
    let late = || format!("no answer from {} within {:?}", args.admin_addr, args.timeout);
    let asked = tokio::time::timeout(args.timeout, ask(args, address));
    let explanation = asked.await.with_context(late)??;
    print::text(&match args.output {
        Output::Json => serde_json::to_string(&explanation)? + "\n",
        Output::Table | Output::Wide => text(&explanation),
    })
}

async fn ask(args: &GetArgs, address: IpAddr) -> anyhow::Result<Explanation> {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("authority", &args.authority)
        .append_pair("token", &args.token)
        .append_pair("address", &address.to_string())
        .finish();
    let url = format!("{}/explain?{query}", args.admin_addr);
    let failed = || format!("cannot ask {}", args.admin_addr.trim_start_matches("http://"));
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let response = client.get(url.parse()?).await.with_context(failed)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!(error)).with_context(failed)?.to_bytes();
    if !status.is_success() {
        anyhow::bail!("{}", String::from_utf8_lossy(&body).trim_end());
    }
    serde_json::from_slice(&body)
        .context("the server's answer can't be read; is it as new as this?")
}

/// As a human reads it: the verdict, what was asked, and a paragraph for each endpoint.
pub(super) fn text(explanation: &Explanation) -> String {
    let Explanation { authority, address, revision, view, .. } = explanation;
    let is = if explanation.in_answer { "is" } else { "is not" };
    let mut text = format!("{address} {is} in the answer to {authority}.\n");
    text += &format!("The answer, at revision {revision}, has: {view}.\n");
    if let (Some(reason), Some(rule)) = (&explanation.reason, &explanation.rule) {
        text += &format!("Reason: {reason} ({rule}).\n");
    }
    for endpoint in &explanation.endpoints {
        let target = endpoint.target.as_deref().unwrap_or("no target");
        let verdict = match endpoint.port {
            Some(port) => format!("in the answer at port {port}"),
            None => "not in the answer".to_owned(),
        };
        text += &format!("\n{}, {target}\n", endpoint.slice);
        text += &format!("  {verdict}: {} ({})\n", endpoint.reason, endpoint.rule);
    }
    if explanation.more {
        text += "\n… and more EndpointSlices, which are left out\n";
    }
    text
}
