//! `spillway get --explain`: why an address is or isn't in an answer.

use std::net::IpAddr;

use serve::{ExplainedLink, Explanation};

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
        Output::Table | Output::Wide => text(&explanation, print::now()),
    })
}

/// How well a linked cluster is known, so many seconds after 1970.
fn known(link: &ExplainedLink, now: u64) -> String {
    let ExplainedLink { cluster, state, reason, synced } = link;
    let mut text = format!("Linked cluster {cluster} is {state}");
    if let Some(synced) = synced.filter(|_| state != "live") {
        text += &format!(", and was last heard {} ago", print::age(now.saturating_sub(synced)));
    }
    match reason {
        Some(reason) => format!("{text}: {reason}"),
        None => text,
    }
}

/// As a human reads it: the verdict, what was asked, and a paragraph for each endpoint.
pub(super) fn text(explanation: &Explanation, now: u64) -> String {
    let Explanation { authority, address, revision, view, .. } = explanation;
    let is = if explanation.in_answer { "is" } else { "is not" };
    let mut text = format!("{address} {is} in the answer to {authority}.\n");
    text += &format!("The answer, at revision {revision}, has: {view}.\n");
    for link in &explanation.links {
        text += &format!("{}.\n", known(link, now));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_linked_cluster_it_is_told_how_old_what_is_known_is() {
        let link = |state: &str, reason: Option<&str>, synced| {
            let (cluster, state) = ("east".to_owned(), state.to_owned());
            known(
                &ExplainedLink { cluster, state, reason: reason.map(str::to_owned), synced },
                1_000,
            )
        };
        assert_eq!(link("live", None, Some(990)), "Linked cluster east is live");
        assert_eq!(
            link("stale", Some("no route"), Some(808)),
            "Linked cluster east is stale, and was last heard 3m12s ago: no route"
        );
        let connecting = "Linked cluster east is connecting: no route";
        assert_eq!(link("connecting", Some("no route"), None), connecting);
    }
}
