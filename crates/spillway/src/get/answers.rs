//! A Get, as plain as a proxy's: one request, a stream of messages.

use std::time::Duration;

use linkerd2_proxy_api::destination as pb;
use prost::Message as _;

use super::wire::{self, Update};
use crate::client::{self, Client, refused};

/// A message at least this full may be followed at once by one with the rest of a large answer.
const FULL_BYTES: usize = model::limits::MESSAGE_BYTES_MAX / 2;

/// How long the rest of a large answer may take after the message before it.
const REST_WAIT: Duration = Duration::from_millis(500);

/// A stream of answers.
pub(crate) struct Answers {
    stream: tonic::Streaming<pb::Update>,
    last_bytes: usize,
}

/// Starts a Get.
pub(crate) async fn ask(
    client: &mut Client,
    authority: &str,
    token: &str,
) -> anyhow::Result<Answers> {
    let response = client.get(client::request(authority, token)).await.map_err(refused)?;
    Ok(Answers { stream: response.into_inner(), last_bytes: 0 })
}

impl Answers {
    /// The next message; `None` if the server ended the stream.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Update>> {
        loop {
            let Some(message) = self.stream.message().await.map_err(refused)? else {
                return Ok(None);
            };
            self.last_bytes = message.encoded_len();
            if let Some(update) = wire::update(message)? {
                return Ok(Some(update));
            }
        }
    }

    /// Takes the next message without looking at what is in it: only how many addresses it adds. `None` if the
    /// server ended the stream.
    pub(crate) async fn skim(&mut self) -> anyhow::Result<Option<usize>> {
        let message = self.stream.message().await.map_err(refused)?;
        Ok(message.map(|message| match message.update {
            Some(pb::update::Update::Add(set)) => set.addrs.len(),
            _ => 0,
        }))
    }

    /// The next message of an answer that did not fit into the last one; `None` if that is all.
    pub(crate) async fn rest(&mut self) -> anyhow::Result<Option<Update>> {
        if self.last_bytes < FULL_BYTES {
            return Ok(None);
        }
        match tokio::time::timeout(REST_WAIT, self.next()).await {
            Ok(update) => update,
            Err(_) => Ok(None),
        }
    }
}
