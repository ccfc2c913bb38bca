//! JSON whose numbers a [`Value`](serde_json::Value) cannot hold: it rounds whole numbers beyond 64 bits.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Digits of the shortest number beyond 64 bits.
const SHORTEST: usize = 19;

/// Of the members of `data` in this message, the texts of those that a `Value` rounds.
pub(crate) fn exact(message: &[u8]) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow)]
        data: BTreeMap<String, &'a RawValue>,
    }
    let has_digits = message.chunk_by(|a, b| a.is_ascii_digit() && b.is_ascii_digit());
    if !has_digits.into_iter().any(|run| run.len() >= SHORTEST) {
        return BTreeMap::new();
    }
    // What is no message is told by those who read all of it.
    let Ok(Parts { data }) = serde_json::from_slice(message) else { return BTreeMap::new() };
    let rounded = data.into_iter().filter(|(_, value)| rounded_number(value.get()).is_some());
    rounded.map(|(mime, value)| (mime, value.get().to_owned())).collect()
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
    fn only_what_would_be_rounded_is_kept_as_text() {
        let message = r#"{"data": {"application/json": {"n": 10000000000000000000000}, "text/plain": "10000000000000000000000"}}"#;
        let kept =
            BTreeMap::from([("application/json".to_owned(), r#"{"n": 10000000000000000000000}"#.to_owned())]);
        assert_eq!(exact(message.as_bytes()), kept);
        assert_eq!(exact(br#"{"data": {"application/json": [0.1, 12345]}}"#), BTreeMap::new());
    }
}
