//! Parts of a text that fit into a reply, and exactly which lines they show.
//!
//! Pure: the caller has the text, and makes of a page what it likes.

use std::fmt::Write as _;
use std::ops::{Range, RangeInclusive};

use cellwright_notebook::select::{Excerpt, LineRange, PastTheEnd, excerpts};
use cellwright_output::Thousands;
use regex::Regex;

use crate::coverage::SeenLines;

/// Bytes shown of a line that a search found.
const HIT: usize = 512;

/// Lines a search shows.
pub const HITS: usize = 200;

/// Bytes of them: as much as every client passes on to its model.
const FOUND: usize = 10 * 1024;

/// Lines of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextPage {
    /// The parts, in the order asked for.
    pub parts: Vec<PagePart>,
    /// What is not shown, and how to read on.
    pub notes: Vec<String>,
}

/// Some lines in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePart {
    /// The number of the first line, counting from 1.
    pub start: usize,
    /// The number of the last line. A part of that line may be missing.
    pub end: usize,
    /// The lines, with their line ends.
    pub text: String,
    /// If the part is one line that is not shown in full: the bytes that are shown.
    pub cut: Option<CutLine>,
}

/// The bytes that are shown of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutLine {
    /// Which, counting from 1, the line end not counted.
    pub bytes: RangeInclusive<usize>,
    /// How many the line has.
    pub length: usize,
}

/// Lines that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchPage {
    /// The lines, in order.
    pub hits: Vec<SearchHit>,
    /// How to search on.
    pub notes: Vec<String>,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// Its number, counting from 1.
    pub line: usize,
    /// What to read to see it, such as `#5.0:12`, if that is not its number.
    pub address: Option<String>,
    /// How many bytes of the line stand before the text that is shown.
    pub skipped: usize,
    /// The line without its line end, or the part of it around the match.
    pub text: String,
    /// Whether the line goes on after the text.
    pub is_cut: bool,
}

/// A search that is not a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`search` is not a regular expression: {search:.80}; to find it literally, use {literal:.160}")]
pub struct BadPattern {
    search: String,
    literal: String,
}

impl TextPage {
    /// The parts as one text; several parts are headed by the numbers of their first lines.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            if self.parts.len() > 1 {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                writeln!(text, "[line {}]", part.start).expect("a String takes everything");
            }
            text.push_str(&part.text);
        }
        text
    }

    /// The lines that are shown from their first byte to their last, as ranges in the order shown.
    pub fn whole_lines(&self) -> Vec<RangeInclusive<usize>> {
        let whole = self.parts.iter().filter(|part| part.cut.is_none());
        whole.map(|part| part.start..=part.end).filter(|lines| !lines.is_empty()).collect()
    }

    /// What is shown, for the memory of the caller.
    pub fn seen_lines(&self) -> SeenLines {
        let mut seen = SeenLines::default();
        self.whole_lines().into_iter().for_each(|lines| seen.add(lines));
        for part in &self.parts {
            if let Some(CutLine { bytes, length }) = &part.cut {
                seen.add_part(part.start, bytes.clone(), *length);
            }
        }
        seen
    }
}

impl SearchPage {
    /// The lines with their numbers, or that there are none. A part of a long line is numbered by line and byte.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for SearchHit { line, address, skipped, text: found, is_cut } in &self.hits {
            let (before, after) = (if *skipped > 0 { "…" } else { "" }, if *is_cut { "…" } else { "" });
            let line = address.clone().unwrap_or_else(|| line.to_string());
            let at = if *skipped > 0 { format!("{line}@{}", skipped + 1) } else { line };
            writeln!(text, "{at}: {before}{found}{after}").expect("a String takes everything");
        }
        if text.is_empty() { "no line matches".to_owned() } else { text }
    }

    /// The lines that are shown from their first byte to their last.
    pub fn whole_lines(&self) -> Vec<RangeInclusive<usize>> {
        let whole = self.hits.iter().filter(|hit| hit.skipped == 0 && !hit.is_cut);
        whole.map(|hit| hit.line..=hit.line).collect()
    }
}

/// The lines that `ranges` ask for, within `budget` bytes, the last line end not counted. `named` is what to read
/// to go on.
///
/// A line that does not fit into an empty page is cut, and the note names the byte to go on from: no line is too
/// long to be read.
pub fn lines(named: &str, text: &str, ranges: &[LineRange], budget: usize) -> Result<TextPage, PastTheEnd> {
    let total = text.lines().count();
    let excerpts = excerpts(text, ranges)?;
    let mut page = TextPage::default();
    // A character fits, so that every page goes on.
    let mut room = budget.max(char::MAX.len_utf8());
    for (at, part) in excerpts.iter().enumerate() {
        let (start, is_first) = (part.start, page.parts.is_empty());
        // In the first line of the part.
        let length = part.skipped + part.text.lines().next().unwrap_or_default().len();
        let mut push = |text: &str, end, is_cut| {
            let to = (part.skipped + text.len()).min(length);
            let cut = CutLine { bytes: part.skipped + 1..=to, length };
            page.parts.push(PagePart {
                start,
                end,
                text: text.to_owned(),
                cut: Some(cut).filter(|_| is_cut),
            });
        };
        let go_on = |from: LineRange| {
            let rest = excerpts[at + 1..].iter().map(|later| way(later.start, later, total));
            std::iter::once(from).chain(rest).map(|range| range.to_string()).collect::<Vec<_>>().join(",")
        };
        match fit(part.text, room) {
            LineFit::Whole => {
                room = room.saturating_sub(part.text.len());
                push(part.text, part.end, part.skipped > 0);
                if part.skipped > 0 {
                    page.notes.push(match start {
                        line if line < total => {
                            format!("[the end of line {line} of {total}; go on with {named}:{}-]", line + 1)
                        }
                        line => format!("[the end of line {line}, the last]"),
                    });
                }
            }
            LineFit::Lines(shown) => {
                let next = start + shown.matches('\n').count();
                push(shown, next - 1, false);
                let way = go_on(way(next, part, total));
                page.notes.push(format!("[lines {start}-{} of {total}; go on with {named}:{way}]", next - 1));
                break;
            }
            LineFit::Cut(shown) if is_first => {
                push(shown, start, true);
                let (first, next) = (part.skipped + 1, part.skipped + shown.len() + 1);
                let [from, to, of] = [first, next - 1, length].map(|count| Thousands(count as u64));
                let way = go_on(LineRange::Within { line: start, byte: next });
                page.notes.push(format!(
                    "[line {start} is cut: bytes {from}-{to} of {of} are shown; go on with {named}:{way}]"
                ));
                break;
            }
            // A line that is cut has a page of its own.
            LineFit::Cut(_) => {
                page.notes.push(format!("[go on with {named}:{}]", go_on(way(start, part, total))));
                break;
            }
        }
    }
    if page.notes.is_empty() && !ranges.is_empty() {
        page.notes.push(format!("[{} of {total}]", shown_lines(&page.parts)));
    }
    Ok(page)
}

/// `line 3`, `lines 2-3, 7`
fn shown_lines(parts: &[PagePart]) -> String {
    let lines = parts.iter().map(|part| match (part.start, part.end) {
        (first, last) if last <= first => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    });
    let noun = if matches!(parts, [only] if only.end <= only.start) { "line" } else { "lines" };
    format!("{noun} {}", lines.collect::<Vec<_>>().join(", "))
}

/// The range that reads an excerpt from its line `next` on.
fn way(next: usize, excerpt: &Excerpt<'_>, total: usize) -> LineRange {
    match excerpt.end {
        _ if excerpt.skipped > 0 => LineRange::Within { line: excerpt.start, byte: excerpt.skipped + 1 },
        end if end >= total => LineRange::FromTo(next, None),
        end => LineRange::FromTo(next, Some(end)),
    }
}

/// How much of a text fits.
enum LineFit<'a> {
    Whole,
    /// Whole lines, at least one.
    Lines(&'a str),
    /// The beginning of the first line.
    Cut(&'a str),
}

fn fit(text: &str, room: usize) -> LineFit<'_> {
    if text.len() <= room {
        return LineFit::Whole;
    }
    let mut fitting = &text[..text.floor_char_boundary(room)];
    if text[fitting.len()..].starts_with('\n') {
        // A line that fits without its end is whole.
        fitting = &text[..=fitting.len()];
    }
    if fitting.len() == text.len() {
        return LineFit::Whole;
    }
    match fitting.rfind('\n') {
        Some(feed) => LineFit::Lines(&fitting[..=feed]),
        None => LineFit::Cut(fitting),
    }
}

/// The pattern of a search.
pub fn pattern(search: &str) -> Result<Regex, BadPattern> {
    Regex::new(search).map_err(|_| BadPattern { search: search.to_owned(), literal: regex::escape(search) })
}

/// The lines that match of those that `ranges` ask for. `named` is what to search to go on.
pub fn search(
    named: &str,
    text: &str,
    ranges: &[LineRange],
    pattern: &Regex,
) -> Result<SearchPage, PastTheEnd> {
    let parts = excerpts(text, ranges)?;
    let lines = parts.iter().flat_map(|part| {
        (part.start..).zip(part.text.lines()).map(|(n, line)| {
            let skipped = if n == part.start { part.skipped } else { 0 };
            (n, skipped, line)
        })
    });
    let hits = lines.filter(|(.., line)| pattern.is_match(line));
    Ok(found(named, hits, None, pattern))
}

/// A page of lines that match, each with its number and how many of its bytes were left out before. `next` is the
/// line to search on from when the search itself was cut short.
pub fn found<Line: AsRef<str>>(
    named: &str,
    hits: impl Iterator<Item = (usize, usize, Line)>,
    next: Option<usize>,
    pattern: &Regex,
) -> SearchPage {
    let mut page = SearchPage::default();
    let (mut shown, mut more) = (0, next);
    for (line, skipped, text) in hits {
        if page.hits.len() == HITS || shown > FOUND {
            more = more.or(Some(line));
            break;
        }
        let text = text.as_ref();
        let around = around_match(text, pattern);
        shown += around.len();
        page.hits.push(SearchHit {
            line,
            address: None,
            skipped: skipped + around.start,
            text: text[around.clone()].to_owned(),
            is_cut: around.end < text.len(),
        });
    }
    if let Some(next) = more {
        let count = page.hits.len();
        page.notes.push(format!("[the first {count} matches; search on with {named}:{next}-]"));
    }
    page
}

/// All of a line, or of a long one the part around the first match.
fn around_match(line: &str, pattern: &Regex) -> Range<usize> {
    let start = match pattern.find(line) {
        _ if line.len() <= HIT => 0,
        Some(found) if found.end() > HIT => line.floor_char_boundary(found.start().saturating_sub(HIT / 4)),
        Some(_) | None => 0,
    };
    start..line.floor_char_boundary(start + HIT)
}
