//! What a running cell says.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::comm::CommMessage;
use crate::outcome::StopReason;

/// Something a cell did, in the order it did it.
#[derive(Debug)]
pub enum Event {
    /// Something to show.
    Output(Output),
    /// New content for every display shown under `display_id`, also of earlier cells.
    UpdateDisplay {
        /// Which display.
        display_id: String,
        /// What it shows now.
        content: MimeBundle,
    },
    /// Outputs so far are to be removed: now, or when the next one comes.
    ClearOutput {
        /// Wait for the next output.
        wait: bool,
    },
    /// The cell entered another stage.
    Status(Status),
    /// The cell waits for a line from the user.
    InputRequest(InputRequest),
    /// Something the user should know that is not output, such as an extension module that failed.
    Warning(String),
    /// A message on a comm, for those who asked for them: see [`Kernel::pass_comms`](crate::Kernel::pass_comms).
    Comm(Box<CommMessage>),
}

/// A stage in the life of a cell that is not its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The cell's code runs: from here on it may have had effects.
    Started,
    /// The cell is being stopped.
    Stopping(StopReason),
}

/// Something to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Printed text, in pieces of any size.
    Text {
        /// Where it was printed.
        stream: Stream,
        /// What was printed; bytes that are not UTF-8 appear as U+FFFD.
        text: String,
    },
    /// A value shown by `display()` or its like.
    Display {
        /// The value.
        content: MimeBundle,
        /// Under which name it can be updated.
        display_id: Option<String>,
    },
    /// The value of the last expression.
    Result {
        /// The value.
        content: MimeBundle,
        /// The number the kernel gave it.
        count: Option<u64>,
    },
    /// The exception that ended the cell.
    Error(Exception),
}

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One value in several representations: MIME type to content. Text is a string, images are base64
/// strings, JSON types are JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MimeBundle {
    /// MIME type to content.
    pub data: Map<String, Value>,
    /// As JSON text, those of `data` that hold whole numbers beyond 64 bits: a [`Value`] rounds them.
    pub exact: BTreeMap<String, String>,
    /// MIME type to hints on showing it.
    pub metadata: Map<String, Value>,
}

/// An exception as the kernel reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// Its class.
    pub name: String,
    /// What it says.
    pub message: String,
    /// The traceback as printed, line by line.
    pub traceback: Vec<String>,
    /// The line of the cell it came from, counted from 1.
    pub line: Option<u64>,
}

/// A cell that waits for a line from the user. Dropping it refuses.
#[derive(Debug)]
pub struct InputRequest {
    /// What the cell asked.
    pub prompt: String,
    /// The answer is a secret and not to be shown.
    pub password: bool,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// What is said to a cell that asks.
pub(crate) type Answer = Result<String, String>;

impl InputRequest {
    /// Hands the cell its line, without a line break at the end.
    pub fn answer(self, line: impl Into<String>) {
        drop(self.answer.send(Ok(line.into()))); // the cell may have been stopped meanwhile
    }

    /// Raises an error with this message in the cell.
    pub fn refuse(self, why: impl Into<String>) {
        drop(self.answer.send(Err(why.into()))); // the cell may have been stopped meanwhile
    }
}

impl Event {
    /// Printed text.
    pub fn text(stream: Stream, text: impl Into<String>) -> Self {
        Self::Output(Output::Text { stream, text: text.into() })
    }

    /// How much memory it takes, roughly: what back-pressure counts.
    pub(crate) fn weight(&self) -> usize {
        const SMALL: usize = 64;
        SMALL
            + match self {
                Self::Output(Output::Text { text, .. }) | Self::Warning(text) => text.len(),
                Self::Output(Output::Display { content, .. } | Output::Result { content, .. })
                | Self::UpdateDisplay { content, .. } => content.weight(),
                Self::Output(Output::Error(exception)) => exception.traceback.iter().map(String::len).sum(),
                Self::Comm(message) => {
                    let values = message.data.values().chain(message.metadata.values()).map(value_weight);
                    values.chain(message.buffers.iter().map(bytes::Bytes::len)).sum()
                }
                Self::ClearOutput { .. } | Self::Status(_) | Self::InputRequest(_) => 0,
            }
    }
}

impl MimeBundle {
    /// How much memory it takes, roughly.
    pub fn weight(&self) -> usize {
        let values = self.data.values().chain(self.metadata.values()).map(value_weight);
        values.chain(self.exact.values().map(String::len)).sum()
    }
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
        Value::String(text) => 16 + text.len(),
        Value::Array(items) => 16 + items.iter().map(value_weight).sum::<usize>(),
        Value::Object(map) => {
            16 + map.iter().map(|(key, value)| key.len() + value_weight(value)).sum::<usize>()
        }
    }
}
