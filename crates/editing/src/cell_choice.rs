//! Which cells a caller names, and whether they are the ones it was shown.

use cellwright_notebook::file::ReadNeed;
use cellwright_notebook::select::{CellPart, CellSelection};
use cellwright_notebook::{CellRef, Fingerprint, Notebook, index_ranges};

use crate::editor::{ChangeOptions, FileEditor, FileName};
use crate::error::EditingError;
use crate::knowledge::{NotebookKnowledge, SeenSources};
use crate::refusal::EditRefusal;

/// Ranges of more cells are compared with the notebook before they are written out.
const LONGEST_RANGE: usize = 10_000;

impl FileEditor<'_> {
    /// The cells that a selection means, for an action. Numbers stay numbers: the action checks them. `5-` and sections
    /// are looked up in the notebook as it is now. They are refused if others added a cell to them since the caller read
    /// the notebook.
    pub fn choose_cells(
        &self,
        file: &FileName,
        cells: &CellSelection,
        options: &ChangeOptions,
    ) -> Result<Vec<CellRef>, EditingError> {
        if let Some(named) = named_cells(cells) {
            return Ok(named);
        }
        let (now, _) = self.open(file, ReadNeed::Sources)?;
        let no_such_cell = |source| EditingError::NoSuchCell { named: file.named.clone(), source };
        let (mut chosen, mut looked_up) = (Vec::new(), Vec::new());
        for part in cells.parts() {
            let part_alone = CellSelection::of_part(part.clone());
            if let Some(named) = named_cells(&part_alone) {
                chosen.extend(named);
                continue;
            }
            let found = part_alone.resolve(&now).map_err(no_such_cell)?;
            looked_up.extend(&found);
            chosen.extend(found.into_iter().map(|index| match part {
                CellPart::Section(_) => by_id(&now, index),
                CellPart::Cell(_) | CellPart::Range(..) => CellRef::Index(index),
            }));
        }
        let knowledge = self.knowledge(&self.document(file).key());
        if let (Some(knowledge), false) = (knowledge, options.is_trusted()) {
            let added = added_since(&knowledge, &now, &looked_up);
            if !added.is_empty() {
                let noun = if added.len() == 1 { "cell" } else { "cells" };
                let changes = format!("{noun} {} added", index_ranges(&added));
                return Err(EditingError::refused(
                    &file.named,
                    EditRefusal::Stale { changes, conflicts: Vec::new() },
                ));
            }
        }
        Ok(chosen)
    }

    /// Whether the cells to run are those the caller was shown. For `5-` only the first cell counts: the rest runs as
    /// it is, like a notebook that is run whole. So do sections, and notebooks that the caller never read.
    pub fn check_run(
        &self,
        file: &FileName,
        now: &Notebook,
        cells: &CellSelection,
        options: &ChangeOptions,
    ) -> Result<(), EditingError> {
        if let Some(expected) = options.expect {
            let fingerprint = Fingerprint::of_file(now);
            if fingerprint != expected {
                return Err(EditingError::Unexpected { named: file.named.clone(), now: fingerprint });
            }
        }
        if options.is_trusted() {
            return Ok(());
        }
        let named: Vec<_> = cells.parts().iter().flat_map(|part| checked_cells(part, now)).collect();
        self.check_known(file, now, &named)
    }
}

/// The cells of a selection that names each of them, without a look at the notebook.
fn named_cells(cells: &CellSelection) -> Option<Vec<CellRef>> {
    let mut named = Vec::new();
    for part in cells.parts() {
        match part {
            CellPart::Cell(cell) => named.push(cell.clone()),
            CellPart::Range(first, Some(last)) if last - first < LONGEST_RANGE => {
                named.extend((*first..=*last).map(CellRef::Index));
            }
            CellPart::Range(..) | CellPart::Section(_) => return None,
        }
    }
    Some(named)
}

/// The cells that must be as the caller was shown them when the run begins.
fn checked_cells(part: &CellPart, now: &Notebook) -> Vec<CellRef> {
    match part {
        CellPart::Cell(cell) => vec![cell.clone()],
        CellPart::Range(first, None) => vec![CellRef::Index(*first)],
        CellPart::Range(first, Some(last)) => {
            (*first..(last + 1).min(now.len())).map(CellRef::Index).collect()
        }
        CellPart::Section(_) => Vec::new(),
    }
}

/// The cell by its id, which stays right if cells are added above it; by its number if it has no id.
fn by_id(now: &Notebook, index: usize) -> CellRef {
    let id = now.cell(index).id().map(|id| CellRef::Id(id.into_owned()));
    id.filter(|id| now.locate(id).is_ok()).unwrap_or(CellRef::Index(index))
}

/// Which of these cells came after the caller had seen all cells of the notebook.
fn added_since(knowledge: &NotebookKnowledge, now: &Notebook, cells: &[usize]) -> Vec<usize> {
    if !knowledge.numbers.iter().all(Option::is_some) {
        return Vec::new();
    }
    let seen = SeenSources::of(Some(knowledge));
    let is_new = |index: &usize| {
        let cell = now.cell(*index);
        knowledge.known_as(&cell).is_none() && knowledge.is_as_once_seen(&cell).is_none() && !seen.has(&cell)
    };
    cells.iter().copied().filter(is_new).collect()
}
