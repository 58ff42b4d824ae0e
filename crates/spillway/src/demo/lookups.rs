//! Lookups as proxies do them: a Get, over a real connection, until the first Add.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{self, connect};
use crate::get::{Answers, ask};

/// How long lookups took.
#[derive(Debug, Default)]
pub(super) struct Times {
    times: Vec<Duration>,
}

impl Times {
    /// The time within which this share of the lookups was answered.
    pub(super) fn within(&self, share: f64) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        let at = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// How many there were.
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// The last one.
    pub(super) fn last(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }

    /// Times one lookup; gives the number of addresses.
    pub(super) async fn lookup(
        &mut self,
        client: &mut Client,
        authority: &str,
    ) -> anyhow::Result<usize> {
        let asked = Instant::now();
        let mut answers = ask(&mut client.0, authority, TOKEN).await?;
        let addresses = first_add(&mut answers).await?;
        self.times.push(asked.elapsed());
        Ok(addresses)
    }
}

/// Who the demo's clients say they are.
const TOKEN: &str = r#"{"ns":"demo","nodeName":"","pod":"client-0"}"#;

/// A connection.
pub(super) struct Client(client::Client);

impl Client {
    pub(super) async fn connect(url: &str) -> anyhow::Result<Client> {
        Ok(Client(connect(url).await?))
    }
}

/// Streams that stay open, as proxies hold them. Dropping them closes them.
pub(super) struct Streams {
    _tasks: JoinSet<()>,
}

impl Streams {
    /// Opens a stream for each authority, and waits for the first Add of each.
    pub(super) async fn open(
        client: &mut Client,
        authorities: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Streams> {
        let mut tasks = JoinSet::new();
        for authority in authorities {
            let mut answers = ask(&mut client.0, &authority, TOKEN).await?;
            first_add(&mut answers).await?;
            tasks.spawn(async move {
                // Updates are taken and forgotten; an end shows in the count of streams.
                while let Ok(Some(_)) = answers.skim().await {}
            });
        }
        Ok(Streams { _tasks: tasks })
    }
}

async fn first_add(answers: &mut Answers) -> anyhow::Result<usize> {
    loop {
        match answers.skim().await? {
            Some(0) => {}
            Some(addresses) => return Ok(addresses),
            None => anyhow::bail!("the server ended a stream"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_sorted_times() {
        let times = Times { times: (1..=100).rev().map(Duration::from_millis).collect() };
        assert_eq!(times.within(0.5), Duration::from_millis(50));
        assert_eq!(times.within(0.99), Duration::from_millis(99));
        assert_eq!(times.within(1.0), Duration::from_millis(100));
        assert_eq!(Times::default().within(0.5), Duration::ZERO);
    }
}
