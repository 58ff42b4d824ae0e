//! What was typed: the grammar of the command line. What it means is decided one step later, in each
//! command's `meaning`.

mod ask;
mod demo;
mod destination;
mod flood;
mod get;
mod go;
mod profile;
mod serve;
mod values;

use std::ffi::OsString;

pub(crate) use ask::{AskArgs, Output};
pub(crate) use demo::DemoArgs;
pub(crate) use destination::{DestinationArgs, Meaning};
pub(crate) use get::GetArgs;
pub(crate) use profile::ProfileArgs;
pub(crate) use serve::{LogFormat, LogLevel, ServeArgs};

/// A Destination service for Linkerd whose memory does not grow with the cluster.
#[derive(Debug, clap::Parser)]
#[command(name = "spillway", version, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Learn a cluster's endpoints onto disk, and serve them to proxies.
    Serve(Box<ServeArgs>),
    /// The same, with the command line of Linkerd's own destination service.
    Destination(Box<DestinationArgs>),
    /// Ask a server what a proxy would get for an authority.
    Get(GetArgs),
    /// Ask a server what a proxy would know of an authority, or of an address, that it dials.
    Profile(ProfileArgs),
    /// Show what this is for: a large synthetic cluster, a flood, and lookups meanwhile.
    Demo(DemoArgs),
}

/// Reads a command line; what is wrong with it ends the process with exit code 2.
pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Args {
    try_read(args).unwrap_or_else(|error| error.exit())
}

fn try_read(args: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
    use clap::Parser as _;
    let mut args = args.into_iter();
    let mut read: Vec<OsString> = args.by_ref().take(2).collect();
    match read.get(1).is_some_and(|command| command == "destination") {
        true => read.extend(go::translated(args)),
        false => read.extend(args),
    }
    Args::try_parse_from(read)
}

/// A value that parses alone but not together with the others; ends in exit code 2, as what clap refuses.
pub(crate) fn refuse(text: impl std::fmt::Display) -> clap::Error {
    use clap::CommandFactory;
    Args::command().error(clap::error::ErrorKind::ValueValidation, text)
}

#[cfg(test)]
mod tests;
