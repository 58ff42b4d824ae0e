//! A line between a client and the API server that can be cut.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Connects.
    Through,
    /// Closes what is open, and refuses.
    Closed,
    /// Keeps what is open and takes new connections, and nothing comes through.
    Silent,
}

/// The line. Dropping it cuts it.
pub struct Line {
    addr: SocketAddr,
    state: watch::Sender<State>,
    task: JoinHandle<()>,
}

#[derive(Clone, Copy)]
struct State {
    cut: Cut,
    /// So often: what was open then is closed, even if it looks only when the line is through again.
    closed: u64,
    target: SocketAddr,
}

impl Line {
    /// A line to an address.
    pub(super) async fn to(target: SocketAddr) -> Result<Line> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let state = watch::Sender::new(State { cut: Cut::Through, closed: 0, target });
        let line = state.subscribe();
        let task = tokio::spawn(async move {
            loop {
                if let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(connect(client, line.clone()));
                }
            }
        });
        Ok(Line { addr, state, task })
    }

    /// Where a client connects to.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// From now on, for what is connected as well.
    pub fn set(&self, cut: Cut) {
        self.state.send_modify(|state| {
            state.cut = cut;
            state.closed += u64::from(cut == Cut::Closed);
        });
    }

    /// Closes what is open; what connects from now on reaches this address.
    pub fn lead_to(&self, target: SocketAddr) {
        self.state.send_modify(|state| {
            state.target = target;
            state.closed += 1;
        });
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection: copies as long as the line is through, and says nothing while it is silent. What was open
/// when the line went silent stays so until it is closed.
async fn connect(mut client: TcpStream, mut line: watch::Receiver<State>) {
    let State { cut, closed, target } = *line.borrow();
    if cut == Cut::Through
        && let Ok(mut server) = TcpStream::connect(target).await
    {
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => return,
            _ = line.wait_for(|now| now.cut != Cut::Through || now.closed != closed) => {}
        }
    }
    if line.borrow().cut == Cut::Silent {
        // Or the line itself is gone.
        drop(line.wait_for(|now| now.closed != closed).await);
    }
}
