//! JSON as a tree: an object's members on lines of their own, down to a depth; what is deeper, in a few words.

use std::fmt;
use std::marker::PhantomData;

use cellwright_output::{Counted, indented_json, visible};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr as _;

use super::style::{StyledText, TextPen, TextStyle, painted, width};
use super::wrap::{fitting, wrapped_line};

/// How much of a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeExtent {
    /// Levels that are opened.
    pub(crate) depth: usize,
    /// Members that are shown of one level.
    pub(crate) members: usize,
}

impl TreeExtent {
    pub(crate) const COLLAPSED: Self = Self { depth: 2, members: 20 };
    pub(crate) const EXPANDED: Self = Self { depth: 6, members: usize::MAX };
}

const KEY: TextStyle = TextStyle::BLUE;
const GUIDE: TextStyle = TextStyle::DIM;

/// A JSON text as lines of at most `room` columns. What is not JSON to the letter, such as `NaN`, is set on lines as it is.
pub(crate) fn lines(json: &str, extent: TreeExtent, room: usize, pen: TextPen) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<&RawValue>(json) else {
        let text = indented_json(json);
        return visible(&text).split('\n').flat_map(|line| wrapped_line(line, room)).collect();
    };
    let mut tree = TreeLines { extent, room, pen, lines: Vec::new() };
    tree.value(None, value, 0);
    tree.lines
}

/// A JSON text on one line of at most `room` columns: the members of an object as `name=value`.
pub(crate) fn summary(json: &str, room: usize, pen: TextPen) -> String {
    let Ok(value) = serde_json::from_str::<&RawValue>(json) else {
        return fitting(&visible(json).replace('\n', " "), room).to_owned();
    };
    let mut pieces = StyledText::new();
    match RawNode::of(value) {
        RawNode::Object(members) => {
            for (name, value) in members {
                let value = match RawNode::of(value) {
                    RawNode::Object(members) => closed(members.len(), '{', "member", '}'),
                    RawNode::List(items) => closed(items.len(), '[', "item", ']'),
                    RawNode::Leaf(text) => leaf(text),
                };
                let gap = if pieces.is_empty() { "" } else { "  " };
                let name = format!("{gap}{}=", visible(&name).replace('\n', " "));
                let taken = width(&pieces) + name.width();
                if taken >= room {
                    break;
                }
                pieces.push((KEY, name));
                pieces.push((value.0, fitting(&value.1.replace('\n', " "), room - taken).to_owned()));
            }
        }
        RawNode::List(items) => pieces.push(closed(items.len(), '[', "item", ']')),
        RawNode::Leaf(text) => {
            let (style, text) = leaf(text);
            pieces.push((style, fitting(&text.replace('\n', " "), room).to_owned()));
        }
    }
    painted(&pieces, pen)
}

/// A value, opened by one level.
enum RawNode<'a> {
    Object(Vec<(String, &'a RawValue)>),
    List(Vec<&'a RawValue>),
    Leaf(&'a str),
}

impl<'a> RawNode<'a> {
    fn of(value: &'a RawValue) -> Self {
        let text = value.get();
        let node = match text.as_bytes().first() {
            Some(b'{') => serde_json::from_str(text).ok().map(|RawMembers(members, _)| Self::Object(members)),
            Some(b'[') => serde_json::from_str(text).ok().map(Self::List),
            _ => None,
        };
        node.unwrap_or(Self::Leaf(text))
    }
}

/// The members of an object in their order.
struct RawMembers<'a>(Vec<(String, &'a RawValue)>, PhantomData<&'a ()>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MemberVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for MemberVisitor<'a> {
            type Value = RawMembers<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawMembers(members, PhantomData))
            }
        }
        deserializer.deserialize_map(MemberVisitor(PhantomData))
    }
}

struct TreeLines {
    extent: TreeExtent,
    room: usize,
    pen: TextPen,
    lines: Vec<String>,
}

impl TreeLines {
    fn value(&mut self, name: Option<&str>, value: &RawValue, depth: usize) {
        let name = name.map(|name| (KEY, format!("{}: ", visible(name).replace('\n', " "))));
        let level = depth + usize::from(name.is_some());
        let line = |piece| name.iter().cloned().chain([piece]).collect::<StyledText>();
        match RawNode::of(value) {
            RawNode::Leaf(text) => self.line(depth, &line(leaf(text))),
            RawNode::Object(members) => {
                let closed = closed(members.len(), '{', "member", '}');
                if level >= self.extent.depth || members.is_empty() {
                    return self.line(depth, &line(closed));
                }
                let depth = self.open(&line(closed), name.is_some(), depth);
                let left = members.len().saturating_sub(self.extent.members);
                for (name, value) in members.iter().take(self.extent.members) {
                    self.value(Some(name), value, depth);
                }
                self.more(left, depth, "member");
            }
            RawNode::List(items) => {
                let closed = closed(items.len(), '[', "item", ']');
                if level >= self.extent.depth || items.is_empty() {
                    return self.line(depth, &line(closed));
                }
                let depth = self.open(&line(closed), name.is_some(), depth);
                let left = items.len().saturating_sub(self.extent.members);
                for (place, value) in items.iter().take(self.extent.members).enumerate() {
                    self.value(Some(&place.to_string()), value, depth);
                }
                self.more(left, depth, "item");
            }
        }
    }

    /// The line of a value whose members follow. The outermost needs none.
    fn open(&mut self, line: &StyledText, has_name: bool, depth: usize) -> usize {
        if has_name {
            self.line(depth, line);
        }
        depth + usize::from(has_name)
    }

    fn more(&mut self, left: usize, depth: usize, noun: &'static str) {
        if left > 0 {
            self.line(depth, &vec![(GUIDE, format!("… {} more", Counted(left as u64, noun)))]);
        }
    }

    fn line(&mut self, depth: usize, pieces: &StyledText) {
        let depth = depth.min(self.room / 4);
        let guides = self.pen.paint(GUIDE, &"│ ".repeat(depth)).into_owned();
        let room = self.room.saturating_sub(2 * depth).max(1);
        for line in wrapped_line(&painted(pieces, self.pen), room) {
            self.lines.push(format!("{guides}{line}"));
        }
    }
}

fn closed(count: usize, open: char, noun: &'static str, close: char) -> (TextStyle, String) {
    let inside = if count == 0 { String::new() } else { Counted(count as u64, noun).to_string() };
    (GUIDE, format!("{open}{inside}{close}"))
}

/// A string, a number or a word, as JSON writes it.
fn leaf(text: &str) -> (TextStyle, String) {
    let style = match text.as_bytes().first() {
        Some(b'"') => TextStyle::GREEN,
        Some(b't' | b'f' | b'n') => TextStyle::MAGENTA,
        _ => TextStyle::CYAN,
    };
    (style, visible(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = r#"{"name": "Ada", "big": 18446744073709551616, "at": {"x": 1, "deep": {"y": [1, 2]}}, "list": [true, null], "none": {}}"#;

    #[test]
    fn a_value_is_opened_to_its_depth() {
        let shown = |extent| lines(VALUE, extent, 60, TextPen::Plain).join("\n");
        insta::assert_snapshot!(shown(TreeExtent::COLLAPSED), @r#"
        name: "Ada"
        big: 18446744073709551616
        at: {2 members}
        │ x: 1
        │ deep: {1 member}
        list: [2 items]
        │ 0: true
        │ 1: null
        none: {}
        "#);
        insta::assert_snapshot!(shown(TreeExtent::EXPANDED), @r#"
        name: "Ada"
        big: 18446744073709551616
        at: {2 members}
        │ x: 1
        │ deep: {1 member}
        │ │ y: [2 items]
        │ │ │ 0: 1
        │ │ │ 1: 2
        list: [2 items]
        │ 0: true
        │ 1: null
        none: {}
        "#);
    }

    #[test]
    fn long_lists_are_cut_and_lines_fit() {
        let list: Vec<_> = (0..25).collect();
        let shown = lines(&serde_json::to_string(&list).unwrap(), TreeExtent::COLLAPSED, 20, TextPen::Plain);
        assert_eq!((shown.len(), shown[20].as_str()), (21, "… 5 items more"));
        let shown =
            lines(r#"{"a": "0123456789012345678901234567890"}"#, TreeExtent::COLLAPSED, 20, TextPen::Plain);
        assert!(shown.iter().all(|line| line.width() <= 20), "{shown:?}");
    }

    #[test]
    fn a_value_fits_on_a_line() {
        assert_eq!(summary(VALUE, 40, TextPen::Plain), r#"name="Ada"  big=18446744073709551616"#);
        assert_eq!(
            summary(VALUE, 52, TextPen::Plain),
            r#"name="Ada"  big=18446744073709551616  at={2 members}"#
        );
        assert_eq!(summary("[1, 2]", 40, TextPen::Plain), "[2 items]");
        assert_eq!(summary("NaN", 40, TextPen::Plain), "NaN");
    }
}
