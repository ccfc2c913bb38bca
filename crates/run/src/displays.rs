//! Displays outside the cells of a run: those of earlier runs, which later cells may update.
//!
//! Kept, because in JupyterLab `update_display` changes a display of any cell of the notebook. Without this, a progress bar
//! of a cell that is not run again would keep its old state in the file while the code says that it is done.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cellwright_cell::{MimeBundle, Output};
use cellwright_notebook::Notebook;
use cellwright_session::{CollectedOutput, OutputSettings};

use crate::meanwhile::FoundCell;
use crate::plan::PlannedCell;

/// How many displays are reported. If there are more, those that were updated first.
const MOST: usize = 256;

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
    /// The notebook with other content in it. `None` if what that run left is gone.
    pub(crate) fn updated(&self, notebook: &Notebook, content: &MimeBundle) -> Option<Notebook> {
        let FoundCell::Same(index) = FoundCell::of(&self.cell, notebook) else { return None };
        let ran = notebook.cell(index).execution_count().and_then(|count| u64::try_from(count).ok());
        (ran == Some(self.count)).then(|| notebook.with_display(index, self.output, content)).flatten()
    }
}

/// What cells of a run updated outside of it: displays of cells that were not run, and displays that are in no cell.
#[derive(Debug, Default)]
pub struct OtherDisplays {
    /// By their names: in which cells, and what they show now.
    displays: BTreeMap<String, (BTreeSet<usize>, Output)>,
}

impl OtherDisplays {
    pub(crate) fn update(&mut self, display_id: &str, cell: Option<usize>, content: &Arc<MimeBundle>) {
        if self.displays.len() < MOST || self.displays.contains_key(display_id) {
            let shown = Output::Display { content: Arc::clone(content), display_id: None };
            let mut cells = self.displays.remove(display_id).map(|(cells, _)| cells).unwrap_or_default();
            cells.extend(cell);
            self.displays.insert(display_id.to_owned(), (cells, shown));
        }
    }

    /// The cells whose displays were updated, by their places in the notebook.
    pub fn cells(&self) -> BTreeSet<usize> {
        self.displays.values().flat_map(|(cells, _)| cells).copied().collect()
    }

    /// What all of them show now. `None` if nothing was updated.
    pub fn collected(&self, settings: &OutputSettings) -> Option<CollectedOutput> {
        let shown = self.displays.values().map(|(_, shown)| Cow::Borrowed(shown));
        (!self.displays.is_empty()).then(|| CollectedOutput::of(shown, settings))
    }
}
