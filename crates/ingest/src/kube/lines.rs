//! Cuts a stream of bytes into lines, none of them longer than a limit.

/// Bytes of buffer that are kept for the next line; what a large line needed is given back.
const KEEP_BYTES: usize = 64 * 1024;

/// Collects bytes until they are lines.
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no newline.
    scanned: usize,
    /// The line is too long: its bytes are dropped until it ends.
    dropping: bool,
    line_bytes_max: usize,
}

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It was longer than the limit.
    TooLong,
}

impl Lines {
    /// Lines of at most this many bytes.
    pub(super) fn new(line_bytes_max: usize) -> Lines {
        Lines { buffer: Vec::new(), start: 0, scanned: 0, dropping: false, line_bytes_max }
    }

    /// Adds bytes as they come.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.buffer.len() + bytes.len() < KEEP_BYTES {
            self.buffer.shrink_to(KEEP_BYTES);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Is a line begun that is longer than most?
    pub(super) fn is_large(&self) -> bool {
        self.buffer.len() - self.start > KEEP_BYTES
    }

    /// The next line that is complete; if there is none, more bytes are needed.
    pub(super) fn next(&mut self) -> Option<Line<'_>> {
        let newline = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
        let Some(newline) = newline.map(|at| self.scanned + at) else {
            self.scanned = self.buffer.len();
            if self.dropping || self.buffer.len() - self.start > self.line_bytes_max {
                self.dropping = true;
                self.buffer.clear();
                (self.start, self.scanned) = (0, 0);
            }
            return None;
        };
        let line = self.start..newline;
        (self.start, self.scanned) = (newline + 1, newline + 1);
        if std::mem::take(&mut self.dropping) || line.len() > self.line_bytes_max {
            return Some(Line::TooLong);
        }
        Some(Line::Whole(&self.buffer[line]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(max: usize, chunks: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let (mut lines, mut all) = (Lines::new(max), Vec::new());
        for chunk in chunks {
            lines.push(chunk);
            while let Some(line) = lines.next() {
                all.push(match line {
                    Line::Whole(line) => Some(line.to_vec()),
                    Line::TooLong => None,
                });
            }
            assert!(lines.buffer.len() - lines.start <= max, "what is waiting is bounded");
        }
        all
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_and_the_next_is_whole() {
        assert_eq!(
            lines(4, &[b"abcd\nab", b"cde", b"fgh", b"\nxy\n", b"abcde\nz\nrest"]),
            [Some(b"abcd".to_vec()), None, Some(b"xy".to_vec()), None, Some(b"z".to_vec())]
        );
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_bytes_arrive(
            text in "[a-c\n]{0,60}",
            cuts in proptest::collection::vec(0_usize..60, 0..6),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            let mut expected: Vec<_> = text.split('\n').map(|line| Some(line.as_bytes().to_vec())).collect();
            expected.pop();
            prop_assert_eq!(lines(100, &chunks), expected);
        }
    }
}
