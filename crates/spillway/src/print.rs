//! Standard output and standard error: the only room that prints.

use std::io::{self, IsTerminal, Write};
use std::time::SystemTime;

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

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the edge, where ages are printed")]
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// An age as kubectl writes it: the two largest units that matter, as `45s`, `3m12s`, `5h20m`, `12d`.
pub(crate) fn age(secs: u64) -> String {
    let (minutes, hours, days) = (secs / 60, secs / 3_600, secs / 86_400);
    match secs {
        0..120 => format!("{secs}s"),
        120..600 => format!("{minutes}m{}s", secs % 60),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => format!("{hours}h{}m", minutes % 60),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => format!("{days}d{}h", hours % 24),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_have_two_units_at_most() {
        let of = |secs| age(secs);
        assert_eq!([of(0), of(119), of(120), of(599)], ["0s", "119s", "2m0s", "9m59s"]);
        assert_eq!([of(600), of(10_799), of(10_800)], ["10m", "179m", "3h0m"]);
        assert_eq!([of(28_800), of(172_800), of(777_600)], ["8h", "2d0h", "9d"]);
    }
}
