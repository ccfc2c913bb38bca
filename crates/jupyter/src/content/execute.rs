//! Running code, and asking its user for input.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{MessageContent, ReplyStatus, contents, count, null_as_default};

/// Run this code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "as the protocol has it")]
pub struct ExecuteRequest {
    /// The cell's source.
    pub code: String,
    /// No output, no history, no count.
    pub silent: bool,
    /// Whether the code goes to the history.
    pub store_history: bool,
    /// Expressions to evaluate afterwards, by name.
    #[serde(deserialize_with = "null_as_default")]
    pub user_expressions: Map<String, Value>,
    /// Whether the kernel may send an [`InputRequest`].
    pub allow_stdin: bool,
    /// Whether a failure aborts the requests queued behind.
    pub stop_on_error: bool,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl MessageContent for ExecuteRequest {
    const TYPE: &'static str = "execute_request";
}

impl Default for ExecuteRequest {
    fn default() -> Self {
        Self {
            code: String::new(),
            silent: false,
            store_history: true,
            user_expressions: Map::new(),
            allow_stdin: true,
            stop_on_error: true,
            extra: Map::new(),
        }
    }
}

/// How an execution ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecuteReply {
    /// Whether it worked.
    pub status: ReplyStatus,
    /// The cell's number, when the kernel counts.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    /// Actions asked of the frontend (deprecated, in use for `%load` and `?`).
    #[serde(deserialize_with = "null_as_default")]
    pub payload: Vec<Value>,
    /// What the expressions gave.
    #[serde(deserialize_with = "null_as_default")]
    pub user_expressions: Map<String, Value>,
    /// With [`ReplyStatus::Error`]: what was raised.
    #[serde(flatten)]
    pub exception: Option<ExceptionContent>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl MessageContent for ExecuteReply {
    const TYPE: &'static str = "execute_reply";
}

/// What was raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceptionContent {
    /// Its type's name.
    pub ename: String,
    /// Its text.
    #[serde(default, deserialize_with = "null_as_default")]
    pub evalue: String,
    /// Lines (or blocks of lines) for the user, often with ANSI colours.
    #[serde(default, deserialize_with = "null_as_default")]
    pub traceback: Vec<String>,
}

contents! {
    /// A cell is about to run: its code, for all clients that watch.
    "execute_input" => ExecuteInput {
        /// The cell's source.
        code: String,
        /// The cell's number.
        execution_count: u64,
    }

    /// The running code asks its user a question.
    "input_request" => InputRequest {
        /// What to show.
        prompt: String,
        /// Whether the answer must not be shown.
        password: bool,
    }

    /// The user's answer.
    "input_reply" => InputReply {
        /// Whether there is one (5.4 and later).
        status: ReplyStatus,
        /// The answer.
        value: String,
    }
}
