//! What the session says: to the call that was made here, and to everybody who watches.

use std::sync::Arc;
use std::time::Duration;

use cellwright_cell::{OutputChange, with_causes};
use cellwright_kernel::AboutKernel;
use cellwright_session::{CallEvent, CallReport, CallUpdate, CellStatus, JobId, KernelFate, SessionEvent};

use super::view::CellAuthor;
use super::{PersonQuestion, ReplLoop};
use crate::draw::look::{LookArguments, variable};
use crate::draw::style::TextPen;
use crate::draw::terminal::{BlockColours, ImageProtocol};
use crate::exit::CommandExit;
use crate::line::{LineEditor, LineMode};
use crate::render::{
    CallRender as _, CellHeadings, CellLook, CellRender, FullOutputs, PreviewLines, StatusMark,
    without_colours,
};

/// Cells that take no longer say nothing of it.
const QUICK: Duration = Duration::from_secs(1);

impl ReplLoop {
    pub(super) fn started(&mut self, update: CallUpdate) -> anyhow::Result<()> {
        match update {
            CallUpdate::Event(CallEvent::KernelStarted(about)) => self.kernel_started(about),
            CallUpdate::Event(CallEvent::Notice(notice)) => self.note(&format!("note: {notice}")),
            CallUpdate::Event(_) => Ok(()),
            CallUpdate::Finished(report) => {
                self.starting = None;
                self.console.give_back(self.held.take().unwrap_or_default());
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
                self.begin_drawing(CellHeadings::counted(vec![None]), PreviewLines::All)?;
            }
            CallEvent::Output { change, .. } => {
                self.record.change(&change);
                self.draw(&change, CellAuthor::Person)?;
            }
            CallEvent::Late(change) => self.draw(&change, CellAuthor::Person)?,
            CallEvent::Input { request, .. } => {
                let mode = if request.password { LineMode::Secret } else { LineMode::Answer };
                if let Some(drawing) = &mut self.drawing {
                    drawing.pause()?;
                }
                let prompt = without_colours(&request.prompt);
                let (above, prompt) = prompt.rsplit_once('\n').unwrap_or(("", &prompt));
                if !above.is_empty() {
                    self.console.print_line(above)?;
                }
                let prompt = prompt.to_owned();
                self.console.give_back(std::mem::take(&mut self.early));
                self.question = Some(PersonQuestion { request, prompt, editor: LineEditor::new(mode) });
            }
            CallEvent::Stopping { .. } => {
                self.end_question()?;
            }
            CallEvent::CellFinished(report) => {
                self.count = report.execution_count.map_or(self.count + 1, |count| count + 1);
                self.record.end(report.execution_count);
                // A traceback says enough of a cell that was quick.
                let mark = match report.status {
                    CellStatus::Error(_) if report.duration < QUICK => StatusMark::Ok(report.duration),
                    _ => StatusMark::of(&report.status, report.duration, false),
                };
                self.end_drawing(&mark)?;
                if let Some(ending) = self.view.ending(&report.status) {
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
        self.end_question()?;
        self.own = None;
        if let Some(mut drawing) = self.drawing.take() {
            drawing.close()?;
        }
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
                // Between two cells of a call the prompt was there for a moment.
                self.console.hide_prompt()?;
                let headings = CellHeadings {
                    places: vec![format!("In [{}]", self.count)],
                    are_shown: true,
                    code: Some(vec![code.clone()]),
                    ..CellHeadings::counted(vec![title.clone()])
                };
                self.begin_drawing(headings, PreviewLines::INTERACTIVE)
            }
            SessionEvent::Output { change, .. } => {
                self.record.change(change);
                self.draw(change, CellAuthor::Other)
            }
            SessionEvent::CellFinished { status, duration, execution_count, .. } => {
                self.count = execution_count.map_or(self.count, |count| count + 1);
                self.record.end(*execution_count);
                self.end_drawing(&StatusMark::of(status, *duration, false))?;
                match self.view.ending(status) {
                    Some(ending) => Ok(self.console.print_line(&ending)?),
                    None => Ok(()),
                }
            }
            SessionEvent::InputAsked { prompt, .. } => {
                self.note(&format!("{prompt} (whoever runs it is asked for a line)"))
            }
            SessionEvent::Missed { events } => self.note(&format!("{events} events are not shown")),
            SessionEvent::Notice(notice) => self.note(&format!("note: {notice}")),
            SessionEvent::KernelStarted(about) => self.kernel_started(about.clone()),
            SessionEvent::Stopping { .. } | SessionEvent::Comm(_) | SessionEvent::Present => Ok(()),
        }
    }

    /// A cell begins: what it shows is drawn from here on, and drawn again while it changes.
    fn begin_drawing(&mut self, headings: CellHeadings, preview: PreviewLines) -> anyhow::Result<()> {
        let full = FullOutputs::Artifacts(self.artifacts.clone());
        let images = match (self.view.images, self.view.pen) {
            (Some((protocol, _)), _) => Some(protocol),
            (None, TextPen::Plain) => None,
            (None, TextPen::Colours | TextPen::DarkColours) => {
                Some(ImageProtocol::Blocks(BlockColours::named(variable)))
            }
        };
        let mut look = CellLook::new(LookArguments::default(), preview, full).drawing(images);
        look.language.clone_from(&self.view.language);
        let mut drawing = CellRender::at_terminal(look, headings, KernelFate::Stays);
        drawing.begin(0)?;
        self.drawing = Some(drawing);
        Ok(())
    }

    /// Shows what a cell shows, or what came of one that is over.
    fn draw(&mut self, change: &OutputChange, author: CellAuthor) -> anyhow::Result<()> {
        match &mut self.drawing {
            Some(drawing) => drawing.change(change),
            None => Ok(self.console.print(&self.view.change(change, author))?),
        }
    }

    fn end_drawing(&mut self, mark: &StatusMark) -> anyhow::Result<()> {
        let Some(mut drawing) = self.drawing.take() else { return Ok(()) };
        drawing.finish(0, mark)?;
        drawing.close()
    }

    /// Nobody has to answer any more.
    pub(super) fn end_question(&mut self) -> anyhow::Result<()> {
        if self.question.take().is_some() {
            self.console.leave_prompt()?;
            if let Some(drawing) = &mut self.drawing {
                drawing.resume()?;
            }
        }
        Ok(())
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
