//! The text of a `stream` message without building it whole.

use std::borrow::Cow;
use std::io;

use bytes::{Buf as _, Bytes};
use cellwright_cell::{Stream, escaped_unit, repaired};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::JsonText;

/// Text is handed on in pieces of about this size.
const PIECE: usize = 64 * 1024;

/// Two units of `\uXXXX` may stand for one character.
const LONGEST_ESCAPE: usize = 12;

/// A `stream` message's text, still escaped, borrowed from the frame it came in. A print of 100 MB so needs
/// its frame and nothing more.
#[derive(Debug)]
pub struct StreamText<'a> {
    name: Stream,
    escaped: Cow<'a, str>,
}

#[derive(Deserialize)]
struct StreamFields<'a> {
    name: Stream,
    #[serde(borrow)]
    text: &'a RawValue,
}

impl<'a> StreamText<'a> {
    /// Finds name and text in the content of a `stream` message.
    pub fn parse(content: &'a JsonText) -> Result<Self, serde_json::Error> {
        match content.text() {
            Cow::Borrowed(text) => match serde_json::from_str::<StreamFields<'a>>(text) {
                Ok(StreamFields { name, text }) => Ok(Self { name, escaped: Cow::Borrowed(inner(text)?) }),
                Err(error) => repaired(text).map_or(Err(error), |text| Self::parse_owned(&text)),
            },
            Cow::Owned(text) => Self::parse_owned(&text),
        }
    }

    fn parse_owned(text: &str) -> Result<Self, serde_json::Error> {
        let StreamFields { name, text } = serde_json::from_str(text)?;
        Ok(Self { name, escaped: Cow::Owned(inner(text)?.to_owned()) })
    }

    /// Standard output or standard error.
    pub fn name(&self) -> Stream {
        self.name
    }

    /// Hands the text over in pieces, none of them empty.
    pub fn for_each(&self, mut take: impl FnMut(&str)) {
        let never: Result<(), std::convert::Infallible> = self.try_for_each(|piece| {
            take(piece);
            Ok(())
        });
        let Ok(()) = never;
    }

    /// Writes the text.
    pub fn write_to(&self, out: &mut impl io::Write) -> io::Result<()> {
        self.try_for_each(|piece| out.write_all(piece.as_bytes()))
    }

    fn try_for_each<E>(&self, mut take: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut piece = String::new();
        let mut rest = &*self.escaped;
        while !rest.is_empty() {
            let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
            if piece.len() + plain > PIECE && !piece.is_empty() {
                take(&piece)?;
                piece.clear();
            }
            let (text, escape) = rest.split_at(plain);
            if plain > PIECE {
                take(text)?;
            } else {
                piece.push_str(text);
            }
            rest = escape;
            if !rest.is_empty() {
                let (character, taken) = unescape(rest);
                piece.push(character);
                rest = &rest[taken..];
            }
        }
        if piece.is_empty() { Ok(()) } else { take(&piece) }
    }
}

/// A `stream` message's text, unescaped piece by piece as it is taken. Shares the memory of the frame it came in, and
/// borrows nothing, so a reader may leave it and come back.
#[derive(Debug, Clone)]
pub struct StreamPieces {
    name: Stream,
    /// What is left, still escaped.
    escaped: Bytes,
}

impl StreamPieces {
    /// Finds name and text in the content of a `stream` message.
    pub fn parse(content: &JsonText) -> Result<Self, serde_json::Error> {
        let StreamText { name, escaped } = StreamText::parse(content)?;
        let escaped = match escaped {
            Cow::Borrowed(text) => content.bytes().slice_ref(text.as_bytes()),
            Cow::Owned(text) => text.into(),
        };
        Ok(Self { name, escaped })
    }

    /// Standard output or standard error.
    pub fn name(&self) -> Stream {
        self.name
    }
}

impl Iterator for StreamPieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.escaped.is_empty() {
            return None;
        }
        let window = &self.escaped[..self.escaped.len().min(PIECE)];
        let torn = if window.len() < self.escaped.len() { LONGEST_ESCAPE } else { 1 };
        let text = std::str::from_utf8(window).unwrap_or_else(|cut| {
            std::str::from_utf8(&window[..cut.valid_up_to()]).expect("valid up to there")
        });
        let mut piece = String::with_capacity(text.len());
        let mut rest = text;
        loop {
            let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
            piece.push_str(&rest[..plain]);
            rest = &rest[plain..];
            // What may be half an escape is left for the next piece.
            if rest.len() < torn {
                break;
            }
            let (character, taken) = unescape(rest);
            piece.push(character);
            rest = &rest[taken..];
        }
        self.escaped.advance(text.len() - rest.len());
        Some(piece)
    }
}

/// The text between the quotes of a JSON string.
fn inner(text: &RawValue) -> Result<&str, serde_json::Error> {
    let quoted = text.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    quoted.ok_or_else(|| serde::de::Error::custom("`text` is not a string"))
}

/// The character that an escape at the start of `rest` means, and the escape's length. The text is known to be JSON.
fn unescape(rest: &str) -> (char, usize) {
    let simple = match rest.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unescape_unicode(rest),
        Some(&other) => char::from(other),
        None => return (char::REPLACEMENT_CHARACTER, rest.len()),
    };
    (simple, 2)
}

fn unescape_unicode(rest: &str) -> (char, usize) {
    match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
        (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
            let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        (unit, _) => {
            (unit.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER), 6.min(rest.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(content: &str) -> (Stream, String) {
        let content = JsonText::from(Bytes::copy_from_slice(content.as_bytes()));
        let stream = StreamText::parse(&content).expect("a stream");
        let (mut pieces, mut written) = (String::new(), Vec::new());
        stream.for_each(|piece| {
            assert!(!piece.is_empty());
            pieces.push_str(piece);
        });
        stream.write_to(&mut written).expect("a vector takes all");
        assert_eq!(pieces.as_bytes(), written);
        let taken: String = StreamPieces::parse(&content).expect("a stream").collect();
        assert_eq!(taken, pieces);
        (stream.name, pieces)
    }

    /// As Python writes it with `ensure_ascii`.
    fn escape(text: &str) -> String {
        let mut out = String::new();
        for unit in text.encode_utf16() {
            match u8::try_from(unit) {
                Ok(byte) if byte.is_ascii() => out.push(char::from(byte)),
                _ => write!(out, "\\u{unit:04X}").expect("a string takes all"),
            }
        }
        out
    }

    proptest! {
        #[test]
        fn any_text_is_unescaped_as_a_json_parser_would(text: String, ascii: bool) {
            let mut content = json!({"text": text, "name": "stderr", "extra": [{"text": "no"}]}).to_string();
            if ascii {
                content = escape(&content);
            }
            prop_assert_eq!(read(&content), (Stream::Stderr, text));
        }
    }

    #[test]
    fn a_long_text_is_borrowed_and_comes_in_pieces() {
        let text = format!("{}\n{}", "a".repeat(3 * PIECE), "line\n".repeat(PIECE));
        let content = JsonText::of(&json!({"name": "stdout", "text": text}));
        let stream = StreamText::parse(&content).expect("a stream");
        assert!(matches!(stream.escaped, Cow::Borrowed(_)));
        let mut sizes = Vec::new();
        stream.for_each(|piece| sizes.push(piece.len()));
        assert_eq!(sizes.iter().sum::<usize>(), text.len());
        assert!(sizes.len() < 20, "{sizes:?}");
    }

    #[test]
    fn pieces_are_bounded_and_tear_nothing_wherever_the_cut_falls() {
        for text in ["a", "\u{1f600}", "é\n", "\\", "aé\u{1f600}\\\""] {
            for shift in 0..LONGEST_ESCAPE {
                let text = format!("{}{}", "b".repeat(shift), text.repeat(PIECE / 5));
                let plain = json!({"name": "stdout", "text": text}).to_string();
                for content in [escape(&plain), plain] {
                    let content = JsonText::from(Bytes::from(content));
                    let pieces: Vec<_> = StreamPieces::parse(&content).expect("a stream").collect();
                    assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE));
                    assert!(pieces.concat() == text, "{:?} after {shift}", text.chars().nth(shift));
                }
            }
        }
    }

    #[test]
    fn what_json_does_not_allow_becomes_replacement_characters() {
        let lone = r#"{"name": "stdout", "text": "a\ud800b\udc00\ud83d\ude00", "count": NaN}"#;
        assert_eq!(read(lone).1, "a\u{fffd}b\u{fffd}\u{1f600}");
        let latin = JsonText::from(Bytes::from_static(b"{\"name\": \"stdout\", \"text\": \"a\xffb\"}"));
        let mut text = String::new();
        StreamText::parse(&latin).expect("a stream").for_each(|piece| text.push_str(piece));
        assert_eq!(text, "a\u{fffd}b");
    }
}
