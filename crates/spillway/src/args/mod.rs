//! What was typed: the grammar of the command line. What it means is decided one step later, in each
//! command's `meaning`.

mod demo;
mod get;
mod serve;
mod values;

pub(crate) use demo::DemoArgs;
pub(crate) use get::{GetArgs, Output};
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
    /// Ask a server what a proxy would get for an authority.
    Get(GetArgs),
    /// Show what this is for: a large synthetic cluster, a flood, and lookups meanwhile.
    Demo(DemoArgs),
}

/// A value that parses alone but not together with the others; ends in exit code 2, as what clap refuses.
pub(crate) fn refuse(text: impl std::fmt::Display) -> clap::Error {
    use clap::CommandFactory;
    Args::command().error(clap::error::ErrorKind::ValueValidation, text)
}

#[cfg(test)]
mod tests;
