//! What the driver needs of a way to talk to a kernel.

/// What [`Transport::recv`] returns.
pub use futures_util::future::BoxFuture;

use crate::comm::{CommRequest, Comms};
use crate::environment::EnvVars;
use crate::event::{Event, InputAnswer};
use crate::execution::CellSource;
use crate::outcome::Exit;
use crate::request::{AskError, Question, Reply};

/// A way to talk to one kernel: a codec without policy.
///
/// The driver decides when to send, to stop and to give up; a transport translates. Dropping it ends
/// a kernel that it started.
pub trait Transport: Send + 'static {
    /// Queues a message. It leaves at the latest while [`Transport::recv`] is polled.
    fn send(&mut self, request: KernelRequest);

    /// The next thing the kernel says. Cancel-safe: nothing is lost when the future is dropped.
    ///
    /// After [`Incoming::Closed`] it is not called again.
    fn recv(&mut self) -> BoxFuture<'_, Incoming>;

    /// The next thing the kernel says, if it has been read already. What is left to be read comes by
    /// [`Transport::recv`], and so does [`Incoming::Closed`].
    fn try_recv(&mut self) -> Option<Incoming> {
        None
    }

    /// How much has come of a message that is not whole yet. A long one takes its time, in which [`Transport::recv`] is
    /// silent and the kernel is not.
    fn arriving(&self) -> usize {
        0
    }

    /// Begins one step of stopping. That it worked shows in what [`Transport::recv`] brings.
    fn stop(&mut self, step: StopStep) -> Result<(), StopFailed>;

    /// Looks at a kernel that has not started the cell it was sent, and has it go on if it was stopped.
    fn pulse(&mut self) -> Pulse {
        Pulse::Unknown
    }

    /// Whether variables are listed also while a cell runs.
    fn lists_meanwhile(&self) -> bool {
        false
    }

    /// What becomes of comm messages from here on. At first they are dropped.
    fn pass_comms(&mut self, _comms: Comms) {}

    /// Begins a request about comms, whose answer is [`Incoming::Answered`]. A transport without comms returns the reason.
    fn ask_comms(&mut self, _id: QuestionId, _request: CommRequest) -> Result<(), AskError> {
        Err(AskError::Failed("it has no comms".to_owned()))
    }

    /// Has what keeps the cell from starting make way, where there is a way to do so.
    fn make_way(&mut self) {}
}

/// What a look at a kernel that does not start a cell has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// It is not known.
    Unknown,
    /// It had been stopped; what was done about it.
    Continued(String),
    /// It could go on, and would have said [`Incoming::Busy`] by now if its interpreter did.
    Silent {
        /// It has been computing since the last look.
        computes: bool,
    },
}

/// One step of stopping a kernel, from polite to firm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopStep {
    /// Interrupt the running cell; the kernel goes on.
    Interrupt,
    /// Have the kernel end.
    Terminate,
    /// End the kernel.
    Kill,
}

/// A step of stopping that could not be taken.
#[derive(Clone, Debug, thiserror::Error)]
#[error("could not {} the kernel: {why}", match step { StopStep::Interrupt => "interrupt", StopStep::Terminate => "terminate", StopStep::Kill => "kill" })]
pub struct StopFailed {
    /// Which step.
    pub step: StopStep,
    /// Why not.
    pub why: String,
}

/// The driver's name for a cell; unique in the life of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(pub u64);

/// The driver's name for a question; unique in the life of a kernel, also against cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u64);

/// What the driver asks of a kernel.
#[derive(Debug)]
pub enum KernelRequest {
    /// Run a cell.
    Execute {
        /// Its name.
        cell: CellId,
        /// Its code.
        source: CellSource,
        /// Whether it may ask for input.
        allow_stdin: bool,
        /// The caller's environment. `None` means the one the kernel was started with.
        variables: Option<EnvVars>,
    },
    /// The answer to [`Incoming::Input`].
    Input {
        /// The cell that asked.
        cell: CellId,
        /// The line, or why it is missing.
        answer: InputAnswer,
    },
    /// Ask something that is not a cell.
    Ask {
        /// Its name.
        id: QuestionId,
        /// What is asked.
        question: Question,
    },
    /// Leave.
    Shutdown,
}

/// What a kernel says.
#[derive(Debug)]
pub enum Incoming {
    /// The cell's code is about to run.
    Started(CellId),
    /// The kernel lives, and what runs in it keeps the cell that was sent from starting.
    Busy {
        /// What runs, if it said.
        at: Option<String>,
    },
    /// Something to show; of no cell when it came from a thread or a child after the cell's end.
    Event {
        /// The cell it belongs to.
        cell: Option<CellId>,
        /// What it is.
        event: Event,
    },
    /// The cell waits for [`KernelRequest::Input`].
    Input {
        /// The cell that asks.
        cell: CellId,
        /// What it asks.
        prompt: String,
        /// The answer is a secret.
        password: bool,
    },
    /// The kernel reported how the cell went. Over it is when [`Incoming::Idle`] came too.
    Replied {
        /// Which cell.
        cell: CellId,
        /// How it went.
        verdict: Verdict,
        /// The number the kernel gave it.
        count: Option<u64>,
    },
    /// Everything the cell had to say has been said.
    Idle(CellId),
    /// The answer to [`KernelRequest::Ask`]; `Err` when the kernel could not answer.
    Answered {
        /// Which question.
        id: QuestionId,
        /// The answer.
        reply: Result<Reply, AskError>,
    },
    /// A step of stopping that had begun well failed later.
    StopFailed(StopFailed),
    /// The kernel is gone and everything it said has been delivered.
    Closed(Exit),
}

/// How a cell went, by the kernel's own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// To its end.
    Ok,
    /// An exception ended it, reported before as an [`Output::Error`](cellwright_cell::Output::Error).
    Error,
    /// An interrupt ended it.
    Interrupted,
    /// It is over, but the kernel's own report did not arrive.
    Unknown,
}
