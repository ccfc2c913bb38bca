//! What was run, as a notebook.

use std::path::Path;

use cellwright_cell::OutputChange;
use cellwright_kernel::KernelChoice;
use cellwright_notebook::file::{self, IfMissing};
use cellwright_notebook::recording::Recording;
use cellwright_notebook::{Action, CellKind, NewCell, Notebook, OutputsAfterEdit};
use serde_json::json;

/// How much of what a cell shows is kept for `%save`.
const CELL: usize = 16 << 20;

/// The cells of a session since it was opened, with what they showed.
pub(crate) struct ReplRecord {
    sources: Vec<String>,
    recording: Recording,
    /// The text that was saved last.
    saved: Option<String>,
}

impl Default for ReplRecord {
    fn default() -> Self {
        Self { sources: Vec::new(), recording: Recording::new(CELL), saved: None }
    }
}

impl ReplRecord {
    pub(crate) fn begin(&mut self, code: &str) {
        self.recording.begin(self.sources.len(), None);
        self.sources.push(code.to_owned());
    }

    /// What the newest cell shows.
    pub(crate) fn change(&mut self, change: &OutputChange) {
        if let Some(cell) = self.sources.len().checked_sub(1) {
            self.recording.reducer().apply(cell, change);
        }
    }

    pub(crate) fn end(&mut self, execution_count: Option<u64>) {
        if let Some(cell) = self.sources.len().checked_sub(1) {
            self.recording.end(cell, execution_count, String::new);
        }
    }

    /// Saves the cells as a notebook, and returns how many they are. A file that has anything else stays as it is.
    pub(crate) fn save(&mut self, path: &Path, kernel: &KernelChoice) -> anyhow::Result<usize> {
        let cells = self.sources.iter().map(|source| NewCell::new(CellKind::Code, source.as_str()));
        let insert = Action::Insert { at: None, cells: cells.collect() };
        let empty = empty(kernel)?;
        let filled = empty.act(&insert, OutputsAfterEdit::Keep)?.notebook.unwrap_or(empty);
        let results: Vec<_> = (0..self.sources.len()).map(|cell| self.recording.results(cell)).collect();
        let notebook = filled.with_results(results.iter().enumerate());
        let is_ours = |found: &Notebook| found.is_empty() || self.saved.as_deref() == Some(found.text());
        file::update(path, IfMissing::Create, |found| {
            anyhow::ensure!(is_ours(found), "{} has cells already; choose another name", path.display());
            Ok((Some(notebook.clone()), ()))
        })?;
        self.saved = Some(notebook.text().to_owned());
        Ok(self.sources.len())
    }
}

/// A notebook for this kernel, without cells.
fn empty(kernel: &KernelChoice) -> anyhow::Result<Notebook> {
    let kernelspec = match kernel {
        KernelChoice::Python { .. } => {
            json!({"display_name": "Python 3", "language": "python", "name": "python3"})
        }
        KernelChoice::Jupyter { name } | KernelChoice::Gateway { name: Some(name) } => {
            json!({"display_name": name, "name": name})
        }
        // Which one it is, only its owner knows.
        KernelChoice::Gateway { name: None } | KernelChoice::Existing { .. } => return Ok(Notebook::empty()),
    };
    let text = format!(
        "{{\n \"cells\": [],\n \"metadata\": {{\n  \"kernelspec\": {kernelspec}\n }},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}}\n"
    );
    Ok(Notebook::parse(text.into())?)
}
