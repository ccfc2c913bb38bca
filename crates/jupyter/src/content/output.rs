//! What running code shows.

use cellwright_cell::{MimeData, Stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{MessageContent, contents, count, null_as_default};

/// What a kernel is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    /// Handling the request in the parent header.
    Busy,
    /// Done with it.
    #[default]
    Idle,
    /// Coming up: sent once.
    Starting,
    /// Something newer than us.
    #[serde(untagged)]
    Other(String),
}

contents! {
    /// Text written to a stream. Large texts are better read with [`StreamText`](crate::StreamText).
    "stream" => StreamOutput {
        /// Which stream.
        name: Stream,
        /// The text.
        text: String,
    }

    /// Something to display.
    "display_data" => DisplayData {
        /// The same thing in several formats.
        data: MimeData,
        /// About the formats, by MIME type, or about all.
        metadata: Map<String, Value>,
        /// Not to be stored with the output.
        transient: Transient,
    }

    /// Something in the place of what was displayed under the same `display_id`.
    "update_display_data" => UpdateDisplayData {
        /// The same thing in several formats.
        data: MimeData,
        /// About the formats.
        metadata: Map<String, Value>,
        /// Names the display to change.
        transient: Transient,
    }

    /// The exception that ended a cell.
    "error" => ErrorOutput {
        /// Its type's name.
        ename: String,
        /// Its text.
        evalue: String,
        /// Lines (or blocks of lines) for the user, often with ANSI colours.
        traceback: Vec<String>,
    }

    /// Remove what the cell has shown.
    "clear_output" => ClearOutput {
        /// Not before something new comes.
        wait: bool,
    }

    /// The kernel begins or ends work on the request in the parent header.
    "status" => Status {
        /// What it is doing.
        execution_state: ExecutionState,
    }

    /// Facts about an output that are not stored.
    Transient {
        /// Names the display for later updates.
        #[serde(skip_serializing_if = "Option::is_none")]
        display_id: Option<String>,
    }
}

/// The value of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecuteResult {
    /// The cell's number.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    /// The same thing in several formats.
    #[serde(deserialize_with = "null_as_default")]
    pub data: MimeData,
    /// About the formats.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: Map<String, Value>,
    /// Not to be stored with the output.
    #[serde(deserialize_with = "null_as_default")]
    pub transient: Transient,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl MessageContent for ExecuteResult {
    const TYPE: &'static str = "execute_result";
}
