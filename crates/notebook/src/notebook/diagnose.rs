//! What a file is that cannot be read as a notebook, and what helps.

use super::ParseError;
use crate::json::SyntaxError;

/// Says what a text with this fault is. Looks at all of it, so only for a text that has one.
pub(super) fn fault(text: &str, error: SyntaxError) -> ParseError {
    let content = text.trim_start_matches('\u{feff}').trim();
    if content.is_empty() {
        return ParseError::Empty;
    }
    if let Some(pointer) = lfs_pointer(content).or_else(|| conflict(text)) {
        return pointer;
    }
    match malformed(text, error.at, error.reason) {
        ParseError::Malformed { line, column, reason } if error.is_cut => {
            ParseError::CutOff { line, column, reason }
        }
        other => other,
    }
}

/// A fault at byte `at`.
pub(super) fn malformed(text: &str, at: usize, reason: impl Into<String>) -> ParseError {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ParseError::Malformed {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1,
        reason: reason.into(),
    }
}

/// <https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md#the-pointer>
fn lfs_pointer(text: &str) -> Option<ParseError> {
    let mut lines = text.lines();
    let version = lines.next()?.strip_prefix("version https://")?;
    let is_pointer =
        version.starts_with("git-lfs.github.com/spec/") || version.starts_with("hawser.github.com/");
    let size = lines.find_map(|line| line.strip_prefix("size ")?.trim().parse().ok());
    is_pointer.then_some(ParseError::LfsPointer { size })
}

/// A line of JSON cannot begin with `<` or `>`, so a pair of such lines is a merge's.
fn conflict(text: &str) -> Option<ParseError> {
    let is_marker = |line: &str, marker: &str| {
        line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r']))
    };
    let mut lines = text.lines().enumerate();
    let (at, first) = lines.find(|(_, line)| is_marker(line, "<<<<<<<"))?;
    lines.find(|(_, line)| is_marker(line, ">>>>>>>"))?;
    Some(ParseError::Conflict { line: at + 1, marker: first.chars().take(80).collect() })
}
