//! What the session says: to the call that was made here, and to everybody who watches.

use std::sync::Arc;

use cellwright_cell::with_causes;
use cellwright_kernel::AboutKernel;
use cellwright_output::visible;
use cellwright_session::{CallEvent, CallReport, CallUpdate, JobId, SessionEvent};

use super::view::CellAuthor;
use super::{PersonQuestion, ReplLoop};
use crate::exit::CommandExit;
use crate::line::{LineEditor, LineMode};
use crate::render::without_colours;

impl ReplLoop {
    pub(super) fn started(&mut self, update: CallUpdate) -> anyhow::Result<()> {
        match update {
            CallUpdate::Event(CallEvent::KernelStarted(about)) => self.kernel_started(about),
            CallUpdate::Event(CallEvent::Notice(notice)) => self.note(&format!("note: {notice}")),
            CallUpdate::Event(_) => Ok(()),
            CallUpdate::Finished(report) => {
                self.starting = None;
                match &report.error {
                    // Nothing can be run, and the next start would fail the same way.
                    Some(error) if self.own.is_none() => {
                        self.left = Some(CommandExit::Failed);
                        self.note(&format!("error: {}", with_causes(error)))
                    }
                    Some(_) | None => Ok(()),
                }
            }
        }
    }

    pub(super) fn own(&mut self, update: CallUpdate) -> anyhow::Result<()> {
        let event = match update {
            CallUpdate::Event(event) => event,
            CallUpdate::Finished(report) => return self.own_ended(&report),
        };
        match event {
            CallEvent::CellStarted { .. } => {
                if let Some(own) = &mut self.own {
                    own.runs = true;
                }
            }
            CallEvent::Output { change, .. } => {
                self.record.change(&change);
                self.console.print(&self.view.change(&change, CellAuthor::Person))?;
            }
            CallEvent::Late(change) => self.console.print(&self.view.change(&change, CellAuthor::Person))?,
            CallEvent::Input { request, .. } => {
                let mode = if request.password { LineMode::Secret } else { LineMode::Answer };
                // What was printed without a line's end is the beginning of the question.
                let open = self.console.take_open_line();
                let prompt = without_colours(&format!("{open}{}", request.prompt));
                let (above, prompt) = match prompt.rsplit_once('\n') {
                    Some((above, prompt)) => (format!("\r\x1b[K{above}\n"), prompt.to_owned()),
                    None => ("\r\x1b[K".to_owned(), prompt),
                };
                self.console.print(&above)?;
                self.console.take_open_line();
                self.console.give_back(std::mem::take(&mut self.early));
                self.question = Some(PersonQuestion { request, prompt, editor: LineEditor::new(mode) });
            }
            CallEvent::Stopping { .. } => {
                self.console.leave_prompt()?;
                self.question = None;
            }
            CallEvent::CellFinished(report) => {
                self.count = report.execution_count.map_or(self.count + 1, |count| count + 1);
                self.record.end(report.execution_count);
                if let Some(ending) = self.view.ending(&report.status, report.duration) {
                    self.console.print_line(&ending)?;
                }
            }
            CallEvent::Queued { .. } if self.starting.is_none() => {
                self.note("waiting for another call in this session")?;
            }
            CallEvent::Notice(notice) => self.note(&format!("note: {notice}"))?,
            CallEvent::KernelStarted(about) => self.kernel_started(about)?,
            // The journal has them too, and was read by then.
            CallEvent::LateBefore(_)
            | CallEvent::Queued { .. }
            | CallEvent::Turn { .. }
            | CallEvent::Comm { .. } => {}
        }
        Ok(())
    }

    fn own_ended(&mut self, report: &CallReport) -> anyhow::Result<()> {
        (self.own, self.question) = (None, None);
        match &report.error {
            Some(error) => self.note(&format!("error: {}", with_causes(error))),
            None => Ok(()),
        }
    }

    /// What the journal of the session says: of others, and of threads of cells that are over.
    pub(super) fn session_event(&mut self, event: Option<Arc<SessionEvent>>) -> anyhow::Result<()> {
        let Some(event) = event else {
            self.left = Some(CommandExit::Failed);
            return self.note("the session is out of reach: its process has ended");
        };
        let is_ours = |call: &JobId| self.last.as_ref() == Some(call);
        match &*event {
            SessionEvent::CallStarted { call } => {
                self.is_within = is_ours(call);
                self.other = Some(*call).filter(|_| !self.is_within);
                Ok(())
            }
            SessionEvent::CallFinished { call, error, .. } => {
                let ours = is_ours(call);
                (self.other, self.is_within) = (None, false);
                match error.as_ref().filter(|_| !ours) {
                    Some(error) => self.note(&format!("error: {error}")),
                    None => Ok(()),
                }
            }
            SessionEvent::Output { call: None, change } if !self.is_within => {
                let author = if self.session.stays() { CellAuthor::Other } else { CellAuthor::Person };
                Ok(self.console.print(&self.view.change(change, author))?)
            }
            SessionEvent::Ended(why) => {
                self.left = Some(CommandExit::Done);
                self.note(&format!("the session has ended: {why}"))
            }
            // The handle of our own call says it.
            _ if self.is_within => Ok(()),
            SessionEvent::CellStarted { code, title, .. } => {
                self.record.begin(code);
                let label = self.view.note(&format!("In [{}]", self.count));
                self.console.print_line(&label)?;
                Ok(self.console.print(&self.view.code(code, title.as_deref()))?)
            }
            SessionEvent::Output { change, .. } => {
                self.record.change(change);
                Ok(self.console.print(&self.view.change(change, CellAuthor::Other))?)
            }
            SessionEvent::CellFinished { status, duration, execution_count, .. } => {
                self.count = execution_count.map_or(self.count, |count| count + 1);
                self.record.end(*execution_count);
                match self.view.ending(status, *duration) {
                    Some(ending) => Ok(self.console.print_line(&ending)?),
                    None => Ok(()),
                }
            }
            SessionEvent::InputAsked { prompt, .. } => {
                self.console.print(&visible(prompt))?;
                self.note("(whoever runs it is asked for a line)")
            }
            SessionEvent::Missed { events } => self.note(&format!("{events} events are not shown")),
            SessionEvent::Notice(notice) => self.note(&format!("note: {notice}")),
            SessionEvent::KernelStarted(about) => self.kernel_started(about.clone()),
            SessionEvent::Stopping { .. } | SessionEvent::Comm(_) | SessionEvent::Present => Ok(()),
        }
    }

    /// A kernel runs. The call that started it and the journal both say so.
    fn kernel_started(&mut self, about: AboutKernel) -> anyhow::Result<()> {
        if self.kernel.as_ref() == Some(&about) {
            return Ok(());
        }
        self.view.language.clone_from(&about.language);
        self.note(&about.to_string())?;
        self.kernel = Some(about);
        Ok(())
    }
}
