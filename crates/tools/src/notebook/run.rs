//! Running cells of a notebook, with their outputs written back.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use cellwright_editing::ChangeOptions;
use cellwright_notebook::CellRef;
use cellwright_notebook::file;
use cellwright_notebook::select::CellSelection;
use cellwright_run::{
    CodeSelection, ErrorPolicy, FinishedRun, MeanwhileChange, NotebookHome, NotebookRun, PlanError, RunDraft,
    RunNote, RunRequest, RunUpdate,
};
use cellwright_session::{JobId, OutputSettings, Reset, SessionKey, Timeout};
use serde_json::json;

use super::background::{BackgroundRun, new_reply};
use super::page_run;
use crate::attention::CallWatch;
use crate::bridge;
use crate::client::ToolClient;
use crate::displays::ReplyDisplays;
use crate::eval::show_progress;
use crate::handle::BackgroundHandle;
use crate::kernel::not_repeated;
use crate::reply::{ToolFailure, ToolReply};
use crate::report::{CallStage, CellNaming};
use crate::toolbox::{BackgroundPolicy, CallContext, ToolboxState, blocking};
use crate::workspace::ResolvedPath;

/// Cells a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CellChoice {
    Some(CodeSelection),
    /// Those that are out of date.
    Stale,
}

impl CellChoice {
    /// `3`, `2,5-7`, `5-`, `id:abc`, `id:abc-`, `"A heading"`, `all`, `stale`
    pub(super) fn parse(text: &str) -> Result<Self, <CellSelection as FromStr>::Err> {
        match text.trim() {
            "all" | "" => Ok(Self::Some(CodeSelection::All)),
            "stale" => Ok(Self::Stale),
            text => {
                match text.strip_suffix('-').filter(|first| first.starts_with("id:") && !first.contains(','))
                {
                    Some(first) => first.parse().map(|cell| Self::Some(CodeSelection::From(cell))),
                    None => text.parse().map(|cells| Self::Some(CodeSelection::Cells(cells))),
                }
            }
        }
    }
}

/// How to run them.
#[derive(Debug)]
pub(super) struct NotebookRunOptions {
    pub(super) timeout: Option<Duration>,
    pub(super) allow_errors: bool,
    pub(super) reset: bool,
    pub(super) background: bool,
    /// What the caller vouches for itself.
    pub(super) options: ChangeOptions,
}

pub(super) async fn run(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    place: &ResolvedPath,
    wanted: CellChoice,
    how: NotebookRunOptions,
) -> Result<ToolReply, ToolFailure> {
    if let Some(page) = page_run::page(shared, place).await? {
        return page_run::run(shared, context, place, page, wanted, how).await;
    }
    if how.background && shared.settings.background == BackgroundPolicy::Nothing {
        return Err(ToolFailure::new(
            "`background` has no effect here: the run ends with this call; leave it out, and the call waits for the end",
        ));
    }
    if how.background && context.client.is_remote() {
        return Err(ToolFailure::new(
            "a notebook of a shared session cannot run in the background: nobody would keep its outputs",
        ));
    }
    let _waits = match &context.cell {
        Some(_) => shared.wait_for(context, &session_of(shared, context, &place.named).await?)?,
        None => None,
    };
    let mut request = RunRequest::new(&place.path);
    request.timeout = how.timeout.map_or(Timeout::Never, Timeout::After);
    request.errors = if how.allow_errors { ErrorPolicy::Allow } else { ErrorPolicy::Stop };
    request.report = report_settings(shared);
    request.save = shared.settings.save.clone();
    request.history.clone_from(&shared.settings.history);
    request.force = how.options.force;
    request.reset = if how.reset { Reset::Yes } else { Reset::No };
    // A cell named by its number may be another one by now.
    let named = match &wanted {
        CellChoice::Some(CodeSelection::Cells(cells)) => cells.clone(),
        CellChoice::Some(CodeSelection::From(cell)) => CellSelection::one(cell.clone()),
        CellChoice::Some(CodeSelection::All) | CellChoice::Stale => CellSelection::default(),
    };
    match wanted {
        CellChoice::Some(cells) => request.cells = cells,
        CellChoice::Stale => match first_stale(shared, context, place).await? {
            Some(index) => request.cells = CodeSelection::From(CellRef::Index(index)),
            None => return Ok(ToolReply::text("no cell is out of date, so none was run")),
        },
    }
    let (shared_here, caller, at) = (Arc::clone(shared), context.clone(), place.clone());
    let plan = blocking(move || {
        let about = |error| match error {
            PlanError::File(error) => error.called(&at.named).into(),
            other => ToolFailure::from(other).about(&at.named),
        };
        let draft = RunDraft::of(request).map_err(about)?;
        let (editor, file) = (shared_here.settings.editor(&caller), at.file_name());
        editor.check_run(&file, draft.notebook(), &named, &how.options)?;
        draft.write().map_err(about)
    })
    .await?;
    if plan.cells().is_empty() {
        return Ok(ToolReply::text("there is no code to run in those cells"));
    }
    let key = key(shared, &context.client, plan.home())?;
    let plan = plan.with_displays(shared.history().displays(&key));
    let mut call = plan.call(key.session, &key.kernel);
    call.kernel = key.kernel;
    call.mode = shared.settings.lifetime;
    call.tools = Some(bridge::of(shared, &context.client));
    call.variables = shared.call_variables(&context.client);
    if context.ask.is_some() && !how.background {
        call.stdin = cellwright_kernel::Stdin::Person;
    }
    let sessions = context.client.sessions().await?;
    match plan.start(&sessions, call).await {
        Ok(run) => {
            context.let_next_pass(); // it is queued in its session
            follow(shared, context, place, ActiveRun(run), how.background).await
        }
        Err(error) => Err(context.client.failed(error).await),
    }
}

/// The session of a notebook, as the client's settings have it.
pub(crate) fn key(
    shared: &ToolboxState,
    client: &ToolClient,
    home: &NotebookHome,
) -> Result<SessionKey, ToolFailure> {
    Ok(SessionKey {
        session: client.names.session(Some(&home.session))?,
        cwd: home.cwd.clone(),
        kernel: home.kernel_or(&shared.settings.kernel),
    })
}

/// The session of the notebook a call names as its session.
pub(crate) async fn session_of(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    named: &str,
) -> Result<SessionKey, ToolFailure> {
    let place = context.client.workspace().file(named)?;
    let home = blocking(move || {
        let notebook = file::read(&place.path).map_err(|error| error.called(&place.named))?;
        Ok(cellwright_run::home(&place.path, &notebook))
    });
    key(shared, &context.client, &home.await?)
}

async fn first_stale(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    place: &ResolvedPath,
) -> Result<Option<usize>, ToolFailure> {
    let at = place.clone();
    let notebook = blocking(move || file::read(&at.path).map_err(|error| error.called(&at.named).into()));
    let notebook = notebook.await?;
    let key = key(shared, &context.client, &cellwright_run::home(&place.path, &notebook))?;
    let sessions = context.client.sessions().await?.sessions().await?;
    let kernel = sessions.into_iter().find(|session| session.key == key).and_then(|session| session.kernel);
    Ok(shared.history().first_stale(&key, kernel.as_ref(), &notebook))
}

/// Reads a run to its end, or for as long as a call may take before it continues in the background.
async fn follow(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    place: &ResolvedPath,
    mut active: ActiveRun,
    at_once: bool,
) -> Result<ToolReply, ToolFailure> {
    let limit = if at_once { Some(Duration::ZERO) } else { shared.patience(context) };
    // What goes on in a daemon says nothing more to us, and would not be recorded.
    let mut attention = CallWatch::to(context, limit.filter(|_| !context.client.is_remote()));
    let mut stopping = false;
    loop {
        let next = tokio::select! {
            next = active.0.next_event() => next,
            () = context.stop.cancelled(), if !stopping => {
                active.0.stop();
                stopping = true;
                continue;
            }
            () = attention.ends(), if !stopping => {
                return BackgroundRun::start(shared, place, active).started(shared, context).await;
            }
        };
        match next {
            RunUpdate::Event(event) => {
                if let (Some(event), Some(progress)) = (attention.take(event), &context.progress) {
                    show_progress(progress.as_ref(), &event);
                }
            }
            RunUpdate::Changed { .. } | RunUpdate::Saved(_) | RunUpdate::NotSaved(_) => {} // the end reports it
            RunUpdate::Finished => {
                let finished = active.finish(shared).await;
                return Ok(reply(shared, context, place, &finished, None));
            }
        }
    }
}

/// A run whose end its client's tools learn from.
pub(super) struct ActiveRun(pub(super) NotebookRun);

impl ActiveRun {
    /// Waits for its end and learns from it.
    pub(super) async fn finish(self, shared: &ToolboxState) -> FinishedRun {
        let finished = self.0.finish().await;
        shared.learn(&finished.report);
        shared.history().note(&finished);
        finished
    }
}

/// What replies hold of outputs.
fn report_settings(shared: &ToolboxState) -> OutputSettings {
    OutputSettings {
        limits: shared.settings.limits,
        artifacts: Some(shared.settings.artifacts.clone()),
        ..OutputSettings::default()
    }
}

fn is_saved(FinishedRun { kept, .. }: &FinishedRun) -> bool {
    kept.side.is_none() && kept.failed.is_none()
}

/// The result of a finished run. For a run in the background, only what is new.
pub(super) fn reply(
    shared: &ToolboxState,
    context: &CallContext,
    place: &ResolvedPath,
    finished: &FinishedRun,
    job: Option<JobId>,
) -> ToolReply {
    let mut reply = outcome(shared, context, finished, job);
    reply.is_error |= !is_saved(finished);
    if let Some(structured) = &mut reply.structured {
        structured["path"] = json!(place.named);
        structured["saved"] = is_saved(finished).into();
    }
    reply
}

/// What the notebook now holds of the cells that ran, and other facts.
fn outcome(
    shared: &ToolboxState,
    context: &CallContext,
    finished: &FinishedRun,
    job: Option<JobId>,
) -> ToolReply {
    let FinishedRun { cells, changes, report, kept, elsewhere, .. } = finished;
    let naming = CellNaming::Notebook(cells);
    let (mut reply, has_earlier) = new_reply(shared, context, job, report, CallStage::Over, &naming);
    if let (Some(job), true) = (job, has_earlier) {
        reply.note(not_repeated(BackgroundHandle::Cells(job)));
    }
    if let Some(updated) = elsewhere.collected(&report_settings(shared)) {
        let cells: Vec<_> = elsewhere.cells().into_iter().map(|cell| format!("cell {cell}")).collect();
        let place = if cells.is_empty() { "no cell of the notebook".to_owned() } else { cells.join(", ") };
        reply.note(format!("[displays that were updated in {place}]\n{}", updated.text.text));
        let mut displays = ReplyDisplays::default();
        displays.show(&shared.settings, &updated, &mut reply);
        displays.finish(&shared.settings, &mut reply);
    }
    for (at, change) in changes {
        let how = match change {
            MeanwhileChange::Edited(_) => "edited before its turn: what it says now was run",
            MeanwhileChange::Removed => "removed before its turn, and was not run",
        };
        reply.note(format!("[cell {} was {how}]", cells[*at].index));
    }
    if let Some(side) = &kept.side {
        let path = side.path.display();
        reply.note(format!("[{}; the notebook was left alone, the outputs are in {path}]", side.why));
    }
    if kept.in_place {
        reply.note(
            "[the notebook was written in place: where it is, it cannot be replaced by a renamed file]",
        );
    }
    if let Some(error) = &kept.failed {
        reply.note(format!("[the outputs could not be saved: {}]", ToolFailure::from(error)));
    }
    if kept.side.is_none() && kept.failed.is_none() && kept.merged > 0 {
        let replaces = kept.notes.iter().any(|note| matches!(note, RunNote::ReplacedOutputs { .. }));
        let what = if replaces { "their other changes" } else { "their changes" };
        reply.note(format!("[others changed the notebook meanwhile; {what} and the outputs are both in it]"));
    }
    for note in &kept.notes {
        reply.note(format!("[{note}]"));
    }
    reply
}
