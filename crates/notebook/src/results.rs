//! What cells have of their last run, taken from a notebook and put back.

use crate::cell::{CellKind, NotebookCell};
use crate::json::{Json, JsonKind};
use crate::notebook::Notebook;
use crate::plan::NotACell;
use crate::splice::{Layout, with_members};

/// What a code cell has of its last run, as the file's own JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellResults<'a> {
    /// The list of its outputs.
    pub outputs: &'a str,
    /// Its count.
    pub execution_count: &'a str,
    /// When it ran, if its metadata has that.
    pub execution: Option<&'a str>,
}

impl<'a> NotebookCell<'a> {
    /// What it has of its last run. `None` without outputs and count.
    pub fn results(&self) -> Option<CellResults<'a>> {
        if self.kind() != CellKind::Code {
            return None;
        }
        let mut results = CellResults { outputs: "[]", execution_count: "null", execution: None };
        for member in self.json().members() {
            match &*member.key {
                "outputs" if member.value.kind() == JsonKind::Array => results.outputs = member.value.raw(),
                "execution_count" => results.execution_count = member.value.raw(),
                "metadata" => results.execution = member.value.get("execution").map(|times| times.raw()),
                _ => {}
            }
        }
        let has_outputs = !results.outputs[1..results.outputs.len() - 1].trim_ascii().is_empty();
        (has_outputs || results.execution_count != "null").then_some(results)
    }

    /// The cell's JSON with other results, which must be JSON.
    pub(crate) fn with_results_of(&self, results: &CellResults<'_>) -> String {
        let json = self.json();
        let layout = Layout::of(&json);
        let mut changes = vec![
            ("execution_count", Some(results.execution_count.to_owned())),
            ("outputs", Some(results.outputs.to_owned())),
        ];
        if let Some(metadata) = json.get("metadata").filter(|metadata| metadata.kind() == JsonKind::Object) {
            let layout = layout.of_value(&metadata);
            // Times of another run do not belong to these outputs.
            let execution = results.execution.map(str::to_owned);
            let timed = with_members(&metadata, &layout, vec![("execution", execution)]);
            changes.push(("metadata", Some(timed)));
        }
        with_members(&json, &layout, changes)
    }
}

impl Notebook {
    /// The JSON of cell `index` with other results.
    pub fn cell_with_results(&self, index: usize, results: &CellResults<'_>) -> Result<String, NotACell> {
        let flat = self.flat();
        let cell = flat.cell(index);
        let parts = [Some(results.outputs), Some(results.execution_count), results.execution];
        let is_json = parts.into_iter().flatten().all(|part| Json::is_one(part, 0));
        let fits = is_json && cell.kind() == CellKind::Code;
        fits.then(|| cell.with_results_of(results)).ok_or(NotACell)
    }
}
