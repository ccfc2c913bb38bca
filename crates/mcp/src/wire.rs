//! Messages as clients write them.

use rmcp::model::ErrorData;
use rmcp::service::{RoleServer, RxJsonRpcMessage};

/// Reads a message, or says what is wrong with it. Half a surrogate pair reads as U+FFFD: Python and JavaScript write
/// them, but no Rust text can hold one.
pub(crate) fn message(json: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, ErrorData> {
    let read = match serde_json::from_slice(json) {
        Err(error) if error.is_syntax() => match without_lone_surrogates(json) {
            Some(repaired) => serde_json::from_slice(&repaired),
            None => Err(error),
        },
        read => read,
    };
    read.map_err(|error| {
        if error.is_data() {
            ErrorData::invalid_request(format!("not a message of MCP: {error}"), None)
        } else {
            ErrorData::parse_error(format!("not JSON: {error}"), None)
        }
    })
}

/// The text with `\ufffd` for every escape of half a pair; `None` if it has no such escape.
pub(crate) fn without_lone_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| -> Option<u16> {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    // All escapes of halves begin so; hardly any text has one.
    if !json.windows(3).any(|three| matches!(three, br"\ud" | br"\uD")) {
        return None;
    }
    let (mut repaired, mut at, mut found) = (Vec::with_capacity(json.len()), 0, false);
    while at < json.len() {
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                found = true;
                repaired.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            // An escaped backslash is not the start of another escape.
            (None, _) if json[at] == b'\\' => 2.min(json.len() - at),
            (None, _) => 1,
        };
        repaired.extend_from_slice(&json[at..at + length]);
        at += length;
    }
    found.then_some(repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, repaired: Option<&str>) {
        let found = without_lone_surrogates(json.as_bytes());
        assert_eq!(found.map(|bytes| String::from_utf8(bytes).unwrap()).as_deref(), repaired);
    }

    #[test]
    fn half_a_surrogate_pair_becomes_the_replacement_character() {
        check(r#""\ud83d""#, Some(r#""\ufffd""#));
        check(r#""a\udc00\ud83d\ude00b""#, Some(r#""a\ufffd\ud83d\ude00b""#));
        check(r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#));
    }

    #[test]
    fn whole_pairs_and_escaped_backslashes_stay() {
        check(r#""\ud83d\ude00""#, None);
        check(r#""\\ud83d""#, None);
        check(r#""\u00e9 \n""#, None);
    }
}
