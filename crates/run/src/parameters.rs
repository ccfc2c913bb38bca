//! Parameters, put into a notebook as papermill does: in a cell of their own after the one tagged `parameters`.

mod language;
mod value;

use cellwright_notebook::{
    Action, CellKind, CellRef, EditError, EditedNotebook, NewCell, Notebook, OutputsAfterEdit,
};

pub use value::ParameterValue;

use crate::plan::PlanError;
use language::ParameterLanguage;

/// A name and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: ParameterValue,
}

/// Parameters that cannot be written down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnwritableParameter {
    /// We do not know how.
    #[error(
        "parameters can be given to Python, R, Julia, Scala, Matlab, C#, F#, PowerShell and bash; this notebook is in {language}"
    )]
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
    /// A value that the language does not have.
    #[error("{language} has no value like that of `{name}`")]
    Value {
        /// The parameter.
        name: String,
        /// The language.
        language: &'static str,
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

/// The notebook with the parameters in it. `None` without parameters.
pub(crate) fn inject(
    notebook: &Notebook,
    parameters: &[Parameter],
) -> Result<Option<InjectedNotebook>, PlanError> {
    if parameters.is_empty() {
        return Ok(None);
    }
    let language = ParameterLanguage::of(notebook)?;
    let mut lines = vec![language.comment().to_owned()];
    for parameter in parameters {
        lines.push(language.assignment(parameter)?);
    }
    let source = lines.join("\n");
    let tagged = |tag: &str| notebook.cells().find(|cell| cell.tags().iter().any(|found| found == tag));
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
