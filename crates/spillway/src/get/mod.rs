//! `spillway get`: asks a server what a proxy would get, through the same API; or why.

mod answers;
mod explain;
mod held;
mod table;
mod wire;

pub(crate) use answers::{Answers, ask};

use held::Held;

use crate::args::{GetArgs, Output};
use crate::{client, print};

/// Runs the command: prints the first answer and, with `--watch`, each change after it.
pub(crate) async fn run(args: GetArgs) -> anyhow::Result<()> {
    let mut held = Held::default();
    if let Some(address) = args.explain {
        return explain::run(&args, address).await;
    }
    let ask = &args.ask;
    let mut answers = client::in_time(&ask.addr, ask.timeout, first(&args, &mut held)).await?;
    print::text(&match ask.output {
        Output::Json => table::json(&args.authority, &held)?,
        Output::Table => table::text(&held, false),
        Output::Wide => table::text(&held, true),
    })?;
    if ask.watch {
        return watch(&args, &mut answers, &mut held).await;
    }
    Ok(())
}

/// Prints each change, for as long as the server tells of any.
async fn watch(args: &GetArgs, answers: &mut Answers, held: &mut Held) -> anyhow::Result<()> {
    while let Some(update) = answers.next().await? {
        let change = held.apply(update);
        print::text(&match args.ask.output {
            Output::Json => table::change_json(&change)?,
            Output::Table => table::change_text(&change, false),
            Output::Wide => table::change_text(&change, true),
        })?;
    }
    anyhow::bail!("the server ended the stream")
}

/// Asks, and takes messages until the first answer is whole.
async fn first(args: &GetArgs, held: &mut Held) -> anyhow::Result<Answers> {
    let mut client = client::connect(&args.ask.addr).await?;
    let mut answers = ask(&mut client, &args.authority, &args.ask.token).await?;
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
