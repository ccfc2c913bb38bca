//! `cellwright run notebook.ipynb`

mod check;
mod options;
mod record;
mod report;
mod show;
mod yaml;

pub(crate) use self::yaml::json_mapping as yaml_mapping;

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use cellwright_editing::{ChangeOptions, FileName};
use cellwright_kernel::{Comms, KernelChoice, StopReason};
use cellwright_notebook::file::FileError;
use cellwright_notebook::select::CellSelection;
use cellwright_run::{
    CodeSelection, ErrorPolicy, FinishedRun, NotebookHome, PlanError, RunDraft, RunRequest, RunUpdate,
};
use cellwright_session::{
    Call, CallEvent, CallUpdate, CellStatus, Force, KernelFate, Reset, SessionClient, SessionId, Sessions,
    Timeout,
};
use futures_util::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::check::OutputCheck;
pub(crate) use self::options::NotebookRunFlags;
use self::report::ReportFolder;
pub(super) use self::show::DrawnRun;
use self::show::{BoardSeat, RunBoard, RunDisplay, RunStyle, RunVerbosity};
use super::{due, on_interrupt, was_stopped};
use crate::commands::CallerArguments;
use crate::config::LoadedConfig;
use crate::draw::look::DrawPlace;
use crate::exit::{CommandExit, of_error, one_line};
use crate::host::{self, ClientSurroundings};
use crate::trusting;

/// Notebooks to run, and how.
pub(super) struct NotebookRuns {
    pub(super) paths: Vec<PathBuf>,
    pub(super) options: NotebookRunFlags,
    pub(super) timeout: Timeout,
    pub(super) kernel: Option<KernelChoice>,
    pub(super) session: Option<SessionId>,
    pub(super) reset: Reset,
    /// Run cells also if they are not those that the caller has read.
    pub(super) force: bool,
    pub(super) json: bool,
    pub(super) drawing: DrawnRun,
    /// The run outlives its terminal, where others are to find it.
    pub(super) detached: bool,
}

/// What the runs have in common.
struct RunContext {
    client: SessionClient,
    /// The kernel for notebooks that name none, or for all of them.
    usual: KernelChoice,
    chosen: Option<KernelChoice>,
    session: Option<SessionId>,
    surroundings: Option<ClientSurroundings>,
    style: RunStyle,
    /// Where several are drawn.
    board: Option<Arc<Mutex<RunBoard>>>,
    record: bool,
    check: Option<OutputCheck>,
    report: Option<ReportFolder>,
    /// What the caller vouches for itself.
    vouched: ChangeOptions,
    stop: CancellationToken,
}

impl NotebookRuns {
    pub(super) async fn run(self) -> anyhow::Result<CommandExit> {
        let folder = std::env::current_dir().context("the current folder is gone")?;
        let config = LoadedConfig::load(&folder, Vec::new())?;
        let config = if self.json { config } else { trusting::settled(config, &folder)? };
        let stop = CancellationToken::new();
        let _interrupts = on_interrupt(stop.clone())?;
        let requests = self.requests(&config)?;
        if let Some(path) = &self.options.junit {
            // Better to know it before the run.
            let report = OpenOptions::new().append(true).create(true).open(path);
            report.with_context(|| format!("could not write {}", path.display()))?;
        }
        let report = self
            .options
            .report
            .as_deref()
            .map(|folder| ReportFolder::make(folder, &self.paths))
            .transpose()?;
        let sanitize = self.options.sanitize.as_deref();
        let check = self.options.check.map(|mode| OutputCheck::new(mode, sanitize)).transpose()?;
        let usual = config.settings.kernel.default.parse().context("kernel.default")?;
        let several = requests.len() > 1;
        let jobs = self.options.jobs.unwrap_or(1).max(1);
        let verbosity = match (self.json, self.options.quiet) {
            (true, _) => RunVerbosity::Json,
            (false, true) => RunVerbosity::Failures,
            (false, false) => RunVerbosity::Lines,
        };
        let is_shared = self.session.is_some() || self.detached || config.settings.session.shared;
        let kernel = if is_shared { KernelFate::Stays } else { KernelFate::Ends };
        let is_drawn =
            verbosity == RunVerbosity::Lines && DrawPlace::of_this_process() == DrawPlace::Terminal;
        let drawing = is_drawn.then_some(self.drawing);
        let style = RunStyle { verbosity, several, live: jobs == 1 || !several, kernel, drawing };
        let board =
            drawing.filter(|_| several).map(|drawing| RunBoard::new(drawing.look.pen(), requests.len()));
        let mut here = None;
        let (client, surroundings) = if is_shared {
            let surroundings = ClientSurroundings::of(&config, Path::new("."), self.session.as_ref())?;
            (host::daemon_client(&config).await?, Some(surroundings))
        } else {
            let mut settings = host::session_settings(&config, Path::new("."));
            settings.limits.sessions = settings.limits.sessions.max(jobs + 1);
            let sessions = Sessions::new(settings);
            let client = sessions.client();
            here = Some(sessions);
            (client, None)
        };
        let (chosen, session) = (self.kernel, self.session);
        let record = self.options.record;
        let vouched = ChangeOptions {
            expect: self.options.expect,
            force: self.force || check.is_some(),
            ..ChangeOptions::default()
        };
        let common = Arc::new(RunContext {
            client,
            usual,
            chosen,
            session,
            surroundings,
            style,
            board: board.clone(),
            record,
            check,
            report,
            vouched,
            stop,
        });
        let turns = Arc::new(Semaphore::new(jobs));
        let mut runs = JoinSet::new();
        for (place, request) in requests.into_iter().enumerate() {
            let common = Arc::clone(&common);
            // The last kernel ends with us, and nobody has to wait for it.
            let is_last = !several;
            // Taken here, so that they start in the order they were given: one may need what another leaves.
            let turn = Arc::clone(&turns).acquire_owned().await.expect("it is never closed");
            runs.spawn(
                async move {
                    let ran = run_one(&common, request, place, is_last).await;
                    drop(turn);
                    (place, ran)
                }
                .boxed(),
            );
        }
        let mut suites = Vec::new();
        let mut exit = CommandExit::Done;
        while let Some(ended) = runs.join_next().await {
            let (place, (this, suite)) = ended?;
            exit = worse(exit, this);
            suites.push((place, suite));
        }
        suites.sort_by_key(|(place, _)| *place);
        if let Some(board) = board {
            RunBoard::close(&board)?;
        }
        let suites: Vec<_> = suites.into_iter().map(|(_, suite)| suite).collect();
        if let Some(report) = &common.report {
            report.index(&suites)?;
        }
        if let Some(path) = &self.options.junit {
            std::fs::write(path, show::junit(&suites))
                .with_context(|| format!("could not write {}", path.display()))?;
        }
        if let Some(sessions) = here {
            // What the kernels have open is written out when they end by themselves.
            sessions.shutdown().await;
        }
        Ok(exit)
    }

    fn requests(&self, config: &LoadedConfig) -> anyhow::Result<Vec<RunRequest>> {
        let parameters = self.options.parameters()?;
        let cells = match (&self.options.cells, &self.options.from) {
            (Some(cells), _) => CodeSelection::Cells(cells.clone()),
            (None, Some(from)) => CodeSelection::From(from.clone()),
            (None, None) => CodeSelection::All,
        };
        anyhow::ensure!(
            self.options.output.is_none() || self.paths.len() == 1,
            "--output takes one notebook; {} were given",
            self.paths.len()
        );
        self.ensure_different()?;
        let requests = self.paths.iter().map(|path| RunRequest {
            output: self.options.output.clone(),
            cells: cells.clone(),
            parameters: parameters.clone(),
            errors: if self.options.allow_errors { ErrorPolicy::Allow } else { ErrorPolicy::Stop },
            timeout: self.timeout,
            reset: self.reset,
            timing: !self.options.no_timing,
            report: host::report_settings(config),
            save: config.places.save_settings(),
            history: Some(config.places.history()),
            force: self.force,
            ..RunRequest::new(path)
        });
        Ok(requests.collect())
    }

    /// Runs of one notebook would write over each other's outputs, and share a kernel.
    fn ensure_different(&self) -> anyhow::Result<()> {
        let mut given: HashMap<PathBuf, &Path> = HashMap::new();
        for path in &self.paths {
            // A missing one is reported when its turn comes.
            let Ok(real) = path.canonicalize() else { continue };
            if let Some(earlier) = given.insert(real, path) {
                anyhow::bail!("{} is the same notebook as {}", path.display(), earlier.display());
            }
        }
        Ok(())
    }
}

impl RunContext {
    fn kernel(&self, home: &NotebookHome) -> KernelChoice {
        self.chosen.clone().unwrap_or_else(|| home.kernel_or(&self.usual))
    }

    /// Starts the kernel before the notebook is touched, so a failed start changes nothing. Returns the events to replay;
    /// `None` if it was interrupted.
    async fn begin(
        &self,
        session: &SessionId,
        kernel: &KernelChoice,
        home: &NotebookHome,
        reset: Reset,
        show: &mut RunDisplay,
    ) -> anyhow::Result<Option<Vec<CallEvent>>> {
        let mut call = Call::ensure_kernel(session.clone(), &home.cwd, kernel.clone(), reset);
        if let Some(surroundings) = &self.surroundings {
            surroundings.equip(&mut call);
        }
        call.stop = self.stop.child_token();
        let mut running = self.client.call(call).await?;
        let mut events = Vec::new();
        let report = loop {
            match running.next().await {
                CallUpdate::Event(event @ CallEvent::Queued { .. }) => show.event(&event)?,
                CallUpdate::Event(
                    event @ (CallEvent::KernelStarted(_)
                    | CallEvent::LateBefore(_)
                    | CallEvent::Late(_)
                    | CallEvent::Notice(_)),
                ) => events.push(event),
                // The cell's own, which says nothing.
                CallUpdate::Event(_) => {}
                CallUpdate::Finished(report) => break report,
            }
        };
        match &report.error {
            _ if self.stop.is_cancelled() => Ok(None),
            Some(error) => Err(error.clone().into()),
            None => Ok(Some(events)),
        }
    }
}

/// Runs one notebook and reports it.
async fn run_one(
    common: &RunContext,
    request: RunRequest,
    place: usize,
    is_last: bool,
) -> (CommandExit, show::TestSuite) {
    let seat = common.board.as_ref().map(|board| BoardSeat::take(board, &request.path.display().to_string()));
    let mut show = RunDisplay::new(&request, common.style, seat);
    let exit = match follow(common, request, place, is_last, &mut show).await {
        Ok(exit) => exit,
        Err(error) => {
            let message = show.advised(one_line(error.as_ref()));
            show.failed(&message);
            of_error(&error)
        }
    };
    (exit, show.into_suite())
}

fn not_run(show: &mut RunDisplay) -> CommandExit {
    show.failed("not run: interrupted before its turn");
    CommandExit::Interrupted
}

async fn follow(
    common: &RunContext,
    mut request: RunRequest,
    place: usize,
    is_last: bool,
    show: &mut RunDisplay,
) -> anyhow::Result<CommandExit> {
    if common.stop.is_cancelled() {
        return Ok(not_run(show));
    }
    let check = common.check.as_ref().map(|check| check.prepare(&mut request)).transpose()?;
    let (parameters, reset) = (request.parameters.clone(), request.reset);
    let (path, vouched) = (request.path.clone(), common.vouched);
    let caller = CallerArguments::of_session(common.session.clone());
    let draft = tokio::task::spawn_blocking(move || checked(request, &vouched, &caller)).await??;
    let kernel = common.kernel(draft.home());
    let is_python = draft.notebook().language().is_some_and(|language| language.to_lowercase() == "python");
    show.advise(
        (is_python && common.chosen.is_none())
            .then_some("it is Python: `--kernel runner` runs it all the same"),
    );
    let session = match &common.session {
        Some(session) => session.clone(),
        None => draft.home().session.parse()?,
    };
    let mut begun = None;
    if draft.changes_files() {
        let Some(events) = common.begin(&session, &kernel, draft.home(), reset, show).await? else {
            return Ok(not_run(show));
        };
        begun = Some(events);
    }
    let plan = tokio::task::spawn_blocking(move || draft.write().map_err(explained)).await??;
    show.plan(&plan)?;
    begun.iter().flatten().try_for_each(|events| show.event(events))?;
    if plan.cells().is_empty() {
        show.end_without_cells(plan.notes())?;
        return Ok(CommandExit::Done);
    }
    let mut call = plan.call(session, &common.usual);
    if begun.is_some() {
        call.cells.iter_mut().for_each(|cell| cell.reset = Reset::No); // it was done
    }
    call.kernel = kernel;
    if let Some(surroundings) = &common.surroundings {
        surroundings.equip(&mut call);
    }
    call.stop = common.stop.child_token();
    if common.style.verbosity == RunVerbosity::Json {
        call.comms = Comms::Forwarded;
    }
    let mut run = plan.start(&common.client, call).await?;
    // People see that time passes.
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    loop {
        let next = tokio::select! {
            next = run.next_event() => next,
            _ = clock.tick() => {
                show.tick()?;
                continue;
            }
            () = due(show.due()) => {
                show.tick()?;
                continue;
            }
        };
        match next {
            RunUpdate::Event(event) => show.event(&event)?,
            RunUpdate::Changed { cell, change } => show.changed(cell, &change)?,
            RunUpdate::Saved(cells) => show.saved(&cells)?,
            RunUpdate::NotSaved(why) => show.not_saved(&why)?,
            RunUpdate::Finished => break,
        }
    }
    let finished = run.finish().await;
    let unrecorded = if common.record {
        record::keep(&common.client, &finished, &parameters).await.err().map(|error| one_line(error.as_ref()))
    } else {
        None
    };
    let written = check::written(&finished.kept);
    let mut differences = CommandExit::Done;
    if let Some(check) = &check {
        let found = check.differences(&written, &finished.report, &show.indices())?;
        if !found.is_empty() {
            differences = CommandExit::Failed;
        }
        show.checked(found);
    }
    show.end(&finished, unrecorded.as_deref())?;
    if let Some(report) = &common.report {
        report.page(place, &path, &written, show.suite())?;
        show.suite().has_page = true;
    }
    // A session of the daemon may have been there before us.
    if !is_last && common.style.kernel == KernelFate::Ends {
        // Gone is what it should be.
        drop(common.client.end(&finished.report.key, Force::Yes).await);
    }
    let recorded = if unrecorded.is_some() { CommandExit::Failed } else { CommandExit::Done };
    Ok(worse(worse(exit(&finished), recorded), differences))
}

/// The run as planned, if its cells are those that the caller was shown. Blocks on files.
fn checked(
    request: RunRequest,
    vouched: &ChangeOptions,
    caller: &CallerArguments,
) -> anyhow::Result<RunDraft> {
    let file = FileName::of(&request.path);
    let cells = match &request.cells {
        CodeSelection::Cells(cells) => cells.clone(),
        CodeSelection::From(cell) => CellSelection::one(cell.clone()),
        CodeSelection::All => CellSelection::default(),
    };
    let draft = RunDraft::of(request).map_err(explained)?;
    caller.with_editor(|editor| editor.check_run(&file, draft.notebook(), &cells, vouched))?;
    Ok(draft)
}

/// With what helps.
fn explained(error: PlanError) -> anyhow::Error {
    let is_refused = matches!(&error, PlanError::File(FileError::Io { source, .. })
        if source.kind() == io::ErrorKind::PermissionDenied);
    let error = anyhow::Error::from(error);
    if is_refused {
        return error.context("the outputs need a file that can be written, this one or that of --output");
    }
    error
}

fn exit(FinishedRun { report, kept, .. }: &FinishedRun) -> CommandExit {
    match report.failed().map(|cell| &cell.status) {
        Some(CellStatus::Stopped { reason: StopReason::TimedOut(_), .. }) => CommandExit::TimedOut,
        Some(CellStatus::Stopped { .. }) => CommandExit::Interrupted,
        Some(_) => CommandExit::Failed,
        None if was_stopped(report) => CommandExit::Interrupted,
        None if !report.succeeded() || kept.failed.is_some() => CommandExit::Failed,
        None if kept.side.is_some() => CommandExit::Changed,
        None => CommandExit::Done,
    }
}

/// The worse of two ends, which is reported: being interrupted explains everything else, a failure more than a timeout.
fn worse(one: CommandExit, other: CommandExit) -> CommandExit {
    let weight = |exit: CommandExit| match exit {
        CommandExit::Done => 0,
        CommandExit::Changed => 1,
        CommandExit::TimedOut => 2,
        CommandExit::Failed | CommandExit::Misused | CommandExit::Asked(_) => 3,
        CommandExit::Interrupted => 4,
    };
    if weight(other) > weight(one) { other } else { one }
}
