//! `spillway profile`: asks a server what a proxy would know of what it dials, through the same API; or why.

mod explain;
mod held;
mod text;
mod wire;

use linkerd2_proxy_api::destination as pb;

use held::Profile;

use crate::args::{Output, ProfileArgs};
use crate::client::{self, refused};
use crate::print;

/// Runs the command: prints the first profile and, with `--watch`, each that differs from the one before.
pub(crate) async fn run(args: ProfileArgs) -> anyhow::Result<()> {
    if args.explain {
        return explain::run(&args).await;
    }
    let ask = &args.ask;
    let (mut profiles, mut profile) = client::in_time(&ask.addr, ask.timeout, first(&args)).await?;
    print::text(&match ask.output {
        Output::Json => profile.json()?,
        Output::Table => text::whole(&profile, false),
        Output::Wide => text::whole(&profile, true),
    })?;
    if !ask.watch {
        return Ok(());
    }
    while let Some(next) = profiles.next().await? {
        if next != profile {
            print::text(&match ask.output {
                Output::Json => next.json()?,
                Output::Table => text::change(&profile, &next, false),
                Output::Wide => text::change(&profile, &next, true),
            })?;
        }
        profile = next;
    }
    anyhow::bail!("the server ended the stream")
}

/// A stream of profiles.
struct Profiles(tonic::Streaming<pb::DestinationProfile>);

impl Profiles {
    /// The next one; `None` if the server ended the stream.
    async fn next(&mut self) -> anyhow::Result<Option<Profile>> {
        let message = self.0.message().await.map_err(refused)?;
        message.map(wire::profile).transpose()
    }
}

/// Asks, and takes the first profile.
async fn first(args: &ProfileArgs) -> anyhow::Result<(Profiles, Profile)> {
    let mut client = client::connect(&args.ask.addr).await?;
    let request = client::request(&args.authority, &args.ask.token);
    let response = client.get_profile(request).await.map_err(refused)?;
    let mut profiles = Profiles(response.into_inner());
    match profiles.next().await? {
        Some(profile) => Ok((profiles, profile)),
        None => anyhow::bail!("the server ended the stream without a profile"),
    }
}

#[cfg(test)]
mod tests;
