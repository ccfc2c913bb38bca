//! Questions about code that is not run. Positions count Unicode characters.

use cellwright_cell::MimeData;
use serde_json::{Map, Value};

use super::{ReplyStatus, contents};

contents! {
    /// What could follow here?
    "complete_request" => CompleteRequest {
        /// The cell so far.
        code: String,
        /// Where the cursor is.
        cursor_pos: usize,
    }

    /// What could.
    "complete_reply" => CompleteReply {
        /// Whether it worked.
        status: ReplyStatus,
        /// Texts to put in place of what is between start and end.
        matches: Vec<String>,
        /// Start of what a match replaces.
        cursor_start: usize,
        /// End of it.
        cursor_end: usize,
        /// For example types of matches.
        metadata: Map<String, Value>,
    }

    /// What is this?
    "inspect_request" => InspectRequest {
        /// The cell.
        code: String,
        /// Where the cursor is.
        cursor_pos: usize,
        /// 0, or 1 for more.
        detail_level: u8,
    }

    /// What it is.
    "inspect_reply" => InspectReply {
        /// Whether it worked, which it does also when nothing was found.
        status: ReplyStatus,
        /// Whether there is something to show.
        found: bool,
        /// The description in several formats.
        data: MimeData,
        /// About the formats.
        metadata: Map<String, Value>,
    }

    /// Does Enter run this, or start a new line?
    "is_complete_request" => IsCompleteRequest {
        /// The code so far.
        code: String,
    }

    /// Whether code is complete.
    "is_complete_reply" => IsCompleteReply {
        /// `complete`, `incomplete`, `invalid` or `unknown`.
        status: String,
        /// With `incomplete`: how the next line starts.
        #[serde(skip_serializing_if = "String::is_empty")]
        indent: String,
    }

    /// What was run before?
    "history_request" => HistoryRequest {
        /// Whether to include outputs.
        output: bool,
        /// Code as typed, not as transformed.
        raw: bool,
        /// `range`, `tail` or `search`.
        hist_access_type: String,
        /// With `range`: which session; 0 is this one, negative ones count back.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<i64>,
        /// With `range`: first line.
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<i64>,
        /// With `range`: line after the last.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<i64>,
        /// With `tail` and `search`: how many.
        #[serde(skip_serializing_if = "Option::is_none")]
        n: Option<u64>,
        /// With `search`: a glob.
        #[serde(skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
        /// With `search`: no repetitions.
        unique: bool,
    }

    /// What was run.
    "history_reply" => HistoryReply {
        /// Whether it worked.
        status: ReplyStatus,
        /// `[session, line, input]` or `[session, line, [input, output]]`.
        history: Vec<Value>,
    }
}
