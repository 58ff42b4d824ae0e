//! Standard output and standard error: the only room that prints.

use std::io::{self, IsTerminal, Write};

/// Whoever read standard output has gone, as `| head` does. That is success.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads standard output any more")
    }
}

impl std::error::Error for ReaderGone {}

/// Writes text to standard output, at once.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => anyhow::Error::new(error).context("cannot write to standard output"),
    })
}

/// Writes a line to standard output.
pub(crate) fn line(line: &str) -> anyhow::Result<()> {
    text(&format!("{line}\n"))
}

/// Writes a line to standard error; if that is closed, nobody is left to tell.
pub(crate) fn complain(line: &str) {
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// Is standard output a terminal, on which a line can be drawn over?
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}
