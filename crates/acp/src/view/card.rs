//! How one tool call looks.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    Meta, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus, ToolKind,
};
use cellwright_cell::Stream;
use cellwright_output::OutputSink;
use serde_json::Value;

use super::OutputData;
use super::content::{RenderedContent, bounded, display, is_picture, rendered, screen};
use super::diff::LineDiff;
use super::html::{escape, folded, headed, pre};
use crate::tool_calls::{ToolCallChange, ToolCallEntry};
use crate::tool_kind::name_of_kind;

/// A title longer than this is folded.
const TITLE: usize = 160;

/// How a tool call is shown. What is shown is in its [`ToolCallEntry`].
#[derive(Debug)]
pub(super) struct ToolCard {
    pub(super) id: ToolCallId,
    /// Terminals that were named in `_meta`, beyond those in the content.
    terminals: Vec<String>,
    /// The content as it is shown. It is rendered again after a change.
    parts: Option<Vec<CardPart>>,
    /// Whether the call had ended when the card last changed.
    ended: bool,
}

#[derive(Debug)]
enum CardPart {
    Fixed(RenderedContent),
    Terminal(String),
}

/// The screen of a command, ours or the agent's own.
#[derive(Debug)]
pub(super) struct TerminalScreen {
    screen: OutputSink,
    exit: Option<String>,
    failed: bool,
}

impl Default for TerminalScreen {
    fn default() -> Self {
        Self { screen: screen(), exit: None, failed: false }
    }
}

impl TerminalScreen {
    pub(super) fn write(&mut self, text: &[u8]) {
        self.screen.write(Stream::Stdout, text);
    }

    pub(super) fn exited(&mut self, code: Option<i64>, signal: Option<&str>) {
        // Some agents say no more than that a command ended, also of one that never ran.
        self.failed = code.is_some_and(|code| code != 0) || signal.is_some();
        self.exit = Some(match (code, signal) {
            (_, Some(signal)) => format!("ended by {signal}"),
            (Some(code), None) => format!("exit {code}"),
            (None, None) => "ended".to_owned(),
        });
    }

    fn rendered(&mut self) -> RenderedContent {
        let mut plain = self.screen.snapshot().text.trim_end().to_owned();
        let mut html = if plain.is_empty() { String::new() } else { pre(&plain) };
        if let Some(exit) = self.exit.as_ref().filter(|_| self.failed) {
            write!(html, "<div style=\"color:{RED}\">{}</div>", escape(exit))
                .expect("strings take everything");
            write!(plain, "\n[{exit}]").expect("strings take everything");
        }
        RenderedContent { html, plain: plain.trim_start().to_owned() }
    }
}

/// Terminals by id.
pub(super) type TerminalScreens = HashMap<String, TerminalScreen>;

const RED: &str = "#d1242f";
const GREEN: &str = "#2e9e44";
const BLUE: &str = "#1f77d0";
const GREY: &str = "#808080";

impl ToolCard {
    pub(super) fn new(id: ToolCallId) -> Self {
        Self { id, terminals: Vec::new(), parts: None, ended: false }
    }

    /// Takes in a change to the call.
    pub(super) fn change(
        &mut self,
        change: &ToolCallChange,
        entry: &ToolCallEntry,
        terminals: &mut TerminalScreens,
    ) {
        if change.new_content {
            self.parts = None;
        }
        self.take_terminal_meta(change.meta.as_ref(), &entry.call, terminals);
    }

    /// Notes whether the call has ended. True if it has since the last time.
    pub(super) fn note_end(&mut self, entry: &ToolCallEntry) -> bool {
        let had_ended = std::mem::replace(&mut self.ended, entry.has_ended());
        self.ended && !had_ended
    }

    /// Takes what agents send about a terminal outside of the protocol proper.
    fn take_terminal_meta(&mut self, meta: Option<&Meta>, call: &ToolCall, terminals: &mut TerminalScreens) {
        for (key, value) in meta.into_iter().flatten() {
            if !key.starts_with("terminal_") || !value.is_object() {
                continue;
            }
            let id = value["terminal_id"].as_str().unwrap_or(&call.tool_call_id.0).to_owned();
            let terminal = terminals.entry(id.clone()).or_default();
            match key.as_str() {
                // Both hold what came since the last one.
                "terminal_output" | "terminal_output_delta" => {
                    terminal.write(value["data"].as_str().unwrap_or_default().as_bytes());
                }
                "terminal_exit" => terminal.exited(value["exit_code"].as_i64(), value["signal"].as_str()),
                _ => {}
            }
            if !self.terminals.contains(&id) && !has_terminal(call, &id) {
                self.terminals.push(id);
            }
        }
    }

    pub(super) fn shows_terminal(&self, call: &ToolCall, id: &str) -> bool {
        has_terminal(call, id) || self.terminals.iter().any(|terminal| terminal == id)
    }

    /// The content in both forms.
    fn parts(&mut self, call: &ToolCall, terminals: &mut TerminalScreens) -> Vec<RenderedContent> {
        let content = &call.content;
        let parts = self.parts.get_or_insert_with(|| content.iter().filter_map(part).collect());
        let mut shown: Vec<RenderedContent> = Vec::new();
        for part in parts {
            match part {
                CardPart::Fixed(rendered) => shown.push(rendered.clone()),
                CardPart::Terminal(id) => shown.extend(terminals.get_mut(id).map(TerminalScreen::rendered)),
            }
        }
        shown.extend(self.terminals.iter().filter_map(|id| Some(terminals.get_mut(id)?.rendered())));
        shown.retain(|part| !part.plain.is_empty() || !part.html.is_empty());
        shown
    }

    pub(super) fn rendered(
        &mut self,
        entry: &ToolCallEntry,
        terminals: &mut TerminalScreens,
    ) -> RenderedContent {
        let plain = format!("{}{}", line(entry), self.details(entry, terminals));
        let parts = self.parts(&entry.call, terminals);
        let (mark, status, colour) = status(entry);
        let mut html = vec![format!(
            "<div style=\"border:1px solid rgba(128,128,128,.25);border-left:3px solid {colour};border-radius:4px;\
             padding:6px 10px;margin:4px 0;overflow-wrap:anywhere\"><div><span style=\"color:{colour};font-weight:600\">{mark}</span> "
        )];
        let title = entry.title();
        let short = short_title(title);
        let tint =
            if entry.call.status == ToolCallStatus::Failed { format!(";color:{RED}") } else { String::new() };
        html.push(format!("<span style=\"font-weight:600{tint}\">{}</span> ", with_code(&short)));
        let kind = kind(entry.call.kind).map(|kind| format!("{kind} · ")).unwrap_or_default();
        html.push(format!("<span style=\"opacity:.65\">{kind}{status}</span></div>"));
        let locations = locations(&entry.call);
        if !locations.is_empty() {
            let codes = locations.iter().map(|place| format!("<code>{}</code>", escape(place)));
            let codes = codes.collect::<Vec<_>>().join(" ");
            html.push(format!("<div style=\"font-size:12px;opacity:.8\">{codes}</div>"));
        }
        if let Some((good, note)) = entry.permission_note() {
            let colour = if good { GREEN } else { RED };
            html.push(format!("<div style=\"font-size:12px;color:{colour}\">{}</div>", escape(note)));
        }
        // While the user has to decide, nothing is folded.
        let detail: fn(&str, &str) -> String = if entry.is_waiting() { headed } else { folded };
        if short != title {
            html.push(detail("title in full", &pre(title)));
        }
        html.extend(parts.into_iter().map(|part| part.html));
        for (name, value) in raw(&entry.call) {
            html.push(detail(name, &pre(&value)));
        }
        html.push("</div>".to_owned());
        RenderedContent { html: html.concat(), plain }
    }

    /// The text after the first line. Each of its lines begins with a line feed.
    pub(super) fn details(&mut self, entry: &ToolCallEntry, terminals: &mut TerminalScreens) -> String {
        let mut lines = locations(&entry.call);
        lines.extend(entry.permission_note().map(|(_, note)| note.to_owned()));
        lines.extend(self.parts(&entry.call, terminals).into_iter().map(|part| part.plain));
        let mut out = String::new();
        for line in lines.iter().flat_map(|text| text.lines()) {
            out.push_str("\n  ");
            out.push_str(line);
        }
        out
    }
}

/// Whether the content of a call shows this terminal.
fn has_terminal(call: &ToolCall, id: &str) -> bool {
    call.content
        .iter()
        .any(|part| matches!(part, ToolCallContent::Terminal(terminal) if *terminal.terminal_id.0 == *id))
}

/// The call in a line.
pub(super) fn line(entry: &ToolCallEntry) -> String {
    let (mark, status, _) = status(entry);
    let kind = kind(entry.call.kind).map(|kind| format!("{kind}, ")).unwrap_or_default();
    format!("{mark} {} ({kind}{status})", short_title(entry.title()))
}

/// Mark, word and colour for how far the call is.
fn status(entry: &ToolCallEntry) -> (&'static str, &'static str, &'static str) {
    match entry.call.status {
        _ if entry.is_refused() => ("✗", "refused", RED),
        _ if entry.is_left_open() => ("–", "not finished", GREY),
        _ if entry.answer() == Some(true) => ("✓", "allowed", GREEN),
        _ if entry.answer() == Some(false) => ("✗", "refused", RED),
        ToolCallStatus::Completed => ("✓", "done", GREEN),
        ToolCallStatus::Failed => ("✗", "failed", RED),
        _ if entry.is_waiting() => ("?", "waiting for permission", BLUE),
        ToolCallStatus::InProgress => ("◐", "running", BLUE),
        _ => ("○", "pending", GREY),
    }
}

/// The places of a call. The card names a file once: of one that its title or a diff names already,
/// only the line is left.
fn locations(call: &ToolCall) -> Vec<String> {
    let is_changed = |path: &Path| {
        call.content.iter().any(|part| matches!(part, ToolCallContent::Diff(diff) if diff.path == path))
    };
    let mut places: Vec<String> = Vec::new();
    for ToolCallLocation { path, line, .. } in &call.locations {
        let name = path.display().to_string();
        let place = match (is_changed(path) || names(&call.title, &name), line) {
            (true, None) => continue,
            (true, Some(line)) => format!("line {line}"),
            (false, None) => name,
            (false, Some(line)) => format!("{name}:{line}"),
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Whether a title names a file, and not just one with a longer name.
fn names(title: &str, path: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    title.lines().next().unwrap_or_default().match_indices(path).any(|(at, _)| {
        let (before, after) = (&title[..at], &title[at + path.len()..]);
        !before.ends_with(in_name) && !after.starts_with(in_name)
    })
}

/// Input and output of the call, as the agent sent them.
fn raw(call: &ToolCall) -> Vec<(&'static str, String)> {
    let given = [("input", &call.raw_input), ("output", &call.raw_output)];
    let shown = given.into_iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        let empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        let text = || match value {
            Value::String(text) => text.clone(),
            other => format!("{other:#}"),
        };
        (!empty).then(|| (name, bounded(&text())))
    });
    shown.collect()
}

fn part(content: &ToolCallContent) -> Option<CardPart> {
    match content {
        ToolCallContent::Content(content) => Some(CardPart::Fixed(rendered(&content.content))),
        ToolCallContent::Diff(diff) => {
            let lines = LineDiff::of(diff);
            Some(CardPart::Fixed(RenderedContent { html: lines.html(), plain: lines.plain() }))
        }
        ToolCallContent::Terminal(terminal) => Some(CardPart::Terminal(terminal.terminal_id.0.to_string())),
        // Content of a later version of the protocol.
        _ => None,
    }
}

/// The pictures that a call shows, for clients that get its card as text.
pub(super) fn pictures(call: &ToolCall) -> impl Iterator<Item = OutputData> {
    let blocks = call.content.iter().filter_map(|part| match part {
        ToolCallContent::Content(content) => Some(display(&content.content)),
        _ => None,
    });
    blocks.filter(is_picture)
}

/// The first line of a title, cut when it is long.
fn short_title(title: &str) -> String {
    let first = title.lines().next().unwrap_or_default();
    let end = first.char_indices().nth(TITLE).map_or(first.len(), |(at, _)| at);
    let cut = end < first.len() || first.len() < title.len();
    format!("{}{}", &first[..end], if cut { "…" } else { "" })
}

/// `text` as HTML, with code between back ticks.
fn with_code(text: &str) -> String {
    let pieces: Vec<_> = text.split('`').collect();
    if pieces.len() % 2 == 0 || pieces.len() == 1 {
        return escape(text).into_owned();
    }
    let piece = |(n, piece): (usize, &&str)| {
        let piece = escape(piece);
        if n % 2 == 1 { format!("<code>{piece}</code>") } else { piece.into_owned() }
    };
    pieces.iter().enumerate().map(piece).collect()
}

/// The kind as cards show it. A call of the kind `other` says nothing by it.
fn kind(kind: ToolKind) -> Option<String> {
    let name = name_of_kind(kind).filter(|_| kind != ToolKind::Other)?;
    Some(name.replace('_', " "))
}
