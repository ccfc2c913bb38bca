//! Rebuilding one array or object of a file: kept items are copied with the white space around them,
//! new ones are set the way their neighbours are.

use crate::json::{Json, JsonMember, JsonSequence, string::JsonEscapes};
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

    /// How `sequence` is set, as far as it shows; `otherwise` for what it is too short to show.
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

/// A part of what stands between the brackets of a sequence.
pub(crate) enum SplicePart<'a> {
    /// White space, or a comma.
    Between(&'a str),
    Item(SpliceItem),
}

/// What stands between the brackets of `sequence` once its items are `items`, set as `spacing` where it is new.
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

/// Appends what stands between the brackets of `sequence` once its items are `items`.
/// `otherwise` is how to set it when it has too few items to show how it is set.
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

/// A copy of `member` with another value.
pub(crate) fn with_value(member: &JsonMember<'_>, value: &str) -> String {
    let head = &member.value.text[member.key_span.start..member.value.span.start];
    format!("{head}{value}")
}

/// A copy of `object` without `key`; none when it has no such member.
pub(crate) fn without_member(object: &Json<'_>, layout: &Layout, key: &str) -> Option<String> {
    let members = object.members();
    let kept: Vec<_> = (0..members.len()).filter(|at| members[*at].key != key).collect();
    if kept.len() == members.len() {
        return None;
    }
    let mut out = "{".to_owned();
    let items = kept.into_iter().map(SpliceItem::Kept).collect();
    rebuild(&mut out, object.text, &object.sequence(), items, || layout.members.clone());
    out.push('}');
    Some(out)
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
            items.push(SpliceItem::New(layout.member(key, &value)));
        }
        items.push(match replaced.iter().find(|(place, _)| *place == at) {
            Some((_, value)) => SpliceItem::Changed(at, with_value(member, value)),
            None => SpliceItem::Kept(at),
        });
    }
    items.extend(missing.map(|(key, value)| SpliceItem::New(layout.member(key, &value))));
    let mut out = "{".to_owned();
    rebuild(&mut out, object.text, &object.sequence(), items, || layout.members.clone());
    out.push('}');
    out
}
