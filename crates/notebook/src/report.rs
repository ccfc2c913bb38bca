//! The report of an edit.

use std::fmt;

use crate::cell::{CellKind, NotebookCell};
use crate::plan::CellSlot;

/// What an edit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeReport {
    /// `edit`, `insert`, `delete`, `move`, `retype`, `clear` or `write`.
    pub action: &'static str,
    /// The cells it was done to; removed ones as they were, all others as they are now.
    pub cells: Vec<TouchedCell>,
    /// How many cells there are now.
    pub total: usize,
    /// What the caller might not expect.
    pub notes: Vec<ChangeNote>,
}

/// A cell an edit touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedCell {
    /// What was done to it.
    pub change: CellChange,
    /// Where it is now (a deleted one: where it was).
    pub index: usize,
    /// Its id, if the file has ids.
    pub id: Option<String>,
    /// Its type.
    pub kind: CellKind,
    /// Its source.
    pub source: String,
    /// What it said before, if its source was edited.
    pub before: Option<String>,
}

impl TouchedCell {
    /// A cell to which this was done.
    pub fn of(cell: &NotebookCell<'_>, change: CellChange) -> Self {
        Self {
            change,
            index: cell.index(),
            id: cell.id().map(std::borrow::Cow::into_owned),
            kind: cell.kind(),
            source: cell.source().into_owned(),
            before: None,
        }
    }

    /// The same cell, with what it said before.
    #[must_use]
    pub fn after(self, before: &NotebookCell<'_>) -> Self {
        let source = before.source();
        let before = (source != self.source).then(|| source.into_owned());
        Self { before, ..self }
    }
}

/// What was done to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellChange {
    /// Its source is another.
    Edited,
    /// It is new.
    Inserted,
    /// It is gone.
    Deleted,
    /// It is elsewhere.
    Moved,
    /// Its type is another.
    Retyped,
    /// Its outputs are gone.
    Cleared,
    /// Its metadata or its outputs are others.
    Altered,
}

impl CellChange {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Inserted => "inserted",
            Self::Deleted => "deleted",
            Self::Moved => "moved",
            Self::Retyped => "retyped",
            Self::Cleared => "cleared",
            Self::Altered => "altered",
        }
    }
}

/// Something an edit did that the caller did not ask for in so many words. Cells are named by their old index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeNote {
    /// Outputs went with the edit.
    OutputsDropped {
        /// The cell.
        cell: usize,
        /// How many outputs it had.
        outputs: usize,
    },
    /// Code cells have no attachments.
    AttachmentsDropped {
        /// The cell.
        cell: usize,
        /// Their names.
        names: Vec<String>,
    },
    /// A character UTF-8 cannot hold was in a line that was edited.
    SurrogateReplaced {
        /// The cell.
        cell: usize,
    },
    /// The file changed outside its cells.
    AroundCells,
    /// There was no such file.
    Created,
    /// The file could not be read as a notebook, and was replaced because the caller insisted.
    Overwritten,
    /// Others changed other cells meanwhile, and both changes are in the file.
    Merged {
        /// What they changed, in words.
        changes: String,
    },
    /// A text of all cells did not take back what its caller had changed since it read them.
    KeptOwn {
        /// The cells.
        cells: Vec<usize>,
    },
    /// The file was written in place, because it could not be replaced.
    InPlace,
    /// The notebook is open in a page, which has the change now.
    InPage,
    /// The file is again what it was before, which is not a notebook.
    PutBack,
    /// The change could not be stored, so it cannot be undone.
    CannotBeUndone {
        /// Why not.
        reason: String,
    },
    /// A run was undone, but not of these cells: their sources changed since.
    OutputsNotRestored {
        /// The cells.
        cells: Vec<usize>,
    },
    /// An earlier change was undone.
    Undid {
        /// Its number.
        change: u64,
    },
    /// An undo replaced or removed outputs that a cell got since the change.
    LaterOutputs {
        /// The cell.
        cell: usize,
    },
    /// An undo found what it was to bring back.
    AlreadyThere {
        /// The cell.
        cell: usize,
    },
    /// Cells came back, and got new ids: other cells have theirs by now.
    IdsTaken {
        /// The cells.
        cells: Vec<usize>,
    },
    /// A cell that came back was there without outputs, and got those it had.
    OutputsRestored {
        /// The cell.
        cell: usize,
    },
    /// Cells of the JSON had no id, and got one.
    IdsAdded {
        /// The cells.
        cells: Vec<usize>,
    },
    /// Cells of the JSON had the id of an earlier cell, and got another.
    IdsReplaced {
        /// The cells.
        cells: Vec<usize>,
    },
    /// Lines of the JSON had no line ends, and got them.
    LineEndsAdded,
    /// A marker named a cell the notebook does not have; the cell is new.
    UnknownOrigin {
        /// The marker's line.
        line: usize,
        /// The number it named.
        cell: usize,
    },
    /// A second marker named the same cell; the second cell is new.
    RepeatedOrigin {
        /// The second marker's line.
        line: usize,
        /// The number both name.
        cell: usize,
    },
}

impl fmt::Display for ChangeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutputsDropped { cell, outputs: 0 } => {
                write!(f, "the execution count of cell {cell} was removed")
            }
            Self::OutputsDropped { cell, outputs: 1 } => write!(f, "the output of cell {cell} was removed"),
            Self::OutputsDropped { cell, outputs } => {
                write!(f, "the {outputs} outputs of cell {cell} were removed")
            }
            Self::AttachmentsDropped { cell, names } => {
                write!(
                    f,
                    "code cells have no attachments; those of cell {cell} were removed: {}",
                    names.join(", ")
                )
            }
            Self::SurrogateReplaced { cell } => {
                write!(f, "a lone surrogate in an edited line of cell {cell} became U+FFFD")
            }
            Self::AroundCells => f.write_str("the notebook's metadata or layout changed"),
            Self::Created => f.write_str("there was no such file; it was created"),
            Self::Overwritten => f.write_str("what was in the file could not be read; it was replaced"),
            Self::Merged { changes } => {
                write!(f, "merged with what others changed since you read it: {changes}")
            }
            Self::KeptOwn { cells } => {
                let list = index_ranges(cells);
                match cells.len() {
                    1 => write!(f, "cell {list} stays as you changed it since you read the whole notebook"),
                    _ => write!(f, "cells {list} stay as you changed them since you read the whole notebook"),
                }
            }
            Self::PutBack => f.write_str("the file is what it was before, byte for byte"),
            Self::CannotBeUndone { reason } => {
                write!(f, "this change cannot be undone, because it could not be stored: {reason}")
            }
            Self::OutputsNotRestored { cells } => {
                write!(f, "the outputs of {} stay: the source changed since the run", cells_named(cells))
            }
            Self::Undid { change } => write!(f, "this undid change {change}"),
            Self::LaterOutputs { cell } => {
                write!(
                    f,
                    "outputs that cell {cell} got since that change went; undo this undo to have them back"
                )
            }
            Self::AlreadyThere { cell } => {
                write!(f, "the cell was already back, as cell {cell}")
            }
            Self::IdsTaken { cells } => {
                write!(
                    f,
                    "{} came back with a new id: another cell has the old one by now",
                    cells_named(cells)
                )
            }
            Self::OutputsRestored { cell } => {
                write!(f, "cell {cell} was there already, without outputs; it has its old ones again")
            }
            Self::IdsAdded { cells } => write!(f, "{} had no id and got one", cells_named(cells)),
            Self::IdsReplaced { cells } => {
                write!(f, "{} had the id of an earlier cell and got another", cells_named(cells))
            }
            Self::LineEndsAdded => f.write_str("lines in the JSON had no line ends; they were added"),
            Self::InPage => f.write_str("changed in the page where the notebook is open, which saves it"),
            Self::InPlace => f.write_str("the file was written in place, since it could not be replaced"),
            Self::UnknownOrigin { line, cell } => {
                write!(f, "line {line}: there is no cell {cell}, so this became a new cell")
            }
            Self::RepeatedOrigin { line, cell } => {
                write!(
                    f,
                    "line {line}: cell:{cell} was used before, so this became a new cell without its metadata and outputs"
                )
            }
        }
    }
}

impl fmt::Display for ChangeReport {
    /// One line, then one per note.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let notes =
            |f: &mut fmt::Formatter<'_>| self.notes.iter().try_for_each(|note| write!(f, "\nnote: {note}"));
        if self.notes.contains(&ChangeNote::PutBack) {
            write!(f, "put back a file that is not a notebook")?;
            return notes(f);
        }
        if self.cells.is_empty() {
            write!(f, "no cell changed")?;
        }
        for (at, group) in self.cells.chunk_by(|a, b| a.change == b.change).enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            let numbers: Vec<_> = group.iter().map(|cell| cell.index).collect();
            let kind = match group {
                [first, rest @ ..] if rest.iter().all(|cell| cell.kind == first.kind) => {
                    format!("{} ", first.kind)
                }
                _ => String::new(),
            };
            let noun = if group.len() == 1 { "cell" } else { "cells" };
            write!(f, "{separator}{} {kind}{noun} {}", group[0].change.name(), index_ranges(&numbers))?;
        }
        write!(f, " ({} {} now)", self.total, if self.total == 1 { "cell" } else { "cells" })?;
        notes(f)
    }
}

fn cells_named(cells: &[usize]) -> String {
    let noun = if cells.len() == 1 { "cell" } else { "cells" };
    format!("{noun} {}", index_ranges(cells))
}

/// Numbers in order as ranges: `0, 3-5`.
pub fn index_ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => unreachable!("chunks are not empty"),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// The places whose cell came from elsewhere: those outside a longest run of cells in their old order. A guess, for edits that do
/// not say which cells they move.
pub(crate) fn moved_slots(slots: &[CellSlot<'_>]) -> Vec<usize> {
    let old: Vec<_> = slots
        .iter()
        .enumerate()
        .filter_map(|(place, slot)| match slot {
            CellSlot::Keep(index) | CellSlot::Rework(index, _) => Some((place, *index)),
            CellSlot::New(_) => None,
        })
        .collect();
    let numbers: Vec<_> = old.iter().map(|(_, index)| *index).collect();
    out_of_order(&numbers).into_iter().map(|at| old[at].0).collect()
}

/// The positions of numbers outside a longest run that increases.
pub fn out_of_order(numbers: &[usize]) -> Vec<usize> {
    // Patience: `tails[n]` ends the best increasing run of length n + 1, `before` links each position to its predecessor.
    let mut tails: Vec<usize> = Vec::new();
    let mut before = vec![None; numbers.len()];
    for at in 0..numbers.len() {
        let length = tails.partition_point(|tail| numbers[*tail] < numbers[at]);
        before[at] = length.checked_sub(1).map(|shorter| tails[shorter]);
        if length < tails.len() { tails[length] = at } else { tails.push(at) }
    }
    let mut in_order = vec![false; numbers.len()];
    let mut at = tails.last().copied();
    while let Some(position) = at {
        in_order[position] = true;
        at = before[position];
    }
    (0..numbers.len()).filter(|position| !in_order[*position]).collect()
}
