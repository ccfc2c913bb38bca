//! The JSON of one cell, outside a notebook.

use std::borrow::Cow;

use crate::cell::{CellSpans, NotebookCell};
use crate::json::Json;
use crate::plan::NotACell;
use crate::splice::{Layout, with_members};

/// The JSON of a cell, as a file has or had it.
#[derive(Debug, Clone)]
pub struct CellJson<'a> {
    text: &'a str,
    spans: CellSpans,
}

impl<'a> CellJson<'a> {
    /// Checks that a text is the JSON of a cell.
    pub fn parse(text: &'a str) -> Result<Self, NotACell> {
        match CellSpans::read(text, 0, 0) {
            Ok(spans) if spans.whole.end == text.len() => Ok(Self { text, spans }),
            Ok(_) | Err(_) => Err(NotACell),
        }
    }

    /// What it says.
    pub fn cell(&self) -> NotebookCell<'_> {
        NotebookCell { text: self.text, spans: &self.spans, index: 0 }
    }

    /// Its members with the JSON of their values. If a key occurs twice, the last one counts.
    pub fn members(&self) -> Vec<(Cow<'a, str>, &'a str)> {
        self.json().members().into_iter().map(|member| (member.key, member.value.raw())).collect()
    }

    /// The same cell with another value for one of its members, or without that one.
    #[must_use]
    pub fn with_member(&self, key: &str, value: Option<&str>) -> String {
        let json = self.json();
        let layout = Layout::of(&json);
        // Where the member is new, its key is written as JSON.
        let is_there = json.get(key).is_some();
        let quoted = serde_json::Value::from(key).to_string();
        let written = if is_there { key } else { &quoted[1..quoted.len() - 1] };
        with_members(&json, &layout, vec![(written, value.map(str::to_owned))])
    }

    fn json(&self) -> Json<'a> {
        Json { text: self.text, span: self.spans.whole.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_replaced_added_or_left_out_and_the_rest_stays() {
        let text = r#"{ "cell_type": "raw",  "metadata": {}, "source": "x" }"#;
        let cell = CellJson::parse(text).unwrap();
        assert_eq!(cell.with_member("metadata", Some("{\"a\": 1}")), text.replace("{}", "{\"a\": 1}"));
        assert_eq!(
            cell.with_member("a \"key\"", Some("1")),
            r#"{ "a \"key\"": 1,  "cell_type": "raw",  "metadata": {}, "source": "x" }"#
        );
        assert_eq!(cell.with_member("metadata", None), r#"{ "cell_type": "raw", "source": "x" }"#);
        assert_eq!(cell.with_member("none", None), text);
        assert!(CellJson::parse("{}").is_err());
    }
}
