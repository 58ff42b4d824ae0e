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
    cut: watch::Sender<Cut>,
    task: JoinHandle<()>,
}

impl Line {
    /// A line to an address.
    pub(super) async fn to(target: SocketAddr) -> Result<Line> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let cut = watch::Sender::new(Cut::Through);
        let state = cut.subscribe();
        let task = tokio::spawn(async move {
            loop {
                if let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(connect(client, target, state.clone()));
                }
            }
        });
        Ok(Line { addr, cut, task })
    }

    /// Where a client connects to.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// From now on, for what is connected as well.
    pub fn set(&self, cut: Cut) {
        self.cut.send_replace(cut);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection: copies as long as the line is through, and says nothing while it is silent. What was open
/// when the line went silent stays so for good.
async fn connect(mut client: TcpStream, target: SocketAddr, mut cut: watch::Receiver<Cut>) {
    if *cut.borrow() == Cut::Through
        && let Ok(mut server) = TcpStream::connect(target).await
    {
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => return,
            _ = cut.wait_for(|cut| *cut != Cut::Through) => {}
        }
    }
    if *cut.borrow() == Cut::Silent {
        // Until it is closed, or the line itself is gone.
        drop(cut.wait_for(|cut| *cut == Cut::Closed).await);
    }
}
