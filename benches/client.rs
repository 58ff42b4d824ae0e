//! A client of many streams, which counts messages and doesn't look into them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use linkerd2_proxy_api::destination::GetDestination;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};
use tokio::net::TcpStream;

/// Windows as hyper's client has them, and so a proxy.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 5 << 20;

/// What the streams ask for.
#[derive(Clone, Copy, Debug)]
pub enum Asks {
    /// Get of so many Services.
    Services(usize),
    /// GetProfile of so many addresses.
    Addresses(usize),
}

impl Asks {
    fn path(self, number: usize) -> String {
        match self {
            Asks::Services(services) => crate::authority(number % services),
            Asks::Addresses(addresses) => format!("{}:80", crate::address(number % addresses)),
        }
    }

    fn method(self) -> &'static str {
        match self {
            Asks::Services(_) => "Get",
            Asks::Addresses(_) => "GetProfile",
        }
    }
}

/// The client.
#[derive(Debug)]
pub struct Client {
    /// Whom it asks.
    pub addr: SocketAddr,
    /// On so many connections.
    pub connections: usize,
    /// In so many streams.
    pub streams: usize,
    /// What.
    pub asks: Asks,
    /// It takes what it is sent. Otherwise it takes nothing, with the smallest windows.
    pub reads: bool,
    /// It says which pod it is.
    pub named: bool,
}

/// When each stream had its n-th message.
struct Arrivals {
    streams: usize,
    by_number: Mutex<BTreeMap<usize, Vec<u64>>>,
}

impl Arrivals {
    /// Says so once all have it: median, 99th percentile and last.
    fn arrived(&self, number: usize) {
        let mut by_number = self.by_number.lock();
        let times = by_number.entry(number).or_default();
        times.push(crate::wall_ns());
        if times.len() == self.streams {
            times.sort_unstable();
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
            let word = if number == 0 { "full" } else { "round" };
            crate::say(&format!("{word} {} {} {}", at(50), at(99), times[times.len() - 1]));
            by_number.remove(&number);
        }
    }
}

impl Client {
    /// Opens all streams, says when all have their n-th message, and goes on until nobody listens.
    pub fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let arrivals =
                Arc::new(Arrivals { streams: self.streams, by_number: Mutex::default() });
            let mut connections = Vec::new();
            for _ in 0..self.connections {
                connections.push(self.connect().await?);
            }
            crate::say(&format!("begun {}", crate::wall_ns()));
            for number in 0..self.streams {
                let send = connections[number % self.connections].clone();
                let stream = Stream {
                    // All in one subset, if there are any.
                    token: if self.named { "{\"pod\":\"web-0\"}" } else { "" },
                    path: self.asks.path(number),
                    method: self.asks.method(),
                    reads: self.reads,
                    arrivals: Arc::clone(&arrivals),
                };
                tokio::spawn(async move {
                    if let Err(error) = stream.run(send).await {
                        crate::say(&format!("a stream ended: {error:#}"));
                    }
                });
            }
            let mut lines = BufReader::new(stdin()).lines();
            while lines.next_line().await?.is_some() {}
            Ok(())
        })
    }

    async fn connect(&self) -> anyhow::Result<h2::client::SendRequest<Bytes>> {
        let socket = TcpStream::connect(self.addr).await?;
        socket.set_nodelay(true)?;
        let mut builder = h2::client::Builder::new();
        builder.initial_max_send_streams(self.streams);
        if self.reads {
            builder.initial_window_size(STREAM_WINDOW);
            builder.initial_connection_window_size(CONNECTION_WINDOW);
        }
        let (send, connection) = builder.handshake(socket).await?;
        tokio::spawn(connection);
        Ok(send)
    }
}

struct Stream {
    path: String,
    method: &'static str,
    token: &'static str,
    reads: bool,
    arrivals: Arc<Arrivals>,
}

impl Stream {
    async fn run(self, send: h2::client::SendRequest<Bytes>) -> anyhow::Result<()> {
        let uri = format!("http://proxy/io.linkerd.proxy.destination.Destination/{}", self.method);
        let request = http::Request::post(uri).header("content-type", "application/grpc");
        let (path, context_token) = (self.path.clone(), self.token.to_owned());
        let message = GetDestination { path, context_token, ..GetDestination::default() };
        let mut body = BytesMut::new();
        body.put_u8(0);
        body.put_u32(u32::try_from(message.encoded_len())?);
        message.encode(&mut body)?;
        let (response, mut stream) = send.ready().await?.send_request(request.body(())?, false)?;
        stream.send_data(body.freeze(), true)?;
        let response = response.await?;
        anyhow::ensure!(response.headers().get("grpc-status").is_none(), "{response:?}");
        let mut body = response.into_body();
        if !self.reads {
            self.arrivals.arrived(0);
            std::future::pending::<()>().await;
        }
        let (mut number, mut missing, mut head) = (0, None, BytesMut::new());
        while let Some(part) = body.data().await {
            let mut part = part?;
            body.flow_control().release_capacity(part.len())?;
            while part.has_remaining() {
                let Some(left) = missing else {
                    head.put_u8(part.get_u8());
                    if head.len() == 5 {
                        head.advance(1);
                        missing = Some(usize::try_from(head.get_u32())?);
                        head.clear();
                    }
                    continue;
                };
                let taken = part.remaining().min(left);
                part.advance(taken);
                missing = Some(left - taken).filter(|left| *left > 0);
                if missing.is_none() {
                    self.arrivals.arrived(number);
                    number += 1;
                }
            }
        }
        anyhow::bail!("the server ended it")
    }
}
