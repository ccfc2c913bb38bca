//! Tools for cells in the daemon: they are those of the client that runs the cell, on the other side of the socket.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::DaemonMessage;
use crate::bridge::{ToolAnswer, ToolCallError, ToolHost, ToolScope};

/// Calls that wait to be sent; one more waits in the cell.
const WAITING: usize = 16;

/// Hands the calls of a cell to the connection of the client that runs it.
pub(super) struct ForwardedTools {
    calls: mpsc::Sender<ForwardedCall>,
}

/// A tool that a cell calls.
pub(super) struct ForwardedCall {
    scope: ToolScope,
    name: String,
    args: Value,
    answer: AnswerSender,
}

type AnswerSender = oneshot::Sender<Result<Value, ToolCallError>>;

/// What was sent and is not answered, by its number.
#[derive(Default)]
pub(super) struct UnansweredCalls {
    last: AtomicU64,
    calls: Mutex<HashMap<u64, AnswerSender>>,
}

impl ForwardedTools {
    /// Also where the calls come out.
    pub(super) fn new() -> (Self, mpsc::Receiver<ForwardedCall>) {
        let (calls, forwarded) = mpsc::channel(WAITING);
        (Self { calls }, forwarded)
    }
}

impl ToolHost for ForwardedTools {
    fn call(&self, scope: ToolScope, name: String, args: Value) -> ToolAnswer<'_> {
        Box::pin(async move {
            let gone = "the client that ran this cell has left, and its tools with it";
            let (answer, answered) = oneshot::channel();
            let sent = self.calls.send(ForwardedCall { scope, name, args, answer }).await;
            sent.map_err(|_| gone)?;
            answered.await.unwrap_or_else(|_| Err(gone.into()))
        })
    }
}

impl UnansweredCalls {
    /// What is sent to the client, which answers by the number in it.
    pub(super) fn ask(&self, ForwardedCall { scope, name, args, answer }: ForwardedCall) -> DaemonMessage {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(number, answer);
        DaemonMessage::Tool { number, session: scope.session, name, args }
    }

    pub(super) fn answer(&self, number: u64, value: Result<Value, ToolCallError>) {
        let answer = self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        if let Some(answer) = answer {
            drop(answer.send(value)); // the cell may have stopped waiting
        }
    }
}
