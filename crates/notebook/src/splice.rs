//! Rebuilding one array or object of a file: kept items are copied with the white space around them,
//! new ones are set the way their neighbours are.

use crate::json::{Json, JsonSequence, string::JsonEscapes};
use crate::print::JsonPrinter;

/// An item of the sequence to be.
#[derive(Debug)]
pub(crate) enum SpliceItem {
    Kept(usize),
    Changed(usize, String),
    New(String),
}

/// The white space before the first item, before the others, before the commas, and before the closing bracket.
#[derive(Debug, Clone)]
pub(crate) struct Spacing {
    first: String,
    next: String,
    comma: String,
    last: String,
}

impl Spacing {
    /// On one line, with `next` between its items.
    fn inline(next: String) -> Self {
        Self { first: String::new(), next, comma: String::new(), last: String::new() }
    }

    /// The layout of `sequence`, with `otherwise` for what it is too short to show.
    pub(crate) fn of(text: &str, sequence: &JsonSequence, otherwise: impl FnOnce() -> Self) -> Self {
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
        let comma = if end > 0 { sequence.trail(text, 0).to_owned() } else { String::new() };
        Self { first, next, comma, last: sequence.trail(text, end).to_owned() }
    }
}

/// How an object is laid out: the space before its members, between key and value, and before its closing brace.
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
        let inline = || Spacing::inline(" ".to_owned());
        Self { members: Spacing::of(text, &object.sequence(), inline), colon: colon.to_owned() }
    }

    /// The spacing of an array or object that is a member's value.
    pub(crate) fn nested(&self) -> Spacing {
        let Some((line_end, indent)) = line_start(&self.members.next) else {
            return Spacing::inline(self.members.next.clone());
        };
        let item = format!("{line_end}{indent}{}", self.unit());
        Spacing { first: item.clone(), next: item, comma: String::new(), last: format!("{line_end}{indent}") }
    }

    /// The layout of an object that is an element of a member's array.
    pub(crate) fn of_element(&self) -> Self {
        let around = self.nested();
        let members = if around.next.contains('\n') {
            let member = format!("{}{}", around.next, self.unit());
            Spacing { first: member.clone(), next: member, comma: String::new(), last: around.next }
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
    pub(crate) fn printer(&self, escapes: JsonEscapes) -> JsonPrinter {
        let lines = line_start(&self.members.next)
            .map(|(line_end, indent)| (line_end.to_owned(), indent.to_owned(), self.unit().to_owned()));
        JsonPrinter { lines, colon: self.colon.clone(), gap: self.members.next.clone(), escapes }
    }

    pub(crate) fn member(&self, key: &str, value: &str) -> String {
        format!("\"{key}\"{}{value}", self.colon)
    }

    pub(crate) fn object(&self, members: Vec<String>) -> String {
        let nothing = JsonSequence { open: 0, close: 0, items: Vec::new() };
        let mut out = "{".to_owned();
        rebuild(&mut out, "", &nothing, members.into_iter().map(SpliceItem::New).collect(), || {
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

/// A part of the text between the brackets of a sequence.
pub(crate) enum SplicePart<'a> {
    /// White space, or a comma.
    Between(&'a str),
    Item(SpliceItem),
}

/// The text between the brackets of `sequence` once its items are `items`. New parts are laid out as in `spacing`.
pub(crate) fn parts<'a>(
    text: &'a str,
    sequence: &JsonSequence,
    items: Vec<SpliceItem>,
    spacing: &'a Spacing,
) -> Vec<SplicePart<'a>> {
    let Some(end) = items.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut parts = Vec::with_capacity(4 * items.len());
    let old_end = sequence.items.len().wrapping_sub(1);
    for (place, item) in items.into_iter().enumerate() {
        let old = match &item {
            SpliceItem::Kept(old) | SpliceItem::Changed(old, _) => Some(*old),
            SpliceItem::New(_) => None,
        };
        parts.push(SplicePart::Between(match old {
            _ if place == 0 => &spacing.first,
            Some(old @ 1..) => sequence.lead(text, old),
            Some(0) | None => &spacing.next,
        }));
        parts.push(SplicePart::Item(item));
        match old {
            _ if place == end => parts.push(SplicePart::Between(&spacing.last)),
            Some(old) if old != old_end => parts.push(SplicePart::Between(sequence.trail(text, old))),
            // What stood before the closing bracket stays there.
            Some(_) | None => parts.push(SplicePart::Between(&spacing.comma)),
        }
        if place != end {
            parts.push(SplicePart::Between(","));
        }
    }
    parts
}

/// Appends the text between the brackets of `sequence` once its items are `items`.
/// `otherwise` is its layout if it has too few items to show one.
pub(crate) fn rebuild(
    out: &mut String,
    text: &str,
    sequence: &JsonSequence,
    items: Vec<SpliceItem>,
    otherwise: impl FnOnce() -> Spacing,
) {
    for part in parts(text, sequence, items, &Spacing::of(text, sequence, otherwise)) {
        out.push_str(match &part {
            SplicePart::Between(text) => text,
            SplicePart::Item(SpliceItem::Kept(old)) => &text[sequence.items[*old].clone()],
            SplicePart::Item(SpliceItem::Changed(_, body) | SpliceItem::New(body)) => body,
        });
    }
}

/// A change of an object's member: its new value as JSON, or `None` to remove it.
pub(crate) type MemberChange<'a> = (&'a str, Option<String>);

/// A copy of `object`, laid out as `layout`, with these changes. If a key occurs twice, the last one is replaced, or all are
/// removed. A key that is both removed and set becomes a new member. New members go where Jupyter, which sorts keys, would put
/// them. All rewriting of cells goes through here.
pub(crate) fn with_members(object: &Json<'_>, layout: &Layout, changes: Vec<MemberChange<'_>>) -> String {
    let members = object.members();
    let last = |key: &str| members.iter().rposition(|member| member.key == key);
    let is_removed = |(key, value): &MemberChange<'_>| value.is_none() && last(key).is_some();
    let removed: Vec<_> = changes.iter().filter(|change| is_removed(change)).map(|(key, _)| *key).collect();
    let (mut replaced, mut missing) = (Vec::new(), Vec::new());
    for (key, value) in changes {
        match (last(key).filter(|_| !removed.contains(&key)), value) {
            (Some(at), Some(value)) => replaced.push((at, value)),
            (None, Some(value)) => missing.push((key, value)),
            (_, None) => {}
        }
    }
    if replaced.is_empty() && missing.is_empty() && removed.is_empty() {
        return object.raw().to_owned();
    }
    missing.sort_by_key(|(key, _)| *key);
    let mut missing = missing.into_iter().peekable();
    let mut items = Vec::with_capacity(members.len() + missing.len());
    for (at, member) in members.iter().enumerate() {
        while let Some((key, value)) = missing.next_if(|(key, _)| *key < &*member.key) {
            items.push(SpliceItem::New(layout.member(key, &value)));
        }
        if removed.contains(&&*member.key) {
            continue;
        }
        items.push(match replaced.iter().find(|(place, _)| *place == at) {
            Some((_, value)) => {
                let head = &object.text[member.key_span.start..member.value.span.start];
                SpliceItem::Changed(at, format!("{head}{value}"))
            }
            None => SpliceItem::Kept(at),
        });
    }
    items.extend(missing.map(|(key, value)| SpliceItem::New(layout.member(key, &value))));
    let mut out = "{".to_owned();
    rebuild(&mut out, object.text, &object.sequence(), items, || layout.members.clone());
    out.push('}');
    out
}
