//! What a running cell says.

use cellwright_cell::{Output, OutputChange, Stream, json_weight};
use tokio::sync::oneshot;

use crate::comm::CommMessage;
use crate::outcome::StopReason;

/// Something a cell did, in the order it did it.
#[derive(Debug)]
pub enum Event {
    /// It changed what it shows.
    Output(OutputChange),
    /// The cell entered another stage.
    Status(CellStage),
    /// The cell waits for a line from the user.
    InputRequest(KernelInput),
    /// Something the user should know that is not output, such as an extension module that failed.
    Warning(String),
    /// A message on a comm, for callers that asked for them: see [`Kernel::pass_comms`](crate::Kernel::pass_comms).
    Comm(Box<CommMessage>),
}

/// A stage in the life of a cell that is not its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellStage {
    /// The cell's code runs: from here on it may have had effects.
    Started,
    /// The cell is being stopped.
    Stopping(StopReason),
}

/// A cell that waits for a line from the user. Dropping it refuses.
#[derive(Debug)]
pub struct KernelInput {
    /// What the cell asked.
    pub prompt: String,
    /// The answer is a secret and not to be shown.
    pub password: bool,
    pub(crate) answer: oneshot::Sender<InputAnswer>,
}

/// What a cell gets that asks for input. It is one value from the caller to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum InputAnswer {
    /// A line, without a line break at the end.
    #[serde(rename = "value")]
    Line(String),
    /// An error with this message is raised in the cell.
    #[serde(rename = "error")]
    Refusal(String),
}

impl InputAnswer {
    /// For a question whose reader has left.
    pub fn missing() -> Self {
        Self::Refusal("nobody answers".to_owned())
    }
}

impl KernelInput {
    /// Hands the cell its line, without a line break at the end.
    pub fn answer(self, line: impl Into<String>) {
        self.respond(InputAnswer::Line(line.into()));
    }

    /// Raises an error with this message in the cell.
    pub fn refuse(self, why: impl Into<String>) {
        self.respond(InputAnswer::Refusal(why.into()));
    }

    /// Does what the answer says.
    pub fn respond(self, answer: InputAnswer) {
        drop(self.answer.send(answer)); // the cell may have been stopped meanwhile
    }
}

impl Event {
    /// Printed text.
    pub fn text(stream: Stream, text: impl Into<String>) -> Self {
        Self::Output(OutputChange::Added(Output::text(stream, text)))
    }

    /// How much memory it takes, roughly: what back-pressure counts.
    pub(crate) fn weight(&self) -> usize {
        const SMALL: usize = 64;
        SMALL
            + match self {
                Self::Output(change) => change.weight(),
                Self::Warning(text) => text.len(),
                Self::Comm(message) => {
                    let values = message.data.values().chain(message.metadata.values()).map(json_weight);
                    values.chain(message.buffers.iter().map(bytes::Bytes::len)).sum()
                }
                Self::Status(_) | Self::InputRequest(_) => 0,
            }
    }
}
