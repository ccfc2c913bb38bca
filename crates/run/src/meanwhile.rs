//! What others do to a notebook while its cells run.
//!
//! A cell runs what it says when its turn comes, so that an edit made before that is not lost on the run; one that is gone by then does
//! not run. Each save decides again whether an output may go under a cell, by the same [`FoundCell`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cellwright_notebook::file::{self, FileMark};
use cellwright_notebook::{CellKind, Notebook};

use crate::plan::{PlannedCell, is_run};

/// A cell of the run, in a notebook that others may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundCell {
    /// It is there, and says what was run.
    Same(usize),
    /// It is there, and is something else.
    Edited(usize),
    /// It is not there.
    Gone,
}

impl FoundCell {
    /// By its id. Without one, or with one that several cells have, by what it says, first where it was: a cell that is elsewhere
    /// and says something else is not known again.
    pub(crate) fn of(cell: &PlannedCell, notebook: &Notebook) -> Self {
        let is_same = |index: &usize| {
            let found = notebook.cell(*index);
            found.kind() == CellKind::Code && found.source() == cell.source
        };
        let with_id = |id: &String| {
            let cells = notebook.cells().filter(|other| other.id().as_deref() == Some(id.as_str()));
            cells.map(|other| other.index()).collect::<Vec<_>>()
        };
        match cell.id.as_ref().map(with_id).as_deref() {
            Some([]) => Self::Gone,
            Some([index]) if is_same(index) => Self::Same(*index),
            Some([index]) => Self::Edited(*index),
            Some(_) | None if cell.index < notebook.len() && is_same(&cell.index) => Self::Same(cell.index),
            Some(_) | None => {
                let mut same = (0..notebook.len()).filter(is_same);
                match (same.next(), same.next()) {
                    (Some(index), None) => Self::Same(index),
                    (Some(_), Some(_)) | (None, _) => Self::Gone,
                }
            }
        }
    }
}

/// What others did to a cell before its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeanwhileChange {
    /// They edited it: this is what it says now, and what runs.
    Edited(String),
    /// They removed it, or made it something that does not run.
    Removed,
}

impl MeanwhileChange {
    fn of(cell: &PlannedCell, notebook: &Notebook) -> Option<Self> {
        match FoundCell::of(cell, notebook) {
            FoundCell::Same(index) if is_run(&notebook.cell(index)) => None,
            FoundCell::Edited(index) if is_run(&notebook.cell(index)) => {
                Some(Self::Edited(notebook.cell(index).source().into_owned()))
            }
            FoundCell::Same(_) | FoundCell::Edited(_) | FoundCell::Gone => Some(Self::Removed),
        }
    }
}

/// What is known about the file, shared by the thread that saves it and the task that runs its cells.
#[derive(Debug, Clone)]
pub(crate) struct FileWatch(Arc<Mutex<KnownFile>>);

#[derive(Debug)]
struct KnownFile {
    mark: FileMark,
    /// What others had done, when it looked like this, to cells that have not run.
    changes: BTreeMap<usize, MeanwhileChange>,
}

impl FileWatch {
    /// A file as the run found it.
    pub(crate) fn new(mark: FileMark) -> Self {
        Self(Arc::new(Mutex::new(KnownFile { mark, changes: BTreeMap::new() })))
    }

    /// We saved it.
    pub(crate) fn saved(&self, mark: FileMark) {
        self.known().mark = mark;
    }

    /// We took over what others made of it.
    pub(crate) fn merged<'a>(
        &self,
        notebook: &Notebook,
        to_run: impl Iterator<Item = (usize, &'a PlannedCell)>,
    ) {
        let changes = to_run.filter_map(|(at, cell)| Some((at, MeanwhileChange::of(cell, notebook)?)));
        self.known().changes = changes.collect();
    }

    /// What others did to the cell, whose turn has come. Reads the file only when somebody else wrote it. Blocks on files.
    pub(crate) fn change(&self, at: usize, cell: &PlannedCell) -> Option<MeanwhileChange> {
        let (mark, change) = {
            let known = self.known();
            (known.mark.clone(), known.changes.get(&at).cloned())
        };
        if mark.is_current() {
            return change;
        }
        // A file that is gone or broken says nothing about the cell; the next save reports it.
        file::read(mark.target()).ok().and_then(|notebook| MeanwhileChange::of(cell, &notebook))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, KnownFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notebook(cells: &[(Option<&str>, &str)]) -> Notebook {
        let cells: Vec<_> = cells
            .iter()
            .map(|(id, source)| {
                let mut cell = json!({"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": source});
                if let Some(id) = id {
                    cell["id"] = json!(id);
                }
                cell
            })
            .collect();
        let whole = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
        Notebook::parse(whole.to_string().into_bytes()).expect("a notebook")
    }

    fn planned(index: usize, id: Option<&str>, source: &str) -> PlannedCell {
        PlannedCell { index, id: id.map(str::to_owned), source: source.to_owned() }
    }

    #[test]
    fn a_cell_with_an_id_is_known_by_it() {
        let others = notebook(&[(Some("b"), "2"), (Some("a"), "1")]);
        assert_eq!(FoundCell::of(&planned(0, Some("a"), "1"), &others), FoundCell::Same(1));
        assert_eq!(FoundCell::of(&planned(1, Some("b"), "1"), &others), FoundCell::Edited(0));
        assert_eq!(FoundCell::of(&planned(0, Some("c"), "1"), &others), FoundCell::Gone);
    }

    #[test]
    fn a_cell_without_an_id_is_known_by_what_it_says_and_never_mistaken_for_another() {
        let others = notebook(&[(None, "new"), (None, "1"), (None, "2"), (None, "x"), (None, "x")]);
        assert_eq!(FoundCell::of(&planned(0, None, "1"), &others), FoundCell::Same(1));
        assert_eq!(FoundCell::of(&planned(4, None, "x"), &others), FoundCell::Same(4));
        assert_eq!(FoundCell::of(&planned(2, None, "x"), &others), FoundCell::Gone);
        assert_eq!(FoundCell::of(&planned(1, None, "edited"), &others), FoundCell::Gone);
        assert_eq!(FoundCell::of(&planned(9, None, "edited"), &others), FoundCell::Gone);
    }

    #[test]
    fn an_id_that_several_cells_have_names_none_of_them() {
        let others = notebook(&[(Some("a"), "1"), (Some("a"), "2"), (Some("a"), "2")]);
        assert_eq!(FoundCell::of(&planned(0, Some("a"), "1"), &others), FoundCell::Same(0));
        assert_eq!(FoundCell::of(&planned(2, Some("a"), "2"), &others), FoundCell::Same(2));
        assert_eq!(FoundCell::of(&planned(2, Some("a"), "3"), &others), FoundCell::Gone);
    }

    #[test]
    fn what_does_not_run_any_more_is_removed() {
        let others = notebook(&[(Some("a"), " \n"), (Some("b"), "new")]);
        assert_eq!(MeanwhileChange::of(&planned(0, Some("a"), "1"), &others), Some(MeanwhileChange::Removed));
        let edited = MeanwhileChange::Edited("new".to_owned());
        assert_eq!(MeanwhileChange::of(&planned(1, Some("b"), "old"), &others), Some(edited));
    }
}
