//! A cell's source in the file: one string, or an array of strings, changed line by line.
//!
//! A line that stays keeps its spelling, escapes, lone surrogates and all: lines are compared as they read, and written
//! as they were.

use crate::json::{Json, JsonSequence, string, string::JsonEscapes};
use crate::line_diff::line_runs;
use crate::splice::{Layout, Spacing, SpliceItem, rebuild};

/// How a cell's source is stored.
#[derive(Debug)]
pub(crate) enum SourceForm {
    String,
    Lines(Spacing),
}

impl SourceForm {
    /// The form of `source`, a value in an object set as `layout`.
    pub(crate) fn of(source: &Json<'_>, layout: &Layout) -> Self {
        match source.string() {
            Some(_) => Self::String,
            None => Self::Lines(Spacing::of(source.text, &source.sequence(), || layout.nested())),
        }
    }

    /// A new source.
    pub(crate) fn write(&self, source: &str, escapes: JsonEscapes) -> String {
        let mut out = String::new();
        match self {
            Self::String => string::encode(&mut out, source, escapes),
            Self::Lines(spacing) => {
                let nothing = JsonSequence { open: 0, close: 0, items: Vec::new() };
                let lines = source
                    .split_inclusive('\n')
                    .map(|line| SpliceItem::New(literal(line, escapes)))
                    .collect();
                out.push('[');
                rebuild(&mut out, "", &nothing, lines, || spacing.clone());
                out.push(']');
            }
        }
        out
    }

    /// `old` changed to read `source`.
    pub(crate) fn rewrite(&self, old: &Json<'_>, source: &str, escapes: JsonEscapes) -> String {
        let written = WrittenSource::of(old);
        let mut out = String::new();
        match self {
            Self::String => {
                out.push('"');
                for piece in written.changed_to(source) {
                    match piece {
                        SourcePiece::Old(LineFragment { raw, line_feed, .. }) => out.extend([raw, line_feed]),
                        SourcePiece::New(line) => string::encode_inside(&mut out, line, escapes),
                    }
                }
                out.push('"');
            }
            Self::Lines(spacing) => {
                let items = written.items(source, escapes);
                out.push('[');
                rebuild(&mut out, old.text, &old.sequence(), items, || spacing.clone());
                out.push(']');
            }
        }
        out
    }
}

/// Whether a lone surrogate of `old`, which reads as U+FFFD, becomes one once it is changed to read `source`.
pub(crate) fn replaces_surrogate(old: &Json<'_>, source: &str) -> bool {
    if !source.contains(char::REPLACEMENT_CHARACTER) || !string::has_lone_surrogate(old.raw()) {
        return false;
    }
    let written = WrittenSource::of(old);
    let kept = written.kept_in(source);
    let is_lost = |(at, line): (usize, &Vec<LineFragment<'_>>)| {
        line.iter().any(|fragment| string::has_lone_surrogate(fragment.raw)) && !kept.contains(&Some(at))
    };
    let mut new = source.split_inclusive('\n').zip(&kept).filter(|(_, kept)| kept.is_none());
    written.lines.iter().enumerate().any(is_lost)
        && new.any(|(line, _)| line.contains(char::REPLACEMENT_CHARACTER))
}

fn literal(line: &str, escapes: JsonEscapes) -> String {
    let mut literal = String::new();
    string::encode(&mut literal, line, escapes);
    literal
}

/// A source as the file has it.
struct WrittenSource<'a> {
    /// Each line, from the strings it was cut into. (Mostly one; other programs cut elsewhere too.)
    lines: Vec<Vec<LineFragment<'a>>>,
    /// How many fragments each string has.
    strings: Vec<usize>,
}

/// What one string has of one line.
#[derive(Clone, Copy)]
struct LineFragment<'a> {
    /// Which string. `None` if no string has exactly this text.
    string: Option<usize>,
    /// As it is written, without the line feed.
    raw: &'a str,
    /// How the line feed is written. Empty without one.
    line_feed: &'a str,
}

/// A piece of the source to be.
enum SourcePiece<'a> {
    Old(LineFragment<'a>),
    /// A whole line.
    New(&'a str),
}

impl<'a> WrittenSource<'a> {
    fn of(source: &Json<'a>) -> Self {
        let literals = match source.string() {
            Some(_) => vec![source.raw()],
            None => source.elements().iter().map(Json::raw).collect(),
        };
        let mut written = Self { lines: Vec::new(), strings: Vec::new() };
        let mut is_ended = true;
        for (string, literal) in literals.into_iter().enumerate() {
            let fragments = raw_lines(&literal[1..literal.len() - 1]);
            written.strings.push(fragments.len());
            for (raw, line_feed) in fragments {
                if is_ended {
                    written.lines.push(Vec::new());
                }
                let line = written.lines.last_mut().expect("a source that goes on has a line");
                line.push(LineFragment { string: Some(string), raw, line_feed });
                is_ended = !line_feed.is_empty();
            }
        }
        written
    }

    /// For each line of `source`, the line of this one that it is, if any.
    fn kept_in(&self, source: &str) -> Vec<Option<usize>> {
        // Without line feeds: the last line stays what it is when another comes after it.
        let old: Vec<String> = self
            .lines
            .iter()
            .map(|line| line.iter().map(|fragment| string::decode(fragment.raw)).collect())
            .collect();
        let old: Vec<_> = old.iter().map(String::as_str).collect();
        let new: Vec<_> =
            source.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)).collect();
        let mut kept = vec![None; new.len()];
        for run in line_runs(&old, &new).into_iter().filter(|run| run.is_kept) {
            for (new, old) in run.new.zip(run.old) {
                kept[new] = Some(old);
            }
        }
        kept
    }

    /// What `source` is made of: lines that stay, as they are written, and new ones.
    fn changed_to<'s>(&'s self, source: &'s str) -> Vec<SourcePiece<'s>> {
        let mut pieces = Vec::new();
        for (line, kept) in source.split_inclusive('\n').zip(self.kept_in(source)) {
            let Some((last, others)) = kept.and_then(|kept| self.lines[kept].split_last()) else {
                pieces.push(SourcePiece::New(line));
                continue;
            };
            pieces.extend(others.iter().copied().map(SourcePiece::Old));
            pieces.push(SourcePiece::Old(match (line.ends_with('\n'), last.line_feed) {
                (true, "") => LineFragment { string: None, line_feed: "\\n", ..*last },
                (false, "") | (true, _) => *last,
                (false, _) => LineFragment { string: None, line_feed: "", ..*last },
            }));
        }
        pieces
    }

    /// The strings of an array that reads `source`. A string that does not change is kept, with the white space around it.
    fn items(&self, source: &str, escapes: JsonEscapes) -> Vec<SpliceItem> {
        let string = |piece: &SourcePiece<'_>| match piece {
            SourcePiece::Old(fragment) => fragment.string,
            SourcePiece::New(_) => None,
        };
        let new = |piece: &SourcePiece<'_>| match piece {
            SourcePiece::Old(LineFragment { raw, line_feed, .. }) => {
                SpliceItem::New(format!("\"{raw}{line_feed}\""))
            }
            SourcePiece::New(line) => SpliceItem::New(literal(line, escapes)),
        };
        let mut items = Vec::new();
        for run in self.changed_to(source).chunk_by(|a, b| string(a).is_some() && string(a) == string(b)) {
            match string(&run[0]) {
                Some(whole) if run.len() == self.strings[whole] => items.push(SpliceItem::Kept(whole)),
                Some(_) | None => items.extend(run.iter().map(new)),
            }
        }
        items
    }
}

/// The inside of a string literal, cut after every escaped line feed: what is before it, and how it is written.
fn raw_lines(inside: &str) -> Vec<(&str, &str)> {
    let mut lines = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &inside.as_bytes()[at..]) {
        at += found;
        let escape = &inside[at..];
        let is_line_feed = escape.starts_with("\\n")
            || escape.get(..6).is_some_and(|unit| unit.eq_ignore_ascii_case("\\u000a"));
        let end = at + if escape.as_bytes()[1] == b'u' { 6 } else { 2 };
        if is_line_feed {
            lines.push((&inside[start..at], &inside[at..end]));
            start = end;
        }
        at = end;
    }
    if start < inside.len() {
        lines.push((&inside[start..], ""));
    }
    lines
}
