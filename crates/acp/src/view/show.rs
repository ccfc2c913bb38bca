//! What a view is told and what it gives.

use agent_client_protocol_schema::v1::StopReason;
use serde_json::{Map, Value};

/// One message for the notebook.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputMessage {
    /// Text for a stream.
    Stream {
        /// Which one.
        name: StreamName,
        /// The text.
        text: String,
    },
    /// A new display.
    Display {
        /// Its `display_id`.
        id: String,
        /// Its alternatives by MIME type.
        data: OutputData,
    },
    /// A new state of an earlier display.
    Update {
        /// Its `display_id`.
        id: String,
        /// Its alternatives by MIME type.
        data: OutputData,
    },
}

/// Alternatives of one display by MIME type. Always with `text/plain`.
pub type OutputData = Map<String, Value>;

/// A stream of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamName {
    /// `stdout`: the agent's answer.
    Stdout,
    /// `stderr`: everything else.
    Stderr,
}

impl StreamName {
    /// As Jupyter names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What the client can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ViewStyle {
    /// Displays that are updated in place.
    #[default]
    Rich,
    /// Text only, for consoles.
    Stream,
}

/// Who asks for a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionAsker {
    /// The agent, for a call that it goes on to tell of.
    Agent,
    /// We, before we do something for the agent. What comes of it the agent tells by calls of its own.
    Us,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnding {
    /// As the agent says.
    Stopped(StopReason),
    /// By an error, which the cell reports itself.
    Failed,
}
