//! The result of a call of cells, in words and as data.

use std::borrow::Cow;
use std::fmt::Write as _;

use cellwright_kernel::{Exit, KernelChoice};
use cellwright_output::CapturedText;
use cellwright_ownership::TrustAnswer;
use cellwright_run::PlannedCell;
use cellwright_session::{
    CallReport, CellReport, CellStatus, KernelAfter, KernelFate, KernelReplacement, KernelUse, NotRun,
    ShownOutput, duration_words,
};
use serde_json::{Map, Value, json};

use crate::client::ToolClient;
use crate::displays::ReplyDisplays;
use crate::reply::{ReplyPart, ToolReply, shortened};
use crate::share::shared;
use crate::toolbox::{BackgroundPolicy, CallContext, ReplyReader, ToolSettings};

/// Bytes of JSON values in the structured part.
const JSON: usize = 8_000;

/// How far the call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStage {
    Running,
    Over,
}

/// What the cells of a call are called.
#[derive(Debug)]
pub(crate) enum CellNaming<'a> {
    /// By their place in the call, counting from 1.
    Counted,
    /// By their place in the notebook.
    Notebook(&'a [PlannedCell]),
}

impl CellNaming<'_> {
    /// What comes before a cell's output, if anything is needed there.
    fn header(&self, cell: &CellReport, total: usize) -> String {
        let name = match self {
            Self::Counted if total == 1 => return String::new(),
            Self::Counted => {
                let title = cell.title.as_deref().map(|title| format!(" {title}")).unwrap_or_default();
                format!("{} of {total}{title}", cell.index + 1)
            }
            Self::Notebook(cells) => cells[cell.index].index.to_string(),
        };
        let time = match cell.status {
            CellStatus::Waiting | CellStatus::NotRun(_) => String::new(),
            _ => format!(", {}", duration_words(cell.duration)),
        };
        format!("[cell {name}: {}{time}]\n", cell.status.word())
    }

    fn place(&self, cell: &CellReport, total: usize) -> String {
        match self {
            Self::Counted if total == 1 => "the cell".to_owned(),
            Self::Counted | Self::Notebook(_) => format!("cell {}", self.number(cell.index)),
        }
    }

    /// The number that the reader knows a cell of the call by.
    fn number(&self, cell: usize) -> String {
        match self {
            Self::Counted => (cell + 1).to_string(),
            Self::Notebook(cells) => cells[cell].index.to_string(),
        }
    }
}

/// The reply for a report.
pub(crate) fn reply(
    settings: &ToolSettings,
    context: &CallContext,
    report: &CallReport,
    stage: CallStage,
    naming: &CellNaming<'_>,
) -> ToolReply {
    let client = &context.client;
    let mut reply =
        ToolReply { is_error: stage == CallStage::Over && !report.succeeded(), ..ToolReply::default() };
    let mut displays = ReplyDisplays::default();
    let late = report.late.as_ref();
    let outputs = late.into_iter().map(|late| &late.text);
    let outputs: Vec<_> = outputs.chain(report.cells.iter().map(|cell| &cell.output.text)).collect();
    let outputs = match context.reader {
        ReplyReader::Model => shared(settings, context, &outputs),
        ReplyReader::Program => outputs.into_iter().map(|text| whole(settings, text)).collect(),
    };
    let (late_text, texts) = outputs.split_at(usize::from(late.is_some()));
    if let (Some(late), [text]) = (late, late_text) {
        reply.note(format!("[printed by earlier cells after their end]\n{}", text.text));
        displays.show(settings, late, &mut reply);
    }
    // A kernel of this process ends with it.
    let ends = settings.background == BackgroundPolicy::Nothing && !client.is_remote();
    let fate = report.kernel_fate(if ends { KernelFate::Ends } else { KernelFate::Stays });
    for (cell, output) in report.cells.iter().zip(texts) {
        let mut text = naming.header(cell, report.cells.len());
        text.push_str(&output.text);
        if let Some(end) = end(cell, fate) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            write!(text, "[{} {end}]", naming.place(cell, report.cells.len()))
                .expect("a String takes everything");
        }
        if !text.is_empty() {
            reply.content.push(ReplyPart::Text(text));
        }
        displays.show(settings, &cell.output, &mut reply);
    }
    displays.finish(settings, &mut reply);
    let notes = notes(settings, client, report, naming);
    if !notes.is_empty() {
        reply.note(notes.join("\n"));
    }
    if reply.content.is_empty() {
        reply.note("(no output)");
    }
    if context.reader == ReplyReader::Model {
        let of_late = late.into_iter().zip(late_text).map(|_| "what earlier cells printed".to_owned());
        let of_cells = report.cells.iter().map(|cell| naming.place(cell, report.cells.len()));
        let places = of_late.chain(of_cells).zip(late_text.iter().chain(texts));
        reply.frame(&places.filter_map(|(place, text)| shortened_notice(&place, text)).collect::<Vec<_>>());
    }
    reply.with(structured(client, report, texts, naming))
}

/// How a cell ended, when that needs words.
fn end(cell: &CellReport, fate: KernelFate) -> Option<String> {
    match &cell.status {
        // For a cell that failed, the traceback, the header or the error of the whole call says so.
        CellStatus::Ok
        | CellStatus::Waiting
        | CellStatus::Running
        | CellStatus::Error(_)
        | CellStatus::NotRun(NotRun::AfterFailure | NotRun::Error | NotRun::Withdrawn) => None,
        CellStatus::NotRun(NotRun::Stopped)
        | CellStatus::Stopped { .. }
        | CellStatus::Died(_)
        | CellStatus::Unknown => Some(cell.status.ending(fate)),
    }
}

/// Other facts, one line each.
fn notes(
    settings: &ToolSettings,
    client: &ToolClient,
    report: &CallReport,
    naming: &CellNaming<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(about) = &report.kernel.about {
        let is_new = about.pid.is_none_or(|pid| client.introduce(pid));
        if is_new
            && let KernelChoice::Python { .. } = report.key.kernel
            && let Some(project) = settings.launch.search.trust.untrusted(&report.key.cwd)
            && project.answer != Some(TrustAnswer::Declined)
            && client.introduce_folder(&project.root)
        {
            notes.push(format!("[{project}]"));
        }
        match &report.kernel.usage {
            KernelUse::Replaced(KernelReplacement::Reset) => notes.push(format!("[fresh kernel: {about}]")),
            KernelUse::Replaced(
                KernelReplacement::DiedEarlier(Exit::Left(_) | Exit::OutOfReach(_))
                | KernelReplacement::DiedIdle(Exit::OutOfReach(_)),
            ) => {
                notes.push(match report.key.kernel {
                    KernelChoice::Existing { .. } => {
                        format!("[reconnected, because the kernel was out of reach: {about}]")
                    }
                    // Whether a server's kernel still exists is unknown.
                    KernelChoice::Python { .. }
                    | KernelChoice::Jupyter { .. }
                    | KernelChoice::Gateway { .. } => {
                        format!("[fresh kernel, because the previous one was out of reach: {about}]")
                    }
                });
            }
            KernelUse::Replaced(KernelReplacement::DiedEarlier(_)) => {
                notes.push(format!("[fresh kernel, because the previous one had died: {about}]"));
            }
            KernelUse::Fresh | KernelUse::Reused if is_new => notes.push(format!("[kernel: {about}]")),
            // A death in or just before this call is reported by the cell or by a notice.
            KernelUse::None | KernelUse::Fresh | KernelUse::Reused | KernelUse::Replaced(_) => {}
        }
    }
    notes.extend(
        report.notices.iter().map(|notice| format!("[{}]", notice.with_cells(|cell| naming.number(cell)))),
    );
    notes.extend(report.error.iter().map(|error| format!("[{error}]")));
    notes
}

fn structured(
    client: &ToolClient,
    report: &CallReport,
    texts: &[Cow<'_, CapturedText>],
    naming: &CellNaming<'_>,
) -> Value {
    let mut room = JSON;
    let cells = report.cells.iter().zip(texts).map(|(cell, text)| {
        let mut data = self::cell(cell, text, &mut room);
        if let CellNaming::Notebook(cells) = naming {
            data["cell"] = cells[cell.index].index.into();
            data["id"] = cells[cell.index].id.clone().into();
        }
        data
    });
    let cells = cells.collect::<Vec<_>>();
    json!({
        "session": client.names.shown(&report.key),
        "cwd": report.key.cwd,
        "cells": cells,
        "duration": report.duration.as_secs_f64(),
        "kernel": {
            "state": match report.kernel.after {
                KernelAfter::Alive => "alive",
                KernelAfter::Gone => "gone",
                KernelAfter::Ended => "ended",
            },
            "fresh": !matches!(report.kernel.usage, KernelUse::Reused),
            "memory": report.kernel.memory,
        },
    })
}

fn cell(cell: &CellReport, text: &CapturedText, room: &mut usize) -> Value {
    let mut data = Map::new();
    let mut put = |key: &str, value: Value| drop(data.insert(key.to_owned(), value));
    put("status", cell.status.word().into());
    put("duration", cell.duration.as_secs_f64().into());
    if let Some(title) = &cell.title {
        put("title", title.as_str().into());
    }
    if let Some(count) = cell.execution_count {
        put("execution_count", count.into());
    }
    if let CellStatus::Error(exception) = &cell.status {
        let (name, message) = (shortened(&exception.name), shortened(&exception.message));
        put("error", json!({ "name": name, "message": message, "line": exception.line }));
    }
    if let Some(truncation) = truncation(text) {
        put("truncated", truncation);
    }
    let mut values = Vec::new();
    let mut events = Vec::new();
    for shown in &cell.output.shown {
        let (kind, value) = match shown {
            ShownOutput::Json(value) => (&mut values, value),
            ShownOutput::Status(value) => (&mut events, value),
            ShownOutput::Image(_) | ShownOutput::Stored { .. } => continue,
        };
        let length = value.text().len();
        if length <= *room {
            *room -= length;
            kind.push(value.value());
        }
    }
    if !values.is_empty() {
        put("json", values.into());
    }
    if !events.is_empty() {
        put("events", events.into());
    }
    Value::Object(data)
}

/// What is said of a text that a reply does not show whole.
pub(crate) fn shortened_notice(place: &str, text: &CapturedText) -> Option<String> {
    let truncation = text.truncation.as_ref()?;
    Some(format!("[output of {place} shortened: {}]", truncation.summary()))
}

/// All of a text, where it can still be had.
fn whole<'a>(settings: &ToolSettings, text: &'a CapturedText) -> Cow<'a, CapturedText> {
    let stored = text.truncation.as_ref().and_then(|truncation| truncation.full.artifact());
    let stored = stored.and_then(|id| settings.artifacts.open(id).ok());
    let stored = stored.and_then(|artifact| artifact.lines(1..=u64::MAX, usize::MAX).ok());
    match stored {
        Some(page) => Cow::Owned(CapturedText { text: page.text, ..text.clone() }),
        None => Cow::Borrowed(text),
    }
}

/// What is missing of a text.
pub(crate) fn truncation(text: &CapturedText) -> Option<Value> {
    let truncation = text.truncation.as_ref()?;
    let artifact = truncation.full.artifact().map(ToString::to_string);
    Some(json!({ "lines": truncation.total.lines, "bytes": truncation.total.bytes, "artifact": artifact }))
}
