//! `cellwright run`

mod asking;
mod detaching;
mod notebooks;

use std::future::pending;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cellwright_editing::FileKind;
use cellwright_kernel::{Comms, KernelChoice, Stdin, StopReason};
use cellwright_session::{
    Abandoned, Call, CallEvent, CallHandle, CallReport, CallUpdate, CellStatus, KernelFate, NotRun, Reset,
    ScriptFile, SessionId, SessionMode, Sessions, StoredOutputs, Timeout,
};
use futures_util::FutureExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::asking::TerminalQuestion;
pub(crate) use self::notebooks::yaml_mapping;
use self::notebooks::{DrawnRun, NotebookRunFlags, NotebookRuns};
use super::{input_bytes, named};
use crate::config::LoadedConfig;
use crate::draw::look::{DrawPlace, LookArguments};
use crate::exit::{self, CommandExit, PythonExit};
use crate::host::ClientSurroundings;
use crate::render::{
    CallRender, CellHeadings, CellLook, CellRender, FullOutputs, JsonRender, PlainRender, PreviewLines,
};
use crate::{host, script, trusting};

/// Run notebooks or Python code in a live kernel
///
/// A notebook's outputs are written into it while it runs. In a Python file, lines `# %%` start a new cell. The value
/// of each cell's last expression is shown, as in a notebook. Ctrl-C interrupts the cell; a second Ctrl-C stops
/// everything.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = "\
Examples:
  cellwright run analysis.ipynb
  cellwright run report.ipynb -o today.ipynb -p region=north -p rows=1000
  cellwright run -j 4 --junit results.xml notebooks/*.ipynb
  cellwright run -c '1 + 1'
  cellwright run analysis.py north 1000
  echo 'print(6 * 7)' | cellwright run -
  cellwright run --session work -c 'x = 1' && cellwright run --session work -c x
  cellwright run --detach train.py && cellwright attach train.py

Exit codes:
  0    every cell completed
  1    a cell raised an exception, its kernel died, or outputs could not be saved
  N    the code called sys.exit(N), and its kernel was not to stay
  2    the arguments are wrong
  3    others changed the notebook: the outputs are in a file beside it
  124  a cell took too long
  130  interrupted")]
pub(crate) struct RunCommand {
    /// Notebooks, or a Python file and its arguments (`-`: stdin; put `--` before arguments that begin with a dash)
    #[arg(required_unless_present = "code", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Run this code instead of a file
    #[arg(short = 'c', long, value_name = "CODE", conflicts_with = "files", allow_hyphen_values = true)]
    code: Option<String>,
    /// How many seconds each cell may take [default: no limit]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// The folder to run in
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// The Python to use: a program, or the folder of a virtual environment
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// What runs the cells: runner, runner:PYTHON, jupyter:NAME, gateway, gateway:NAME, gateway:ID, existing:FILE, existing:ID, existing:newest, or a language
    #[arg(long, value_name = "KERNEL", conflicts_with = "python")]
    kernel: Option<KernelChoice>,
    /// Keep the kernel under this name in the session daemon, for later calls
    #[arg(long, value_name = "NAME")]
    session: Option<SessionId>,
    /// Leave it running in the session daemon, and print how to follow it
    #[arg(long, conflicts_with = "json")]
    detach: bool,
    /// How --detach starts the program again.
    #[arg(long, hide = true)]
    detached: bool,
    /// Start with a fresh kernel
    #[arg(long)]
    reset: bool,
    /// With --reset: even if others use the session. With --cells or --from: even if cells changed since you read them
    #[arg(long)]
    force: bool,
    /// Print each event as a line of JSON; errors are JSON too, on stderr
    #[arg(long)]
    json: bool,
    /// Show all that cells print and display, not only the last lines
    #[arg(long)]
    expand: bool,
    /// Show the code of each cell above its output, at a terminal
    #[arg(long)]
    echo: bool,
    #[command(flatten)]
    look: LookArguments,
    #[command(flatten)]
    options: NotebookRunFlags,
}

impl RunCommand {
    pub(crate) fn run(mut self) -> anyhow::Result<CommandExit> {
        let is_notebook = |path: &PathBuf| FileKind::of(path) == FileKind::Notebook;
        let has_script = self.files.first().is_some_and(|first| !is_notebook(first));
        let notebooks = if has_script { 0 } else { self.files.len() };
        if let Some(other) = self.files.iter().take(notebooks).find(|path| !is_notebook(path)) {
            anyhow::bail!("{} is not a notebook; give notebooks, or one file of Python", other.display());
        }
        anyhow::ensure!(
            !has_script || self.files.len() == 1 || self.takes_arguments(),
            "only a file of Python that runs in a kernel of its own takes arguments; leave out --session, --kernel and --detach"
        );
        if self.detach && notebooks > 0 {
            return detaching::start_notebooks(&self.files);
        }
        if self.detached {
            cellwright_session::daemon::leave_terminal();
        }
        let runtime = host::runtime()?;
        let exit = if notebooks > 0 {
            let notebooks = self.notebooks()?;
            host::block_on(&runtime, notebooks.run())
        } else {
            host::block_on(&runtime, self.call()).or_else(|error| {
                // The reader of our output has seen enough, but the cells were cut off.
                if exit::is_broken_pipe(&error) { Ok(CommandExit::Failed) } else { Err(error) }
            })
        };
        // A kernel's last threads must not keep us: whatever they hold is gone with the process.
        runtime.shutdown_background();
        exit
    }

    fn notebooks(&mut self) -> anyhow::Result<NotebookRuns> {
        anyhow::ensure!(self.cwd.is_none(), "a notebook runs in its own folder; --cwd is for code");
        Ok(NotebookRuns {
            timeout: self.timeout()?,
            kernel: match (self.kernel.take(), self.python.take()) {
                (None, Some(python)) => Some(KernelChoice::Python { named: Some(python) }),
                (kernel, _) => kernel,
            },
            paths: std::mem::take(&mut self.files),
            options: std::mem::take(&mut self.options),
            session: self.session.take(),
            reset: self.reset(),
            force: self.force,
            json: self.json,
            drawing: DrawnRun { look: self.look, preview: self.preview(), echo: self.echo },
            detached: self.detached,
        })
    }

    /// How much of an output is shown at a terminal.
    fn preview(&self) -> PreviewLines {
        if self.expand { PreviewLines::All } else { PreviewLines::RUN }
    }

    fn timeout(&self) -> anyhow::Result<Timeout> {
        let Some(seconds) = self.timeout else { return Ok(Timeout::Never) };
        anyhow::ensure!(seconds >= 0.0, "--timeout takes a number of seconds, not `{seconds}`");
        // Longer than can be said is as long as it likes.
        Ok(Duration::try_from_secs_f64(seconds).map_or(Timeout::Never, Timeout::After))
    }

    fn reset(&self) -> Reset {
        match (self.reset, self.force) {
            (false, _) => Reset::No,
            (true, false) => Reset::Yes,
            (true, true) => Reset::Force,
        }
    }

    async fn call(self) -> anyhow::Result<CommandExit> {
        let cwd = self.folder()?;
        let config = LoadedConfig::load(&cwd, Vec::new())?;
        let config = if self.json { config } else { trusting::settled(config, &cwd)? };
        let mut call = self.cells(cwd, &config)?;
        if call.cells.is_empty() {
            return Ok(CommandExit::Done);
        }
        if self.detach {
            return detaching::leave_running(call, &config, self.session.as_ref(), self.files.first()).await;
        }
        let titles: Vec<_> = call.cells.iter().map(|cell| cell.source.title.clone()).collect();
        let code = self.echo.then(|| call.cells.iter().map(|cell| cell.source.code.clone()).collect());
        let _interrupts = on_interrupt(call.stop.clone())?;
        let mut here = None;
        let is_shared = self.session.is_some() || config.settings.session.shared;
        let kernel = if is_shared { KernelFate::Stays } else { KernelFate::Ends };
        let client = if is_shared {
            // A terminal that is closed does not end what the session does; Ctrl-C does.
            call.abandoned = Abandoned::GoOn;
            ClientSurroundings::of(&config, &call.cwd, self.session.as_ref())?.equip(&mut call);
            host::daemon_client(&config).await?
        } else {
            let mut settings = host::session_settings(&config, &call.cwd);
            settings.output.stored = StoredOutputs::Nothing;
            settings.script = self.script()?;
            let sessions = Sessions::new(settings);
            // Its kernel ends within the call, so that what it prints at its end is shown.
            call.mode = SessionMode::PerCall;
            let client = sessions.client();
            here = Some(sessions);
            client
        };
        let language = language(&call.kernel);
        let running = client.call(call).await?;
        let report = if self.json {
            follow(running, &mut JsonRender { artifacts: host::artifacts(&config) }).await
        } else if DrawPlace::of_this_process() == DrawPlace::Terminal {
            let full = FullOutputs::Artifacts(host::artifacts(&config));
            let mut look = CellLook::new(self.look, self.preview(), full);
            look.language = language;
            let headings = CellHeadings { code, ..CellHeadings::counted(titles) };
            follow(running, &mut CellRender::at_terminal(look, headings, kernel)).await
        } else {
            follow(running, &mut PlainRender::new(titles, kernel, self.look)).await
        };
        if let Some(sessions) = here {
            sessions.shutdown().await; // there is a kernel left when the call could not be followed to its end
        }
        Ok(exit_code(&*report?, kernel))
    }

    /// The file that holds the cells, if one does.
    fn script(&self) -> anyhow::Result<Option<ScriptFile>> {
        let Some(file) = self.files.first().filter(|file| *file != Path::new("-")) else { return Ok(None) };
        let path = std::path::absolute(file).context("the current folder is gone")?;
        let arguments = self.files[1..].iter().map(|argument| argument.to_string_lossy().into_owned());
        Ok(Some(ScriptFile { path, arguments: arguments.collect() }))
    }

    /// Whether what follows the file can be passed to it.
    fn takes_arguments(&self) -> bool {
        !self.detach && self.session.is_none() && self.kernel.is_none() && self.files[0] != Path::new("-")
    }

    fn folder(&self) -> anyhow::Result<PathBuf> {
        match &self.cwd {
            Some(folder) => {
                folder.canonicalize().with_context(|| format!("{} is not a folder", folder.display()))
            }
            None => std::env::current_dir().context("the current folder is gone"),
        }
    }

    fn choice(&self, config: &LoadedConfig) -> anyhow::Result<KernelChoice> {
        match (&self.kernel, &self.python) {
            (Some(kernel), _) => Ok(kernel.clone()),
            (None, Some(python)) => Ok(KernelChoice::Python { named: Some(python.clone()) }),
            (None, None) => config.settings.kernel.default.parse().context("kernel.default"),
        }
    }

    fn cells(&self, cwd: PathBuf, config: &LoadedConfig) -> anyhow::Result<Call> {
        let text = match (&self.code, self.files.first()) {
            (Some(code), _) => code.clone(),
            (None, Some(file)) => script::decode(input_bytes(file)?).with_context(|| named(file))?,
            (None, None) => unreachable!("clap requires one of the two"),
        };
        let mut cells = script::cells(&text);
        for cell in &mut cells {
            cell.timeout = self.timeout()?;
        }
        if let Some(first) = cells.first_mut() {
            first.reset = self.reset();
        }
        let session = self.session.clone().unwrap_or_else(|| "run".parse().expect("a valid name"));
        let mut call = Call::new(session, cwd, cells);
        call.kernel = self.choice(config)?;
        let code_is_stdin = self.files.first().is_some_and(|file| file == Path::new("-"));
        if io::stdin().is_terminal() && !code_is_stdin && !self.json {
            call.stdin = Stdin::Forwarded;
        }
        if self.json {
            call.comms = Comms::Forwarded;
        }
        Ok(call)
    }
}

/// What code for a kernel is highlighted as. A language that is not known here stays plain.
fn language(kernel: &KernelChoice) -> String {
    match kernel {
        KernelChoice::Jupyter { name } | KernelChoice::Gateway { name: Some(name) } => name.to_string(),
        KernelChoice::Python { .. }
        | KernelChoice::Gateway { name: None }
        | KernelChoice::Existing { .. } => "python".to_owned(),
    }
}

/// Reads a call to its end, showing it.
async fn follow(
    mut running: CallHandle,
    render: &mut impl CallRender,
) -> anyhow::Result<std::sync::Arc<CallReport>> {
    let mut question: Option<TerminalQuestion> = None;
    loop {
        // A cell that waits for a line can be stopped, and may print, meanwhile.
        let next = tokio::select! {
            typed = typed(question.as_ref()) => {
                typed?;
                question.take().map_or(Ok(()), TerminalQuestion::answer)?;
                render.resume()?;
                continue;
            }
            next = running.next() => next,
            () = due(render.due()) => {
                render.tick()?;
                continue;
            }
        };
        match next {
            CallUpdate::Event(CallEvent::Input { request, .. }) => {
                render.pause()?;
                question = Some(TerminalQuestion::put(request)?);
            }
            CallUpdate::Event(event) => {
                if let CallEvent::Stopping { .. } = event
                    && question.take().is_some()
                {
                    render.resume()?;
                }
                render.event(&event)?;
            }
            CallUpdate::Finished(report) => {
                if question.take().is_some() {
                    render.resume()?;
                }
                render.end(&report)?;
                return Ok(report);
            }
        }
    }
}

/// Waits until a render wants to draw, if it does.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => pending().await,
    }
}

async fn typed(question: Option<&TerminalQuestion>) -> io::Result<()> {
    match question {
        Some(question) => question.typed().await,
        None => pending().await,
    }
}

/// Stops the call at the first Ctrl-C, or when asked to terminate, from now on, and the program at the second. Ends with what it returns.
fn on_interrupt(stop: CancellationToken) -> anyhow::Result<AbortOnDropHandle<()>> {
    let mut interrupts = signal(SignalKind::interrupt()).context("could not listen for Ctrl-C")?;
    let mut terminations = signal(SignalKind::terminate()).context("could not listen for signals")?;
    Ok(AbortOnDropHandle::new(tokio::spawn(
        async move {
            while let Some(()) = tokio::select! {
                interrupt = interrupts.recv() => interrupt,
                termination = terminations.recv() => termination,
            } {
                if stop.is_cancelled() {
                    asking::show_typing();
                    std::process::exit(CommandExit::Interrupted.code().into());
                }
                stop.cancel();
            }
        }
        .boxed(),
    )))
}

/// Whether the call was stopped before all of its cells had their turn.
fn was_stopped(report: &CallReport) -> bool {
    report.cells.iter().any(|cell| cell.status == CellStatus::NotRun(NotRun::Stopped))
}

fn exit_code(report: &CallReport, kernel: KernelFate) -> CommandExit {
    match report.failed().map(|cell| &cell.status) {
        // A kernel that stays did not exit.
        Some(CellStatus::Error(exception)) if kernel == KernelFate::Ends => {
            PythonExit::of(exception).map_or(CommandExit::Failed, |exit| exit.exit)
        }
        None if report.succeeded() => CommandExit::Done,
        Some(CellStatus::Stopped { reason: StopReason::TimedOut(_), .. }) => CommandExit::TimedOut,
        Some(CellStatus::Stopped { .. }) => CommandExit::Interrupted,
        None if was_stopped(report) => CommandExit::Interrupted,
        _ => CommandExit::Failed,
    }
}
