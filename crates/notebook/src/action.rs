//! What can be done to a notebook.

use std::collections::HashSet;

use crate::cell::{CellKind, CellRef, NewCell, NotebookCell};
use crate::notebook::{NoSuchCell, Notebook};
use crate::plan::{CellRework, CellSlot};
use crate::replace::{ReplaceError, ReplacedText, TextKind, TextReplacement, replace};
use crate::report::{CellChange, ChangeNote, ChangeReport, TouchedCell, moved_slots, out_of_order};
use crate::source::replaces_surrogate;
use crate::text::{self, TextCell, TextError};

/// An edit by cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Replace a cell's source.
    Edit {
        /// Which cell.
        cell: CellRef,
        /// Its new source.
        source: String,
    },
    /// Add cells, so that the first of them gets index `at` (0 to the number of cells; `None`: after the last).
    Insert {
        /// Where.
        at: Option<usize>,
        /// What.
        cells: Vec<NewCell>,
    },
    /// Remove cells.
    Delete {
        /// Which.
        cells: Vec<CellRef>,
    },
    /// Move cells, so that the first of them gets index `to` and the others follow it in the order given.
    Move {
        /// Which cells.
        cells: Vec<CellRef>,
        /// Where to.
        to: usize,
    },
    /// Change the type of cells.
    Retype {
        /// Which cells.
        cells: Vec<CellRef>,
        /// What they become.
        kind: CellKind,
    },
    /// Remove outputs and execution counts, of the named cells or of all.
    Clear {
        /// Which cells; `None` for all.
        cells: Option<Vec<CellRef>>,
    },
}

/// What happens to the outputs of a code cell whose source is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputsAfterEdit {
    /// They go, and the execution count with them: they are no longer this source's.
    #[default]
    Clear,
    /// They stay.
    Keep,
}

/// Why an edit is not possible. The notebook is then as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// A cell that is not there.
    #[error(transparent)]
    NoSuchCell(#[from] NoSuchCell),
    /// An index no new cell can have.
    #[error("cannot insert at {at}; the notebook has {total} cells, so 0 to {total} are possible")]
    InsertAt {
        /// The index asked for.
        at: usize,
        /// How many cells there are.
        total: usize,
    },
    /// Not marked text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A text without cells, for a notebook that has some.
    #[error("the text has no cells and would delete all {total}; to do that, use the delete action")]
    Emptying {
        /// How many cells there are.
        total: usize,
    },
}

/// Why a replacement in a notebook's text is not possible. The notebook is then as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceTextError {
    /// The text to be replaced is not there, or not there once.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    /// What came of it is not a notebook's text.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// An edit that was made.
#[derive(Debug)]
pub struct EditedNotebook {
    /// The notebook after it; `None` when nothing changed.
    pub notebook: Option<Notebook>,
    /// What to report.
    pub report: ChangeReport,
    /// For each cell of the notebook after it, which one it was before; `None` for a new one.
    pub origins: Vec<Option<usize>>,
}

impl Action {
    /// The cells it is about.
    pub fn named_cells(&self) -> &[CellRef] {
        match self {
            Self::Edit { cell, .. } => std::slice::from_ref(cell),
            Self::Delete { cells }
            | Self::Move { cells, .. }
            | Self::Retype { cells, .. }
            | Self::Clear { cells: Some(cells) } => cells,
            Self::Insert { .. } | Self::Clear { cells: None } => &[],
        }
    }
}

impl Notebook {
    /// Does `action`.
    pub fn act(&self, action: &Action, outputs: OutputsAfterEdit) -> Result<EditedNotebook, EditError> {
        let mut slots: Vec<_> = (0..self.len()).map(CellSlot::Keep).collect();
        let mut moved = Vec::new();
        let name = match action {
            Action::Edit { cell, source } => {
                let index = self.locate(cell)?;
                if self.cell(index).source() != *source {
                    let rework = CellRework {
                        source: Some(source),
                        clear: outputs == OutputsAfterEdit::Clear,
                        ..CellRework::default()
                    };
                    slots[index] = CellSlot::Rework(index, rework);
                }
                "edit"
            }
            Action::Insert { at, cells } => {
                let (at, total) = (at.unwrap_or(self.len()), self.len());
                if at > total {
                    return Err(EditError::InsertAt { at, total });
                }
                slots.splice(at..at, cells.iter().map(CellSlot::New));
                "insert"
            }
            Action::Delete { cells } => {
                let gone = self.locate_all(cells)?;
                slots.retain(|slot| !matches!(slot, CellSlot::Keep(index) if gone.contains(index)));
                "delete"
            }
            Action::Move { cells, to } => {
                let chosen = self.locate_each_once(cells)?;
                self.locate(&CellRef::Index(*to))?;
                slots.retain(|slot| !matches!(slot, CellSlot::Keep(index) if chosen.contains(index)));
                let to = (*to).min(slots.len());
                moved = (to..).zip(&chosen).filter(|(at, index)| at != *index).map(|(at, _)| at).collect();
                slots.splice(to..to, chosen.into_iter().map(CellSlot::Keep));
                "move"
            }
            Action::Retype { cells, kind } => {
                for index in self.locate_all(cells)? {
                    let cell = self.cell(index);
                    if cell.kind() != *kind || cell.unknown_type().is_some() {
                        slots[index] = CellSlot::Rework(
                            index,
                            CellRework { kind: Some(*kind), ..CellRework::default() },
                        );
                    }
                }
                "retype"
            }
            Action::Clear { cells } => {
                let chosen = match cells {
                    Some(cells) => self.locate_all(cells)?,
                    None => (0..self.len()).collect(),
                };
                for index in chosen
                    .into_iter()
                    .filter(|index| self.cell(*index).kind() == CellKind::Code && self.has_results(*index))
                {
                    slots[index] =
                        CellSlot::Rework(index, CellRework { clear: true, ..CellRework::default() });
                }
                "clear"
            }
        };
        Ok(self.edited(name, &slots, &moved, Vec::new()))
    }

    /// Replaces the notebook's cells by those of a marked text.
    pub fn write(&self, cells: &[TextCell], outputs: OutputsAfterEdit) -> Result<EditedNotebook, EditError> {
        if cells.is_empty() && !self.is_empty() {
            return Err(EditError::Emptying { total: self.len() });
        }
        let mut used = vec![false; self.len()];
        let is_new = self.is_empty();
        let mut notes = Vec::new();
        let slots: Vec<_> = cells
            .iter()
            .map(|TextCell { cell, origin, line }| {
                let (line, Some(index)) = (*line, *origin) else {
                    return CellSlot::New(cell);
                };
                match used.get_mut(index) {
                    // A text copied into a new notebook: its numbers mean cells of the notebook it came from.
                    None if is_new => {}
                    None => notes.push(ChangeNote::UnknownOrigin { line, cell: index }),
                    Some(true) => notes.push(ChangeNote::RepeatedOrigin { line, cell: index }),
                    Some(used) => {
                        *used = true;
                        return self.continued(index, cell, outputs);
                    }
                }
                CellSlot::New(cell)
            })
            .collect();
        Ok(self.edited("write", &slots, &moved_slots(&slots), notes))
    }

    /// Replaces this notebook by `other`: what a caller asks for that wrote the JSON itself.
    pub fn replaced_by(&self, other: Self) -> EditedNotebook {
        let origins = self.origins_in(&other);
        let cells = self.replaced_cells(&other, &origins);
        let changed = other.text() != self.text();
        let notes = if changed && cells.is_empty() { vec![ChangeNote::AroundCells] } else { Vec::new() };
        let report = ChangeReport { action: "write", cells, total: other.len(), notes };
        EditedNotebook { notebook: changed.then_some(other), report, origins }
    }

    /// What becomes of the cells when `other` takes the place of this notebook; `origins` says which cell is which.
    fn replaced_cells(&self, other: &Self, origins: &[Option<usize>]) -> Vec<TouchedCell> {
        let mut origins = origins.to_vec();
        let mut is_kept = vec![false; self.len()];
        origins.iter().flatten().for_each(|origin| is_kept[*origin] = true);
        // Without ids, another cell at the same place is that one, edited.
        let has_id = |notebook: &Self, at: usize| notebook.cell(at).id().is_some();
        for (at, origin) in origins.iter_mut().enumerate().take(self.len()) {
            if origin.is_none() && !is_kept[at] && !has_id(self, at) && !has_id(other, at) {
                *origin = Some(at);
                is_kept[at] = true;
            }
        }
        let pairs = origins.iter().enumerate().filter_map(|(at, origin)| Some((at, (*origin)?)));
        let (places, old): (Vec<_>, Vec<_>) = pairs.unzip();
        let moved: HashSet<_> = out_of_order(&old).into_iter().map(|pair| places[pair]).collect();
        let mut touched = Vec::new();
        for (at, origin) in origins.into_iter().enumerate() {
            let new = other.cell(at);
            let old = origin.map(|origin| self.cell(origin));
            let change = match &old {
                None => CellChange::Inserted,
                Some(old) if old.source() != new.source() => CellChange::Edited,
                Some(old) if old.kind() != new.kind() => CellChange::Retyped,
                Some(_) if moved.contains(&at) => CellChange::Moved,
                Some(old) if old.raw() != new.raw() => CellChange::Altered,
                Some(_) => continue,
            };
            let now = TouchedCell::of(&new, change);
            touched.push(match &old {
                Some(old) => now.after(old),
                None => now,
            });
        }
        let gone = (0..self.len()).filter(|index| !is_kept[*index]);
        touched.extend(gone.map(|index| self.touched(index, CellChange::Deleted)));
        touched
    }

    /// Which cell of this notebook each one of `other` is: the one with the same id, or else an equal one at the same place.
    fn origins_in(&self, other: &Self) -> Vec<Option<usize>> {
        let of_cell = |cell: NotebookCell<'_>| match cell.id() {
            Some(id) => self.locate(&CellRef::Id(id.into_owned())).ok(),
            None => Some(cell.index()).filter(|at| *at < self.len() && self.cell(*at).raw() == cell.raw()),
        };
        let mut met = HashSet::new();
        other.cells().map(|cell| of_cell(cell).filter(|origin| met.insert(*origin))).collect()
    }

    /// Replaces exact strings in the notebook's marked text.
    pub fn replace_text(
        &self,
        replacements: &[TextReplacement],
        outputs: OutputsAfterEdit,
    ) -> Result<EditedNotebook, ReplaceTextError> {
        self.with_replaced_text(&self.replace_in_text(replacements)?, outputs)
    }

    /// The notebook's marked text after replacements.
    pub fn replace_in_text(
        &self,
        replacements: &[TextReplacement],
    ) -> Result<ReplacedText, ReplaceTextError> {
        Ok(replace(&self.to_marked_text(), TextKind::Marked, replacements)?)
    }

    /// The notebook as its marked text reads after replacements.
    pub fn with_replaced_text(
        &self,
        replaced: &ReplacedText,
        outputs: OutputsAfterEdit,
    ) -> Result<EditedNotebook, ReplaceTextError> {
        let mut edited = self.write(&text::parse(&replaced.text).map_err(EditError::from)?, outputs)?;
        edited.report.action = "edit";
        Ok(edited)
    }

    /// Cell `index`, reading as `text` says.
    fn continued<'a>(&self, index: usize, text: &'a NewCell, outputs: OutputsAfterEdit) -> CellSlot<'a> {
        let cell = self.cell(index);
        let source = (cell.source() != text.source).then_some(text.source.as_str());
        let kind = (cell.kind() != text.kind).then_some(text.kind);
        if source.is_none() && kind.is_none() {
            return CellSlot::Keep(index);
        }
        CellSlot::Rework(
            index,
            CellRework { kind, source, clear: source.is_some() && outputs == OutputsAfterEdit::Clear },
        )
    }

    fn locate_all(&self, cells: &[CellRef]) -> Result<Vec<usize>, NoSuchCell> {
        cells.iter().map(|cell| self.locate(cell)).collect()
    }

    fn locate_each_once(&self, cells: &[CellRef]) -> Result<Vec<usize>, NoSuchCell> {
        let mut met = HashSet::new();
        Ok(self.locate_all(cells)?.into_iter().filter(|index| met.insert(*index)).collect())
    }

    /// Whether clearing the cell would change it.
    fn has_results(&self, index: usize) -> bool {
        let cell = self.cell(index).json();
        let has_count = cell.get("execution_count").is_some_and(|count| count.raw() != "null");
        has_count || cell.get("outputs").is_some_and(|outputs| !outputs.elements().is_empty())
    }

    /// The notebook made of `slots`. The report says that the cells at `moved` come from another place.
    fn edited(
        &self,
        action: &'static str,
        slots: &[CellSlot<'_>],
        moved: &[usize],
        mut notes: Vec<ChangeNote>,
    ) -> EditedNotebook {
        let notebook = self.rebuilt(slots);
        let now = notebook.as_ref().unwrap_or(self);
        let mut cells = Vec::new();
        let mut kept = vec![false; self.len()];
        for (place, slot) in slots.iter().enumerate() {
            let change = match slot {
                CellSlot::New(_) => Some(CellChange::Inserted),
                CellSlot::Keep(index) => {
                    kept[*index] = true;
                    moved.contains(&place).then_some(CellChange::Moved)
                }
                CellSlot::Rework(index, rework) => {
                    kept[*index] = true;
                    self.note_losses(*index, *rework, &mut notes);
                    Some(match rework {
                        CellRework { source: Some(_), .. } => CellChange::Edited,
                        CellRework { kind: Some(_), .. } => CellChange::Retyped,
                        CellRework { kind: None, source: None, .. } => CellChange::Cleared,
                    })
                }
            };
            let touched = change.map(|change| now.touched(place, change));
            cells.extend(match slot {
                CellSlot::Rework(index, _) => touched.map(|touched| touched.after(&self.cell(*index))),
                CellSlot::New(_) | CellSlot::Keep(_) => touched,
            });
        }
        let gone = kept.iter().enumerate().filter(|(_, kept)| !**kept);
        cells.extend(gone.map(|(index, _)| self.touched(index, CellChange::Deleted)));
        cells.sort_by_key(|cell| cell.change);
        let report = ChangeReport { action, cells, total: now.len(), notes };
        let origins = slots.iter().map(|slot| match slot {
            CellSlot::Keep(index) | CellSlot::Rework(index, _) => Some(*index),
            CellSlot::New(_) => None,
        });
        EditedNotebook { notebook, report, origins: origins.collect() }
    }

    fn note_losses(&self, index: usize, rework: CellRework<'_>, notes: &mut Vec<ChangeNote>) {
        let cell = self.cell(index);
        let asked_for = rework.kind.is_none() && rework.source.is_none();
        let clears = rework.clear && cell.kind() == CellKind::Code;
        let loses_results = clears || rework.kind.is_some();
        if loses_results && !asked_for && self.has_results(index) {
            notes.push(ChangeNote::OutputsDropped { cell: index, outputs: cell.outputs().len() });
        }
        if rework.kind == Some(CellKind::Code)
            && let Some(attachments) = cell.json().get("attachments")
        {
            let names: Vec<_> =
                attachments.members().into_iter().map(|member| member.key.into_owned()).collect();
            if !names.is_empty() {
                notes.push(ChangeNote::AttachmentsDropped { cell: index, names });
            }
        }
        if rework.source.is_some_and(|source| replaces_surrogate(&cell.source_json(), source)) {
            notes.push(ChangeNote::SurrogateReplaced { cell: index });
        }
    }

    fn touched(&self, index: usize, change: CellChange) -> TouchedCell {
        TouchedCell::of(&self.cell(index), change)
    }
}
