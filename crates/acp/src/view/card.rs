//! One tool call: all that is known about it, and how that looks.

use std::collections::HashMap;
use std::fmt::Write as _;

use agent_client_protocol_schema::v1::{
    Meta, ToolCall, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use cellwright_output::{Sink, Stream};
use serde_json::Value;

use super::PermissionAsker;
use super::content::{RenderedContent, bounded, rendered, screen};
use super::diff::LineDiff;
use super::html::{escape, folded, headed, pre};

/// A title longer than this is folded.
const TITLE: usize = 160;

/// A tool call.
#[derive(Debug)]
pub(super) struct ToolCard {
    call: ToolCall,
    /// Terminals that were named in `_meta`, beyond those in the content.
    terminals: Vec<String>,
    permission: PermissionState,
    asker: PermissionAsker,
    /// The content as it is shown; made anew when it has changed.
    parts: Option<Vec<CardPart>>,
    /// The turn is over and the call did not end.
    left_behind: bool,
}

#[derive(Debug)]
enum PermissionState {
    NotAsked,
    Waiting,
    Given { allowed: bool, how: String },
}

#[derive(Debug)]
enum CardPart {
    Fixed(RenderedContent),
    Terminal(String),
}

/// What runs in a terminal, ours or the agent's own.
#[derive(Debug)]
pub(super) struct TerminalScreen {
    screen: Sink,
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
        self.failed = code != Some(0) || signal.is_some();
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
        Self {
            call: ToolCall::new(id, ""),
            terminals: Vec::new(),
            permission: PermissionState::NotAsked,
            asker: PermissionAsker::Agent,
            parts: None,
            left_behind: false,
        }
    }

    /// What is known of the call by now.
    pub(super) fn call(&self) -> &ToolCall {
        &self.call
    }

    /// A call announced again adds to what is known: an empty list in it takes nothing away.
    pub(super) fn announce(&mut self, call: ToolCall) {
        let mut update = ToolCallUpdate::from(call);
        update.fields.content = update.fields.content.filter(|content| !content.is_empty());
        update.fields.locations = update.fields.locations.filter(|locations| !locations.is_empty());
        update.fields.title = update.fields.title.filter(|title| !title.is_empty());
        self.update(update);
    }

    pub(super) fn update(&mut self, update: ToolCallUpdate) {
        if update.fields.content.is_some() {
            self.parts = None;
        }
        self.call.update(update.fields);
    }

    /// Takes what agents send of a terminal outside of the protocol proper.
    pub(super) fn take_terminal_meta(&mut self, meta: Option<&Meta>, terminals: &mut TerminalScreens) {
        for (key, value) in meta.into_iter().flatten() {
            if !key.starts_with("terminal_") || !value.is_object() {
                continue;
            }
            let id = value["terminal_id"].as_str().unwrap_or(&self.call.tool_call_id.0).to_owned();
            let terminal = terminals.entry(id.clone()).or_default();
            match key.as_str() {
                // Both are what came since the last one.
                "terminal_output" | "terminal_output_delta" => {
                    terminal.write(value["data"].as_str().unwrap_or_default().as_bytes());
                }
                "terminal_exit" => terminal.exited(value["exit_code"].as_i64(), value["signal"].as_str()),
                _ => {}
            }
            let in_content = |part: &ToolCallContent| matches!(part, ToolCallContent::Terminal(terminal) if *terminal.terminal_id.0 == *id);
            if !self.terminals.contains(&id) && !self.call.content.iter().any(in_content) {
                self.terminals.push(id);
            }
        }
    }

    pub(super) fn shows_terminal(&self, id: &str) -> bool {
        let named =
            |part: &ToolCallContent| matches!(part, ToolCallContent::Terminal(t) if &*t.terminal_id.0 == id);
        self.call.content.iter().any(named) || self.terminals.iter().any(|terminal| terminal == id)
    }

    pub(super) fn wait_for_permission(&mut self, asker: PermissionAsker) {
        self.permission = PermissionState::Waiting;
        self.asker = asker;
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.permission, PermissionState::Waiting)
    }

    pub(super) fn decide(&mut self, allowed: bool, how: String) {
        self.permission = PermissionState::Given { allowed, how };
    }

    /// The answer, where that is all this card is for.
    fn answer(&self) -> Option<bool> {
        match (&self.permission, self.asker) {
            (PermissionState::Given { allowed, .. }, PermissionAsker::Us) => Some(*allowed),
            (PermissionState::Given { .. }, PermissionAsker::Agent)
            | (
                PermissionState::NotAsked | PermissionState::Waiting,
                PermissionAsker::Agent | PermissionAsker::Us,
            ) => None,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.left_behind
            || self.answer().is_some()
            || matches!(self.call.status, ToolCallStatus::Completed | ToolCallStatus::Failed)
    }

    /// The turn is over. Tells whether that changes what is shown.
    pub(super) fn leave_behind(&mut self) -> bool {
        if self.is_waiting() {
            self.permission = PermissionState::NotAsked;
        }
        let open = !self.has_ended();
        self.left_behind = open;
        open
    }

    /// What the call is called: its title, else its name, else its id.
    pub(super) fn title(&self) -> &str {
        let title = self.call.title.trim();
        let name = self.call.name.as_deref().unwrap_or(&self.call.tool_call_id.0);
        if title.is_empty() { name } else { title }
    }

    fn status(&self) -> (&'static str, &'static str, &'static str) {
        match self.call.status {
            _ if self.left_behind => ("–", "not finished", GREY),
            _ if self.answer() == Some(true) => ("✓", "allowed", GREEN),
            _ if self.answer() == Some(false) => ("✗", "refused", RED),
            ToolCallStatus::Completed => ("✓", "done", GREEN),
            ToolCallStatus::Failed => ("✗", "failed", RED),
            _ if self.is_waiting() => ("?", "waiting for permission", BLUE),
            ToolCallStatus::InProgress => ("◐", "running", BLUE),
            _ => ("○", "pending", GREY),
        }
    }

    fn locations(&self) -> Vec<String> {
        let named = self.call.locations.iter().map(|location| match location.line {
            Some(line) => format!("{}:{line}", location.path.display()),
            None => location.path.display().to_string(),
        });
        named.collect()
    }

    /// The content in both forms.
    fn parts(&mut self, terminals: &mut TerminalScreens) -> Vec<RenderedContent> {
        let content = &self.call.content;
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

    pub(super) fn rendered(&mut self, terminals: &mut TerminalScreens) -> RenderedContent {
        let plain = format!("{}{}", self.line(), self.details(terminals));
        let parts = self.parts(terminals);
        let (mark, status, colour) = self.status();
        let mut html = vec![format!(
            "<div style=\"border:1px solid rgba(128,128,128,.25);border-left:3px solid {colour};border-radius:4px;\
             padding:6px 10px;margin:4px 0\"><div><span style=\"color:{colour};font-weight:600\">{mark}</span> "
        )];
        let title = self.title();
        let short = short_title(title);
        let tint =
            if self.call.status == ToolCallStatus::Failed { format!(";color:{RED}") } else { String::new() };
        html.push(format!("<span style=\"font-weight:600{tint}\">{}</span> ", with_code(&short)));
        let kind = kind(self.call.kind).map(|kind| format!("{kind} · ")).unwrap_or_default();
        html.push(format!("<span style=\"opacity:.65\">{kind}{status}</span></div>"));
        let locations = self.locations();
        if !locations.is_empty() {
            let codes = locations.iter().map(|place| format!("<code>{}</code>", escape(place)));
            let codes = codes.collect::<Vec<_>>().join(" ");
            html.push(format!("<div style=\"font-size:12px;opacity:.8\">{codes}</div>"));
        }
        if let PermissionState::Given { allowed, how } = &self.permission {
            let colour = if *allowed { GREEN } else { RED };
            html.push(format!("<div style=\"font-size:12px;color:{colour}\">{}</div>", escape(how)));
        }
        // What someone has to decide on is in sight.
        let detail: fn(&str, &str) -> String = if self.is_waiting() { headed } else { folded };
        if short != title {
            html.push(detail("title in full", &pre(title)));
        }
        html.extend(parts.into_iter().map(|part| part.html));
        for (name, value) in self.raw() {
            html.push(detail(name, &pre(&value)));
        }
        html.push("</div>".to_owned());
        RenderedContent { html: html.concat(), plain }
    }

    /// The call in a line.
    pub(super) fn line(&self) -> String {
        let (mark, status, _) = self.status();
        let kind = kind(self.call.kind).map(|kind| format!("{kind}, ")).unwrap_or_default();
        format!("{mark} {} ({kind}{status})", short_title(self.title()))
    }

    /// What follows that line as text; each line of it with a line feed before.
    pub(super) fn details(&mut self, terminals: &mut TerminalScreens) -> String {
        let mut lines = self.locations();
        if let PermissionState::Given { how, .. } = &self.permission {
            lines.push(how.clone());
        }
        lines.extend(self.parts(terminals).into_iter().map(|part| part.plain));
        let mut out = String::new();
        for line in lines.iter().flat_map(|text| text.lines()) {
            out.push_str("\n  ");
            out.push_str(line);
        }
        out
    }

    fn raw(&self) -> Vec<(&'static str, String)> {
        let given = [("input", &self.call.raw_input), ("output", &self.call.raw_output)];
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

/// The first line of a title, cut when it is long.
fn short_title(title: &str) -> String {
    let first = title.lines().next().unwrap_or_default();
    let end = first.char_indices().nth(TITLE).map_or(first.len(), |(at, _)| at);
    let cut = end < first.len() || first.len() < title.len();
    format!("{}{}", &first[..end], if cut { "…" } else { "" })
}

/// `text` with what stands between back ticks as code.
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

fn kind(kind: ToolKind) -> Option<&'static str> {
    Some(match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch mode",
        // `Other`, and what later versions add.
        _ => return None,
    })
}
