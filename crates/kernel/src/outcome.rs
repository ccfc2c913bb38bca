//! How a cell ended, and how a kernel did.

use std::fmt;
use std::time::Duration;

use cellwright_cell::Exception;

/// The end of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCell {
    /// How it ended.
    pub outcome: Outcome,
    /// The number the kernel gave the cell, when it said.
    pub execution_count: Option<u64>,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end.
    Completed,
    /// An exception ended it.
    Raised(Exception),
    /// It was stopped.
    Stopped {
        /// Why.
        reason: StopReason,
        /// What became of the kernel, and with it of all variables.
        kernel: Fate,
    },
    /// The kernel died under it.
    Died(Death),
    /// It is over, but it is unknown whether it raised an exception: the kernel's reply did not arrive.
    Unknown,
}

/// Why a cell was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StopReason {
    /// Its caller no longer wanted it.
    Cancelled,
    /// It took longer than it was given.
    TimedOut(Duration),
    /// The kernel was interrupted, by [`Kernel::interrupt`](crate::Kernel::interrupt) or from outside.
    Interrupted,
    /// The kernel was shut down.
    Shutdown,
}

/// What became of the kernel when a cell was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Fate {
    /// It lives and its variables are there.
    Survived,
    /// It ended when it was interrupted, and its variables are gone.
    Ended,
    /// It was killed, and its variables are gone.
    Killed,
    /// It is not ours to end and did not stop: it goes on without us, and so may the cell.
    Left,
    /// It cannot be reached: what became of it and of its variables is not known.
    OutOfReach,
}

/// A kernel that died while a cell was running or about to run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Death {
    /// How it died.
    pub exit: Exit,
    /// The cell had begun, so it may have had effects. One that had not can safely run elsewhere.
    pub started: bool,
}

/// How a kernel ended.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Exit {
    /// Its process ended by itself or by a signal.
    Process(cellwright_process::ChildExit),
    /// It ended with its owner, or its owner ended it.
    Lost(String),
    /// We left it, and it goes on.
    Left(String),
    /// It does not answer: it may have ended, or go on with all its variables.
    OutOfReach(String),
}

impl Exit {
    /// What to report about the kernel's variables.
    pub fn variables(&self) -> &'static str {
        match self {
            Self::Process(_) | Self::Lost(_) => "the variables are gone",
            Self::Left(_) => "the variables are its owner's",
            Self::OutOfReach(_) => "whether it lives, and its variables with it, is not known",
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(exit) => write!(f, "the kernel {exit}"),
            Self::Lost(how) | Self::Left(how) | Self::OutOfReach(how) => f.write_str(how),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.started { "while the cell ran" } else { "before the cell started" };
        write!(f, "{} {when}", self.exit)
    }
}
