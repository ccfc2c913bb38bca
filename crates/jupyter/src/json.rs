//! JSON text as it came, parsed when someone asks.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use cellwright_cell::repaired;
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
    fn text_that_is_not_json_is_an_error_that_quotes_the_text() {
        let broken = JsonText::from(Bytes::from_static(b"{\"a\": }"));
        assert_eq!(
            broken.parse::<Value>().expect_err("broken").to_string(),
            "expected value at line 1 column 7"
        );
    }
}
