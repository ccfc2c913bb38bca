//! The caller's side of a running cell.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::environment::EnvVars;
use crate::event::Event;
use crate::mailbox::{Mailbox, ReaderState};
use crate::outcome::{Exit, FinishedCell};

/// A cell's code and what the kernel does with it. It is one value from the caller to the transport.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct CellSource {
    /// What runs.
    pub code: String,
    /// What to call it in tracebacks.
    pub title: Option<String>,
    /// Show no result and no displays.
    pub silent: bool,
    /// Remember it in the kernel's history and count it.
    pub store_history: bool,
}

impl CellSource {
    /// Code without a title, shown and remembered.
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into(), title: None, silent: false, store_history: true }
    }

    /// Code that shows and leaves nothing but what it prints.
    pub fn silent(code: impl Into<String>) -> Self {
        Self { silent: true, store_history: false, ..Self::new(code) }
    }
}

/// A cell to run.
#[derive(Clone, Debug)]
pub struct KernelCell {
    /// Its code.
    pub source: CellSource,
    /// The wall-clock time it may take. `None` or zero means no limit.
    pub timeout: Option<Duration>,
    /// Whether it may ask for input.
    pub stdin: Stdin,
    /// The caller's environment. `None` means the one the kernel was started with. What differs reaches this cell and is
    /// undone after it. Kernels that are not our runner do not have it.
    pub variables: Option<EnvVars>,
    /// Cancelling this stops the cell.
    pub stop: CancellationToken,
}

impl KernelCell {
    /// A cell without limits that may not ask for input.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            source: CellSource::new(code),
            timeout: None,
            stdin: Stdin::Refused,
            variables: None,
            stop: CancellationToken::new(),
        }
    }
}

/// What happens when a cell asks for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Stdin {
    /// It gets an exception that says so.
    Refused,
    /// An [`Event::InputRequest`] reaches the caller.
    Forwarded,
    /// The same, and a person answers. The time until then is not the cell's.
    Person,
}

/// A running cell. Dropping it stops the cell and discards what it says; [`Execution::detach`] lets
/// it run on.
///
/// Read it to the end: a cell whose events nobody takes is held up once about a megabyte waits. It
/// can still be stopped.
#[derive(Debug)]
pub struct Execution {
    mailbox: Arc<Mailbox<FinishedCell>>,
    stop: CancellationToken,
    detached: bool,
}

/// What comes next of a cell.
#[derive(Debug)]
pub enum CellUpdate {
    /// It did something.
    Event(Event),
    /// It is over. Further calls return the same.
    Finished(FinishedCell),
}

impl Execution {
    pub(crate) fn new(mailbox: Arc<Mailbox<FinishedCell>>, stop: CancellationToken) -> Self {
        Self { mailbox, stop, detached: false }
    }

    /// The next event, or the end when all have been read. Cancel-safe.
    pub async fn next(&mut self) -> CellUpdate {
        match self.mailbox.next().await {
            Ok(event) => CellUpdate::Event(event),
            Err(finished) => CellUpdate::Finished(finished),
        }
    }

    /// All events that are left, and the end.
    pub async fn collect(mut self) -> (Vec<Event>, FinishedCell) {
        let mut events = Vec::new();
        loop {
            match self.next().await {
                CellUpdate::Event(event) => events.push(event),
                CellUpdate::Finished(finished) => return (events, finished),
            }
        }
    }

    /// Begins to stop the cell: interrupt, and when that does not help, the kernel's end. Go on
    /// reading; the outcome says what became of the kernel.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Lets the cell run on. What it says from here on, and what was not read, is delivered as
    /// [`Background`] output.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if self.detached {
            self.mailbox.leave(ReaderState::Detached);
        } else {
            self.mailbox.leave(ReaderState::Gone);
            self.stop.cancel();
        }
    }
}

/// What a kernel says outside its cells: text of threads and children after a cell's end, output of
/// detached cells, warnings.
///
/// Read it: while no cell runs, a kernel whose background output nobody takes is held up once about a
/// megabyte waits. Dropping it discards what comes.
#[derive(Debug)]
pub struct Background {
    mailbox: Arc<Mailbox<Exit>>,
}

impl Background {
    pub(crate) fn new(mailbox: Arc<Mailbox<Exit>>) -> Self {
        Self { mailbox }
    }

    /// The next event; `Err` when the kernel is gone and all have been read. Cancel-safe.
    pub async fn next(&mut self) -> Result<Event, Exit> {
        self.mailbox.next().await
    }

    /// The next event if there is one. When a cell has finished, everything that came before it
    /// started is there.
    pub fn try_next(&mut self) -> Option<Event> {
        self.mailbox.try_next()?.ok()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.mailbox.leave(ReaderState::Gone);
    }
}
