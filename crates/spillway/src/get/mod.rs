//! `spillway get`: asks a server what a proxy would get, through the same API; or why.

mod client;
mod explain;
mod held;
mod table;
mod wire;

use anyhow::Context as _;

pub(crate) use client::{Answers, Client, ask, connect};

use held::Held;

use crate::args::{GetArgs, Output};
use crate::print;

/// Runs the command: prints the first answer and, with `--watch`, each change after it.
pub(crate) async fn run(args: GetArgs) -> anyhow::Result<()> {
    let mut held = Held::default();
    if let Some(address) = args.explain {
        return explain::run(&args, address).await;
    }
    let late = || format!("no answer from {} within {:?}", args.addr, args.timeout);
    let mut answers =
        tokio::time::timeout(args.timeout, first(&args, &mut held)).await.with_context(late)??;
    print::text(&match args.output {
        Output::Json => table::json(&args.authority, &held)?,
        Output::Table => table::text(&held, false),
        Output::Wide => table::text(&held, true),
    })?;
    if args.watch {
        return watch(&args, &mut answers, &mut held).await;
    }
    Ok(())
}

/// Prints each change, for as long as the server tells of any.
async fn watch(args: &GetArgs, answers: &mut Answers, held: &mut Held) -> anyhow::Result<()> {
    while let Some(update) = answers.next().await? {
        let change = held.apply(update);
        print::text(&match args.output {
            Output::Json => table::change_json(&change)?,
            Output::Table => table::change_text(&change, false),
            Output::Wide => table::change_text(&change, true),
        })?;
    }
    anyhow::bail!("the server ended the stream")
}

/// Asks, and takes messages until the first answer is whole.
async fn first(args: &GetArgs, held: &mut Held) -> anyhow::Result<Answers> {
    let mut client = connect(&args.addr).await?;
    let mut answers = ask(&mut client, &args.authority, &args.token).await?;
    let Some(update) = answers.next().await? else {
        anyhow::bail!("the server ended the stream without an answer");
    };
    held.apply(update);
    while let Some(update) = answers.rest().await? {
        held.apply(update);
    }
    Ok(answers)
}

#[cfg(test)]
mod tests;
