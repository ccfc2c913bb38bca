//! Running a cell of code in the companion kernel.

use std::sync::Arc;

use cellwright_cell::{Exception, Output, OutputChange, Stream};
use cellwright_jupyter::content::InputRequest as InputContent;
use cellwright_kernel::{Fate, Stdin};
use cellwright_session::{
    CallEvent, CallHandle, CallReport, CallUpdate, CellRequest, CellStatus, InputRequest, InterruptResult,
    KernelFate, SessionError, Timeout,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::cell_run::CellRun;
use crate::cell_output::{CodeOutputs, exception_of};
use crate::companion::{CellAddress, CompanionKernel, CompanionPlace, is_python, mentions};
use crate::failure::{CellError, CellFailure, FailureKind};
use crate::magic::{CodeBody, CodeLanguage};

/// The interrupts after which the kernel of a cell is ended, if the cell goes on.
const PATIENCE: usize = 3;

/// The longest prompt that may be code that its writer meant to run.
const LONGEST_HINTED: usize = 4000;

/// A running cell, and what it waits for.
struct CodeRun<'a> {
    run: &'a CellRun<'a>,
    companion: &'a CompanionKernel,
    place: Arc<CompanionPlace>,
    address: CellAddress,
    outputs: CodeOutputs,
    question: Option<BoxFuture<'a, ()>>,
    interrupts: usize,
    /// What became of the last interrupt.
    interrupting: Option<BoxFuture<'a, Result<InterruptResult, SessionError>>>,
    has_begun: bool,
    /// The exception that the cell shows.
    exception: Option<Exception>,
}

impl CellRun<'_> {
    /// The kernel of code cells.
    pub(super) fn companion(&self) -> Result<&CompanionKernel, CellFailure> {
        self.kernel.state.companion.as_ref().ok_or_else(|| match &self.kernel.setup.trouble {
            Some(trouble) => {
                CellFailure::new(FailureKind::KernelError, format!("the settings cannot be used: {trouble}"))
            }
            None => CellFailure::new(FailureKind::KernelError, "this kernel runs no code"),
        })
    }

    /// Runs code, and shows what it does.
    pub(super) async fn code(&self, body: &CodeBody) -> Result<(), CellError> {
        let companion = self.companion()?;
        let unknown = |error: &dyn std::fmt::Display| {
            let failure = CellFailure::new(FailureKind::KernelError, error.to_string());
            match &body.language {
                CodeLanguage::Named(name) => failure.with(format!(
                    "`%%{name}` is neither a magic nor an installed kernel. `%%agent` before a text sends it unchanged."
                )),
                CodeLanguage::Companion | CodeLanguage::Python => failure,
            }
        };
        let place = companion.place_of(&body.language).map_err(|error| unknown(&error))?;
        let mut request = CellRequest::new(body.text.clone());
        request.timeout = Timeout::Never;
        let stdin = if self.cell.allow_stdin { Stdin::Person } else { Stdin::Refused };
        let address = CellAddress { sender: self.cell.sender().clone(), header: self.cell.header().clone() };
        let handle = companion.run(&place, request, stdin, address.clone()).await;
        let handle = handle.map_err(|error| unknown(&error))?;
        let mut run = CodeRun {
            run: self,
            companion,
            place,
            address,
            outputs: CodeOutputs::default(),
            question: None,
            interrupts: 0,
            interrupting: None,
            has_begun: false,
            exception: None,
        };
        let report = run.follow(handle).await;
        let shown = run.exception.take();
        if let Some(SessionError::NotStarted(why)) = &report.error {
            return Err(unknown(why).into());
        }
        ending(&report, shown)
    }

    /// A word on a prompt that looks like code. `None` for all others.
    pub(super) async fn code_hint(&self, text: &str) -> Option<String> {
        let companion = self.kernel.state.companion.as_ref()?;
        if text.len() > LONGEST_HINTED || !is_python(&companion.place().key.kernel) {
            return None;
        }
        let variables = companion.variables(1000).await.ok()?;
        let names = variables.listed.iter().map(|variable| variable.name.as_str());
        if !mentions(text, names) || companion.compiles(text).await != Some(true) {
            return None;
        }
        Some("this looks like code: `%%python` on the first line runs it, and `%mode code` makes all cells code".to_owned())
    }
}

impl<'a> CodeRun<'a> {
    async fn follow(&mut self, mut handle: CallHandle) -> Arc<CallReport> {
        let stop = &self.run.stop;
        loop {
            tokio::select! {
                biased; // being asked to stop beats output
                () = stop.interrupted() => self.interrupt(&handle),
                result = pending(self.interrupting.as_mut()) => self.interrupted(result).await,
                () = pending(self.question.as_mut()) => self.question = None,
                () = self.outputs.due() => self.outputs.flush(&self.run.cell, self.run.count, stop).await,
                update = handle.next() => match update {
                    CallUpdate::Event(event) => self.take(event).await,
                    CallUpdate::Finished(report) => {
                        self.outputs.flush(&self.run.cell, self.run.count, stop).await;
                        return report;
                    }
                },
            }
        }
    }

    async fn take(&mut self, event: CallEvent) {
        match event {
            CallEvent::Output { change, .. } => {
                if let OutputChange::Added(Output::Error(exception)) = &change {
                    self.exception = Some(exception.clone());
                }
                let CellRun { cell, count, stop, .. } = self.run;
                self.outputs.take(change, cell, *count, stop).await;
            }
            CallEvent::Input { request, .. } => self.question = Some(self.ask(request)),
            CallEvent::Comm { cell: Some(_), comm } => {
                self.outputs.flush(&self.run.cell, self.run.count, &self.run.stop).await;
                self.companion.said(&self.place, &comm, &self.address);
            }
            CallEvent::Notice(notice) => self.remark(&format!("[{notice}]\n")).await,
            CallEvent::CellStarted { .. } => self.has_begun = true,
            CallEvent::CellFinished(_) => self.question = None,
            // What comes outside of cells is shown by those who watch the session.
            CallEvent::Comm { cell: None, .. }
            | CallEvent::LateBefore(_)
            | CallEvent::Late(_)
            | CallEvent::Queued { .. }
            | CallEvent::KernelStarted(_)
            | CallEvent::Turn { .. }
            | CallEvent::Stopping { .. } => {}
        }
    }

    fn ask(&self, request: InputRequest) -> BoxFuture<'a, ()> {
        let (cell, stdin) = (Arc::clone(&self.run.cell), &self.run.kernel.state.stdin);
        async move {
            let (prompt, password) = (request.prompt.clone(), request.password);
            let question = InputContent { prompt, password, ..InputContent::default() };
            match stdin.ask_for(cell.sender(), cell.request(), question).await {
                Some(line) => request.answer(line),
                None => request.refuse("there is nobody to ask"),
            }
        }
        .boxed()
    }

    fn interrupt(&mut self, handle: &CallHandle) {
        self.interrupts += 1;
        self.question = None;
        self.run.kernel.state.stdin.interrupted();
        if !self.has_begun || self.interrupts >= PATIENCE {
            handle.stop(); // it waits for another cell, or did not listen
            return;
        }
        let (companion, place) = (self.companion, Arc::clone(&self.place));
        self.interrupting = Some(async move { companion.interrupt(&place).await }.boxed());
    }

    async fn interrupted(&mut self, result: Result<InterruptResult, SessionError>) {
        self.interrupting = None;
        let remark = match result {
            Ok(InterruptResult::GoesOn(why)) => {
                let left = PATIENCE - self.interrupts;
                let more = if left == 1 { "One more interrupt ends" } else { "Two more interrupts end" };
                format!(
                    "[the interrupt was sent, but the cell goes on: {why}. {more} its kernel, if it must.]\n"
                )
            }
            Ok(InterruptResult::NothingRan | InterruptResult::Ended(_)) => return,
            Err(error) => format!("[{error}]\n"),
        };
        self.remark(&remark).await;
    }

    async fn remark(&mut self, text: &str) {
        let change = OutputChange::Added(Output::text(Stream::Stderr, text));
        let CellRun { cell, count, stop, .. } = self.run;
        self.outputs.take(change, cell, *count, stop).await;
    }
}

/// Waits for a future that may not be there.
async fn pending<T>(future: Option<&mut BoxFuture<'_, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// How the cell of a call ended.
fn ending(report: &CallReport, shown: Option<Exception>) -> Result<(), CellError> {
    if let Some(error) = &report.error {
        return Err(CellFailure::new(FailureKind::KernelError, error.to_string()).into());
    }
    let Some(cell) = report.cells.first() else { return Ok(()) };
    match &cell.status {
        CellStatus::Ok => Ok(()),
        CellStatus::Error(exception) => Err(CellError::Raised(exception_of(exception))),
        CellStatus::Stopped { kernel: Fate::Survived, .. } | CellStatus::NotRun(_) => Err(match shown {
            Some(exception) => CellError::Raised(exception_of(&exception)),
            None => CellFailure::interrupted().into(),
        }),
        CellStatus::Stopped { .. } | CellStatus::Died(_) | CellStatus::Unknown => {
            let words = cell.status.ending(report.kernel_fate(KernelFate::Stays));
            Err(CellFailure::new(FailureKind::KernelError, format!("the cell {words}")).into())
        }
        CellStatus::Waiting | CellStatus::Running => unreachable!("the call is over"),
    }
}
