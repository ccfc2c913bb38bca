//! JSON text as it came, parsed when someone asks.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A part of a message: JSON text that is passed on byte for byte and parsed on demand.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText(Bytes);

impl JsonText {
    /// The text of a value.
    pub fn of(value: &impl Serialize) -> Self {
        let text = serde_json::to_vec(value).expect("our content types have text keys and no failing parts");
        Self(text.into())
    }

    /// The text itself.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Parses the text. Other kernels are not always strict: bytes that are not UTF-8, lone surrogates, `NaN` and
    /// `Infinity` are met in the wild. None of them may cost the user a whole message, so they become U+FFFD and `null`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let text = self.text();
        serde_json::from_str(&text).or_else(|error| match repaired(&text) {
            Some(repaired) => serde_json::from_str(&repaired),
            None => Err(error),
        })
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl Default for JsonText {
    fn default() -> Self {
        Self(Bytes::from_static(b"{}"))
    }
}

impl From<Bytes> for JsonText {
    fn from(text: Bytes) -> Self {
        Self(text)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Replaces what JSON does not have; `None` when there was nothing of the kind.
pub(crate) fn repaired(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut in_text) = (text, false);
    let mut changed = false;
    while let Some(at) = rest.find(['"', '\\', 'N', 'I', '-']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (length, replacement) = if in_text { text_token(rest) } else { bare_token(rest) };
        in_text ^= rest.starts_with('"');
        changed |= replacement.is_some();
        let (token, later) = rest.split_at(length);
        out.push_str(replacement.unwrap_or(token));
        rest = later;
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// Outside of strings: how much to take, and what to put in its place.
fn bare_token(rest: &str) -> (usize, Option<&'static str>) {
    let names = ["NaN", "Infinity", "-Infinity"];
    match names.into_iter().find(|name| rest.starts_with(name)) {
        Some(name) => (name.len(), Some("null")),
        None => (1, None),
    }
}

/// Inside a string.
fn text_token(rest: &str) -> (usize, Option<&'static str>) {
    if !rest.starts_with('\\') {
        return (1, None);
    }
    match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
        (Some(0xd800..=0xdfff), _) => (6, Some("\\ufffd")),
        (Some(_), _) => (6, None),
        // An escape is two characters, the second of which may be a quote.
        (None, _) => (1 + rest[1..].chars().next().map_or(0, char::len_utf8), None),
    }
}

/// The UTF-16 unit of a `\uXXXX` at the start.
pub(crate) fn escaped_unit(rest: &str) -> Option<u32> {
    let digits = rest.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(text: &[u8], expected: &Value) {
        let json = JsonText::from(Bytes::copy_from_slice(text));
        assert_eq!(json.parse::<Value>().as_ref().ok(), Some(expected));
    }

    #[test]
    fn text_that_is_nearly_json_is_read() {
        check(
            br#"{"a": [NaN, -Infinity, Infinity, -1], "b": "NaN \" NaN"}"#,
            &json!({
                "a": [null, null, null, -1], "b": "NaN \" NaN",
            }),
        );
        check(
            br#"["\ud83d\ude00 \ud83d \\ud83d \udc00\ud83d"]"#,
            &json!(["\u{1f600} \u{fffd} \\ud83d \u{fffd}\u{fffd}"]),
        );
        check(b"[\"\xff\", NaN]", &json!(["\u{fffd}", null]));
    }

    #[test]
    fn text_that_is_not_json_is_an_error_that_tells_of_the_text_as_it_came() {
        let broken = JsonText::from(Bytes::from_static(b"{\"a\": }"));
        assert_eq!(
            broken.parse::<Value>().expect_err("broken").to_string(),
            "expected value at line 1 column 7"
        );
    }
}
