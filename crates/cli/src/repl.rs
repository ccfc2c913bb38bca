//! A person at a live session: what is typed runs in its kernel, and what others run there is seen as it runs.
//!
//! `cellwright repl` and `cellwright attach` are this, on sessions of different owners. [`ReplLoop`] is one task that
//! waits for keys, for its own call and for the journal of the session. While nothing runs, the text that is typed is
//! shown; everything else is printed above it.

mod answers;
mod console;
mod events;
mod following;
mod plain;
mod python;
mod record;
mod session;
mod view;
mod waking;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use cellwright_cell::with_causes;
use cellwright_kernel::{AboutKernel, CodeCompleteness, KernelChoice};
use cellwright_output::Artifacts;
use cellwright_session::{
    CallHandle, CallUpdate, FollowFrom, Force, InputRequest, InterruptResult, JobId, SessionEvent,
    SessionFollower,
};
use tokio::task::JoinSet;

use self::answers::{BackgroundAnswer, QuestionTask};
use self::console::ReplConsole;
use self::record::ReplRecord;
use self::view::SessionView;
use self::waking::{ReplSignals, frame, next_event, next_of};
use crate::config::LoadedConfig;
use crate::draw::style::{TextPen, TextStyle};
use crate::draw::terminal::{ImageProtocol, TerminalSize, protocol_named};
use crate::exit::CommandExit;
use crate::host;
use crate::line::{KeyEffect, LineEditor, LineHistory, LineMode, LinePrompt, TypedKey};
use crate::render::{CallRender as _, CellRender};

pub(crate) use self::console::restore as restore_terminal;
pub(crate) use self::following::{FollowStyle, follow_session};
pub(crate) use self::plain::PlainRepl;
pub(crate) use self::session::ReplSession;

/// How a session is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplEntry {
    /// Its kernel is started.
    Start,
    /// What ran last is shown, and then what others run.
    Attach,
}

/// The session of a person, until they leave it.
pub(crate) struct ReplLoop {
    session: ReplSession,
    entry: ReplEntry,
    console: ReplConsole,
    editor: LineEditor,
    history: LineHistory,
    view: SessionView,
    /// Draws the cell that runs.
    drawing: Option<CellRender>,
    /// Where the rest of long outputs is kept.
    artifacts: Artifacts,
    record: ReplRecord,
    /// The number of the next cell, as far as it is known.
    count: u64,
    /// The call that makes the kernel ready.
    starting: Option<CallHandle>,
    own: Option<OwnCall>,
    /// The call of somebody else that runs.
    other: Option<JobId>,
    follower: Option<SessionFollower>,
    /// The kernel that was shown last.
    kernel: Option<AboutKernel>,
    /// The call that was made here last, and whether the journal is within it.
    last: Option<JobId>,
    is_within: bool,
    question: Option<PersonQuestion>,
    tasks: JoinSet<BackgroundAnswer>,
    /// Enter was pressed, and the kernel is asked whether the text is a whole.
    judged: bool,
    /// Enter and what was typed after it, until there is a kernel that knows whether the text is a whole.
    held: Option<Vec<TypedKey>>,
    /// What was typed while something ran.
    early: Vec<TypedKey>,
    left: Option<CommandExit>,
}

/// A call that was made here.
struct OwnCall {
    handle: CallHandle,
    /// Its cell runs.
    runs: bool,
    /// An interrupt did not end it.
    resists: bool,
}

/// A line that a cell waits for.
struct PersonQuestion {
    request: InputRequest,
    prompt: String,
    editor: LineEditor,
}

enum ReplWake {
    Key(std::io::Result<Option<TypedKey>>),
    Start(CallUpdate),
    Own(CallUpdate),
    Session(Option<Arc<SessionEvent>>),
    Answer(BackgroundAnswer),
    /// What is drawn may have changed.
    Frame,
    Resized,
    Interrupted,
    Terminated,
}

impl ReplLoop {
    /// Takes the terminal over and shows the prompt. Nothing runs yet.
    pub(crate) fn open(
        session: ReplSession,
        entry: ReplEntry,
        config: &LoadedConfig,
        greeting: &str,
    ) -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let pen = if variable("NO_COLOR").is_none() { TextPen::Colours } else { TextPen::Plain };
        let size = TerminalSize::on_stdout();
        let protocol = protocol_named(variable);
        let view = SessionView {
            pen,
            language: if matches!(session.key.kernel, KernelChoice::Python { .. }) {
                "python".to_owned()
            } else {
                String::new()
            },
            images: protocol.zip(size),
        };
        let artifacts = host::artifacts(config);
        let mut repl = Self {
            session,
            entry,
            console: ReplConsole::open()?,
            editor: LineEditor::new(LineMode::Code),
            history: LineHistory::in_file(config.places.state.join("repl_history")),
            view,
            drawing: None,
            artifacts,
            record: ReplRecord::default(),
            count: 1,
            starting: None,
            own: None,
            other: None,
            follower: None,
            kernel: None,
            last: None,
            is_within: false,
            question: None,
            tasks: JoinSet::new(),
            judged: false,
            held: None,
            early: Vec::new(),
            left: None,
        };
        repl.note(greeting)?;
        if protocol.is_none() {
            repl.console.ask_attributes()?;
        }
        repl.refresh()?;
        Ok(repl)
    }

    /// Runs until the person leaves.
    pub(crate) async fn run(mut self) -> anyhow::Result<CommandExit> {
        let mut signals = ReplSignals::listen()?;
        let client = Arc::clone(&self.session.client);
        if self.entry == ReplEntry::Start {
            self.starting = Some(client.call(self.session.start()).await?);
        }
        let from = match self.entry {
            ReplEntry::Start => FollowFrom::Now,
            ReplEntry::Attach => FollowFrom::LastCall,
        };
        self.follower = Some(client.follow(&self.session.key, from).await?);
        loop {
            self.refresh()?;
            if let Some(exit) = self.left {
                self.console.leave_prompt()?;
                return Ok(exit);
            }
            // None of them delays the others: each is handled before the next is waited for.
            let wake = tokio::select! {
                signal = signals.next() => signal,
                key = self.console.key(), if !self.judged => ReplWake::Key(key),
                update = next_of(self.starting.as_mut()) => ReplWake::Start(update),
                update = next_of(self.own.as_mut().map(|own| &mut own.handle)) => ReplWake::Own(update),
                event = next_event(self.follower.as_mut()) => ReplWake::Session(event),
                () = frame(self.drawing.as_ref()) => ReplWake::Frame,
                Some(Ok(answer)) = self.tasks.join_next() => ReplWake::Answer(answer),
            };
            match wake {
                ReplWake::Key(Ok(Some(key))) => self.press(key).await?,
                ReplWake::Key(Ok(None)) | ReplWake::Terminated => self.left = Some(CommandExit::Done),
                ReplWake::Key(Err(error)) => return Err(error).context("could not read the terminal"),
                ReplWake::Interrupted => self.press(TypedKey::Control('c')).await?,
                ReplWake::Resized => self.console.hide_prompt()?,
                ReplWake::Start(update) => self.started(update)?,
                ReplWake::Own(update) => self.own(update)?,
                ReplWake::Session(event) => self.session_event(event)?,
                ReplWake::Frame => {
                    if let Some(drawing) = &mut self.drawing {
                        drawing.tick()?;
                    }
                }
                ReplWake::Answer(answer) => self.answered(answer).await?,
            }
        }
    }

    /// Shows what is being typed, if anything can be.
    fn refresh(&mut self) -> anyhow::Result<()> {
        if self.left.is_some() {
            return Ok(());
        }
        let (columns, _) = ReplConsole::size();
        let view = &self.view;
        let layout = match &self.question {
            Some(question) => {
                let prompt = LinePrompt {
                    first: &question.prompt,
                    style: TextStyle::PLAIN,
                    next: "",
                    colours: &|text| vec![(TextStyle::PLAIN, text)],
                };
                question.editor.layout(&prompt, &LineHistory::default(), columns, view.pen)
            }
            None if self.own.is_some() || self.other.is_some() => return Ok(self.console.hide_prompt()?),
            None => {
                let first = format!("In [{}]: ", self.count);
                let next = format!("{:>1$}", "...: ", first.len());
                let prompt = LinePrompt {
                    first: &first,
                    style: TextStyle::GREEN,
                    next: &next,
                    colours: &|text| view.pieces(text),
                };
                if !self.early.is_empty() {
                    self.console.give_back(std::mem::take(&mut self.early));
                }
                self.editor.layout(&prompt, &self.history, columns, view.pen)
            }
        };
        Ok(self.console.draw(layout)?)
    }

    async fn press(&mut self, key: TypedKey) -> anyhow::Result<()> {
        if let TypedKey::Attributes { sixel } = key {
            if sixel && self.view.images.is_none() {
                self.view.images = Some(ImageProtocol::Sixel).zip(TerminalSize::on_stdout());
            }
            return Ok(());
        }
        if self.question.is_some() {
            return self.press_answer(key);
        }
        if self.own.is_some() || self.other.is_some() {
            match key {
                TypedKey::Control('c') => self.interrupt(),
                TypedKey::Control('z') => self.console.suspend()?,
                // Whoever runs it goes on without us.
                TypedKey::Control('d') if self.own.is_none() => self.left = Some(CommandExit::Done),
                key => self.early.push(key),
            }
            return Ok(());
        }
        if let Some(held) = &mut self.held {
            if key != TypedKey::Control('c') {
                held.push(key);
                return Ok(());
            }
            self.held = None;
        }
        match self.editor.press(key, &self.history) {
            KeyEffect::Redraw => {}
            KeyEffect::Enter if self.view.is_python() => {
                self.enter(python::completeness(self.editor.text())).await?;
            }
            KeyEffect::Enter if self.starting.is_some() => self.held = Some(vec![TypedKey::Enter]),
            KeyEffect::Enter => {
                self.judged = true;
                let code = self.editor.text().to_owned();
                self.ask(QuestionTask::Completeness { code });
            }
            KeyEffect::Complete => {
                let (code, cursor) = (self.editor.text().to_owned(), self.editor.cursor());
                self.ask(QuestionTask::Completions { code, cursor });
            }
            KeyEffect::Explain => {
                let (code, cursor) = (self.editor.text().to_owned(), self.editor.cursor());
                self.ask(QuestionTask::Explanation { code, cursor });
            }
            KeyEffect::Interrupt => {
                self.settle()?;
                self.editor.take();
                self.console.print("^C\n")?;
            }
            KeyEffect::End => self.left = Some(CommandExit::Done),
            KeyEffect::Suspend => self.console.suspend()?,
            KeyEffect::ClearScreen => self.console.clear_screen()?,
        }
        Ok(())
    }

    /// A key while a cell waits for a line.
    fn press_answer(&mut self, key: TypedKey) -> anyhow::Result<()> {
        let Some(question) = &mut self.question else { return Ok(()) };
        match question.editor.press(key, &LineHistory::default()) {
            KeyEffect::Redraw | KeyEffect::Complete | KeyEffect::Explain => {}
            KeyEffect::Enter => {
                let line = question.editor.text().to_owned();
                if let Some(request) = self.take_question()? {
                    request.answer(line);
                }
            }
            KeyEffect::End => {
                if let Some(request) = self.take_question()? {
                    request.refuse("end of file on standard input");
                }
            }
            KeyEffect::Interrupt => self.interrupt(),
            KeyEffect::Suspend => self.console.suspend()?,
            KeyEffect::ClearScreen => self.console.clear_screen()?,
        }
        Ok(())
    }

    fn take_question(&mut self) -> anyhow::Result<Option<InputRequest>> {
        self.refresh()?;
        self.console.leave_prompt()?;
        let request = self.question.take().map(|question| question.request);
        if let Some(drawing) = &mut self.drawing {
            drawing.resume()?;
        }
        Ok(request)
    }

    /// Enter was pressed at the end of a text.
    async fn enter(&mut self, completeness: CodeCompleteness) -> anyhow::Result<()> {
        match completeness {
            CodeCompleteness::Incomplete { indent } => {
                self.editor.break_line(&indent);
                Ok(())
            }
            CodeCompleteness::Complete | CodeCompleteness::Invalid | CodeCompleteness::Unknown => {
                self.submit().await
            }
        }
    }

    /// Runs what was typed.
    async fn submit(&mut self) -> anyhow::Result<()> {
        self.editor.trim_end();
        self.settle()?;
        let text = self.editor.take();
        let code = text.trim_end();
        if code.trim().is_empty() {
            return Ok(());
        }
        if self.history.add(code).is_err() {
            // It is remembered for this run; a full disk is no reason to stop.
        }
        let command = code.trim();
        if matches!(command, "exit" | "quit" | "exit()" | "quit()") {
            self.left = Some(CommandExit::Done);
            return Ok(());
        }
        if let Some(path) = saved_path(command) {
            let saved = self.record.save(Path::new(path), &self.session.key.kernel);
            let line = match saved {
                Ok(1) => format!("saved 1 cell in {path}"),
                Ok(cells) => format!("saved {cells} cells in {path}"),
                Err(error) => format!("not saved: {error:#}"),
            };
            return self.note(&line);
        }
        if command == "%restart" {
            // What others do with it, they do under the same name.
            let force = if self.session.stays() { Force::No } else { Force::Yes };
            return match self.session.client.restart(&self.session.key, force).await {
                Ok(()) => self.note("restarted; the variables are gone"),
                Err(error) => self.note(&with_causes(&error)),
            };
        }
        match self.session.client.call(self.session.call(code)).await {
            Ok(handle) => {
                self.last = Some(handle.job());
                self.record.begin(code);
                self.own = Some(OwnCall { handle, runs: false, resists: false });
                Ok(())
            }
            Err(error) => self.note(&format!("error: {}", with_causes(&error))),
        }
    }

    /// Leaves what was typed as it is, without suggestions.
    fn settle(&mut self) -> anyhow::Result<()> {
        self.editor.settle();
        self.refresh()?;
        Ok(self.console.leave_prompt()?)
    }

    /// Ctrl-C while something runs.
    fn interrupt(&mut self) {
        match &mut self.own {
            // It waits for its turn or its kernel, or did not mind the last one.
            Some(own) if !own.runs || own.resists => own.handle.stop(),
            Some(_) | None => self.ask(QuestionTask::Interrupt),
        }
    }

    fn ask(&mut self, task: QuestionTask) {
        let (client, key) = (Arc::clone(&self.session.client), self.session.key.clone());
        self.tasks.spawn(task.run(client, key));
    }

    async fn answered(&mut self, answer: BackgroundAnswer) -> anyhow::Result<()> {
        match answer {
            BackgroundAnswer::Completions { code, cursor, start, end, matches } => {
                if self.editor.text() == code && self.editor.cursor() == cursor {
                    self.editor.complete(start, end, matches);
                }
            }
            BackgroundAnswer::Explanation(text) => {
                let text =
                    text.unwrap_or_else(|| self.view.note("nothing is known of what is at the cursor"));
                self.console.print_line(text.trim_end())?;
            }
            BackgroundAnswer::Completeness(completeness) => {
                self.judged = false;
                self.enter(completeness).await?;
            }
            BackgroundAnswer::Interrupt(Ok(InterruptResult::GoesOn(why))) => {
                let then = match &mut self.own {
                    Some(own) => {
                        own.resists = true;
                        "Ctrl-C once more ends its kernel if it must"
                    }
                    None => "a restart would end its kernel",
                };
                self.note(&format!("the cell goes on: {why}; {then}"))?;
            }
            BackgroundAnswer::Interrupt(Ok(InterruptResult::Ended(_) | InterruptResult::NothingRan)) => {}
            BackgroundAnswer::Interrupt(Err(error)) => self.note(&with_causes(&error))?,
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> anyhow::Result<()> {
        if let Some(drawing) = &mut self.drawing {
            return drawing.note(text);
        }
        let line = self.view.note(text);
        Ok(self.console.print_line(&line)?)
    }
}

/// The file that `%save` names, when it is a notebook. Other files are the kernel's: IPython has a magic of this name.
fn saved_path(command: &str) -> Option<&str> {
    let path = command.strip_prefix("%save ")?.trim();
    let is_notebook = Path::new(path).extension().is_some_and(|extension| extension == "ipynb");
    is_notebook.then_some(path)
}
