//! For programs: one JSON object a line, each with `event`.

use cellwright_kernel::{CommKind, Death, Exception, Fate, MimeBundle, Output, StopReason, Stream};
use cellwright_session::{CallEvent, CallReport, CellReport, CellStatus, Comm, CommBuffer, OutputChange};
use serde_json::{Value, json};

use super::Render;
use crate::exit::one_line;
use crate::print;

/// Writes events to stdout as they come, nothing shortened but what threads printed before the call: that is the text a report
/// would hold, with a notice that names the whole.
pub(crate) struct Json;

impl Render for Json {
    fn event(&mut self, event: &CallEvent) -> anyhow::Result<()> {
        print::json(&self::event(event))
    }

    fn end(&mut self, report: &CallReport) -> anyhow::Result<()> {
        print::json(&json!({
            "event": "finished",
            "ok": report.succeeded(),
            "failed_cell": report.failed().map(|cell| cell.index),
            "error": report.error.as_ref().map(|error| one_line(error)),
            "seconds": report.duration.as_secs_f64(),
        }))
    }
}

/// An event as a line; `cell` counts the cells of the call.
pub(crate) fn event(event: &CallEvent) -> Value {
    match event {
        CallEvent::Queued { behind } => json!({"event": "queued", "behind": behind}),
        CallEvent::KernelStarted(about) => json!({"event": "kernel_started", "kernel": about.to_string()}),
        CallEvent::LateBefore(collected) => {
            json!({"event": "late", "type": "text", "text": collected.text.text})
        }
        CallEvent::Late(change) => with("late", None, output(change)),
        CallEvent::Turn { cell, .. } => json!({"event": "turn", "cell": cell}),
        CallEvent::CellStarted { cell } => json!({"event": "cell_started", "cell": cell}),
        CallEvent::Output { cell, change } => with("output", Some(*cell), output(change)),
        CallEvent::Comm { cell, comm } => with("comm", *cell, self::comm(comm)),
        CallEvent::Input { cell, request } => {
            json!({"event": "input", "cell": cell, "prompt": request.prompt, "password": request.password})
        }
        CallEvent::Stopping { cell, reason } => {
            json!({"event": "stopping", "cell": cell, "reason": stop_reason(*reason)})
        }
        CallEvent::CellFinished(report) => with("cell_finished", Some(report.index), cell(report)),
        CallEvent::Notice(notice) => json!({"event": "notice", "text": notice.to_string()}),
    }
}

fn with(event: &str, cell: Option<usize>, mut line: Value) -> Value {
    line["event"] = event.into();
    if let Some(cell) = cell {
        line["cell"] = cell.into();
    }
    line
}

fn output(change: &OutputChange) -> Value {
    match change {
        OutputChange::Added(Output::Text { stream, text }) => {
            let name = match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            };
            json!({"type": "stream", "name": name, "text": text})
        }
        OutputChange::Added(Output::Display { content, display_id }) => {
            bundle("display", content, json!({"display_id": display_id}))
        }
        OutputChange::Added(Output::Result { content, count }) => {
            bundle("result", content, json!({"count": count}))
        }
        OutputChange::Added(Output::Error(exception)) => {
            let mut line = raised(exception);
            line["type"] = "error".into();
            line
        }
        OutputChange::Updated { display_id, content } => {
            bundle("update_display", content, json!({"display_id": display_id}))
        }
        OutputChange::Cleared { wait } => json!({"type": "clear", "wait": wait}),
    }
}

fn comm(message: &Comm) -> Value {
    let Comm { comm, kind, data, metadata, buffers } = message;
    let buffers =
        buffers.iter().map(|CommBuffer { bytes, base64 }| json!({"bytes": bytes, "base64": base64}));
    let mut line = json!({
        "comm_id": comm, "data": data, "metadata": metadata, "buffers": buffers.collect::<Vec<_>>(),
    });
    line["type"] = match kind {
        CommKind::Open { target } => {
            line["target_name"] = target.as_str().into();
            "open"
        }
        CommKind::Message => "msg",
        CommKind::Close => "close",
    }
    .into();
    line
}

fn bundle(kind: &str, content: &MimeBundle, mut line: Value) -> Value {
    line["type"] = kind.into();
    line["data"] = content.data.clone().into();
    line["metadata"] = content.metadata.clone().into();
    line
}

fn raised(exception: &Exception) -> Value {
    let Exception { name, message, traceback, line } = exception;
    json!({"name": name, "message": message, "traceback": traceback, "line": line})
}

fn cell(report: &CellReport) -> Value {
    let mut line = match &report.status {
        CellStatus::Waiting => json!({"status": "waiting"}),
        CellStatus::Running => json!({"status": "running"}),
        CellStatus::Ok => json!({"status": "ok"}),
        CellStatus::Error(exception) => json!({"status": "error", "error": raised(exception)}),
        CellStatus::Stopped { reason, kernel } => {
            let kept = match kernel {
                Fate::Survived | Fate::Left => Some(true),
                Fate::Killed => Some(false),
                Fate::OutOfReach => None,
            };
            json!({"status": "stopped", "reason": stop_reason(*reason), "variables_kept": kept})
        }
        CellStatus::Died(Death { exit, started }) => {
            json!({"status": "died", "how": exit.to_string(), "had_started": started})
        }
        CellStatus::NotRun(_) => json!({"status": "not_run"}),
    };
    line["seconds"] = report.duration.as_secs_f64().into();
    line["count"] = report.execution_count.into();
    line["title"] = report.title.clone().into();
    line
}

fn stop_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Cancelled => "cancelled",
        StopReason::TimedOut(_) => "timeout",
        StopReason::Interrupted => "interrupted",
        StopReason::Shutdown => "shutdown",
    }
}
