//! What a call of a tool would do, and how that is put to the person.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{ToolCallLocation, ToolCallUpdateFields, ToolKind};
use serde_json::{Map, Value};

use crate::agent::QuestionDefault;

/// The longest title of a card.
const TITLE: usize = 80;

/// A call, as the person sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolDeed {
    pub(crate) title: String,
    /// The code that runs, or what is written.
    pub(crate) text: Option<String>,
    pub(crate) kind: DeedKind,
}

/// What a call needs before it may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeedKind {
    /// It only looks.
    Look,
    /// It runs code: the permission `run`.
    Run,
    /// It changes this file: the permission `edit`.
    Edit(PathBuf),
}

impl ToolDeed {
    /// What a call does, in a notebook at this path.
    pub(crate) fn of(name: &str, arguments: &Map<String, Value>, cwd: &Path) -> Self {
        let text = |field: &str| arguments.get(field).and_then(Value::as_str);
        let action = text("action").unwrap_or_default();
        match name {
            "eval" => {
                let code = code(arguments);
                let first = code.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
                let title = text("title").map_or_else(|| format!("`{first}`"), str::to_owned);
                Self { title: shortened(&title), text: Some(code), kind: DeedKind::Run }
            }
            "kernel" if matches!(action, "restart" | "shutdown") => {
                let title = format!("{action} the kernel of this notebook: its variables go");
                Self { title, text: None, kind: DeedKind::Run }
            }
            "notebook" if action == "run" || arguments.get("run") == Some(&Value::Bool(true)) => {
                let title = format!("{action} and run cells of {}", text("path").unwrap_or_default());
                Self { title, text: text("source").map(str::to_owned), kind: DeedKind::Run }
            }
            "notebook" if action != "history" => {
                let path = text("path").unwrap_or_default();
                let title = format!("{action} a cell of {path}");
                let text = text("source").map(str::to_owned);
                Self { title, text, kind: DeedKind::Edit(cwd.join(path)) }
            }
            _ => Self { title: name.to_owned(), text: None, kind: DeedKind::Look },
        }
    }

    /// The deed as the card of its call shows it.
    pub(crate) fn fields(&self) -> ToolCallUpdateFields {
        let mut fields = ToolCallUpdateFields::new().title(self.title.clone());
        fields = match &self.kind {
            DeedKind::Look => fields.kind(ToolKind::Read),
            DeedKind::Run => fields.kind(ToolKind::Execute),
            DeedKind::Edit(path) => {
                fields.kind(ToolKind::Edit).locations(vec![ToolCallLocation::new(path.clone())])
            }
        };
        match &self.text {
            Some(text) => fields.raw_input(Value::from(text.as_str())),
            None => fields,
        }
    }

    /// Whether the person must have a say, and in what. `None` for what only looks.
    pub(crate) fn question(&self) -> Option<QuestionDefault> {
        match self.kind {
            DeedKind::Look => None,
            DeedKind::Run => Some(QuestionDefault::Run),
            DeedKind::Edit(_) => Some(QuestionDefault::Undecided),
        }
    }
}

/// All code of an `eval`.
fn code(arguments: &Map<String, Value>) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(code) = arguments.get("code").and_then(text) {
        return code;
    }
    let cells = arguments.get("cells").and_then(Value::as_array);
    let codes = cells.into_iter().flatten().filter_map(|cell| cell.get("code").and_then(text));
    codes.collect::<Vec<_>>().join("\n# %%\n")
}

fn shortened(title: &str) -> String {
    match title.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deed(name: &str, arguments: Value) -> ToolDeed {
        let Value::Object(arguments) = arguments else { unreachable!("it is an object") };
        ToolDeed::of(name, &arguments, Path::new("/work"))
    }

    #[test]
    fn a_question_about_code_shows_all_of_it() {
        let long = format!("\nx = 1\n{}", "print(x)\n".repeat(500));
        let run = deed("eval", json!({"code": long}));
        assert_eq!((run.title.as_str(), run.text.as_deref()), ("`x = 1`", Some(&*long)));
        let cells = deed("eval", json!({"cells": [{"code": "a"}, {"code": "b"}], "title": "Two"}));
        assert_eq!((cells.title.as_str(), cells.text.as_deref()), ("Two", Some("a\n# %%\nb")));
        assert_eq!(cells.question(), Some(QuestionDefault::Run));
    }

    #[test]
    fn what_only_looks_needs_no_permission() {
        for (name, arguments) in [
            ("read", json!({"path": "a"})),
            ("kernel", json!({"action": "status"})),
            ("notebook", json!({"action": "history", "path": "a.ipynb"})),
        ] {
            assert_eq!(deed(name, arguments).question(), None, "{name}");
        }
        let edit = deed("notebook", json!({"action": "insert", "path": "a.ipynb", "source": "x"}));
        assert_eq!(edit.kind, DeedKind::Edit("/work/a.ipynb".into()));
        let run = deed("notebook", json!({"action": "insert", "path": "a.ipynb", "run": true}));
        assert_eq!(
            (run.kind, deed("kernel", json!({"action": "restart"})).kind),
            (DeedKind::Run, DeedKind::Run)
        );
    }
}
