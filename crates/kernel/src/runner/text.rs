//! One of the runner's text pipes: bytes in, text and marks out.

use std::collections::VecDeque;

use memchr::{memmem, memrchr};

const ESC: u8 = 0x1b;
const STARTS: u8 = b'+';
const MARK_ENDS: &[u8] = b"\x1b\\";

/// What a pipe carries.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PipePiece {
    /// Printed bytes.
    Text(Vec<u8>),
    /// A mark of the runner, which is not part of the text.
    Mark(PipeMark),
}

/// A place that both pipes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PipeMark {
    pub(super) number: u64,
    /// Here the next cell starts.
    pub(super) starts: bool,
}

impl PipeMark {
    /// The mark of a pipe at its end.
    pub(super) const LAST: Self = Self { number: u64::MAX, starts: false };
}

/// Finds marks in what a pipe delivers, however it is cut.
pub(super) struct MarkScanner {
    begin: memmem::Finder<'static>,
    /// The beginning of something that may turn out to be a mark.
    held: Vec<u8>,
}

impl MarkScanner {
    pub(super) fn new(nonce: &str) -> Self {
        let begin = format!("\x1b_cw:{nonce}:");
        Self { begin: memmem::Finder::new(begin.as_bytes()).into_owned(), held: Vec::new() }
    }

    /// Takes the next bytes of the pipe.
    pub(super) fn scan(&mut self, bytes: &[u8], pieces: &mut VecDeque<PipePiece>) {
        if self.held.is_empty() {
            self.held = self.cut(bytes, pieces);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(bytes);
            self.held = self.cut(&joined, pieces);
        }
    }

    /// What is held back cannot become a mark any more.
    pub(super) fn finish(&mut self, pieces: &mut VecDeque<PipePiece>) {
        push_text(&std::mem::take(&mut self.held), pieces);
    }

    /// Cuts `bytes` into pieces and returns the end that has to wait.
    fn cut(&self, mut bytes: &[u8], pieces: &mut VecDeque<PipePiece>) -> Vec<u8> {
        let begin = self.begin.needle();
        // Text runs from here to the next mark; what only looks like one stays in it.
        let mut from = 0;
        while let Some(found) = self.begin.find(&bytes[from..]) {
            let at = from + found;
            match number(&bytes[at + begin.len()..]) {
                Number::Complete { mark, length } => {
                    push_text(&bytes[..at], pieces);
                    pieces.push_back(PipePiece::Mark(mark));
                    bytes = &bytes[at + begin.len() + length..];
                    from = 0;
                }
                Number::CutShort => {
                    push_text(&bytes[..at], pieces);
                    return bytes[at..].to_vec();
                }
                Number::None => from = at + begin.len(),
            }
        }
        // Only the last escape can begin a mark: there is one in its beginning.
        let split = memrchr(ESC, bytes).filter(|&at| begin.starts_with(&bytes[at..])).unwrap_or(bytes.len());
        push_text(&bytes[..split], pieces);
        bytes[split..].to_vec()
    }
}

fn push_text(text: &[u8], pieces: &mut VecDeque<PipePiece>) {
    if !text.is_empty() {
        pieces.push_back(PipePiece::Text(text.to_vec()));
    }
}

enum Number {
    Complete { mark: PipeMark, length: usize },
    CutShort,
    None,
}

/// The number and the end of a mark.
fn number(bytes: &[u8]) -> Number {
    /// Digits of the largest number.
    const LONGEST: usize = 20;
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let starts = bytes.get(digits) == Some(&STARTS);
    let end = digits + usize::from(starts);
    let rest = &bytes[end..];
    if rest.len() < MARK_ENDS.len() {
        return if digits <= LONGEST && MARK_ENDS.starts_with(rest) {
            Number::CutShort
        } else {
            Number::None
        };
    }
    let number = std::str::from_utf8(&bytes[..digits]).ok().and_then(|digits| digits.parse().ok());
    match number {
        Some(number) if rest.starts_with(MARK_ENDS) => {
            Number::Complete { mark: PipeMark { number, starts }, length: end + MARK_ENDS.len() }
        }
        Some(_) | None => Number::None,
    }
}

/// Turns a stream of bytes into text, replacing what is not UTF-8, wherever the stream is cut.
#[derive(Default)]
pub(super) struct StreamDecoder {
    /// The beginning of a character whose rest has not come.
    begun: Vec<u8>,
}

impl StreamDecoder {
    pub(super) fn decode(&mut self, mut bytes: Vec<u8>) -> String {
        if !self.begun.is_empty() {
            bytes.splice(..0, self.begun.drain(..));
        }
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let bytes = error.as_bytes();
                let mut text = String::with_capacity(bytes.len());
                let mut chunks = bytes.utf8_chunks().peekable();
                while let Some(chunk) = chunks.next() {
                    text.push_str(chunk.valid());
                    let cut_short =
                        || std::str::from_utf8(chunk.invalid()).is_err_and(|e| e.error_len().is_none());
                    if chunks.peek().is_none() && cut_short() {
                        self.begun.extend_from_slice(chunk.invalid());
                    } else if !chunk.invalid().is_empty() {
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                }
                text
            }
        }
    }

    /// What is left of a character whose rest will not come.
    pub(super) fn finish(&mut self) -> Option<String> {
        (!std::mem::take(&mut self.begun).is_empty()).then(|| char::REPLACEMENT_CHARACTER.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "0123456789abcdef0123456789abcdef";

    /// Feeds `bytes` in pieces of every size and joins neighbouring text.
    #[track_caller]
    fn check(bytes: &[u8], expected: &[PipePiece]) {
        for size in 1..=bytes.len() {
            let mut scanner = MarkScanner::new(NONCE);
            let mut pieces = VecDeque::new();
            for chunk in bytes.chunks(size) {
                scanner.scan(chunk, &mut pieces);
            }
            scanner.finish(&mut pieces);
            let mut joined: Vec<PipePiece> = Vec::new();
            for piece in pieces {
                match (joined.last_mut(), piece) {
                    (Some(PipePiece::Text(text)), PipePiece::Text(more)) => text.extend(more),
                    (_, piece) => joined.push(piece),
                }
            }
            assert_eq!(joined, expected, "in pieces of {size}");
        }
    }

    fn mark(n: &str) -> String {
        format!("\x1b_cw:{NONCE}:{n}\x1b\\")
    }

    fn text(text: &str) -> PipePiece {
        PipePiece::Text(text.as_bytes().to_vec())
    }

    fn found(number: u64, starts: bool) -> PipePiece {
        PipePiece::Mark(PipeMark { number, starts })
    }

    #[test]
    fn marks_are_found_however_the_pipe_is_cut() {
        let bytes = format!("a{}{}b\x1b[0m{}", mark("1"), mark("2+"), mark("18446744073709551615"));
        let text_and_marks =
            [text("a"), found(1, false), found(2, true), text("b\x1b[0m"), found(u64::MAX, false)];
        check(bytes.as_bytes(), &text_and_marks);
    }

    #[test]
    fn what_only_looks_like_a_mark_is_text() {
        let longer = "123456789012345678901";
        for almost in [mark("x"), mark(""), mark("+"), mark("1++"), mark(longer), mark("7").replace('0', "1")]
        {
            check(almost.as_bytes(), &[text(&almost)]);
            check(format!("{almost}{}", mark("3")).as_bytes(), &[text(&almost), found(3, false)]);
        }
    }

    #[test]
    fn text_that_ends_like_a_mark_begins_is_kept() {
        check(b"\x1b", &[text("\x1b")]);
        check(format!("x\x1b_cw:{NONCE}:12\x1b").as_bytes(), &[text(&format!("x\x1b_cw:{NONCE}:12\x1b"))]);
    }

    #[test]
    fn a_character_cut_by_the_pipe_arrives_whole() {
        let original = "aé€😀b";
        for size in 1..=original.len() {
            let mut decoder = StreamDecoder::default();
            let mut text: String =
                original.as_bytes().chunks(size).map(|chunk| decoder.decode(chunk.to_vec())).collect();
            text.extend(decoder.finish());
            assert_eq!(text, original, "in pieces of {size}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_not_lost() {
        let mut decoder = StreamDecoder::default();
        assert_eq!(decoder.decode(b"a\xffb\xe2\x82".to_vec()), "a\u{fffd}b");
        assert_eq!(decoder.decode(b"c".to_vec()), "\u{fffd}c");
        assert_eq!(decoder.decode(b"\xe2\x82".to_vec()), "");
        assert_eq!(decoder.finish().as_deref(), Some("\u{fffd}"));
        assert_eq!(decoder.finish(), None);
    }
}
