//! Rebuilding one array or object of a file: kept items are copied with the white space around them,
//! new ones are set the way their neighbours are.

use crate::json::{Json, Member, Sequence, Span, string, string::Escapes};
use crate::print::Printer;

/// An item of the sequence to be.
#[derive(Debug)]
pub(crate) enum Item {
    Kept(usize),
    Changed(usize, String),
    New(String),
}

/// The white space before the first item, before the others, and before the closing bracket.
#[derive(Debug, Clone)]
pub(crate) struct Spacing {
    first: String,
    next: String,
    last: String,
}

impl Spacing {
    /// How `sequence` is set, as far as it shows; `otherwise` for what it is too short to show.
    fn of(text: &str, sequence: &Sequence, otherwise: impl FnOnce() -> Self) -> Self {
        let Some(end) = sequence.items.len().checked_sub(1) else {
            return otherwise();
        };
        let first = sequence.lead(text, 0).to_owned();
        let next = if end > 0 {
            sequence.lead(text, 1).to_owned()
        } else if first.contains('\n') {
            first.clone()
        } else {
            let next = otherwise().next;
            if next.contains('\n') { " ".to_owned() } else { next }
        };
        Self { first, next, last: sequence.trail(text, end).to_owned() }
    }
}

/// How an object is set: what stands before its members, between key and value, and before its closing brace.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    members: Spacing,
    colon: String,
}

impl Layout {
    /// The layout of `object`, which has at least two members.
    pub(crate) fn of(object: &Json<'_>) -> Self {
        let text = object.text;
        let members = object.members();
        let colon = members.first().map_or(": ", |first| &text[first.key_span.end..first.value.span.start]);
        let inline = || Spacing { first: String::new(), next: " ".to_owned(), last: String::new() };
        Self { members: Spacing::of(text, &object.sequence(), inline), colon: colon.to_owned() }
    }

    /// The spacing of an array or object that is a member's value.
    pub(crate) fn nested(&self) -> Spacing {
        let Some((line_end, indent)) = line_start(&self.members.next) else {
            return Spacing { first: String::new(), next: self.members.next.clone(), last: String::new() };
        };
        let item = format!("{line_end}{indent}{}", self.unit());
        Spacing { first: item.clone(), next: item, last: format!("{line_end}{indent}") }
    }

    /// The layout of an object that is an element of a member's array.
    pub(crate) fn of_element(&self) -> Self {
        let around = self.nested();
        let members = if around.next.contains('\n') {
            let member = format!("{}{}", around.next, self.unit());
            Spacing { first: member.clone(), next: member, last: around.next }
        } else {
            around
        };
        Self { members, colon: self.colon.clone() }
    }

    /// The layout of `object`, the value of a member.
    pub(crate) fn of_value(&self, object: &Json<'_>) -> Self {
        let members = Spacing::of(object.text, &object.sequence(), || self.nested());
        Self { members, colon: self.colon.clone() }
    }

    /// How to write a member's value.
    pub(crate) fn printer(&self, escapes: Escapes) -> Printer {
        let lines = line_start(&self.members.next)
            .map(|(line_end, indent)| (line_end.to_owned(), indent.to_owned(), self.unit().to_owned()));
        Printer { lines, colon: self.colon.clone(), gap: self.members.next.clone(), escapes }
    }

    pub(crate) fn member(&self, key: &str, value: &str) -> String {
        format!("\"{key}\"{}{value}", self.colon)
    }

    pub(crate) fn object(&self, members: Vec<String>) -> String {
        let nothing = Sequence { open: 0, close: 0, items: Vec::new() };
        let mut out = "{".to_owned();
        rebuild(&mut out, "", &nothing, members.into_iter().map(Item::New).collect(), || {
            self.members.clone()
        });
        out.push('}');
        out
    }

    /// One step of indentation.
    fn unit(&self) -> &str {
        let indent = line_start(&self.members.next).map_or("", |(_, indent)| indent);
        let outer = line_start(&self.members.last).map_or("", |(_, indent)| indent);
        indent.strip_prefix(outer).filter(|unit| !unit.is_empty()).unwrap_or(" ")
    }
}

/// The last line end of `space` and the indentation after it.
fn line_start(space: &str) -> Option<(&str, &str)> {
    let newline = space.rfind('\n')?;
    let start = if space[..newline].ends_with('\r') { newline - 1 } else { newline };
    Some((&space[start..=newline], &space[newline + 1..]))
}

/// Appends what stands between the brackets of `sequence` once its items are `items`; returns where each item is in `out`.
/// `otherwise` is how to set it when it has too few items to show how it is set.
pub(crate) fn rebuild(
    out: &mut String,
    text: &str,
    sequence: &Sequence,
    items: Vec<Item>,
    otherwise: impl FnOnce() -> Spacing,
) -> Vec<Span> {
    if items.is_empty() {
        return Vec::new();
    }
    let mut placed = Vec::with_capacity(items.len());
    let spacing = Spacing::of(text, sequence, otherwise);
    let old_end = sequence.items.len().wrapping_sub(1);
    let end = items.len() - 1;
    for (place, item) in items.into_iter().enumerate() {
        let old = match &item {
            Item::Kept(old) | Item::Changed(old, _) => Some(*old),
            Item::New(_) => None,
        };
        out.push_str(match old {
            _ if place == 0 => &spacing.first,
            Some(old @ 1..) => sequence.lead(text, old),
            Some(0) | None => &spacing.next,
        });
        let start = out.len();
        match item {
            Item::Kept(old) => out.push_str(&text[sequence.items[old].clone()]),
            Item::Changed(_, body) | Item::New(body) => out.push_str(&body),
        }
        placed.push(start..out.len());
        match old {
            _ if place == end => out.push_str(&spacing.last),
            Some(old) if old != old_end => out.push_str(sequence.trail(text, old)),
            Some(_) | None => {}
        }
        if place != end {
            out.push(',');
        }
    }
    placed
}

/// A copy of `member` with another value.
pub(crate) fn with_value(member: &Member<'_>, value: &str) -> String {
    let head = &member.value.text[member.key_span.start..member.value.span.start];
    format!("{head}{value}")
}

/// A copy of `object`, set as `layout`, with other values for some keys. Those it does not have go where Jupyter, which sorts keys,
/// would put them.
pub(crate) fn with_members(object: &Json<'_>, layout: &Layout, changes: Vec<(&str, String)>) -> String {
    let members = object.members();
    let last = |key: &str| members.iter().rposition(|member| member.key == key);
    let (mut replaced, mut missing) = (Vec::new(), Vec::new());
    for (key, value) in changes {
        match last(key) {
            Some(at) => replaced.push((at, value)),
            None => missing.push((key, value)),
        }
    }
    missing.sort_by_key(|(key, _)| *key);
    let mut missing = missing.into_iter().peekable();
    let mut items = Vec::with_capacity(members.len() + missing.len());
    for (at, member) in members.iter().enumerate() {
        while let Some((key, value)) = missing.next_if(|(key, _)| *key < &*member.key) {
            items.push(Item::New(layout.member(key, &value)));
        }
        items.push(match replaced.iter().find(|(place, _)| *place == at) {
            Some((_, value)) => Item::Changed(at, with_value(member, value)),
            None => Item::Kept(at),
        });
    }
    items.extend(missing.map(|(key, value)| Item::New(layout.member(key, &value))));
    let mut out = "{".to_owned();
    rebuild(&mut out, object.text, &object.sequence(), items, || layout.members.clone());
    out.push('}');
    out
}

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
    pub(crate) fn write(&self, source: &str, escapes: Escapes) -> String {
        let mut out = String::new();
        match self {
            Self::String => string::encode(&mut out, source, escapes),
            Self::Lines(spacing) => {
                let nothing = Sequence { open: 0, close: 0, items: Vec::new() };
                out.push('[');
                rebuild(&mut out, "", &nothing, new_lines(source, escapes).collect(), || spacing.clone());
                out.push(']');
            }
        }
        out
    }

    /// `old` changed to read `source`; lines at its start and end that stay the same stay as they are written.
    pub(crate) fn rewrite(&self, old: &Json<'_>, source: &str, escapes: Escapes) -> String {
        match self {
            Self::String => rewrite_string(&old.raw()[1..old.raw().len() - 1], source, escapes),
            Self::Lines(spacing) => rewrite_lines(old, source, escapes, spacing),
        }
    }
}

fn new_lines(source: &str, escapes: Escapes) -> impl Iterator<Item = Item> {
    source.split_inclusive('\n').map(move |line| {
        let mut literal = String::new();
        string::encode(&mut literal, line, escapes);
        Item::New(literal)
    })
}

fn rewrite_lines(old: &Json<'_>, source: &str, escapes: Escapes, spacing: &Spacing) -> String {
    let sequence = old.sequence();
    let elements: Vec<_> =
        old.elements().iter().map(|element| element.string().unwrap_or_default()).collect();
    let kept = Kept::between(&elements, source);
    let mut items: Vec<_> = (0..kept.front).map(Item::Kept).collect();
    items.extend(new_lines(&source[kept.changed.clone()], escapes));
    items.extend((elements.len() - kept.back..elements.len()).map(Item::Kept));
    let mut out = "[".to_owned();
    rebuild(&mut out, old.text, &sequence, items, || spacing.clone());
    out.push(']');
    out
}

fn rewrite_string(inside: &str, source: &str, escapes: Escapes) -> String {
    let raw = raw_lines(inside);
    let lines: Vec<_> = raw.iter().map(|line| string::decode(line)).collect();
    let kept = Kept::between(&lines, source);
    let mut out = "\"".to_owned();
    out.extend(raw[..kept.front].iter().copied());
    string::encode_inside(&mut out, &source[kept.changed.clone()], escapes);
    out.extend(raw[raw.len() - kept.back..].iter().copied());
    out.push('"');
    out
}

/// Which pieces of an old source are whole lines that the new one starts and ends with.
struct Kept {
    front: usize,
    back: usize,
    /// The part of the new source between them.
    changed: std::ops::Range<usize>,
}

impl Kept {
    fn between(pieces: &[impl AsRef<str>], source: &str) -> Self {
        let mut kept = Self { front: 0, back: 0, changed: 0..source.len() };
        for piece in pieces.iter().map(AsRef::as_ref) {
            if !piece.ends_with('\n') || !source[kept.changed.clone()].starts_with(piece) {
                break;
            }
            kept.front += 1;
            kept.changed.start += piece.len();
        }
        for piece in pieces[kept.front..].iter().rev().map(AsRef::as_ref) {
            let rest = &source[kept.changed.clone()];
            let is_line =
                rest.strip_suffix(piece).is_some_and(|before| before.is_empty() || before.ends_with('\n'));
            if piece.is_empty() || !is_line {
                break;
            }
            kept.back += 1;
            kept.changed.end -= piece.len();
        }
        kept
    }
}

/// The inside of a string literal, cut after every escaped line feed.
fn raw_lines(inside: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &inside.as_bytes()[at..]) {
        at += found;
        let escape = &inside[at..];
        let is_line_feed = escape.starts_with("\\n")
            || escape.get(..6).is_some_and(|unit| unit.eq_ignore_ascii_case("\\u000a"));
        at += if escape.as_bytes()[1] == b'u' { 6 } else { 2 };
        if is_line_feed {
            lines.push(&inside[start..at]);
            start = at;
        }
    }
    if start < inside.len() {
        lines.push(&inside[start..]);
    }
    lines
}
