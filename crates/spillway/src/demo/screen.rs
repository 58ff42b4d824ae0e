//! How the demo shows what goes on: on a terminal one line that is drawn over, elsewhere a line now and then.

use std::time::Duration;

use crate::print;

/// Cells of the progress bar.
const BAR_CELLS: u64 = 30;

/// A place to show what changes.
pub(super) struct Screen {
    terminal: bool,
    /// Something is on the line that will be drawn over.
    drawn: bool,
}

impl Screen {
    pub(super) fn new() -> Screen {
        Screen { terminal: print::is_terminal(), drawn: false }
    }

    /// How often there should be something new.
    pub(super) fn interval(&self) -> Duration {
        if self.terminal { Duration::from_millis(100) } else { Duration::from_secs(1) }
    }

    /// Shows how things are now.
    pub(super) fn show(&mut self, line: &str) -> anyhow::Result<()> {
        if !self.terminal {
            return print::line(line);
        }
        self.drawn = true;
        print::text(&format!("\r\x1b[2K{line}"))
    }

    /// Shows something that stays.
    pub(super) fn say(&mut self, line: &str) -> anyhow::Result<()> {
        match std::mem::take(&mut self.drawn) {
            true => print::line(&format!("\r\x1b[2K{line}")),
            false => print::line(line),
        }
    }

    /// Keeps what is shown now.
    pub(super) fn keep(&mut self) -> anyhow::Result<()> {
        match std::mem::take(&mut self.drawn) {
            true => print::line(""),
            false => Ok(()),
        }
    }
}

/// A bar that is filled as far as something is done.
pub(super) fn bar(done: u64, all: u64) -> String {
    let cells = (done.min(all) * BAR_CELLS).checked_div(all).unwrap_or(BAR_CELLS);
    let cell = |at| if at < cells { '#' } else { '-' };
    format!("[{}]", (0..BAR_CELLS).map(cell).collect::<String>())
}

/// A number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes, as MiB.
pub(super) fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

/// A time, as milliseconds.
pub(super) fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bars() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(12_345_678), "12,345,678");
        assert_eq!(bar(1, 3), "[##########--------------------]");
        assert_eq!(bar(5, 0), format!("[{}]", "#".repeat(30)));
        assert_eq!(ms(Duration::from_micros(1_250)), "1.2 ms");
        assert_eq!(mib(3 << 20), "3 MiB");
    }
}
