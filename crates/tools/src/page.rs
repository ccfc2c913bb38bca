//! Parts of a text that fit into a reply.

use std::fmt::Write as _;

use cellwright_notebook::select::{LineRange, excerpts};
use regex::Regex;

use crate::reply::{Failure, Reply};

/// Bytes shown of a line that a search found.
const HIT: usize = 512;

/// Lines a search shows.
pub(crate) const HITS: usize = 200;

/// Bytes of them.
const FOUND: usize = 50 * 1024;

/// The lines that `ranges` ask for, within `budget` bytes. `named` is what to read to go on.
pub(crate) fn lines(named: &str, text: &str, ranges: &[LineRange], budget: usize) -> Result<Reply, Failure> {
    let parts = excerpts(text, ranges)?;
    let total = text.lines().count();
    let mut shown = String::new();
    let mut notes = Vec::new();
    for part in &parts {
        let room = budget.saturating_sub(shown.len());
        if parts.len() > 1 {
            writeln!(shown, "[line {}]", part.start).expect("a String takes everything");
        }
        let (fitting, next) = fit(part.text, room);
        shown.push_str(fitting);
        if let Some(lines) = next {
            let last = part.start + lines;
            notes.push(if lines == 0 {
                format!(
                    "[line {} is cut: it has {} bytes; search it, or take it apart with eval]",
                    part.start,
                    first_line(part.text).len()
                )
            } else {
                format!("[lines {}-{} of {total}; go on with {named}:{last}-]", part.start, last - 1)
            });
            break;
        }
    }
    let mut reply = Reply::text(shown);
    if notes.is_empty() && !ranges.is_empty() {
        notes.push(format!("[of {total} lines]"));
    }
    for note in notes {
        reply.note(note);
    }
    Ok(reply)
}

/// As many whole lines as fit, and how many those are if not all did. A first line that does not fit is cut.
fn fit(text: &str, room: usize) -> (&str, Option<usize>) {
    if text.len() <= room {
        return (text, None);
    }
    match text[..text.floor_char_boundary(room)].rfind('\n') {
        Some(end) => (&text[..=end], Some(text[..=end].matches('\n').count())),
        None => (&text[..text.floor_char_boundary(room)], Some(0)),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The pattern of a search.
pub(crate) fn pattern(search: &str) -> Result<Regex, Failure> {
    Regex::new(search).map_err(|_| {
        let literal = regex::escape(search);
        Failure::new(format!(
            "`search` is not a regular expression: {search:.80}; to find it literally, use {literal:.160}"
        ))
    })
}

/// The lines that match of those that `ranges` ask for, with their numbers. `named` is what to search to go on.
pub(crate) fn search(
    named: &str,
    text: &str,
    ranges: &[LineRange],
    pattern: &Regex,
) -> Result<Reply, Failure> {
    let parts = excerpts(text, ranges)?;
    let lines = parts.iter().flat_map(|part| (part.start as u64..).zip(part.text.lines()));
    let hits = lines.filter(|(_, line)| pattern.is_match(line));
    Ok(found(named, hits.map(|(number, line)| (number, line.to_owned())), None))
}

/// A reply of numbered lines; `next` is the line to search on from, when the search itself was cut short.
pub(crate) fn found(named: &str, hits: impl Iterator<Item = (u64, String)>, next: Option<u64>) -> Reply {
    let mut shown = String::new();
    let (mut count, mut more) = (0, next);
    for (number, line) in hits {
        if count == HITS || shown.len() > FOUND {
            more = more.or(Some(number));
            break;
        }
        let cut = line.floor_char_boundary(HIT);
        let ellipsis = if cut < line.len() { "…" } else { "" };
        writeln!(shown, "{number}: {}{ellipsis}", &line[..cut]).expect("a String takes everything");
        count += 1;
    }
    let mut reply = match count {
        0 => Reply::text("no line matches"),
        _ => Reply::text(shown),
    };
    if let Some(next) = more {
        reply.note(format!("[the first {count} matches; search on with {named}:{next}-]"));
    }
    reply
}
