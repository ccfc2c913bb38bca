//! The cells of a shell or subshell, which run one after another.

use std::sync::Arc;
use std::time::Duration;

use cellwright_jupyter::ClientRequest;
use cellwright_jupyter::content::{ExecuteReply, ReplyStatus};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::cell_run::{self, CellResult, FollowingCells, PromptKernel};
use crate::task;

/// The most cells that wait. The kernel refuses one more and answers its client so.
const MOST: usize = 10_000;

/// How long cells may take to stop when the queue ends.
const FAREWELL: Duration = Duration::from_millis(500);

/// A queue of cells. Dropping it ends the running cell and answers the others with an error.
pub(crate) struct CellQueue {
    cells: mpsc::Sender<ClientRequest>,
    task: AbortOnDropHandle<()>,
}

impl CellQueue {
    pub(crate) fn new(kernel: Arc<PromptKernel>) -> Self {
        let (cells, queue) = mpsc::channel(MOST);
        Self { cells, task: task::spawn(run(kernel, queue)) }
    }

    pub(crate) fn push(&self, request: ClientRequest) {
        drop(self.cells.try_send(request)); // a dropped request is answered with an error
    }

    /// Ends the queue. All its cells are answered when this returns. Cells that were asked to stop
    /// have a moment to do so.
    pub(crate) async fn end(self) {
        let Self { cells, mut task } = self;
        drop(cells);
        if timeout(FAREWELL, &mut task).await.is_err() {
            task.abort();
            drop(task.await); // its cell is dropped with it, and thus answered
        }
    }
}

async fn run(kernel: Arc<PromptKernel>, mut queue: mpsc::Receiver<ClientRequest>) {
    while let Some(request) = queue.recv().await {
        let CellResult { request, reply, rest } = cell_run::run(&kernel, request).await;
        // Cells that the client sent before it could know of the failure do not run. Later ones do,
        // so the queue is emptied before the reply goes out.
        let aborted: Vec<ClientRequest> = match rest {
            FollowingCells::Aborted => std::iter::from_fn(|| queue.try_recv().ok()).collect(),
            FollowingCells::Runs => Vec::new(),
        };
        request.reply(&reply);
        for request in aborted {
            request.reply(&ExecuteReply { status: ReplyStatus::Aborted, ..ExecuteReply::default() });
        }
    }
}
