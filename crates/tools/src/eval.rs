//! `eval`: cells in a live kernel.

use std::path::Path;
use std::sync::Arc;

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::{Comms, KernelChoice, Stdin};
use cellwright_output::Display;
use cellwright_session::{
    Abandoned, Call, CallEvent, CallHandle, CallReport, CallUpdate, CellRequest, JobId, JobState, LetGo,
    Reset, SessionKey, Timeout,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::attention::CallWatch;
use crate::bridge;
use crate::handle::BackgroundHandle;
use crate::kernel::waits;
use crate::notebook::session_of;
use crate::reply::{ReplyPart, ToolFailure, ToolReply};
use crate::report::{self, CallStage, CellNaming};
use crate::timeout::{self, TimeoutRequest};
use crate::toolbox::{BackgroundPolicy, CallContext, ProgressSink, ToolboxState};

/// Cells one call may have.
const MOST: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EvalArguments {
    /// The cell to run
    code: Option<String>,
    /// Several cells instead of `code`; run in order up to the first that fails
    cells: Option<Vec<CellArguments>>,
    /// py (default), an installed Jupyter kernel by language or name, or `existing:FILE` to join a running one (kernel: kernels)
    language: Option<String>,
    /// Short label
    title: Option<String>,
    /// Seconds a cell may take, 1-600 (default 30)
    timeout: Option<f64>,
    /// Folder to run in; each has its own kernel
    cwd: Option<String>,
    /// Start with a fresh kernel
    #[serde(default)]
    reset: bool,
    /// Kernel to use by name, or the .ipynb whose variables to use
    session: Option<String>,
    /// Return at once with a handle; follow it with the kernel tool
    #[serde(default)]
    background: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellArguments {
    code: String,
    language: Option<String>,
    title: Option<String>,
    timeout: Option<f64>,
    #[serde(default)]
    reset: bool,
}

pub(crate) async fn eval(
    shared: &Arc<ToolboxState>,
    arguments: EvalArguments,
    context: &CallContext,
) -> Result<ToolReply, ToolFailure> {
    let is_background = arguments.background;
    if is_background && shared.settings.background == BackgroundPolicy::Nothing && !context.client.is_remote()
    {
        return Err(ToolFailure::new(
            "`background` has no effect here: the kernel ends with this call; name a session that stays with --session, or leave it out",
        ));
    }
    let notebook = match &arguments.session {
        Some(session) if is_notebook(session) => Some(session_of(shared, context, session).await?),
        Some(_) | None => None,
    };
    let follows_client = notebook.is_none() && arguments.cwd.is_none();
    let (mut call, note) = arguments.into_call(shared, context)?;
    if let Some(SessionKey { session, cwd, kernel }) = notebook {
        (call.session, call.cwd, call.kernel) = (session, cwd, kernel);
    }
    let key =
        SessionKey { session: call.session.clone(), cwd: call.cwd.clone(), kernel: call.kernel.clone() };
    let _waits = shared.wait_for(context, &key)?;
    let moved = if follows_client { context.client.left_behind(&call.session).await? } else { None };
    let running = match context.client.sessions().await?.call(call).await {
        Ok(running) => running,
        Err(error) => return Err(context.client.failed(error).await),
    };
    context.let_next_pass(); // it is queued in its session
    let mut reply = if is_background {
        match running.let_go().await {
            LetGo::Background(job) => started(job, &in_background(context, job).await?),
            LetGo::Finished(report) => over(shared, context, &report),
        }
    } else {
        follow(shared, context, running).await?
    };
    reply.content.extend(note.into_iter().chain(moved).map(ReplyPart::Note));
    Ok(reply)
}

/// Whether a session is named by its notebook.
pub(crate) fn is_notebook(session: &str) -> bool {
    Path::new(session).extension().is_some_and(|end| end.eq_ignore_ascii_case("ipynb"))
}

/// Reads a call to its end, or for as long as a call may take before it continues in the background.
async fn follow(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    mut running: CallHandle,
) -> Result<ToolReply, ToolFailure> {
    let mut attention = CallWatch::to(context, shared.patience(context));
    let mut stopping = false;
    loop {
        let next = tokio::select! {
            next = running.next() => next,
            () = context.stop.cancelled(), if !stopping => {
                if context.client.is_remote() && context.left.is_cancelled() {
                    // The session stays for others, and nobody asked to stop its cell.
                    drop(running.let_go().await);
                    return Err(ToolFailure::new("the client has left; the cell runs on"));
                }
                running.stop();
                stopping = true;
                continue;
            }
            () = attention.ends(), if !stopping => {
                if let Some(observer) = context.observer.as_ref().filter(|_| !context.client.is_remote()) {
                    let job = running.release();
                    observer.continues(running);
                    return background(shared, context, job, &CellNaming::Counted).await;
                }
                return match running.let_go().await {
                    LetGo::Background(job) => background(shared, context, job, &CellNaming::Counted).await,
                    LetGo::Finished(report) => Ok(over(shared, context, &report)),
                };
            }
        };
        match next {
            CallUpdate::Finished(report) => return Ok(over(shared, context, &report)),
            CallUpdate::Event(event) => {
                if let Some(observer) = &context.observer {
                    observer.event(event).await;
                } else if let (Some(event), Some(progress)) = (attention.take(event), &context.progress) {
                    show_progress(progress.as_ref(), &event);
                }
            }
        }
    }
}

/// Whether a background call runs, or what it waits for.
async fn in_background(context: &CallContext, job: JobId) -> Result<String, ToolFailure> {
    let sessions = context.client.sessions().await?;
    let is_waiting = sessions.jobs().await?.iter().any(|known| known.id == job && known.is_waiting);
    if is_waiting && let JobState::Waiting { place, .. } = sessions.job(job).await? {
        return Ok(waits(place));
    }
    Ok("runs in the background".to_owned())
}

/// The reply to a call that is over.
fn over(shared: &ToolboxState, context: &CallContext, report: &CallReport) -> ToolReply {
    shared.learn(report);
    report::reply(&shared.settings, context, report, CallStage::Over, &CellNaming::Counted)
}

/// Tells of a call that continues in the background.
pub(crate) async fn background(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    job: JobId,
    naming: &CellNaming<'_>,
) -> Result<ToolReply, ToolFailure> {
    match context.client.sessions().await?.job(job).await? {
        JobState::Waiting { report, place } => {
            let how = format!("{}, and stays in the background", waits(place));
            Ok(goes_on(shared, context, job, &report, naming, &how))
        }
        JobState::Running(report) => {
            Ok(goes_on(shared, context, job, &report, naming, "continues in the background"))
        }
        JobState::Finished(report) => {
            Ok(report::reply(&shared.settings, context, &report, CallStage::Over, naming))
        }
    }
}

/// The result of a call that continues in the background, and how to follow it.
pub(crate) fn goes_on(
    shared: &ToolboxState,
    context: &CallContext,
    job: JobId,
    report: &CallReport,
    naming: &CellNaming<'_>,
    how: &str,
) -> ToolReply {
    let mut reply = report::reply(&shared.settings, context, report, CallStage::Running, naming);
    drop(context.client.shown.news(job, report, &shared.settings.artifacts)); // all of it is
    let ToolReply { content, structured, .. } = started(job, how);
    reply.content.extend(content);
    if let (Some(Value::Object(all)), Some(Value::Object(handle))) = (&mut reply.structured, structured) {
        all.extend(handle);
    }
    reply
}

fn started(job: JobId, how: &str) -> ToolReply {
    let handle = BackgroundHandle::Cells(job);
    ToolReply::text(format!(
        "[{handle} {how}; see what it does with kernel: {{\"action\": \"wait\", \"handle\": \"{handle}\"}}]"
    ))
    .with(serde_json::json!({ "handle": handle.to_string() }))
}

/// Hands on what can be read while the call runs.
pub(crate) fn show_progress(progress: &dyn ProgressSink, event: &CallEvent) {
    if let CallEvent::Queued { behind } = event {
        return progress.text(&format!("[waits for {behind} earlier calls of this session]\n"));
    }
    let CallEvent::Output { change: OutputChange::Added(output), .. } = event else { return };
    match output {
        Output::Text { stream: _, text } => progress.text(text),
        Output::Display { content, .. } | Output::Result { content, .. } => {
            if let Some(text) = Display::from_bundle(&content.data).text {
                progress.text(&text);
            }
        }
        Output::Error(exception) => progress.text(&format!("{}: {}\n", exception.name, exception.message)),
    }
}

impl EvalArguments {
    fn into_call(
        self,
        shared: &Arc<ToolboxState>,
        context: &CallContext,
    ) -> Result<(Call, Option<String>), ToolFailure> {
        let session = context.client.names.session(self.session.as_deref())?;
        let cwd = context.client.workspace().start().join(self.cwd.as_deref().unwrap_or("."));
        let whole = TimeoutRequest { seconds: self.timeout, background: self.background };
        let cells = match (self.code, self.cells) {
            (Some(code), None) => {
                vec![CellArguments { code, language: None, title: self.title, timeout: None, reset: false }]
            }
            (None, Some(cells)) if !cells.is_empty() => cells,
            (None, Some(_)) => return Err(ToolFailure::new("`cells` is empty")),
            (None, None) => return Err(ToolFailure::new("missing parameter `code`")),
            (Some(_), Some(_)) => {
                return Err(ToolFailure::new("give `code` for one cell or `cells` for several, not both"));
            }
        };
        if cells.len() > MOST {
            return Err(ToolFailure::new(format!(
                "{} cells are too many for one call; at most {MOST}",
                cells.len()
            )));
        }
        let chosen = kernel(cells[0].language.as_deref().or(self.language.as_deref()))?;
        let mut note = None;
        let mut requests = Vec::new();
        let total = cells.len();
        for (index, cell) in cells.into_iter().enumerate() {
            if kernel(cell.language.as_deref().or(self.language.as_deref()))? != chosen {
                return Err(ToolFailure::new("the cells of one call share a language; make a call for each"));
            }
            let asked = TimeoutRequest { seconds: cell.timeout.or(whole.seconds), ..whole };
            let (timeout, clamped) = timeout::of(asked, shared.settings.timeout)?;
            note = note.or(clamped);
            let mut request = CellRequest::new(cell.code);
            request.source.title = cell.title;
            request.name = (total > 1).then(|| format!("cell {} of {total}", index + 1));
            request.timeout = timeout.map_or(Timeout::Never, Timeout::After);
            request.reset = if cell.reset || (self.reset && index == 0) { Reset::Yes } else { Reset::No };
            requests.push(request);
        }
        let mut call = Call::new(session, cwd, requests);
        call.kernel = chosen.unwrap_or_else(|| context.client.names.kernel(&shared.settings));
        call.mode = shared.settings.lifetime;
        call.tools = Some(bridge::of(shared, &context.client));
        call.variables = shared.call_variables(&context.client);
        if context.client.is_remote() {
            // A client that dies must not take the work of a session along that others may use.
            call.abandoned = Abandoned::GoOn;
        }
        // Not the token of the request: a call may go on when its request is answered.
        if context.observer.is_some() {
            call.comms = Comms::Forwarded;
        }
        if (context.ask.is_some() || context.observer.is_some()) && !self.background {
            call.stdin = Stdin::Person;
        }
        Ok((call, note))
    }
}

/// The kernel a call asks for by its language; `None` for the usual one.
pub(crate) fn kernel(language: Option<&str>) -> Result<Option<KernelChoice>, ToolFailure> {
    /// Longer than any name of a kernel or path of a connection file.
    const LONGEST: usize = 4096;
    if language.is_some_and(|language| language.len() > LONGEST) {
        return Err(ToolFailure::new(format!(
            "`language` is longer than {LONGEST} bytes; it names a language or a kernel"
        )));
    }
    match language {
        None | Some("py" | "python" | "python3" | "ipython") => Ok(None),
        Some(other) => Ok(Some(other.parse()?)),
    }
}
