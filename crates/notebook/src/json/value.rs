//! Walking a checked text: a [`Json`] is a place in it, a [`JsonSequence`] the items of an array or object there.

use std::borrow::Cow;

use super::{JsonScanner, TextSpan, string};

/// A value of a text that [`JsonScanner::value`] has accepted whole.
#[derive(Debug, Clone)]
pub(crate) struct Json<'a> {
    pub(crate) text: &'a str,
    pub(crate) span: TextSpan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonKind {
    Object,
    Array,
    String,
    Number,
    Word,
}

/// One `"key": value` of an object.
#[derive(Debug, Clone)]
pub(crate) struct JsonMember<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_span: TextSpan,
    pub(crate) value: Json<'a>,
}

/// The items between two brackets and the white space around each of them.
#[derive(Debug, Clone)]
pub(crate) struct JsonSequence {
    /// Just after the opening bracket.
    pub(crate) open: usize,
    /// At the closing bracket.
    pub(crate) close: usize,
    /// Elements, or members from key to value.
    pub(crate) items: Vec<TextSpan>,
}

const CHECKED: &str = "the text was checked whole";

impl<'a> Json<'a> {
    /// Whether a text is one value and nothing else, and can stand inside `depth` brackets of a file.
    pub(crate) fn is_one(text: &str, depth: usize) -> bool {
        let mut scanner = JsonScanner::inside(text, 0, depth);
        scanner.value().is_ok() && scanner.at == text.len()
    }

    pub(crate) fn raw(&self) -> &'a str {
        &self.text[self.span.clone()]
    }

    pub(crate) fn kind(&self) -> JsonKind {
        match self.text.as_bytes()[self.span.start] {
            b'{' => JsonKind::Object,
            b'[' => JsonKind::Array,
            b'"' => JsonKind::String,
            b'-' | b'0'..=b'9' => JsonKind::Number,
            _ => JsonKind::Word,
        }
    }

    /// The text of a string value.
    pub(crate) fn string(&self) -> Option<Cow<'a, str>> {
        (self.kind() == JsonKind::String)
            .then(|| string::decode(&self.text[self.span.start + 1..self.span.end - 1]))
    }

    /// A small whole number; some writers give it a fraction of zero.
    pub(crate) fn integer(&self) -> Option<i64> {
        let raw = self.raw();
        raw.strip_suffix(".0").unwrap_or(raw).parse().ok()
    }

    /// The elements of an array. Empty for any other value.
    pub(crate) fn elements(&self) -> Vec<Json<'a>> {
        if self.kind() != JsonKind::Array {
            return Vec::new();
        }
        self.sequence().items.into_iter().map(|span| Json { text: self.text, span }).collect()
    }

    /// The members of an object, in file order. Empty for any other value.
    pub(crate) fn members(&self) -> Vec<JsonMember<'a>> {
        if self.kind() != JsonKind::Object {
            return Vec::new();
        }
        self.sequence().items.into_iter().map(|span| JsonMember::at(self.text, &span)).collect()
    }

    /// The value of `key`: of equal keys the last counts, as for Python and JavaScript.
    pub(crate) fn get(&self, key: &str) -> Option<Json<'a>> {
        self.members().into_iter().rfind(|member| member.key == key).map(|member| member.value)
    }

    /// Where the items of this array or object are.
    pub(crate) fn sequence(&self) -> JsonSequence {
        let (is_object, close) = match self.kind() {
            JsonKind::Object => (true, b'}'),
            JsonKind::Array => (false, b']'),
            JsonKind::String | JsonKind::Number | JsonKind::Word => {
                panic!("only arrays and objects have items")
            }
        };
        let open = self.span.start + 1;
        let mut scanner = JsonScanner::new(self.text, open);
        let mut items = Vec::new();
        scanner.space();
        if !scanner.take(close) {
            loop {
                let start = scanner.at;
                if is_object {
                    scanner.key().expect(CHECKED);
                }
                scanner.value().expect(CHECKED);
                items.push(start..scanner.at);
                if scanner.delimiter(close).expect(CHECKED) {
                    break;
                }
            }
        }
        JsonSequence { open, close: scanner.at - 1, items }
    }
}

impl<'a> JsonMember<'a> {
    fn at(text: &'a str, span: &TextSpan) -> Self {
        let mut scanner = JsonScanner::new(text, span.start);
        let key_span = scanner.key().expect(CHECKED);
        let key = string::decode(&text[key_span.start + 1..key_span.end - 1]);
        Self { key, key_span, value: Json { text, span: scanner.at..span.end } }
    }
}

impl JsonSequence {
    /// The white space between the bracket or comma before item `at` and the item.
    pub(crate) fn lead<'a>(&self, text: &'a str, at: usize) -> &'a str {
        let from = if at == 0 { self.open } else { self.comma(text, at - 1) + 1 };
        &text[from..self.items[at].start]
    }

    /// The white space between item `at` and the comma or bracket after it.
    pub(crate) fn trail<'a>(&self, text: &'a str, at: usize) -> &'a str {
        let to = if at + 1 == self.items.len() { self.close } else { self.comma(text, at) };
        &text[self.items[at].end..to]
    }

    fn comma(&self, text: &str, after: usize) -> usize {
        let from = self.items[after].end;
        from + text[from..].find(',').expect("items are separated by commas")
    }
}
