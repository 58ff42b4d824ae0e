//! A client of Get, as a proxy is one: it opens its stream again, takes the first message as the whole set, and holds
//! what it was told.

use harness::shown::{Said, Shown};
use linkerd2_proxy_api::destination as pb;
use model::Revision;
use prost::Message as _;
use serve::{Answer, Message, Turn};
use tonic::Code;

use crate::Server;
use crate::oracle::Question;

pub(crate) struct Client {
    pub(crate) question: Question,
    /// It takes messages now and then only.
    pub(crate) slow: bool,
    pub(crate) stream: Option<Answer>,
    /// How often it has asked.
    pub(crate) opened: u64,
    /// The status that refused it.
    pub(crate) refused: Option<Code>,
    /// Its stream has ended with OK.
    pub(crate) over: bool,
    /// It has had a message of this stream.
    pub(crate) told: bool,
    pub(crate) held: Shown,
    /// All truths since it last knew all.
    pub(crate) truths: Vec<Shown>,
    /// The seed and the step, for whoever has to look for a fault.
    pub(crate) at: (u64, u64),
}

impl Client {
    pub(crate) fn new(question: Question, slow: bool) -> Client {
        Client {
            question,
            slow,
            stream: None,
            opened: 0,
            refused: None,
            over: false,
            told: false,
            held: Shown::new(),
            truths: Vec::new(),
            at: (0, 0),
        }
    }

    pub(crate) async fn open(&mut self, server: &Server) {
        let Question { service, port, hostname, node } = &self.question;
        let instance = hostname.map(|name| format!("{name}.")).unwrap_or_default();
        let path = format!("{instance}{service}.shop.svc.k.test:{port}");
        let token = format!("{{\"nodeName\":\"{}\"}}", node.unwrap_or_default());
        self.opened += 1;
        (self.refused, self.over, self.told) = (None, false, false);
        match server.door(self.slow).destination.get(&path, &token, &Turn::default()).await {
            Ok(stream) => self.stream = Some(stream),
            Err(status) => {
                self.refused = Some(status.code());
                self.held.clear();
                self.stream = None;
            }
        }
    }

    /// Takes all that there is to take.
    pub(crate) async fn settle(&mut self, server: &Server, revision: Revision) {
        while let Some(mut stream) = self.stream.take() {
            tokio::select! {
                biased;
                message = stream.next() => match message {
                    Some(Ok(message)) => {
                        self.take(&message);
                        self.stream = Some(stream);
                    }
                    Some(Err(status)) => {
                        assert_eq!(status.code(), Code::Unavailable, "{status}");
                        self.open(server).await;
                    }
                    None => self.over = true,
                },
                () = server.door(self.slow).hub.settled(revision) => {
                    self.stream = Some(stream);
                    return;
                }
            }
        }
    }

    fn take(&mut self, message: &Message) {
        let update = pb::Update::decode(message.bytes()).expect("a message");
        let said = Said::read(&update).expect("what a proxy takes");
        if !std::mem::replace(&mut self.told, true) {
            assert!(!matches!(said, Said::Remove(_)), "the first message is a Remove");
            self.held.clear();
        }
        said.apply(&mut self.held);
        for (addr, value) in &self.held {
            let known = self.truths.iter().any(|truth| truth.get(addr) == Some(value));
            let (seed, step) = self.at;
            let question = &self.question;
            assert!(
                known,
                "seed {seed}, step {step}, {question:?}: {addr} is in no truth: {value}"
            );
        }
        let always_some = self.truths.iter().all(|truth| !truth.is_empty());
        let (at, question) = (self.at, &self.question);
        assert!(!(self.held.is_empty() && always_some), "{at:?}, {question:?}: nothing is left");
    }
}
