//! What goes into a view, and what comes out of it.

use agent_client_protocol_schema::v1::StopReason;
use cellwright_cell::Stream;
use serde_json::{Map, Value};

/// One message for the notebook.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OutputMessage {
    Stream {
        name: Stream,
        text: String,
    },
    Display {
        id: String,
        data: OutputData,
    },
    /// A new state of an earlier display.
    Update {
        id: String,
        data: OutputData,
    },
}

/// The representations of one display, by MIME type. There is always a `text/plain`.
pub(crate) type OutputData = Map<String, Value>;

/// What the client can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ViewStyle {
    /// Displays that are updated in place.
    #[default]
    Rich,
    /// Text only, for consoles.
    Stream,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnEnding {
    /// For the agent's reason.
    Stopped(StopReason),
    /// By an error, which the cell reports.
    Failed,
    /// It was a command to the kernel, not a prompt. The cell shows its result.
    Command,
}
