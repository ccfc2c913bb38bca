//! Small texts: roles, asides, times and numbers.

use std::time::Duration;

use super::OutputData;
use super::content::{RenderedContent, bundle};
use super::html::{escape, folded};
use crate::markdown::{harmless_with_headings, headings};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextRole {
    Agent,
    Thought,
    User,
}

impl TextRole {
    /// The display of a text, in which so many headings are headings.
    pub(super) fn bundle(self, text: &str, most_headings: usize) -> OutputData {
        match self {
            Self::Agent => {
                let markdown = harmless_with_headings(text, most_headings);
                bundle([("text/markdown", markdown), ("text/plain", text.to_owned())])
            }
            Self::User => {
                let quoted: Vec<_> = text.lines().map(|line| format!("> {line}\n")).collect();
                let quoted = quoted.concat();
                let markdown = harmless_with_headings(&quoted, most_headings);
                bundle([("text/markdown", markdown), ("text/plain", quoted)])
            }
            Self::Thought => {
                let text = text.trim();
                let body = format!("<div style=\"white-space:pre-wrap;opacity:.75\">{}</div>", escape(text));
                bundle([
                    ("text/html", folded(&gist(text), &body)),
                    ("text/plain", format!("(thought) {text}")),
                ])
            }
        }
    }
}

/// The headings that a text takes from those of its turn.
pub(super) fn headings_of(role: TextRole, text: &str) -> usize {
    match role {
        TextRole::Agent | TextRole::User => headings(text),
        TextRole::Thought => 0,
    }
}

/// The beginning of a thought, for the line that unfolds it.
fn gist(thought: &str) -> String {
    let first = thought.lines().next().unwrap_or_default().replace("**", "");
    let first = first.trim_matches(['#', ' ']);
    let end = first.char_indices().nth(70).map_or(first.len(), |(at, _)| at);
    let more = if end < thought.len() { "…" } else { "" };
    format!("Thought: {}{more}", &first[..end])
}

pub(super) fn dim(text: &str) -> RenderedContent {
    let html = format!("<div style=\"opacity:.65;font-size:12px\">{}</div>", escape(text));
    RenderedContent { html, plain: text.to_owned() }
}

/// `1 min 5 s`.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

/// `12,345`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
