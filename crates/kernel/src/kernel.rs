//! The handle of a running kernel.

use std::sync::Arc;

use cellwright_cell::MimeBundle;
use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};

use crate::comm::{CommMessage, CommRequest, Comms, OpenComm};
use crate::driver::{Driver, DriverCommand, Graces};
use crate::execution::{Background, Execution, KernelCell};
use crate::mailbox::Mailbox;
use crate::outcome::{Death, Exit, FinishedCell, Outcome};
use crate::request::{AskError, CodeCompleteness, Completions, KernelVariables, Question, Reply};
use crate::transport::{StopFailed, Transport};

/// Commands wait here while the driver is busy; a sender of more waits with them.
const COMMANDS: usize = 32;

/// A running kernel. Dropping it kills the kernel and everything it started.
#[derive(Debug)]
pub struct Kernel {
    commands: mpsc::Sender<DriverCommand>,
    exit: watch::Receiver<Option<Exit>>,
    group: Option<u32>,
}

impl Kernel {
    /// Drives a kernel that is reached through `transport`. `group` is the process group of a kernel
    /// that runs on this machine. Needs a tokio runtime.
    pub fn start(transport: impl Transport, graces: Graces, group: Option<u32>) -> (Self, Background) {
        Self::drive(Box::new(transport), graces, group)
    }

    fn drive(transport: Box<dyn Transport>, graces: Graces, group: Option<u32>) -> (Self, Background) {
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (exit_sender, exit) = watch::channel(None);
        let background = Arc::new(Mailbox::new());
        let driver = Driver::new(transport, graces, inbox, Arc::clone(&background), exit_sender);
        // Ends when `commands` is dropped with this handle.
        drop(tokio::spawn(driver.run().boxed()));
        (Self { commands, exit, group }, Background::new(background))
    }

    /// Runs a cell after those that were given before. Waits only when many are.
    pub async fn execute(&self, cell: KernelCell) -> Execution {
        let mailbox = Arc::new(Mailbox::new());
        let stop = cell.stop.child_token();
        let execution = Execution::new(Arc::clone(&mailbox), stop.clone());
        let command =
            DriverCommand::Execute { cell: KernelCell { stop, ..cell }, mailbox: Arc::clone(&mailbox) };
        if self.commands.send(command).await.is_err() {
            let death = Death { exit: self.gone(), started: false };
            mailbox.close(FinishedCell { outcome: Outcome::Died(death), execution_count: None });
        }
        execution
    }

    /// Interrupts the cell that runs, once and without consequences when it does not react. Does
    /// nothing between cells.
    pub async fn interrupt(&self) -> Result<(), StopFailed> {
        let (answer, result) = oneshot::channel();
        if self.commands.send(DriverCommand::Interrupt { answer }).await.is_err() {
            return Ok(()); // a kernel that is gone runs no cell
        }
        result.await.unwrap_or(Ok(()))
    }

    /// How the code at the cursor could go on.
    pub async fn complete(&self, code: impl Into<String>, cursor: usize) -> Result<Completions, AskError> {
        match self.ask(Question::Complete { code: code.into(), cursor }).await? {
            Reply::Completions(completions) => Ok(completions),
            other => Err(mismatch(&other)),
        }
    }

    /// What the thing at the cursor is; with `detail` 1 also its source.
    pub async fn inspect(
        &self,
        code: impl Into<String>,
        cursor: usize,
        detail: u8,
    ) -> Result<Option<MimeBundle>, AskError> {
        match self.ask(Question::Inspect { code: code.into(), cursor, detail }).await? {
            Reply::Inspection(found) => Ok(found),
            other => Err(mismatch(&other)),
        }
    }

    /// Whether code that is being typed is a whole.
    pub async fn completeness(&self, code: impl Into<String>) -> Result<CodeCompleteness, AskError> {
        match self.ask(Question::Completeness { code: code.into() }).await? {
            Reply::Completeness(completeness) => Ok(completeness),
            Reply::Pong => Ok(CodeCompleteness::Unknown),
            other => Err(mismatch(&other)),
        }
    }

    /// The variables of the user's namespace, at most `limit` of them.
    pub async fn variables(&self, limit: usize) -> Result<KernelVariables, AskError> {
        match self.ask(Question::Variables { limit }).await? {
            Reply::Variables(variables) => Ok(variables),
            other => Err(mismatch(&other)),
        }
    }

    /// Returns when the kernel has answered: it is alive and not running a cell.
    pub async fn ping(&self) -> Result<(), AskError> {
        self.ask(Question::Ping).await.map(drop)
    }

    /// What becomes of the kernel's comm messages from here on. At first they are dropped. A kernel whose comms are
    /// forwarded is held up by a reader that does not take them, as by one that does not take its output.
    pub async fn pass_comms(&self, comms: Comms) {
        drop(self.commands.send(DriverCommand::PassComms(comms)).await); // a kernel that is gone says nothing
    }

    /// Says something on a comm, and returns when the kernel has dealt with it, which is not before the running cell's
    /// end. What it answered meanwhile is background, and there by then. Set a limit: a kernel that does not report when
    /// it is idle never has.
    pub async fn say(&self, message: CommMessage) -> Result<(), AskError> {
        match self.ask_comms(CommRequest::Say(message)).await? {
            Reply::Said => Ok(()),
            other => Err(mismatch(&other)),
        }
    }

    /// The comms that are open; those of one target, if it is named.
    pub async fn comms(&self, target: Option<String>) -> Result<Vec<OpenComm>, AskError> {
        match self.ask_comms(CommRequest::List { target }).await? {
            Reply::Comms(comms) => Ok(comms),
            other => Err(mismatch(&other)),
        }
    }

    /// How the kernel ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    /// Waits for the kernel's end. Cancel-safe.
    pub async fn ended(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.clone().expect("waited for it"),
            Err(_) => self.gone(),
        }
    }

    /// Resident memory in bytes of the kernel and its children, when they run here.
    pub async fn memory(&self) -> Option<u64> {
        let group = self.group.filter(|_| self.exit().is_none())?;
        tokio::task::spawn_blocking(move || cellwright_process::group_memory(group)).await.ok()?
    }

    /// Ends the kernel: asks it to leave, then terminates, then kills, and says how it went. A cell
    /// that runs is stopped; cells that wait are not run.
    pub async fn shutdown(&self) -> Exit {
        // It may have ended already.
        drop(self.commands.send(DriverCommand::Shutdown).await);
        self.ended().await
    }

    async fn ask(&self, question: Question) -> Result<Reply, AskError> {
        self.answer(|answer| DriverCommand::Ask { question, answer }).await
    }

    async fn ask_comms(&self, request: CommRequest) -> Result<Reply, AskError> {
        self.answer(|answer| DriverCommand::AskComms { request, answer }).await
    }

    async fn answer(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<Reply, AskError>>) -> DriverCommand,
    ) -> Result<Reply, AskError> {
        let (answer, reply) = oneshot::channel();
        match self.commands.send(command(answer)).await {
            Ok(()) => reply.await.unwrap_or_else(|_| Err(AskError::Died(self.gone()))),
            Err(_) => Err(AskError::Died(self.gone())),
        }
    }

    fn gone(&self) -> Exit {
        self.exit().unwrap_or_else(|| Exit::Lost("the kernel's driver has ended".into()))
    }
}

fn mismatch(reply: &Reply) -> AskError {
    AskError::Failed(format!("it answered another question: {reply:?}"))
}
