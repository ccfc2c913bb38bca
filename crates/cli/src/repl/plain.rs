//! A session without a terminal's keys: lines in, text out.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use cellwright_cell::with_causes;
use cellwright_kernel::CodeCompleteness;
use cellwright_session::{CallEvent, CallUpdate};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::record::ReplRecord;
use super::view::{CellAuthor, SessionView};
use super::{ReplSession, python, saved_path};
use crate::draw::style::TextPen;
use crate::exit::CommandExit;
use crate::print;

/// Lines that were read and wait for their turn.
const AHEAD: usize = 16;

/// Reads lines from stdin and runs each text that they make up. There are prompts only for a person.
pub(crate) struct PlainRepl {
    session: ReplSession,
    lines: mpsc::Receiver<io::Result<String>>,
    view: SessionView,
    record: ReplRecord,
    has_person: bool,
}

impl PlainRepl {
    pub(crate) fn new(session: ReplSession) -> Self {
        let (sender, lines) = mpsc::channel(AHEAD);
        // Ends with its input, or with the process: a read of a terminal cannot be called off.
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        let view = SessionView { pen: TextPen::Plain, language: "python".to_owned(), images: None };
        let has_person = io::stdin().is_terminal();
        Self { session, lines, view, record: ReplRecord::default(), has_person }
    }

    /// Runs until the input ends. It fails if a cell did.
    pub(crate) async fn run(mut self) -> anyhow::Result<CommandExit> {
        let mut exit = CommandExit::Done;
        let mut code = String::new();
        loop {
            self.ask(if code.is_empty() { ">>> " } else { "... " })?;
            let line = self.lines.recv().await.transpose().context("could not read standard input")?;
            let is_over = line.is_none();
            match line {
                Some(line) if code.is_empty() => code = line,
                Some(line) => code = format!("{code}\n{line}"),
                None => {}
            }
            let is_whole =
                !matches!(python::completeness(&code), CodeCompleteness::Incomplete { .. }) || is_over;
            if is_whole && !code.trim().is_empty() {
                let text = std::mem::take(&mut code);
                if matches!(text.trim(), "exit" | "quit" | "exit()" | "quit()") {
                    return Ok(exit);
                }
                if !self.execute(text.trim_end()).await? {
                    exit = CommandExit::Failed;
                }
            } else if is_whole {
                code.clear();
            }
            if is_over {
                return Ok(exit);
            }
        }
    }

    /// Runs a text, and returns whether all went well.
    async fn execute(&mut self, code: &str) -> anyhow::Result<bool> {
        if let Some(path) = saved_path(code.trim()) {
            let cells = self.record.save(Path::new(path), &self.session.key.kernel)?;
            print::note(&format!("saved {cells} cells in {path}"));
            return Ok(true);
        }
        let mut interrupts = signal(SignalKind::interrupt()).context("could not listen for Ctrl-C")?;
        self.record.begin(code);
        let mut call = self.session.client.call(self.session.call(code)).await?;
        loop {
            let update = tokio::select! {
                update = call.next() => update,
                _ = interrupts.recv() => {
                    self.session.client.interrupt(&self.session.key).await?;
                    continue;
                }
            };
            match update {
                CallUpdate::Event(CallEvent::Output { change, .. }) => {
                    self.record.change(&change);
                    print::plain(&self.view.change(&change, CellAuthor::Person))?;
                }
                CallUpdate::Event(CallEvent::Late(change)) => {
                    print::plain(&self.view.change(&change, CellAuthor::Person))?;
                }
                CallUpdate::Event(CallEvent::LateBefore(late)) => {
                    print::plain(&late.collected.text.text)?;
                }
                CallUpdate::Event(CallEvent::Input { request, .. }) => {
                    print::plain(&request.prompt)?;
                    match self.lines.recv().await.transpose()? {
                        Some(line) => request.answer(line),
                        None => request.refuse("end of file on standard input"),
                    }
                }
                CallUpdate::Event(CallEvent::CellFinished(report)) => {
                    self.record.end(report.execution_count);
                    if let Some(ending) = self.view.ending(&report.status) {
                        print::note(&ending);
                    }
                }
                CallUpdate::Event(CallEvent::Notice(notice)) => print::note(&notice.to_string()),
                CallUpdate::Event(_) => {}
                CallUpdate::Finished(report) => {
                    if let Some(error) = &report.error {
                        anyhow::bail!(with_causes(error));
                    }
                    return Ok(report.succeeded());
                }
            }
        }
    }

    fn ask(&self, prompt: &str) -> io::Result<()> {
        if self.has_person {
            let mut stdout = io::stdout().lock();
            stdout.write_all(prompt.as_bytes())?;
            stdout.flush()?;
        }
        Ok(())
    }
}
