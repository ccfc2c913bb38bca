//! The agent's plan as a checklist.

use std::fmt::Write as _;

use agent_client_protocol_schema::v1::{PlanEntry, PlanEntryStatus};

use super::content::RenderedContent;
use super::html::escape;

/// The checklist as HTML and as text.
pub(super) fn checklist(entries: &[PlanEntry]) -> RenderedContent {
    let done = entries.iter().filter(|entry| entry.status == PlanEntryStatus::Completed).count();
    let heading = format!("Plan ({done} of {} done)", entries.len());
    let mut html = format!(
        "<div style=\"border:1px solid rgba(128,128,128,.25);border-radius:4px;padding:6px 10px;margin:4px 0\">\
         <div style=\"font-weight:600\">{heading}</div>"
    );
    let mut plain = heading;
    for entry in entries {
        let (mark, style, text_mark) = match entry.status {
            PlanEntryStatus::Completed => ("☑", "opacity:.6", "x"),
            PlanEntryStatus::InProgress => ("◐", "font-weight:600", ">"),
            // A status of a later version counts as not done.
            _ => ("☐", "", " "),
        };
        let content = entry.content.trim();
        write!(html, "<div style=\"{style}\">{mark} {}</div>", escape(content))
            .expect("strings take everything");
        write!(plain, "\n[{text_mark}] {content}").expect("strings take everything");
    }
    html.push_str("</div>");
    RenderedContent { html, plain }
}
