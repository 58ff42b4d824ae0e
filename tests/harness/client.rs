//! A client that behaves as a proxy does: opens streams over real gRPC, applies what they say, and keeps
//! account of all that it heard on the way.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use linkerd2_proxy_api::destination::GetDestination;
use linkerd2_proxy_api::destination::destination_client::DestinationClient;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status, Streaming};

use crate::shown::{Said, Shown};

/// What a stream came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// It is open, and the client holds this.
    Open(Shown),
    /// It ended with this code.
    Ended(Code),
}

impl Seen {
    /// What the client holds; nothing, once the stream has ended.
    pub fn held(&self) -> Shown {
        match self {
            Seen::Open(held) => held.clone(),
            Seen::Ended(_) => Shown::new(),
        }
    }
}

/// What a stream asks for.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The authority.
    pub path: String,
    /// It is asked for with GetProfile, instead of Get.
    pub profile: bool,
    /// The context token.
    pub token: String,
    /// The scheme, which means nothing.
    pub scheme: String,
}

/// One connection, and how many messages came over it.
pub struct Client {
    grpc: DestinationClient<Channel>,
    received: watch::Sender<u64>,
}

impl Client {
    /// Connects to a server.
    pub async fn connect(addr: SocketAddr) -> Result<Client> {
        let endpoint = Endpoint::from_shared(format!("http://{addr}"))?;
        let channel = endpoint.connect().await.with_context(|| format!("connecting to {addr}"))?;
        Ok(Client { grpc: DestinationClient::new(channel), received: watch::Sender::new(0) })
    }

    /// Opens a stream, and returns once the server has answered at all. A stream on `hold` isn't read until
    /// it is released.
    pub async fn open(&self, question: Question, hold: bool) -> Stream {
        let request = GetDestination {
            scheme: question.scheme,
            path: question.path,
            context_token: question.token,
        };
        let heard = Arc::new(Mutex::new(Heard::default()));
        let released = watch::Sender::new(!hold);
        let mut grpc = self.grpc.clone();
        let answer = match question.profile {
            false => grpc.get(request).await.map(|response| read(response, Said::read)),
            true => grpc.get_profile(request).await.map(|response| read(response, Said::profile)),
        };
        let reader = match answer {
            Ok(messages) => {
                let reader =
                    Reader { messages, heard: heard.clone(), received: self.received.clone() };
                Some(tokio::spawn(reader.run(released.subscribe())))
            }
            Err(status) => {
                heard.lock().end(&status);
                None
            }
        };
        Stream { heard, released, reader }
    }

    /// Returns once this many messages have been read, all streams together.
    pub async fn received(&self, messages: u64) {
        let mut received = self.received.subscribe();
        // The sender lives in `self`, so the channel is open.
        drop(received.wait_for(|count| *count >= messages).await);
    }

    /// Messages read so far, all streams together.
    pub fn messages(&self) -> u64 {
        *self.received.borrow()
    }
}

/// A stream. Dropping it resets it.
pub struct Stream {
    heard: Arc<Mutex<Heard>>,
    released: watch::Sender<bool>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Heard {
    held: Shown,
    unread: Vec<(Instant, Said)>,
    faults: Vec<String>,
    messages: u64,
    status: Option<(Code, String)>,
}

impl Heard {
    fn take(&mut self, said: Said) {
        // A proxy takes its first Add as the whole set, so it must not be preceded by a Remove.
        if self.messages == 0 && matches!(said, Said::Remove(_)) {
            self.faults.push("the first message is a Remove".to_owned());
        }
        said.apply(&mut self.held);
        self.unread.push((Instant::now(), said));
        self.messages += 1;
    }

    fn end(&mut self, status: &Status) {
        self.status = Some((status.code(), status.message().to_owned()));
    }
}

impl Stream {
    /// What it came to.
    pub fn seen(&self) -> Seen {
        let heard = self.heard.lock();
        match &heard.status {
            Some((code, _)) => Seen::Ended(*code),
            None => Seen::Open(heard.held.clone()),
        }
    }

    /// The text of the status that ended it.
    pub fn status_message(&self) -> Option<String> {
        self.heard.lock().status.as_ref().map(|(_, message)| message.clone())
    }

    /// Does the client hold exactly these addresses?
    pub fn holds(&self, addresses: &BTreeSet<SocketAddr>) -> bool {
        let heard = self.heard.lock();
        heard.status.is_none() && heard.held.keys().eq(addresses)
    }

    /// The messages since the last call, in their order.
    pub fn news(&self) -> Vec<Said> {
        self.arrivals().into_iter().map(|(_, said)| said).collect()
    }

    /// The same, with when each had come.
    pub fn arrivals(&self) -> Vec<(Instant, Said)> {
        std::mem::take(&mut self.heard.lock().unread)
    }

    /// What a proxy would have refused, since the last call.
    pub fn faults(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().faults)
    }

    /// Starts to read a stream that was opened on hold.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// Is it open, and read?
    pub fn is_open(&self) -> bool {
        self.heard.lock().status.is_none()
    }

    /// Is it open, and not read?
    pub fn is_on_hold(&self) -> bool {
        self.is_open() && !*self.released.borrow()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

/// What each message says; fails on what a proxy would drop or refuse.
type Messages = BoxStream<'static, Result<Result<Said>, Status>>;

fn read<M: Send + 'static>(
    response: Response<Streaming<M>>,
    said: fn(&M) -> Result<Said>,
) -> Messages {
    response.into_inner().map(move |message| message.map(|message| said(&message))).boxed()
}

struct Reader {
    messages: Messages,
    heard: Arc<Mutex<Heard>>,
    received: watch::Sender<u64>,
}

impl Reader {
    async fn run(mut self, mut released: watch::Receiver<bool>) {
        if released.wait_for(|released| *released).await.is_err() {
            return;
        }
        loop {
            match self.messages.next().await {
                Some(Ok(said)) => {
                    match said {
                        Ok(said) => self.heard.lock().take(said),
                        Err(fault) => self.heard.lock().faults.push(format!("{fault:#}")),
                    }
                    // Counted when it has been taken: who waits for the count sees it.
                    self.received.send_modify(|count| *count += 1);
                }
                None => return self.heard.lock().end(&Status::ok("")),
                Some(Err(status)) => return self.heard.lock().end(&status),
            }
        }
    }
}
