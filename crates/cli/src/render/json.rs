//! For programs: one JSON object a line, each with `event`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_cell::{Exception, MimeBundle, Output, OutputChange};
use cellwright_kernel::{CommKind, Death, Fate, StopReason};
use cellwright_output::{ArtifactId, Artifacts, CapturedText, FullText};
use cellwright_session::{
    CallEvent, CallReport, CellReport, CellStatus, CollectedOutput, Comm, CommBuffer, LateOutput, ShownOutput,
};
use serde_json::{Value, json};

use super::CallRender;
use crate::exit::one_line;
use crate::print;

/// How much of a stored text is printed at once.
const CHUNK: usize = 64 << 10;

/// Writes events to stdout as they come, nothing shortened.
pub(crate) struct JsonRender {
    /// Where what was too long for a report is stored.
    pub(crate) artifacts: Artifacts,
}

impl CallRender for JsonRender {
    fn event(&mut self, event: &CallEvent) -> anyhow::Result<()> {
        match event {
            CallEvent::LateBefore(late) => self.late(late),
            _ => print::json(&self::event(event)),
        }
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

impl JsonRender {
    /// What threads showed before the call: change by change, or, if there is much, its text and then its displays.
    fn late(&self, late: &LateOutput) -> anyhow::Result<()> {
        if let Some(changes) = &late.changes {
            return changes.iter().try_for_each(|change| print::json(&with("late", None, output(change))));
        }
        let CollectedOutput { text: CapturedText { text, truncation }, shown, image_count: _ } =
            &late.collected;
        match truncation.as_ref().map(|truncation| &truncation.full) {
            Some(FullText::Artifact(id) | FullText::Incomplete { id, .. }) => {
                if !self.stored_text(id)? {
                    // Its beginning, its end, and what is between.
                    print::json(&late_text(text))?;
                }
            }
            // The text says what is missing, and why.
            Some(FullText::Partial { .. } | FullText::Lost { .. } | FullText::NotKept) | None => {
                print::json(&late_text(text))?;
            }
        }
        shown.iter().try_for_each(|shown| print::json(&with("late", None, more_than_text(shown))))
    }

    /// Whether it could be read to its end. It may be in another process's folder, or gone by now.
    fn stored_text(&self, id: &ArtifactId) -> anyhow::Result<bool> {
        let Ok(artifact) = self.artifacts.open(id) else { return Ok(false) };
        let mut from = 0;
        // What comes from here on is printed separately.
        while from < artifact.bytes {
            let Ok(window) = artifact.window(from, CHUNK) else { return Ok(false) };
            from = window.bytes.end;
            print::json(&late_text(&window.text))?;
        }
        Ok(true)
    }
}

fn late_text(text: &str) -> Value {
    json!({"event": "late", "type": "text", "text": text})
}

fn more_than_text(shown: &ShownOutput) -> Value {
    let (mime, value) = match shown {
        ShownOutput::Image(image) => (image.format.mime(), BASE64_STANDARD.encode(&image.bytes).into()),
        ShownOutput::Json(value) => ("application/json", value.value()),
        ShownOutput::Status(value) => ("application/x-cellwright-status", value.value()),
        ShownOutput::Stored { what, artifact } => {
            let (artifact, error) = match artifact {
                Ok(id) => (Some(id.to_string()), None),
                Err(why) => (None, Some(why.to_string())),
            };
            return json!({"type": "stored", "what": what, "artifact": artifact, "error": error});
        }
    };
    json!({"type": "display", "data": {mime: value}, "metadata": {}, "display_id": null})
}

/// An event as a line; `cell` counts the cells of the call.
pub(crate) fn event(event: &CallEvent) -> Value {
    match event {
        CallEvent::Queued { behind } => json!({"event": "queued", "behind": behind}),
        CallEvent::KernelStarted(about) => json!({"event": "kernel_started", "kernel": about.to_string()}),
        CallEvent::LateBefore(late) => late_text(&late.collected.text.text),
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
            json!({"type": "stream", "name": stream.name(), "text": text})
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
    line["data"] = json!(content.data);
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
                Fate::Ended | Fate::Killed => Some(false),
                Fate::OutOfReach => None,
            };
            json!({"status": "stopped", "reason": stop_reason(*reason), "variables_kept": kept})
        }
        CellStatus::Died(Death { exit, started }) => {
            json!({"status": "died", "how": exit.to_string(), "had_started": started})
        }
        CellStatus::Unknown => json!({"status": "unknown"}),
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
