//! What a conversation is asked to do, one thing after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::{Deed, Failure, Prompt, Turn};
use crate::turn::Stop;

/// An order. The turn is where it shows and how it is stopped.
pub(crate) struct Order {
    pub(crate) turn: Box<Turn>,
    pub(crate) task: Task,
    pub(crate) claim: Claim,
    pub(crate) done: oneshot::Sender<Result<String, Failure>>,
}

pub(crate) enum Task {
    Prompt(Prompt),
    Do(Deed),
}

/// An order is carried out by the conversation or taken back by its cell, whoever claims it first.
#[derive(Clone, Default)]
pub(crate) struct Claim(Arc<AtomicBool>);

impl Claim {
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// An order that was placed. Dropping this leaves it to be carried out.
pub(crate) struct Placed {
    stop: Stop,
    claim: Claim,
    result: oneshot::Receiver<Result<String, Failure>>,
}

impl Order {
    pub(crate) fn new(task: Task, turn: Turn) -> (Self, Placed) {
        let (done, result) = oneshot::channel();
        let (stop, claim) = (turn.stop.clone(), Claim::default());
        let placed = Placed { stop, claim: claim.clone(), result };
        (Self { turn: Box::new(turn), task, claim, done }, placed)
    }
}

impl Placed {
    /// Waits for the result. An order that is stopped while it waits behind others is taken back.
    pub(crate) async fn done(self) -> Result<String, Failure> {
        let Self { stop, claim, mut result } = self;
        let stopped = tokio::select! {
            biased;
            result = &mut result => return result.unwrap_or_else(|_| Err(gone(&stop))),
            () = stop.asked() => claim.take(),
        };
        if stopped {
            return Err(Failure::interrupted());
        }
        result.await.unwrap_or_else(|_| Err(gone(&stop)))
    }
}

/// Why an order got no result.
fn gone(stop: &Stop) -> Failure {
    if stop.is_asked() {
        return Failure::interrupted();
    }
    Failure::new("ConversationEnded", "the conversation was ended")
}
