//! An HTTP server that gives prepared answers, one after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What is expected, and what is then said.
pub(super) struct Answer {
    /// Must be part of the request's line.
    asked: &'static str,
    status: u16,
    body: String,
    /// The connection stays open after the body.
    open: bool,
    /// The connection ends before the body does.
    cut: bool,
}

/// An answer that is complete.
pub(super) fn says(asked: &'static str, status: u16, body: impl Into<String>) -> Answer {
    Answer { asked, status, body: body.into(), open: false, cut: false }
}

/// A watch that says so much, and then nothing.
pub(super) fn stays(asked: &'static str, body: impl Into<String>) -> Answer {
    Answer { open: true, ..says(asked, 200, body) }
}

/// An answer that breaks off.
pub(super) fn breaks(asked: &'static str, body: impl Into<String>) -> Answer {
    Answer { cut: true, ..says(asked, 200, body) }
}

/// The server.
pub(super) struct Server {
    /// Where it is.
    pub(super) url: String,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    wrong: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts it.
    pub(super) async fn start(answers: impl IntoIterator<Item = Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let wrong = Arc::new(Mutex::new(Vec::new()));
        let server = Server { url, answers: answers.clone(), wrong: wrong.clone() };
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let line = request_line(&mut stream).await;
                let Some(answer) = answers.lock().pop_front() else {
                    wrong.lock().push(format!("nobody expected {line}"));
                    continue;
                };
                if !line.contains(answer.asked) {
                    wrong.lock().push(format!("{line} instead of {}", answer.asked));
                }
                give(&mut stream, &answer).await;
                if answer.open {
                    open.push(stream);
                }
            }
        });
        server
    }

    /// Was every answer asked for?
    pub(super) fn is_done(&self) -> bool {
        self.answers.lock().is_empty()
    }

    /// Every answer was asked for, and nothing else was.
    pub(super) fn assert_done(&self) {
        let left: Vec<_> = self.answers.lock().iter().map(|it| it.asked).collect();
        assert_eq!((self.wrong.lock().clone(), left), (Vec::<String>::new(), Vec::new()));
    }
}

async fn request_line(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned()
}

async fn give(stream: &mut TcpStream, answer: &Answer) {
    let Answer { status, body, .. } = answer;
    let length = match (answer.open, answer.cut) {
        (false, false) => format!("content-length: {}\r\n", body.len()),
        (_, true) => format!("content-length: {}\r\n", body.len() + 1_000),
        (true, false) => String::new(),
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{length}connection: close\r\n\r\n"
    );
    // A client that has gone away is the test's business.
    // A client that has gone is what some tests are about.
    stream.write_all(format!("{head}{body}").as_bytes()).await.ok();
}
