//! Writing values into a file, set the way their neighbours are.

use serde_json::Value;

use crate::json::string::{self, Escapes};

/// How values are written in one place of a file.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    /// Line end, indentation of the member whose value is written, and one step of it; none when all is on one line.
    pub(crate) lines: Option<(String, String, String)>,
    /// Between a key and its value.
    pub(crate) colon: String,
    /// After a comma, when all is on one line.
    pub(crate) gap: String,
    pub(crate) escapes: Escapes,
}

impl Printer {
    pub(crate) fn value(&self, value: &Value) -> String {
        let mut out = String::new();
        self.write(&mut out, value, 0);
        out
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
