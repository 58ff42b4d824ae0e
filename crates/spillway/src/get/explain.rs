//! `spillway get --explain`: why an address is or isn't in an answer.

use std::net::IpAddr;

use serve::Explanation;

use crate::args::{GetArgs, Output};
use crate::{client, print};

/// Asks the server's admin address, and prints what it says.
pub(super) async fn run(args: &GetArgs, address: IpAddr) -> anyhow::Result<()> {
    let (ask, address) = (&args.ask, address.to_string());
    let parameters =
        [("authority", &*args.authority), ("token", &*ask.token), ("address", &*address)];
    let asked = client::explanation(&ask.admin_addr, "/explain", &parameters);
    let explanation = client::in_time(&ask.admin_addr, ask.timeout, asked).await?;
    print::text(&match ask.output {
        Output::Json => serde_json::to_string(&explanation)? + "\n",
        Output::Table | Output::Wide => text(&explanation),
    })
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
