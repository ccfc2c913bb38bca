//! JSON as text: a parsed value rounds whole numbers beyond 64 bits, and cannot hold `NaN`.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value as its text, with every digit. The text may have what Python's JSON has: `NaN`, lone surrogates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactJson(Box<str>);

impl ExactJson {
    /// JSON text that was checked by its reader.
    pub fn from_checked(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// As a value, as near as that comes: numbers may be rounded, `NaN` is `null`.
    pub fn value(&self) -> Value {
        self.parsed().unwrap_or_default()
    }

    /// The text of an array of strings.
    pub(crate) fn joined(&self) -> Option<String> {
        if !self.0.starts_with('[') {
            return None;
        }
        let pieces: Vec<Cow<'_, str>> = self.parsed()?;
        Some(pieces.concat())
    }

    fn parsed<T: for<'de> Deserialize<'de>>(&self) -> Option<T> {
        let text = &*self.0;
        serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&repaired(text)?).ok())
    }
}

impl From<Value> for ExactJson {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<Box<RawValue>> for ExactJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

impl Serialize for ExactJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => self.value().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ExactJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// Replaces what JSON does not have; `None` when there was nothing of the kind.
pub fn repaired(text: &str) -> Option<String> {
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
pub fn escaped_unit(rest: &str) -> Option<u32> {
    let digits = rest.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

/// The first number in a JSON text that a `Value` rounds, if there is one.
pub fn rounded_number(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[at..];
        if rest.starts_with('"') {
            rest = after_string(rest);
            continue;
        }
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        let is_whole = !number.contains(['.', 'e', 'E']);
        if is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Some(number);
        }
        rest = after;
    }
    None
}

/// What follows the string that `text` starts with.
fn after_string(text: &str) -> &str {
    let mut rest = &text[1..];
    while let Some(at) = rest.find(['"', '\\']) {
        let is_end = rest[at..].starts_with('"');
        let mut after = rest[at + 1..].chars();
        if is_end {
            return after.as_str();
        }
        after.next();
        rest = after.as_str();
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_value_rounds_are_found_outside_strings() {
        let big = "10000000000000000000000000000000000000000";
        assert_eq!(rounded_number(&format!(r#"{{"a": [1, -{big}]}}"#)), Some(format!("-{big}").as_str()));
        assert_eq!(rounded_number(&format!(r#"["\"{big}", "x\\", {big}]"#)), Some(big));
        for kept in ["18446744073709551615", "-9223372036854775808", "1e40", "12345678901234567890123.0"] {
            assert_eq!(rounded_number(&format!("[{kept}]")), None);
        }
        assert_eq!(rounded_number(&format!(r#"{{"{big}": "{big}"}}"#)), None);
    }

    #[test]
    fn what_json_does_not_have_is_read_as_near_as_it_comes() {
        let json = ExactJson::from_checked(r#"{"n": [NaN, 1.5, -Infinity], "s": "\ud800"}"#);
        assert_eq!(json.value(), serde_json::json!({"n": [null, 1.5, null], "s": "\u{fffd}"}));
        assert_eq!(ExactJson::from_checked("[1e999]").value(), Value::Null);
    }
}
