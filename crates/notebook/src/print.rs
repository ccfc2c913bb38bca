//! Writing values into a file, set the way their neighbours are.

use serde_json::Value;

use crate::json::string::{self, JsonEscapes};
use crate::json::{Json, JsonKind};

/// What to write.
#[derive(Debug)]
pub(crate) enum JsonNode {
    Value(Value),
    /// JSON that was checked, for its digits to stay.
    Text(String),
    Array(Vec<JsonNode>),
    Object(Vec<(String, JsonNode)>),
}

/// How values are written in one place of a file.
#[derive(Debug, Clone)]
pub(crate) struct JsonPrinter {
    /// Line end, indentation of the member whose value is written, and one step of it. `None` if everything is on one line.
    pub(crate) lines: Option<(String, String, String)>,
    /// Between a key and its value.
    pub(crate) colon: String,
    /// After a comma, when all is on one line.
    pub(crate) gap: String,
    pub(crate) escapes: JsonEscapes,
}

impl JsonPrinter {
    pub(crate) fn value(&self, value: &Value) -> String {
        let mut out = String::new();
        self.write(&mut out, value, 0);
        out
    }

    pub(crate) fn node(&self, node: &JsonNode) -> String {
        let mut out = String::new();
        self.write_node(&mut out, node, 0);
        out
    }

    fn write_node(&self, out: &mut String, node: &JsonNode, depth: usize) {
        match node {
            JsonNode::Value(value) => self.write(out, value, depth),
            JsonNode::Text(text) => self.write_text(out, &Json { text, span: 0..text.len() }, depth),
            JsonNode::Array(items) => {
                self.sequence(out, ['[', ']'], depth, items, |out, item| {
                    self.write_node(out, item, depth + 1);
                });
            }
            JsonNode::Object(members) => {
                self.sequence(out, ['{', '}'], depth, members, |out, (key, node)| {
                    string::encode(out, key, self.escapes);
                    out.push_str(&self.colon);
                    self.write_node(out, node, depth + 1);
                });
            }
        }
    }

    fn write_text(&self, out: &mut String, json: &Json<'_>, depth: usize) {
        match json.kind() {
            JsonKind::Number | JsonKind::Word => out.push_str(json.raw()),
            JsonKind::String => string::encode(out, &json.string().unwrap_or_default(), self.escapes),
            JsonKind::Array => {
                self.sequence(out, ['[', ']'], depth, json.elements(), |out, item| {
                    self.write_text(out, &item, depth + 1);
                });
            }
            JsonKind::Object => {
                self.sequence(out, ['{', '}'], depth, json.members(), |out, member| {
                    string::encode(out, &member.key, self.escapes);
                    out.push_str(&self.colon);
                    self.write_text(out, &member.value, depth + 1);
                });
            }
        }
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
            Value::String(text) => string::encode(out, text, self.escapes),
            Value::Array(items) => {
                self.sequence(out, ['[', ']'], depth, items, |out, item| self.write(out, item, depth + 1));
            }
            Value::Object(members) => {
                self.sequence(out, ['{', '}'], depth, members, |out, (key, value)| {
                    string::encode(out, key, self.escapes);
                    out.push_str(&self.colon);
                    self.write(out, value, depth + 1);
                });
            }
        }
    }

    fn sequence<T>(
        &self,
        out: &mut String,
        brackets: [char; 2],
        depth: usize,
        items: impl IntoIterator<Item = T>,
        write: impl Fn(&mut String, T),
    ) {
        out.push(brackets[0]);
        let mut is_empty = true;
        for item in items {
            if !is_empty {
                out.push(',');
            }
            match &self.lines {
                Some(_) => self.line(out, depth + 1),
                None if is_empty => {}
                None => out.push_str(&self.gap),
            }
            is_empty = false;
            write(out, item);
        }
        if !is_empty {
            self.line(out, depth);
        }
        out.push(brackets[1]);
    }

    fn line(&self, out: &mut String, depth: usize) {
        if let Some((line_end, indent, unit)) = &self.lines {
            out.push_str(line_end);
            out.push_str(indent);
            out.extend(std::iter::repeat_n(unit.as_str(), depth));
        }
    }
}
