//! Questions to a kernel that are not cells.

use cellwright_cell::MimeBundle;

use crate::comm::OpenComm;
use crate::outcome::Exit;

/// What can be asked.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum Question {
    /// How could the code at the cursor go on?
    Complete {
        /// The code.
        code: String,
        /// Where, in characters.
        cursor: usize,
    },
    /// What is the thing at the cursor?
    Inspect {
        /// The code.
        code: String,
        /// Where, in characters.
        cursor: usize,
        /// 0 for documentation, 1 for source as well.
        detail: u8,
    },
    /// Which variables are there?
    Variables {
        /// At most this many.
        limit: usize,
    },
    /// Does Enter run this, or start a new line?
    Completeness {
        /// The code so far.
        code: String,
    },
    /// Are you there?
    Ping,
}

/// What is answered, by the kind of [`Question`] or [`CommRequest`](crate::CommRequest).
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum Reply {
    /// To [`Question::Complete`].
    Completions(Completions),
    /// To [`Question::Inspect`]; `None` when nothing was found.
    Inspection(Option<MimeBundle>),
    /// To [`Question::Variables`].
    Variables(KernelVariables),
    /// To [`Question::Completeness`].
    Completeness(CodeCompleteness),
    /// To [`Question::Ping`].
    Pong,
    /// To [`CommRequest::List`](crate::CommRequest::List).
    Comms(Vec<OpenComm>),
    /// To [`CommRequest::Say`](crate::CommRequest::Say): the kernel has dealt with it.
    Said,
}

/// Whether code that is being typed is a whole.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CodeCompleteness {
    /// It can be run.
    Complete,
    /// More has to come.
    Incomplete {
        /// How the next line starts.
        indent: String,
    },
    /// No more text would make it right.
    Invalid,
    /// The kernel cannot say: our runner leaves it to its caller, who knows Python.
    Unknown,
}

/// Ways to go on with the code at a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Completions {
    /// What could stand between `start` and `end`.
    pub matches: Vec<String>,
    /// First character that is replaced.
    pub start: usize,
    /// Character after the last that is replaced.
    pub end: usize,
}

/// Variables of the user's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KernelVariables {
    /// As many as were asked for.
    pub listed: Vec<KernelVariable>,
    /// How many there are.
    pub total: usize,
}

/// One variable.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KernelVariable {
    /// Its name.
    pub name: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its dimensions, for arrays and tables.
    #[serde(default)]
    pub shape: Option<Vec<u64>>,
    /// How many elements it has, for things that have a length.
    #[serde(default)]
    pub size: Option<u64>,
    /// The beginning of how it prints.
    pub preview: String,
}

/// A question that got no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AskError {
    /// The kernel is gone.
    #[error("{0}")]
    Died(Exit),
    /// A cell runs, and this kernel answers when it is over.
    #[error("a cell is running; wait for it or interrupt it")]
    Busy,
    /// The kernel could not answer.
    #[error("the kernel could not answer: {0}")]
    Failed(String),
}
