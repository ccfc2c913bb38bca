//! What a conversation is asked to do, one thing after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::{AgentCommand, AgentTurn, CellFailure, UserPrompt};
use crate::turn::StopSignal;

/// An order. The turn is where it shows and how it is stopped.
pub(crate) struct QueuedTask {
    pub(crate) turn: Box<AgentTurn>,
    pub(crate) task: ConversationTask,
    pub(crate) claim: StartFlag,
    pub(crate) done: oneshot::Sender<Result<String, CellFailure>>,
}

pub(crate) enum ConversationTask {
    Prompt(UserPrompt),
    Do(AgentCommand),
}

/// An order is carried out by the conversation or taken back by its cell, whoever claims it first.
#[derive(Clone, Default)]
pub(crate) struct StartFlag(Arc<AtomicBool>);

impl StartFlag {
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// An order that was placed. Dropping this leaves it to be carried out.
pub(crate) struct PendingTask {
    stop: StopSignal,
    claim: StartFlag,
    result: oneshot::Receiver<Result<String, CellFailure>>,
}

impl QueuedTask {
    pub(crate) fn new(task: ConversationTask, turn: AgentTurn) -> (Self, PendingTask) {
        let (done, result) = oneshot::channel();
        let (stop, claim) = (turn.stop.clone(), StartFlag::default());
        let placed = PendingTask { stop, claim: claim.clone(), result };
        (Self { turn: Box::new(turn), task, claim, done }, placed)
    }
}

impl PendingTask {
    /// Waits for the result. An order that is stopped while it waits behind others is taken back.
    pub(crate) async fn done(self) -> Result<String, CellFailure> {
        let Self { stop, claim, mut result } = self;
        let stopped = tokio::select! {
            biased;
            result = &mut result => return result.unwrap_or_else(|_| Err(gone(&stop))),
            () = stop.asked() => claim.take(),
        };
        if stopped {
            return Err(CellFailure::interrupted());
        }
        result.await.unwrap_or_else(|_| Err(gone(&stop)))
    }
}

/// Why an order got no result.
fn gone(stop: &StopSignal) -> CellFailure {
    if stop.is_asked() {
        return CellFailure::interrupted();
    }
    CellFailure::new("ConversationEnded", "the conversation was ended")
}
