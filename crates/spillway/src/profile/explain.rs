//! `spillway profile --explain`: why a profile is what it is.

use serve::{ProfileExplanation, ProfileVerdict};

use crate::args::{Output, ProfileArgs};
use crate::{client, print};

/// Asks the server's admin address, and prints what it says.
pub(super) async fn run(args: &ProfileArgs) -> anyhow::Result<()> {
    let ask = &args.ask;
    let parameters = [("authority", &*args.authority), ("token", &*ask.token)];
    let asked = client::explanation(&ask.admin_addr, "/explain/profile", &parameters);
    let explanation = client::in_time(&ask.admin_addr, ask.timeout, asked).await?;
    print::text(&match ask.output {
        Output::Json => serde_json::to_string(&explanation)? + "\n",
        Output::Table | Output::Wide => text(&explanation),
    })
}

/// As a human reads it: the verdict, and a line for each thing that decides.
pub(super) fn text(explanation: &ProfileExplanation) -> String {
    let ProfileExplanation { authority, revision, .. } = explanation;
    let verdict = match (explanation.answer, &explanation.owner) {
        (ProfileVerdict::Refused, _) => "is refused".to_owned(),
        (ProfileVerdict::Silence, _) => "is told nothing for now".to_owned(),
        (ProfileVerdict::Empty, _) => "has an empty profile".to_owned(),
        (_, Some(owner)) => format!("has the profile of {owner}"),
        (_, None) => "has the profile of an address that is nobody's".to_owned(),
    };
    let mut text = format!("{authority} {verdict}, at revision {revision}.\n\n");
    let reasons = &explanation.reasons;
    let width = reasons.iter().map(|it| it.about.len()).max().unwrap_or(0);
    for it in reasons {
        text += &format!("{:<width$}  {} ({})\n", it.about, it.reason, it.rule);
    }
    text
}
