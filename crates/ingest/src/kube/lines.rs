//! Cuts a stream of bytes into lines, none of them longer than a limit.

use super::limits::{HEAD_BYTES_MAX, SKIPPED_BYTES_MAX, SMALL_BYTES_MAX};

/// Collects bytes until they are lines.
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no newline.
    scanned: usize,
    /// The line is too long: its bytes are dropped until it ends, but for the first ones.
    dropping: bool,
    head: Vec<u8>,
    /// Bytes of it that were dropped.
    dropped: usize,
    line_bytes_max: usize,
}

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It was longer than the limit; this is how it begins.
    TooLong(&'a [u8]),
}

impl Lines {
    /// Lines of at most this many bytes.
    pub(super) fn new(line_bytes_max: usize) -> Lines {
        Lines {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            dropping: false,
            head: Vec::new(),
            dropped: 0,
            line_bytes_max,
        }
    }

    /// Adds bytes as they come.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        // What a large line needed is given back.
        if self.buffer.len() + bytes.len() < SMALL_BYTES_MAX {
            self.buffer.shrink_to(SMALL_BYTES_MAX);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Is a line begun that is longer than most?
    pub(super) fn is_large(&self) -> bool {
        self.buffer.len() - self.start > SMALL_BYTES_MAX
    }

    /// Is the line so long that it isn't to be waited for?
    pub(super) fn is_endless(&self) -> bool {
        self.dropped > SKIPPED_BYTES_MAX
    }

    /// The next line that is complete; if there is none, more bytes are needed.
    pub(super) fn next(&mut self) -> Option<Line<'_>> {
        let newline = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
        let Some(newline) = newline.map(|at| self.scanned + at) else {
            self.scanned = self.buffer.len();
            if self.dropping || self.buffer.len() - self.start > self.line_bytes_max {
                self.drop_line();
            }
            return None;
        };
        let line = self.start..newline;
        (self.start, self.scanned) = (newline + 1, newline + 1);
        if std::mem::take(&mut self.dropping) {
            self.dropped = 0;
            return Some(Line::TooLong(&self.head));
        }
        if line.len() > self.line_bytes_max {
            let head = &self.buffer[line];
            return Some(Line::TooLong(&head[..head.len().min(HEAD_BYTES_MAX)]));
        }
        Some(Line::Whole(&self.buffer[line]))
    }

    /// Drops what there is of a line.
    fn drop_line(&mut self) {
        let line = &self.buffer[self.start..];
        if !self.dropping {
            self.dropping = true;
            self.head.clear();
            self.head.extend_from_slice(&line[..line.len().min(HEAD_BYTES_MAX)]);
        }
        self.dropped += line.len();
        self.buffer.clear();
        (self.start, self.scanned) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines, those that are too long as how they begin.
    fn lines(max: usize, chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, Vec<u8>>> {
        let (mut lines, mut all) = (Lines::new(max), Vec::new());
        for chunk in chunks {
            lines.push(chunk);
            while let Some(line) = lines.next() {
                all.push(match line {
                    Line::Whole(line) => Ok(line.to_vec()),
                    Line::TooLong(head) => Err(head.to_vec()),
                });
            }
            assert!(lines.buffer.len() - lines.start <= max, "what is waiting is bounded");
        }
        all
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_but_for_its_head_and_the_next_is_whole() {
        let (whole, head) = (|it: &[u8]| Ok(it.to_vec()), |it: &[u8]| Err(it.to_vec()));
        assert_eq!(
            lines(4, &[b"abcd\nab", b"cde", b"fgh", b"\nxy\n", b"abcde\nz\nrest"]),
            [whole(b"abcd"), head(b"abcde"), whole(b"xy"), head(b"abcde"), whole(b"z")]
        );
    }

    #[test]
    fn a_line_without_an_end_is_noticed_and_takes_no_room() {
        let (mut lines, chunk) = (Lines::new(1_000), vec![b'x'; 100_000]);
        let mut pushed = 0;
        while !lines.is_endless() {
            lines.push(&chunk);
            assert_eq!(lines.next(), None);
            pushed += chunk.len();
        }
        assert!((SKIPPED_BYTES_MAX..SKIPPED_BYTES_MAX + 2 * chunk.len()).contains(&pushed));
        assert!(lines.buffer.capacity() <= 2 * chunk.len() && lines.head.len() == HEAD_BYTES_MAX);
        lines.push(b"\nnext\n");
        assert_eq!(lines.next(), Some(Line::TooLong(&vec![b'x'; HEAD_BYTES_MAX])));
        assert_eq!(lines.next(), Some(Line::Whole(b"next")));
        assert!(!lines.is_endless());
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
            let mut expected: Vec<_> = text.split('\n').map(|line| Ok(line.as_bytes().to_vec())).collect();
            expected.pop();
            prop_assert_eq!(lines(100, &chunks), expected);
        }
    }
}
