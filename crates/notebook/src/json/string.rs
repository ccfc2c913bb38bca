//! Strings between JSON and Rust.

use std::borrow::Cow;
use std::fmt::Write as _;

/// How characters beyond ASCII are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonEscapes {
    /// As they are, the way Jupyter writes.
    Needed,
    /// As `\uXXXX`, the way Python's `ensure_ascii` writes.
    Ascii,
}

impl JsonEscapes {
    /// The habit `sample` shows, if it shows one.
    pub(crate) fn of(sample: &str) -> Option<Self> {
        if !sample.is_ascii() {
            return Some(Self::Needed);
        }
        let mut rest = sample;
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            let code = rest.get(at + 1..at + 6).and_then(|escape| escape.strip_prefix('u'));
            if code.and_then(|digits| u32::from_str_radix(digits, 16).ok()).is_some_and(|code| code >= 0x80) {
                return Some(Self::Ascii);
            }
            // The next character belongs to this escape: of `\\u00e9` nothing is one.
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        None
    }
}

/// The text of a checked string literal's inside. A lone surrogate, which Rust cannot hold, reads as U+FFFD.
pub(crate) fn decode(inside: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', inside.as_bytes()) else {
        return Cow::Borrowed(inside);
    };
    let mut text = String::with_capacity(inside.len());
    text.push_str(&inside[..first]);
    let mut rest = &inside[first..];
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[unescape(rest, &mut text)..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Appends the character that an escape means, and returns how many bytes spell it.
fn unescape(escape: &str, text: &mut String) -> usize {
    match escape.as_bytes()[1] {
        b'b' => text.push('\u{8}'),
        b'f' => text.push('\u{c}'),
        b'n' => text.push('\n'),
        b'r' => text.push('\r'),
        b't' => text.push('\t'),
        b'u' => {
            let (character, length) = unicode_escape(escape);
            text.push(character);
            return length;
        }
        quoted => text.push(char::from(quoted)),
    }
    2
}

/// The strings of a checked array, joined. Nothing if it holds anything else.
pub(crate) fn joined_array(array: &str) -> Option<String> {
    let mut text = String::with_capacity(array.len());
    for_each_string(array, |mut literal| {
        while let Some(at) = memchr::memchr(b'\\', literal.as_bytes()) {
            text.push_str(&literal[..at]);
            literal = &literal[at..];
            literal = &literal[unescape(literal, &mut text)..];
        }
        text.push_str(literal);
    })
    .then_some(text)
}

/// Whether a checked array holds strings and nothing else.
pub(crate) fn is_array_of_strings(array: &str) -> bool {
    for_each_string(array, |_| {})
}

/// Hands over what is between the quotes of each string of a checked array; false at the first thing that is no string.
fn for_each_string<'a>(array: &'a str, mut take: impl FnMut(&'a str)) -> bool {
    let bytes = array.as_bytes();
    let mut at = 1;
    loop {
        match bytes[at] {
            b' ' | b'\n' | b'\r' | b'\t' | b',' => at += 1,
            b']' => return true,
            b'"' => {
                let start = at + 1;
                at = start;
                while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                    at += found;
                    if bytes[at] == b'"' {
                        break;
                    }
                    at += 2;
                }
                take(&array[start..at]);
                at += 1;
            }
            _ => return false,
        }
    }
}

/// Whether checked literals hold half of a surrogate pair, which [`decode`] cannot show as it is.
pub(crate) fn has_lone_surrogate(raw: &str) -> bool {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        rest = &rest[at..];
        let length = match rest.as_bytes()[1] {
            b'u' => match unicode_escape(rest) {
                (char::REPLACEMENT_CHARACTER, _) if !rest[2..6].eq_ignore_ascii_case("fffd") => return true,
                (_, length) => length,
            },
            _ => 2,
        };
        rest = &rest[length..];
    }
    false
}

/// The character that `escapes` starts with, and how many bytes spell it.
fn unicode_escape(escapes: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = escapes.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(0).expect("the scanner checked the digits");
    if let 0xD800..0xDC00 = first
        && let Some(second @ 0xDC00..0xE000) = unit(6)
    {
        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return (char::from_u32(code).expect("a surrogate pair is a character"), 12);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

/// Appends `text` as a string literal, quotes included, escaping what Python's `json` escapes.
pub(crate) fn encode(out: &mut String, text: &str, escapes: JsonEscapes) {
    out.push('"');
    encode_inside(out, text, escapes);
    out.push('"');
}

/// Appends `text` as the inside of a string literal.
pub(crate) fn encode_inside(out: &mut String, text: &str, escapes: JsonEscapes) {
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => escape_units(out, control),
            wide if escapes == JsonEscapes::Ascii && wide > '\u{7e}' => escape_units(out, wide),
            plain => out.push(plain),
        }
    }
}

fn escape_units(out: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        write!(out, "\\u{unit:04x}").expect("a String takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_decode_as_python_decodes_them() {
        assert_eq!(decode(r#"a\n\t\"\\\/\u00e9\ud83d\ude00z"#), "a\n\t\"\\/é😀z");
        assert_eq!(decode(r"\ud800x\udc00"), "\u{fffd}x\u{fffd}");
        assert_eq!(decode(r"\ud800\u0041"), "\u{fffd}A");
    }

    #[test]
    fn half_a_surrogate_pair_is_distinguished_from_what_it_reads_as() {
        for lone in [r"\ud800", r"x\uDFFFy", r"\ud83d\ude00\ude00", r"\ud800\u0041"] {
            assert!(has_lone_surrogate(lone), "{lone}");
        }
        for whole in ["\u{fffd}", r"\ufffd\uFFFD", r"\ud83d\ude00", r"\\ud800", ""] {
            assert!(!has_lone_surrogate(whole), "{whole}");
        }
    }

    #[test]
    fn the_habit_is_read_from_a_sample() {
        assert_eq!(JsonEscapes::of("plain \\n"), None);
        assert_eq!(JsonEscapes::of("é"), Some(JsonEscapes::Needed));
        assert_eq!(JsonEscapes::of(r"\u00e9"), Some(JsonEscapes::Ascii));
        assert_eq!(JsonEscapes::of(r"\u001b"), None);
        assert_eq!(JsonEscapes::of(r"\\u00e9"), None);
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(text in any::<String>(), ascii: bool) {
            let mut literal = String::new();
            let escapes = if ascii { JsonEscapes::Ascii } else { JsonEscapes::Needed };
            encode_inside(&mut literal, &text, escapes);
            prop_assert!(!ascii || literal.is_ascii());
            prop_assert_eq!(decode(&literal), text);
        }
    }
}
