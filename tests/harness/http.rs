//! One plain HTTP request, for admin ports and etcd's gateway: no more client than that needs.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Between two looks at a page.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The status and body that a GET is answered with.
pub async fn get(addr: SocketAddr, path: &str) -> Result<(u16, String)> {
    request(addr, "GET", path, "").await
}

/// Returns when a page has this status and body.
pub async fn until(addr: SocketAddr, path: &str, status: u16, body: &str) -> Result<()> {
    while get(addr, path).await? != (status, body.to_owned()) {
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

/// The status and body that a POST of JSON is answered with.
pub async fn post(addr: SocketAddr, path: &str, json: &str) -> Result<(u16, String)> {
    request(addr, "POST", path, json).await
}

/// The value of a metric, by its name and labels, in a page of them.
pub fn metric(page: &str, name: &str) -> Option<u64> {
    let mut lines = page.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// As HTTP/1.0, so that the body is neither chunked nor followed by another answer.
async fn request(addr: SocketAddr, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
    let mut stream =
        TcpStream::connect(addr).await.with_context(|| format!("connecting to {addr}"))?;
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {addr}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a head")?;
    let status = head.split(' ').nth(1).context("an answer without a status")?;
    Ok((status.parse()?, body.to_owned()))
}
