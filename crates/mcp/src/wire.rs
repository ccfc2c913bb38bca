//! Messages as clients write them.

use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Some programs write it before the first line of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A message that could not be read, and what its sender is answered.
#[derive(Debug)]
pub(crate) struct RefusedMessage {
    /// The id of the request, as it was written: it may be one that no library can hold.
    id: Option<Box<RawValue>>,
    error: ErrorData,
}

/// Reads a message, or says what is wrong with it. Half a surrogate pair reads as U+FFFD: Python and JavaScript write
/// them, but no Rust text can hold one.
pub(crate) fn message(json: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, RefusedMessage> {
    let json = json.strip_prefix(BYTE_ORDER_MARK).unwrap_or(json);
    let read = match serde_json::from_slice(json) {
        Err(error) if error.is_syntax() => match without_lone_surrogates(json) {
            Some(repaired) => serde_json::from_slice(&repaired),
            None => Err(error),
        },
        read => read,
    };
    read.map_err(|error| {
        let id = serde_json::from_slice::<RequestHead>(json).ok().and_then(|head| head.id);
        let error = if error.is_data() || id.is_some() {
            ErrorData::invalid_request(format!("not a message of MCP: {error}"), None)
        } else {
            ErrorData::parse_error(format!("not JSON: {error}"), None)
        };
        RefusedMessage { id, error }
    })
}

impl RefusedMessage {
    /// A message that was not read at all.
    pub(crate) fn unread(error: ErrorData) -> Self {
        Self { id: None, error }
    }

    /// The answer, in JSON.
    pub(crate) fn answer(&self) -> Vec<u8> {
        let ErrorData { code: ErrorCode(code), message, .. } = &self.error;
        let error = AnswerError { code: *code, message };
        let answer = ErrorAnswer { jsonrpc: "2.0", id: self.id.as_deref(), error };
        serde_json::to_vec(&answer).expect("an answer can be written")
    }
}

/// What of a request shows whom to answer.
#[derive(Deserialize)]
struct RequestHead {
    id: Option<Box<RawValue>>,
    /// Without one it is no request, and nobody waits.
    #[serde(rename = "method")]
    _method: Box<RawValue>,
}

#[derive(Serialize)]
struct ErrorAnswer<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    error: AnswerError<'a>,
}

#[derive(Serialize)]
struct AnswerError<'a> {
    code: i32,
    message: &'a str,
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
    fn a_request_with_a_bad_part_is_answered_by_its_id() {
        let answer = |request: &str| {
            let refused = message(request.as_bytes()).map(drop).unwrap_err();
            let answer: serde_json::Value = serde_json::from_slice(&refused.answer()).unwrap();
            (answer["id"].to_string(), answer["error"]["code"].as_i64().unwrap())
        };
        for (request, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":"x","name":"eval"}}"#, "7"),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, r#""a""#),
            (r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#, "9223372036854775808"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "1.5"),
            (r#"{"jsonrpc":"1.0","method":"ping"}"#, "null"),
        ] {
            assert_eq!(answer(request), (id.to_owned(), -32600), "{request}");
        }
        assert_eq!(answer("{"), ("null".to_owned(), -32700));
    }

    #[test]
    fn a_byte_order_mark_before_a_message_is_passed_over() {
        let request = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        assert!(message(request.as_bytes()).is_ok());
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
