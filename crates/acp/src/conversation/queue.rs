//! The tasks of a conversation, which it does one after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::{AgentCommand, AgentTurn, CellFailure, FailureKind, UserPrompt};
use crate::turn::StopSignal;

/// A task in the queue. Its turn is where it shows and how it is stopped.
pub(crate) struct QueuedTask {
    pub(crate) turn: Box<AgentTurn>,
    pub(crate) task: ConversationTask,
    pub(crate) start: StartFlag,
    pub(crate) done: oneshot::Sender<Result<String, CellFailure>>,
}

pub(crate) enum ConversationTask {
    Prompt(UserPrompt),
    Command(AgentCommand),
}

/// Decides what becomes of a task: the conversation starts it, or its cell withdraws it. The first taker
/// wins.
#[derive(Clone, Default)]
pub(crate) struct StartFlag(Arc<AtomicBool>);

impl StartFlag {
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// The result of a task, which may still wait in the queue. Dropping this does not withdraw the
/// task.
pub(crate) struct PendingTask {
    stop: StopSignal,
    start: StartFlag,
    result: oneshot::Receiver<Result<String, CellFailure>>,
}

impl QueuedTask {
    pub(crate) fn new(task: ConversationTask, turn: AgentTurn) -> (Self, PendingTask) {
        let (done, result) = oneshot::channel();
        let (stop, start) = (turn.stop.clone(), StartFlag::default());
        let pending = PendingTask { stop, start: start.clone(), result };
        (Self { turn: Box::new(turn), task, start, done }, pending)
    }
}

impl PendingTask {
    /// Waits for the result. Withdraws a task that is stopped before it starts.
    pub(crate) async fn done(self) -> Result<String, CellFailure> {
        let Self { stop, start, mut result } = self;
        let withdrawn = tokio::select! {
            biased;
            result = &mut result => return result.unwrap_or_else(|_| Err(no_result(&stop))),
            () = stop.asked() => start.take(),
        };
        if withdrawn {
            return Err(CellFailure::interrupted());
        }
        result.await.unwrap_or_else(|_| Err(no_result(&stop)))
    }
}

/// Why a task got no result.
fn no_result(stop: &StopSignal) -> CellFailure {
    if stop.is_asked() {
        return CellFailure::interrupted();
    }
    CellFailure::new(FailureKind::ConversationEnded, "the conversation was ended")
}
