//! Displays of earlier runs, which later cells may update.

use cellwright_notebook::Notebook;
use cellwright_notebook::recording::Bundle;

use crate::meanwhile::Found;
use crate::plan::PlannedCell;

/// A display that an earlier run left in the notebook.
#[derive(Debug, Clone)]
pub struct EarlierDisplay {
    pub(crate) display_id: String,
    pub(crate) cell: PlannedCell,
    /// The number that run of the cell had.
    pub(crate) count: u64,
    /// Which of the cell's outputs it is.
    pub(crate) output: usize,
}

impl EarlierDisplay {
    /// The notebook with other content in it; none when what that run left is not there any more.
    pub(crate) fn updated(&self, notebook: &Notebook, content: &Bundle) -> Option<Notebook> {
        let Found::Same(index) = Found::of(&self.cell, notebook) else { return None };
        let ran = notebook.cell(index).execution_count().and_then(|count| u64::try_from(count).ok());
        (ran == Some(self.count)).then(|| notebook.with_display(index, self.output, content)).flatten()
    }
}
