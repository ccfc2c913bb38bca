//! `kernel`: looking after sessions and background work.

mod naming;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use cellwright_jupyter::{JupyterEnvironment, KernelSpec, PythonPrefix};
use cellwright_kernel::ExistingKernel;
use cellwright_kernel::environment::EnvVars;
use cellwright_kernel::runner::ExaminedPython;
use cellwright_session::{
    Activity, Force, JobInfo, JobState, JobStop, KernelFate, QueuePlace, SessionError, SessionInfo,
    duration_words,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::naming::{SessionReference, find};
use crate::bash;
use crate::client::ToolClient;
use crate::handle::BackgroundHandle;
use crate::reply::{ToolFailure, ToolReply};
use crate::report::{self, CallStage, CellNaming};
use crate::shell::{CommandPhase, CommandStop, ShellCommand};
use crate::timeout::{self, TimeoutRequest};
use crate::toolbox::{BackgroundPolicy, CallContext, ToolboxState, blocking};

/// How long background work may take to stop before it is reported to be stopping.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// Variables listed.
const VARIABLES: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct KernelArguments {
    action: KernelAction,
    /// As in eval: a name, or a .ipynb; default: the session of eval calls that name none
    session: Option<String>,
    /// As in eval, if the session runs in another folder
    cwd: Option<String>,
    /// As in eval, if the session has kernels of several languages
    language: Option<String>,
    /// wait, output, interrupt: background work such as py-3 or sh-3
    handle: Option<String>,
    /// wait: seconds (default 30)
    timeout: Option<f64>,
    /// restart, shutdown: even if others use the session
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum KernelAction {
    List,
    Status,
    Interrupt,
    Restart,
    Shutdown,
    Wait,
    Output,
    Kernels,
}

pub(crate) async fn kernel(
    shared: &Arc<ToolboxState>,
    arguments: KernelArguments,
    context: &CallContext,
) -> Result<ToolReply, ToolFailure> {
    let client = &context.client;
    let handle = arguments.handle.as_deref().map(str::parse::<BackgroundHandle>).transpose()?;
    let force = if arguments.force { Force::Yes } else { Force::No };
    match arguments.action {
        // They change nothing that a later call could depend on, and may take long.
        KernelAction::List
        | KernelAction::Status
        | KernelAction::Wait
        | KernelAction::Output
        | KernelAction::Kernels => context.let_next_pass(),
        KernelAction::Interrupt | KernelAction::Restart | KernelAction::Shutdown => {}
    }
    match (arguments.action, handle) {
        (KernelAction::List, _) => list(client).await,
        (KernelAction::Kernels, _) => kernels(shared, client).await,
        (KernelAction::Status, _) => {
            status(client, &find(shared, context, arguments.reference()).await?).await
        }
        (KernelAction::Interrupt, Some(handle)) => interrupt_work(client, handle).await,
        (KernelAction::Interrupt, None) => {
            let session = find(shared, context, arguments.reference()).await?;
            let result = client.sessions().await?.interrupt(&session.key).await?;
            Ok(ToolReply::text(result.in_words(client.names.shown(&session.key))))
        }
        (KernelAction::Restart, _) => {
            let session = find(shared, context, arguments.reference()).await?;
            client.sessions().await?.restart(&session.key, force).await?;
            Ok(ToolReply::text(format!(
                "session {} has a fresh kernel; its variables are gone",
                client.names.shown(&session.key)
            )))
        }
        (KernelAction::Shutdown, _) => {
            let session = find(shared, context, arguments.reference()).await?;
            client.sessions().await?.end(&session.key, force).await?;
            Ok(ToolReply::text(format!(
                "session {} is ended; its variables are gone",
                client.names.shown(&session.key)
            )))
        }
        (KernelAction::Wait, Some(_)) if arguments.timeout.is_some_and(|seconds| seconds <= 0.0) => {
            Err(ToolFailure::new(
                "`timeout` must be 1 to 600 seconds; `output` shows what there is without waiting",
            ))
        }
        (KernelAction::Wait, Some(handle)) => {
            let (limit, _) = timeout::of(
                TimeoutRequest { seconds: arguments.timeout, background: false },
                Some(Duration::from_secs(30)),
            )?;
            let limit = limit.unwrap_or_default();
            // A reply comes before the client gives up waiting for it.
            let limit = context.room.patience.map_or(limit, |patience| patience.min(limit));
            work(shared, context, handle, Some(limit)).await
        }
        (KernelAction::Output, Some(handle)) => work(shared, context, handle, None).await,
        (KernelAction::Wait | KernelAction::Output, None) => {
            Err(ToolFailure::new("this needs `handle`, as a background call returned it; list shows them"))
        }
    }
}

impl KernelArguments {
    fn reference(&self) -> SessionReference<'_> {
        SessionReference {
            session: self.session.as_deref(),
            cwd: self.cwd.as_deref(),
            language: self.language.as_deref(),
        }
    }
}

async fn list(client: &ToolClient) -> Result<ToolReply, ToolFailure> {
    let mut sessions = client.sessions().await?.sessions().await?;
    sessions.retain(|session| client.names.has(&session.key));
    let mut jobs = client.sessions().await?.jobs().await?;
    jobs.retain(|job| client.names.has(&job.key));
    let shells = client.shells.list();
    let mut lines: Vec<_> = sessions.iter().map(|session| session_line(client, session)).collect();
    lines.extend(jobs.iter().map(|job| job_line(client, job)));
    lines.extend(shells.iter().map(|shell| shell_line(shell)));
    if lines.is_empty() {
        lines.push("no sessions and no background work".to_owned());
    }
    Ok(ToolReply::text(lines.join("\n")).with(json!({
        "sessions": sessions.iter().map(|session| session_json(client, session)).collect::<Vec<_>>(),
        "jobs": jobs.iter().map(|job| json!({
            "handle": BackgroundHandle::Cells(job.id).to_string(), "session": client.names.shown(&job.key), "title": job.title,
            "duration": job.duration.as_secs_f64(), "finished": job.finished.is_some(), "ok": job.finished,
        })).chain(shells.iter().map(|shell| json!({
            "handle": BackgroundHandle::Shell(shell.number).to_string(), "title": shell.title,
            "duration": shell.began.elapsed().as_secs_f64(), "finished": shell.is_over(),
        }))).collect::<Vec<_>>(),
    })))
}

fn session_line(client: &ToolClient, session: &SessionInfo) -> String {
    let mut line = format!(
        "session {} in {}: {}",
        client.names.shown(&session.key),
        session.key.cwd.display(),
        activity(session.activity)
    );
    let mut add = |part: String| write!(line, ", {part}").expect("a String takes everything");
    match &session.kernel {
        Some(kernel) => add(kernel.to_string()),
        None => add("no kernel".to_owned()),
    }
    if let Some(memory) = session.memory {
        add(format!("{} MB", memory >> 20));
    }
    if let Some(uptime) = session.uptime {
        add(format!("up {}", duration_words(uptime)));
    }
    line
}

fn job_line(client: &ToolClient, job: &JobInfo) -> String {
    let state = match job.finished {
        None if job.is_waiting => "waiting",
        None => "running",
        Some(true) => "finished",
        Some(false) => "failed",
    };
    format!(
        "{} in session {}: {state}, {}: {}",
        BackgroundHandle::Cells(job.id),
        client.names.shown(&job.key),
        duration_words(job.duration),
        job.title
    )
}

fn shell_line(shell: &ShellCommand) -> String {
    let state = match shell.phase() {
        CommandPhase::Running => "running",
        CommandPhase::Left(_) => "over, has left processes running",
        CommandPhase::Over(_) => "finished",
    };
    format!(
        "{}: {state}, started {} ago: {}",
        BackgroundHandle::Shell(shell.number),
        duration_words(shell.began.elapsed()),
        shell.title
    )
}

fn activity(activity: Activity) -> String {
    match activity {
        Activity::Idle => "idle".to_owned(),
        Activity::Busy { waiting: 0 } => "busy".to_owned(),
        Activity::Busy { waiting: 1 } => "busy, another call waits".to_owned(),
        Activity::Busy { waiting } => format!("busy, {waiting} more calls wait"),
    }
}

fn session_json(client: &ToolClient, session: &SessionInfo) -> Value {
    json!({
        "session": client.names.shown(&session.key),
        "cwd": session.key.cwd,
        "busy": session.activity != Activity::Idle,
        "language": session.kernel.as_ref().map(|kernel| &kernel.language),
        "program": session.kernel.as_ref().and_then(|kernel| kernel.program.as_ref()),
        "pid": session.kernel.as_ref().and_then(|kernel| kernel.pid),
        "memory": session.memory,
        "uptime": session.uptime.map(|uptime| uptime.as_secs_f64()),
    })
}

async fn status(client: &ToolClient, session: &SessionInfo) -> Result<ToolReply, ToolFailure> {
    let mut text = session_line(client, session);
    let mut structured = session_json(client, session);
    match client.sessions().await?.variables(&session.key, VARIABLES).await {
        Ok(variables) => {
            for variable in &variables.listed {
                write!(text, "\n{}: {}", variable.name, variable.kind).expect("a String takes everything");
                if let Some(shape) = &variable.shape {
                    write!(text, " {shape:?}").expect("a String takes everything");
                } else if let Some(size) = variable.size {
                    write!(text, "[{size}]").expect("a String takes everything");
                }
                write!(text, " = {}", variable.preview).expect("a String takes everything");
            }
            if variables.total > variables.listed.len() {
                write!(text, "\n[{} more variables]", variables.total - variables.listed.len())
                    .expect("a String takes everything");
            }
            structured["variables"] = variables.total.into();
        }
        Err(why @ (SessionError::Busy | SessionError::NoKernel)) => {
            write!(text, "\n[no variables to show: {why}]").expect("a String takes everything");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ToolReply::text(text).with(structured))
}

async fn interrupt_work(client: &ToolClient, handle: BackgroundHandle) -> Result<ToolReply, ToolFailure> {
    match handle {
        BackgroundHandle::Cells(job) => {
            own_job(client, job).await?;
            let sessions = client.sessions().await?;
            match sessions.stop_job(job).await? {
                JobStop::HadFinished => {
                    return Ok(ToolReply::text(format!(
                        "{handle} had finished before, so nothing was interrupted; `output` shows its result"
                    )));
                }
                JobStop::Withdrawn => {
                    return Ok(ToolReply::text(format!(
                        "{handle} was waiting for its turn, and will not run"
                    )));
                }
                JobStop::Stopping => {}
            }
            if let JobState::Finished(report) = sessions.wait(job, STOPS_WITHIN).await? {
                let ended = report.failed().map_or("ended".to_owned(), |cell| {
                    format!("ended: its cell {}", cell.status.ending(KernelFate::Stays))
                });
                return Ok(ToolReply::text(format!("{handle} {ended}")));
            }
        }
        BackgroundHandle::Shell(number) => {
            let shell = shell(client, number)?;
            if shell.is_over() {
                return Ok(ToolReply::text(format!(
                    "{handle} had finished before, so nothing was interrupted; `output` shows its result"
                )));
            }
            shell.stop(CommandStop::Cancelled);
        }
    }
    Ok(ToolReply::text(format!("{handle} is being stopped; `wait` reports how it ended")))
}

/// Waits for background work, for at most this long, and reports what is new. Without a time, reports all there is.
async fn work(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    handle: BackgroundHandle,
    wait: Option<Duration>,
) -> Result<ToolReply, ToolFailure> {
    let client = &context.client;
    let at_most = wait.unwrap_or_default();
    match handle {
        BackgroundHandle::Cells(job) => {
            own_job(client, job).await?;
            let run = shared.background_runs().named(job);
            if let Some(run) = run {
                return run.wait(shared, context, wait).await;
            }
            let sessions = client.sessions().await?;
            let found = tokio::select! {
                found = sessions.wait(job, at_most) => found?,
                () = context.stop.cancelled() => return Err(ToolFailure::new(format!("no longer waiting; {handle} continues"))),
            };
            let (JobState::Waiting { report, .. } | JobState::Running(report) | JobState::Finished(report)) =
                &found;
            let stage = stage(&found);
            let news = wait.map(|_| client.shown.news(job, report, &shared.settings.artifacts));
            let shown = news.as_ref().map_or(&**report, |news| &news.report);
            let mut reply = report::reply(&shared.settings, context, shown, stage, &CellNaming::Counted);
            if news.is_some_and(|news| news.has_earlier) {
                reply.note(not_repeated(handle));
            }
            match stage {
                CallStage::Running => {
                    let time = duration_words(report.duration);
                    reply.note(match &found {
                        JobState::Waiting { place, .. } => {
                            format!("[{handle} {}, for {time}]", waits(*place))
                        }
                        JobState::Running(_) | JobState::Finished(_) => {
                            format!("[{handle} is still running, for {time}]")
                        }
                    });
                }
                CallStage::Over => client.shown.forget(job),
            }
            Ok(reply)
        }
        BackgroundHandle::Shell(number) => {
            let shell = shell(client, number)?;
            tokio::select! {
                // In time or not, what is there afterwards is what counts.
                _ = tokio::time::timeout(at_most, shell.over()) => {}
                () = context.stop.cancelled() => return Err(ToolFailure::new(format!("no longer waiting; {handle} continues"))),
            }
            let lasts = shared.settings.background != BackgroundPolicy::Nothing;
            Ok(bash::report(&shared.settings, context, &shell, &shell.phase(), lasts))
        }
    }
}

/// What a call waits for.
pub(crate) fn waits(place: QueuePlace) -> String {
    let ahead = match place.before {
        0 | 1 => String::new(),
        before => format!(", with {} more before it", before - 1),
    };
    match place.running {
        Some(job) => format!("is waiting for {}{ahead}", BackgroundHandle::Cells(job)),
        None => format!("is waiting for another call in its session{ahead}"),
    }
}

fn stage(state: &JobState) -> CallStage {
    match state {
        JobState::Waiting { .. } | JobState::Running(_) => CallStage::Running,
        JobState::Finished(_) => CallStage::Over,
    }
}

/// What is said when earlier output was left out.
pub(crate) fn not_repeated(handle: BackgroundHandle) -> String {
    format!(
        "[what was shown before is not repeated; kernel: {{\"action\": \"output\", \"handle\": \"{handle}\"}} shows all]"
    )
}

/// Refuses the work of other clients as if it were not there.
async fn own_job(client: &ToolClient, job: cellwright_session::JobId) -> Result<(), ToolFailure> {
    let jobs = client.sessions().await?.jobs().await?;
    if jobs.iter().any(|known| known.id == job && client.names.has(&known.key)) {
        return Ok(());
    }
    let handle = BackgroundHandle::Cells(job);
    match client.sessions().await?.job(job).await {
        Err(SessionError::JobLost(_)) => Err(ToolFailure::new(format!(
            "{handle} has ended with the session daemon that ran it (it was killed, left when it was idle, or the machine was restarted)"
        ))),
        Err(SessionError::NoJob(_)) | Ok(_) => Err(ToolFailure::new(format!(
            "there is no {handle}; its report may have been dropped for newer ones"
        ))),
        Err(error) => Err(error.into()),
    }
}

fn shell(client: &ToolClient, number: u64) -> Result<Arc<ShellCommand>, ToolFailure> {
    client.shells.named(number).ok_or_else(|| {
        ToolFailure::new(format!(
            "there is no {}; its end may have been reported already",
            BackgroundHandle::Shell(number)
        ))
    })
}

/// Which kernels there are: Pythons, tried the way cells are run, and those that are installed for Jupyter.
async fn kernels(shared: &ToolboxState, client: &ToolClient) -> Result<ToolReply, ToolFailure> {
    let mut launch = shared.settings.launch.clone();
    client.workspace().start().clone_into(&mut launch.search.cwd);
    let mut lines = Vec::new();
    let mut works = Vec::new();
    let mut prefixes = Vec::new();
    for examined in launch.examine().await? {
        match examined {
            ExaminedPython::Works(candidate, ready) => {
                prefixes.extend(candidate.prefixes());
                let used = if works.is_empty() { "py, used by eval" } else { "py" };
                lines.push(format!(
                    "{used}: {} {} at {} ({})",
                    ready.implementation,
                    ready.version,
                    candidate.python.display(),
                    candidate.origin
                ));
                works.push(json!({ "language": "py", "program": candidate.python, "version": ready.version, "origin": candidate.origin.to_string() }));
            }
            ExaminedPython::Rejected(rejected) => lines.push(format!("does not work: {rejected}")),
        }
    }
    if lines.is_empty() {
        lines.push("no Python was found; install Python 3.8 or newer".to_owned());
    }
    for spec in installed(&launch.search.variables, prefixes) {
        let (name, about) = (&spec.name, &spec.description);
        lines.push(format!("jupyter:{name}: {} ({})", about.display_name, about.language));
        works.push(json!({ "language": about.language, "name": format!("jupyter:{name}") }));
    }
    let variables = launch.search.variables.clone();
    for kernel in blocking(move || Ok(ExistingKernel::all(&variables))).await? {
        let choice = format!("existing:{}", kernel.file.display());
        let (name, age) = (kernel.name.as_deref().unwrap_or("Jupyter"), duration_words(kernel.age));
        lines.push(format!(
            "{choice}: a running {name} kernel, started {age} ago; as `language` of eval it joins that kernel"
        ));
        works.push(json!({ "language": kernel.name, "name": choice, "running": true }));
    }
    Ok(ToolReply::text(lines.join("\n")).with(json!({ "kernels": works })))
}

/// The Jupyter kernels that are installed for these Pythons, for the user and for everyone.
fn installed(variables: &EnvVars, prefixes: Vec<PythonPrefix>) -> Vec<KernelSpec> {
    let variable = |name: &str| variables.get(OsStr::new(name)).cloned();
    let around = JupyterEnvironment::new(&variable, prefixes);
    KernelSpec::all(&around.kernel_path()).into_values().filter_map(Result::ok).collect()
}
