//! Parameters, put into a notebook as papermill does: in a cell of their own after the one tagged `parameters`.

use std::fmt::Write as _;

use cellwright_notebook::{
    Action, CellKind, CellRef, EditError, EditedNotebook, NewCell, Notebook, OutputsAfterEdit,
};
use serde_json::Value;

use crate::plan::PlanError;

/// A name and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: Value,
}

/// Parameters that cannot be written down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnwritableParameter {
    /// We do not know how.
    #[error("parameters can be given to Python, R and Julia; this notebook is in {language}")]
    Language {
        /// The notebook's language.
        language: String,
    },
    /// Not the name of a variable.
    #[error("`{name}` cannot be the name of a variable")]
    Name {
        /// The name.
        name: String,
    },
}

const TAG: &str = "injected-parameters";

/// A notebook with the parameters in it.
#[derive(Debug)]
pub(crate) struct InjectedNotebook {
    /// Without a notebook if they were in it already.
    pub(crate) edited: EditedNotebook,
    /// The cell they are in.
    at: usize,
    /// Cells from there on have moved by one.
    is_new: bool,
}

impl InjectedNotebook {
    /// Which cells are to run now, when these were: the one with the parameters too.
    pub(crate) fn chosen(&self, before: Vec<usize>) -> Vec<usize> {
        let moved = |index| if self.is_new && index >= self.at { index + 1 } else { index };
        let mut chosen: Vec<_> = before.into_iter().map(moved).chain([self.at]).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

/// The notebook with the parameters in it; none when there are none.
pub(crate) fn inject(
    notebook: &Notebook,
    parameters: &[Parameter],
) -> Result<Option<InjectedNotebook>, PlanError> {
    if parameters.is_empty() {
        return Ok(None);
    }
    let language = Language::of(notebook)?;
    let mut source = "# Parameters\n".to_owned();
    for Parameter { name, value } in parameters {
        let is_name = name
            .chars()
            .enumerate()
            .all(|(at, c)| c == '_' || c.is_alphabetic() || at > 0 && c.is_alphanumeric());
        if !is_name || name.is_empty() || language.reserved().contains(&name.as_str()) {
            return Err(UnwritableParameter::Name { name: name.clone() }.into());
        }
        writeln!(source, "{name} = {}", language.literal(value)).expect("a String takes everything");
    }
    let tagged = |tag: &str| notebook.cells().find(|cell| cell.tags().iter().any(|found| found == tag));
    let source = source.trim_end().to_owned();
    let (at, is_new, action) = match (tagged(TAG), tagged("parameters")) {
        (Some(cell), _) => (cell.index(), false, Action::Edit { cell: CellRef::Index(cell.index()), source }),
        (None, defaults) => {
            let at = defaults.map_or(0, |cell| cell.index() + 1);
            let cell = NewCell { tags: vec![TAG.to_owned()], ..NewCell::new(CellKind::Code, source) };
            (at, true, Action::Insert { at: Some(at), cells: vec![cell] })
        }
    };
    let edited =
        notebook.act(&action, OutputsAfterEdit::Clear).map_err(|error: EditError| PlanError::from(error))?;
    Ok(Some(InjectedNotebook { edited, at, is_new }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    R,
    Julia,
}

impl Language {
    fn of(notebook: &Notebook) -> Result<Self, UnwritableParameter> {
        let language = notebook.language().unwrap_or_else(|| "python".to_owned());
        match language.to_lowercase().as_str() {
            "python" | "python2" | "python3" | "ipython" => Ok(Self::Python),
            "r" => Ok(Self::R),
            "julia" => Ok(Self::Julia),
            _ => Err(UnwritableParameter::Language { language }),
        }
    }

    /// Words that cannot be variables.
    fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::Python => &[
                "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
                "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
                "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
                "while", "with", "yield",
            ],
            Self::R => &[
                "FALSE", "Inf", "NA", "NULL", "NaN", "TRUE", "break", "else", "for", "function", "if", "in",
                "next", "repeat", "while",
            ],
            Self::Julia => &[
                "baremodule",
                "begin",
                "break",
                "catch",
                "const",
                "continue",
                "do",
                "else",
                "elseif",
                "end",
                "export",
                "false",
                "finally",
                "for",
                "function",
                "global",
                "if",
                "import",
                "let",
                "local",
                "macro",
                "module",
                "quote",
                "return",
                "struct",
                "true",
                "try",
                "using",
                "while",
            ],
        }
    }

    fn literal(self, value: &Value) -> String {
        let list =
            |items: &[Value]| items.iter().map(|item| self.literal(item)).collect::<Vec<_>>().join(", ");
        match (self, value) {
            (Self::Python, Value::Null) => "None".to_owned(),
            (Self::R, Value::Null) => "NULL".to_owned(),
            (Self::Julia, Value::Null) => "nothing".to_owned(),
            (Self::Python, Value::Bool(value)) => if *value { "True" } else { "False" }.to_owned(),
            (Self::R, Value::Bool(value)) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
            (Self::Julia, Value::Bool(value)) => value.to_string(),
            (_, Value::Number(number)) => number.to_string(),
            // JSON's escapes are also these languages' ones.
            (Self::Python | Self::R, Value::String(text)) => Value::from(text.as_str()).to_string(),
            (Self::Julia, Value::String(text)) => Value::from(text.as_str()).to_string().replace('$', "\\$"),
            (Self::Python | Self::Julia, Value::Array(items)) => format!("[{}]", list(items)),
            (Self::R, Value::Array(items)) => format!("list({})", list(items)),
            (_, Value::Object(members)) => {
                let members = members.iter().map(|(key, value)| {
                    let key = Value::from(key.as_str()).to_string();
                    let value = self.literal(value);
                    match self {
                        Self::Python => format!("{key}: {value}"),
                        Self::R => format!("{key} = {value}"),
                        Self::Julia => format!("{key} => {value}"),
                    }
                });
                let members = members.collect::<Vec<_>>().join(", ");
                match self {
                    Self::Python => format!("{{{members}}}"),
                    Self::R => format!("list({members})"),
                    Self::Julia => format!("Dict({members})"),
                }
            }
        }
    }
}
