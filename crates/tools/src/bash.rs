//! `bash`: shell commands.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use cellwright_output::CapturedText;
use cellwright_session::duration_words;
use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arrival::CallPlace;
use crate::handle::BackgroundHandle;
use crate::reply::{ReplyPart, ToolFailure, ToolReply};
use crate::report::{shortened_notice, truncation};
use crate::share;
use crate::shell::{
    ClientShells, CommandEnd, CommandPhase, CommandResult, CommandStop, ShellCommand, ShellRequest,
};
use crate::timeout::{self, TimeoutRequest};
use crate::toolbox::{BackgroundPolicy, CallContext, ReplyReader, ToolSettings, ToolboxState};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct BashArguments {
    /// The command; folder and exported variables stay for the next
    command: String,
    /// Seconds it may take, 1-600 (default 30)
    timeout: Option<f64>,
    /// Folder for this command only
    cwd: Option<String>,
    /// Return at once with a handle; follow it with the kernel tool
    #[serde(default)]
    background: bool,
}

pub(crate) async fn bash(
    shared: &Arc<ToolboxState>,
    arguments: BashArguments,
    context: &CallContext,
) -> Result<ToolReply, ToolFailure> {
    let lasts = shared.settings.background != BackgroundPolicy::Nothing;
    if arguments.background && !lasts {
        return Err(ToolFailure::new(
            "`background` has no effect here: commands end with this call; leave it out, and the call waits for the end",
        ));
    }
    let asked = TimeoutRequest { seconds: arguments.timeout, background: arguments.background };
    let (limit, clamped) = timeout::of(asked, shared.settings.timeout)?;
    let workspace = context.client.workspace();
    let cwd = arguments.cwd.as_ref().map(|cwd| workspace.start().join(cwd));
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(ToolFailure::new(format!("{} is not a folder", cwd.display())));
    }
    let run = ShellRequest {
        command: &arguments.command,
        start: workspace.start(),
        cwd: cwd.as_deref(),
        keeps_state: !arguments.background,
        reader: context.reader,
    };
    let shells = &context.client.shells;
    let turn = turn(shells, context).await?;
    let progress = context.progress.clone().filter(|_| !arguments.background);
    let (shell, warning) = shells.start(&run, progress).await?;
    if arguments.background {
        if let Some(limit) = limit {
            stop_after(&shell, limit);
        }
        return Ok(started(&shell, "runs in the background"));
    }
    let phase = follow(shared, context, &shell, limit).await;
    drop(turn); // it has left its folder and variables for the next, or continues without it
    shell.stop_progress();
    let mut reply = if let Some(phase) = phase {
        report(&shared.settings, context, &shell, &phase, lasts)
    } else {
        if let Some(limit) = limit {
            stop_after(&shell, limit);
        }
        let mut reply = started(&shell, "continues in the background");
        let output = shells.take_output(&shell);
        let output = shown(&shared.settings, context, &output);
        reply.content.insert(0, ReplyPart::Text(output.text.clone()));
        reply.frame(shortened_notice("the command", &output).as_slice());
        reply
    };
    if let Some(note) = clamped {
        reply.note(note);
    }
    if let Some(warning) = warning {
        reply.note(format!("[{warning}]"));
    }
    tell_of_others(&shared.settings, context, &shell, &mut reply);
    Ok(reply)
}

/// Waits until the command before has ended or continues in the background. The next one waits for what this returns.
/// Programs run commands side by side: they wait for what they need.
async fn turn(shells: &ClientShells, context: &CallContext) -> Result<Option<CallPlace>, ToolFailure> {
    let place = match context.reader {
        ReplyReader::Model => shells.line().arrive(),
        ReplyReader::Program => return Ok(None),
    };
    context.let_next_pass(); // other tools do not wait for commands
    tokio::select! {
        biased;
        () = place.turn() => Ok(Some(place)),
        () = context.stop.cancelled() => {
            Err(ToolFailure::new("cancelled while it waited for the command before it; it was not run"))
        }
    }
}

/// Waits for the command's end, and stops it when its time is over. `None` if it continues in the background.
async fn follow(
    shared: &ToolboxState,
    context: &CallContext,
    shell: &ShellCommand,
    limit: Option<Duration>,
) -> Option<CommandPhase> {
    let forever = Duration::from_hours(24 * 365);
    let (deadline, patience) = (
        tokio::time::sleep(limit.unwrap_or(forever)),
        tokio::time::sleep(shared.patience(context).unwrap_or(forever)),
    );
    let why = tokio::select! {
        phase = shell.ended() => return Some(phase),
        () = context.stop.cancelled() => CommandStop::Cancelled,
        () = deadline => CommandStop::TimedOut(limit.unwrap_or(forever)),
        () = patience => return None,
    };
    shell.stop(why);
    Some(shell.over().await)
}

/// Ends a command in the background when its time is over.
fn stop_after(shell: &Arc<ShellCommand>, limit: Duration) {
    let Some(deadline) = shell.began.checked_add(limit) else { return };
    let shell = Arc::downgrade(shell);
    // Ends with the time limit; the command itself ends with its client.
    drop(tokio::spawn(
        async move {
            tokio::time::sleep_until(deadline).await;
            if let Some(shell) = shell.upgrade() {
                shell.stop(CommandStop::TimedOut(limit));
            }
        }
        .boxed(),
    ));
}

fn started(shell: &ShellCommand, how: &str) -> ToolReply {
    let handle = BackgroundHandle::Shell(shell.number);
    ToolReply::text(format!(
        "[{handle} {how}; see what it does with kernel: {{\"action\": \"wait\", \"handle\": \"{handle}\"}}]"
    ))
    .with(json!({ "handle": handle.to_string() }))
}

/// What a command came to: its output since it was last shown, and how it ended if it has. What it left running may last
/// beyond the call, or not.
pub(crate) fn report(
    settings: &ToolSettings,
    context: &CallContext,
    shell: &ShellCommand,
    phase: &CommandPhase,
    lasts: bool,
) -> ToolReply {
    let shells = &context.client.shells;
    let handle = BackgroundHandle::Shell(shell.number);
    let output = shells.take_output(shell);
    let output = shown(settings, context, &output);
    let (ended, left) = match phase {
        CommandPhase::Running => (None, false),
        CommandPhase::Left(ended) => (Some(ended), true),
        CommandPhase::Over(ended) => (Some(ended), false),
    };
    let mut reply = ToolReply {
        is_error: ended.is_some_and(|ended| ended.how != CommandResult::Code(0)),
        ..ToolReply::text(output.text.clone())
    };
    if output.text.is_empty() {
        reply.content.clear();
    }
    match ended {
        None => reply.note(format!("[{handle} runs for {}]", duration_words(shell.began.elapsed()))),
        Some(ended) => {
            if let Some(end) = in_words(ended) {
                reply.note(format!("[{end}]"));
            }
        }
    }
    if left && !lasts {
        reply.note("[it left processes running, which are ended with this call]");
    } else if left {
        shell.end_is_told();
        reply.note(format!("[it left processes running, kept as {handle}; end them with kernel: {{\"action\": \"interrupt\", \"handle\": \"{handle}\"}}]"));
    } else if ended.is_some() {
        shells.forget(shell);
    }
    if reply.content.is_empty() {
        reply.note("(no output)");
    }
    reply.frame(shortened_notice("the command", &output).as_slice());
    let handle = (lasts && (ended.is_none() || left)).then(|| handle.to_string());
    reply.with(structured(ended, &output, handle.as_deref()))
}

/// A command's output as the caller is shown it.
fn shown<'a>(
    settings: &ToolSettings,
    context: &CallContext,
    output: &'a CapturedText,
) -> Cow<'a, CapturedText> {
    match context.reader {
        ReplyReader::Model => share::shared(settings, context, &[output]).remove(0),
        ReplyReader::Program => Cow::Borrowed(output),
    }
}

fn in_words(ended: &CommandEnd) -> Option<String> {
    match &ended.how {
        CommandResult::Code(0) => None,
        CommandResult::Code(code) => Some(format!("exit code {code}")),
        CommandResult::Stopped(CommandStop::TimedOut(limit)) => Some(format!(
            "took longer than {} and was stopped with all it had started",
            duration_words(*limit)
        )),
        CommandResult::Stopped(CommandStop::Cancelled) => {
            Some("was stopped with all it had started".to_owned())
        }
        CommandResult::Lost(why) => Some(why.clone()),
    }
}

fn structured(ended: Option<&CommandEnd>, output: &CapturedText, handle: Option<&str>) -> Value {
    let code = match ended.map(|ended| &ended.how) {
        Some(CommandResult::Code(code)) => Some(*code),
        _ => None,
    };
    json!({
        "exit_code": code,
        "duration": ended.map(|ended| ended.duration.as_secs_f64()),
        "truncated": truncation(output),
        "handle": handle,
    })
}

/// What processes that earlier commands left have printed meanwhile. One whose end was reported and which has nothing
/// running any more is reported for the last time.
fn tell_of_others(
    settings: &ToolSettings,
    context: &CallContext,
    shell: &ShellCommand,
    reply: &mut ToolReply,
) {
    let shells = &context.client.shells;
    let others =
        shells.list().into_iter().filter(|other| other.number != shell.number && other.is_leftover());
    let mut printed = Vec::new();
    for other in others {
        // In this order: what is printed in between is shown next time.
        let is_over = other.is_over();
        if !other.peek().is_empty() {
            printed.push((other.number, other.title.clone(), shells.take_output(&other)));
        }
        if is_over {
            shells.forget(&other);
        }
    }
    let texts: Vec<_> = printed.iter().map(|(_, _, output)| output).collect();
    for ((number, title, _), output) in printed.iter().zip(share::shared(settings, context, &texts)) {
        let handle = BackgroundHandle::Shell(*number);
        reply.note(format!("[{handle}, left by `{title}`, printed meanwhile]\n{}", output.text));
    }
}
