//! Reports: the results of calls.

use std::sync::Arc;
use std::time::Duration;

use cellwright_cell::Exception;
use cellwright_kernel::{AboutKernel, Death, Exit, Fate, StopReason};
use serde::{Deserialize, Serialize};

use crate::collect::CollectedOutput;
use crate::error::SessionError;
use crate::identity::SessionKey;
use crate::notice::Notice;
use crate::words::KernelFate;

/// The result of a call, or its result so far if it is still running.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallReport {
    /// Where it ran.
    pub key: SessionKey,
    /// Its cells, all of them, in order.
    pub cells: Vec<Arc<CellReport>>,
    /// What the session's earlier cells showed after their end and nobody has seen yet.
    pub late: Option<Arc<CollectedOutput>>,
    /// The state of the kernel.
    pub kernel: KernelReport,
    /// Other notices, in order.
    pub notices: Vec<Notice>,
    /// Why it could not go on, when that was not a cell's doing.
    pub error: Option<SessionError>,
    /// How long it took, with waiting for its turn.
    pub duration: Duration,
}

impl CallReport {
    /// The cell that ended the call early.
    pub fn failed(&self) -> Option<&CellReport> {
        self.cells.iter().map(AsRef::as_ref).find(|cell| match cell.status {
            CellStatus::Error(_) => !cell.may_raise,
            CellStatus::Stopped { .. } | CellStatus::Died(_) | CellStatus::Unknown => true,
            CellStatus::Waiting | CellStatus::Running | CellStatus::Ok | CellStatus::NotRun(_) => false,
        })
    }

    /// What becomes of the kernel after the report, where its caller would leave it as `otherwise` says.
    pub fn kernel_fate(&self, otherwise: KernelFate) -> KernelFate {
        let is_replaced = self.notices.contains(&Notice::Restarted);
        let is_ended = matches!(self.error, Some(SessionError::Ended(_)));
        match self.kernel.after {
            KernelAfter::Alive if !is_replaced && !is_ended => otherwise,
            KernelAfter::Alive | KernelAfter::Gone | KernelAfter::Ended => KernelFate::Ends,
        }
    }

    /// How many bytes its outputs take.
    pub(crate) fn weight(&self) -> usize {
        self.cells.iter().map(|cell| cell.output.weight()).sum()
    }

    /// Whether every cell that was still wanted when its turn came completed, or raised as it may.
    pub fn succeeded(&self) -> bool {
        let is_withdrawn = |cell: &CellReport| cell.status == CellStatus::NotRun(NotRun::Withdrawn);
        self.error.is_none() && self.cells.iter().all(|cell| cell.succeeded() || is_withdrawn(cell))
    }
}

/// The result of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellReport {
    /// Its place in the call.
    pub index: usize,
    /// What it was called.
    pub title: Option<String>,
    /// How it went.
    pub status: CellStatus,
    /// How long it ran.
    pub duration: Duration,
    /// The number the kernel gave it.
    pub execution_count: Option<u64>,
    /// What it showed.
    pub output: CollectedOutput,
    /// An exception in it does not end the call.
    pub may_raise: bool,
}

impl CellReport {
    /// Whether it completed, or raised as it may.
    pub fn succeeded(&self) -> bool {
        match self.status {
            CellStatus::Ok => true,
            CellStatus::Error(_) => self.may_raise,
            CellStatus::Waiting
            | CellStatus::Running
            | CellStatus::Stopped { .. }
            | CellStatus::Died(_)
            | CellStatus::Unknown
            | CellStatus::NotRun(_) => false,
        }
    }
}

/// How a cell went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CellStatus {
    /// Its turn has not come yet.
    Waiting,
    /// It runs.
    Running,
    /// It ran to its end.
    Ok,
    /// An exception ended it. The traceback is part of its output.
    Error(Exception),
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
    /// It was not run.
    NotRun(NotRun),
}

/// Why a cell was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotRun {
    /// An earlier cell did not complete.
    AfterFailure,
    /// The call was stopped before its turn came.
    Stopped,
    /// It was taken back when its turn came; the call went on.
    Withdrawn,
    /// It could not be: see [`CallReport::error`].
    Error,
}

/// The state of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelReport {
    /// What it is, when there is one.
    pub about: Option<AboutKernel>,
    /// Where the call found it.
    pub usage: KernelUse,
    /// What is left of it.
    pub after: KernelAfter,
    /// Its resident memory in bytes, when it was looked at.
    pub memory: Option<u64>,
}

/// Where a call found its kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelUse {
    /// None was needed.
    None,
    /// It was there, with the variables of earlier calls.
    Reused,
    /// It was started for the call; there was none before.
    Fresh,
    /// It was started for the call in place of another one, whose variables are gone.
    Replaced(KernelReplacement),
}

/// Why a kernel was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelReplacement {
    /// It was asked for.
    Reset,
    /// It had died while no cell ran.
    DiedIdle(Exit),
    /// It had died in an earlier call, which reported it.
    DiedEarlier(Exit),
    /// It died in this call.
    Died(Exit),
}

/// What is left of a kernel after a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelAfter {
    /// It lives and keeps its variables.
    Alive,
    /// It is gone, with its variables.
    Gone,
    /// It was the call's own and has ended with it.
    Ended,
}
