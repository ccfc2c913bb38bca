//! Whether a display of a saved cell is of a turn or of code that ran in it.

use serde_json::{Map, Value};

use crate::plain::text_of;

/// How the HTML of every piece of a turn begins. A test compares them with what turns show.
const BEGINNINGS: [&str; 6] = [
    "<div style=\"border:1px solid rgba(128,128,128,.25);border-left:3px solid",
    "<div style=\"border-left:3px solid",
    "<div style=\"opacity:.65;font-size:12px\">",
    "<details style=\"margin:2px 0\">",
    "<div style=\"border:1px solid rgba(128,128,128,.25);border-radius:4px;padding:6px 10px;margin:4px 0\">",
    "Plan: ",
];

/// Whether the agent or the kernel showed this, and not code.
pub(crate) fn is_of_agent(data: &Map<String, Value>) -> bool {
    let plain = text_of(data, "text/plain").unwrap_or_default();
    if let Some(html) = text_of(data, "text/html") {
        return BEGINNINGS.iter().any(|beginning| html.starts_with(beginning));
    }
    if data.contains_key("text/markdown") {
        // A display of code says what it is.
        return !plain.starts_with("<IPython.");
    }
    plain.starts_with("[picture") || plain.starts_with("[buttons") || plain.starts_with("[a form")
}
