//! Lines out of a byte stream, each at most so long. They are borrowed from the chunk that was read, so a short frame costs
//! no copy; that is why no codec of `tokio-util` does this.

use memchr::memchr;

/// What there is of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BoundedLine<'a> {
    /// A line without its break.
    Whole(&'a [u8]),
    /// A line that was longer than the limit; its content is gone.
    TooLong,
}

/// Collects bytes until they are a line.
pub(super) struct LineBuffer {
    limit: usize,
    /// The beginning of a line that is not whole yet. There is no line break in it.
    begun: Vec<u8>,
    /// Inside a line that is too long to keep.
    skipping: bool,
}

impl LineBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, begun: Vec::new(), skipping: false }
    }

    /// Takes the next bytes and hands on every line they complete.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut line: impl FnMut(BoundedLine<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            if !std::mem::take(&mut self.skipping) {
                if self.begun.len() + end > self.limit {
                    self.begun = Vec::new();
                    line(BoundedLine::TooLong);
                } else if self.begun.is_empty() {
                    line(BoundedLine::Whole(&bytes[..end]));
                } else {
                    self.begun.extend_from_slice(&bytes[..end]);
                    // Taken, so that the memory of a large message is not kept.
                    line(BoundedLine::Whole(&std::mem::take(&mut self.begun)));
                }
            }
            bytes = &bytes[end + 1..];
        }
        if !self.skipping {
            self.begun.extend_from_slice(bytes);
            if self.begun.len() > self.limit {
                self.skipping = true;
                self.begun = Vec::new();
                line(BoundedLine::TooLong);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_the_stream_is_cut_and_long_ones_are_skipped_and_reported() {
        let stream = b"one\n\ntwo\n0123456789\nthree\nrest";
        for size in 1..stream.len() {
            let mut lines = LineBuffer::new(6);
            let mut found = Vec::new();
            for chunk in stream.chunks(size) {
                lines.take(chunk, |line| {
                    found.push(match line {
                        BoundedLine::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                        BoundedLine::TooLong => "<too long>".into(),
                    });
                });
            }
            assert_eq!(found, ["one", "", "two", "<too long>", "three"], "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_of_the_limit_is_whole_and_one_byte_more_is_too_much() {
        let limit = 1000;
        for (length, expected) in [(limit - 1, Some(limit - 1)), (limit, Some(limit)), (limit + 1, None)] {
            let mut stream = vec![b'x'; length];
            stream.extend_from_slice(b"\nnext\n");
            let (mut lines, mut found) = (LineBuffer::new(limit), Vec::new());
            for chunk in stream.chunks(64) {
                lines.take(chunk, |line| {
                    found.push(match line {
                        BoundedLine::Whole(line) => Some(line.len()),
                        BoundedLine::TooLong => None,
                    });
                });
            }
            assert_eq!(found, [expected, Some(4)], "{length}");
        }
    }
}
