//! Cells one after another: a shell, or a subshell.

use std::sync::Arc;
use std::time::Duration;

use cellwright_jupyter::Request;
use cellwright_jupyter::content::{ExecuteReply, ReplyStatus};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::cell_run::{self, CellResult, FollowingCells, PromptKernel};
use crate::task;

/// Cells that wait; one more is refused, which its client is told.
const MOST: usize = 10_000;

/// How long cells that were told to stop may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// A queue of cells. Dropping it ends the one that runs; the rest is answered with an error.
pub(crate) struct CellQueue {
    cells: mpsc::Sender<Request>,
    task: AbortOnDropHandle<()>,
}

impl CellQueue {
    pub(crate) fn new(kernel: Arc<PromptKernel>) -> Self {
        let (cells, queue) = mpsc::channel(MOST);
        Self { cells, task: task::spawn(run(kernel, queue)) }
    }

    pub(crate) fn push(&self, request: Request) {
        drop(self.cells.try_send(request)); // a request that is dropped is answered
    }

    /// Ends it. All its cells are answered when this returns: those that were told to stop have a moment to do so.
    pub(crate) async fn end(self) {
        let Self { cells, mut task } = self;
        drop(cells);
        if timeout(FAREWELL, &mut task).await.is_err() {
            task.abort();
            drop(task.await); // with it goes the cell, and is answered
        }
    }
}

async fn run(kernel: Arc<PromptKernel>, mut queue: mpsc::Receiver<Request>) {
    while let Some(request) = queue.recv().await {
        let CellResult { request, reply, rest } = cell_run::run(&kernel, request).await;
        // What was sent along with a cell that failed is not run. What its client sends when it knows of that is: so look
        // before it can.
        let aborted: Vec<Request> = match rest {
            FollowingCells::Aborted => std::iter::from_fn(|| queue.try_recv().ok()).collect(),
            FollowingCells::Runs => Vec::new(),
        };
        request.reply(&reply);
        for request in aborted {
            request.reply(&ExecuteReply { status: ReplyStatus::Aborted, ..ExecuteReply::default() });
        }
    }
}
