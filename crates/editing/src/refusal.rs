//! Why a change was refused. The file is then as it was.

use std::fmt;

use cellwright_notebook::{CellKind, index_ranges, text};

/// Most bytes that a refusal shows of each version of a cell.
const VERSION_SHOWN: usize = 4_000;

/// Most cells whose versions a refusal shows.
const CONFLICTS_SHOWN: usize = 3;

/// Why a change was refused: the caller does not know the file well enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditRefusal {
    /// Others changed what the caller wants to change.
    Stale {
        /// What changed since, in words.
        changes: String,
        /// Cells that both changed.
        conflicts: Vec<CellConflict>,
    },
    /// The caller has not read the file.
    NeverRead,
    /// The caller has read a part of the file, and its text would replace or delete the rest.
    PartlyRead {
        /// What it has not seen: cells of a notebook, lines of a text.
        unseen: UnseenParts,
    },
    /// The caller named a cell by its number, and another cell has that number now.
    CellMoved {
        /// The number.
        index: usize,
        /// Where the cell is now that had it, if it is still there.
        now_at: Option<usize>,
        /// The id of that cell.
        id: Option<String>,
    },
}

/// A cell that the caller and others changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellConflict {
    /// The number the caller knows it by.
    pub cell: usize,
    /// What others made of it; `None` if they deleted it.
    pub theirs: Option<CellVersion>,
    /// What the caller wants to make of it; `None` if it wants to delete it.
    pub mine: Option<CellVersion>,
}

/// One version of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellVersion {
    /// Its place in that version.
    pub index: usize,
    /// Its type.
    pub kind: CellKind,
    /// Its source.
    pub source: String,
}

/// What a caller has not seen of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnseenParts {
    /// Cells of a notebook, by their number.
    Cells(Vec<usize>),
    /// Lines of a text file.
    Lines,
}

impl fmt::Display for EditRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { changes, conflicts } => {
                write!(f, "changed since you read it, so nothing was done ({changes}); read it again")?;
                for conflict in conflicts.iter().take(CONFLICTS_SHOWN) {
                    write!(f, "\n{conflict}")?;
                }
                match conflicts.len().saturating_sub(CONFLICTS_SHOWN) {
                    0 => Ok(()),
                    more => write!(f, "\n[{more} more cells were changed by both]"),
                }
            }
            Self::NeverRead => f.write_str(
                "you have not read this file, so nothing was done; read it first, or use force to overwrite it",
            ),
            Self::PartlyRead { unseen: UnseenParts::Cells(cells) } => {
                let (noun, list) = (if cells.len() == 1 { "cell" } else { "cells" }, index_ranges(cells));
                write!(
                    f,
                    "you have not seen all of {noun} {list}, which this would replace or delete, so nothing \
                     was done; read #{} first, or use force",
                    list.replace(", ", ",")
                )
            }
            Self::PartlyRead { unseen: UnseenParts::Lines } => f.write_str(
                "you have read only a part of it, and this would replace the rest, so nothing was done; \
                 read it whole first, or use force",
            ),
            Self::CellMoved { index, now_at, id } => {
                write!(f, "changed since you read it, so nothing was done: another cell is at {index} now")?;
                if let Some(now_at) = now_at {
                    write!(f, ", the one you read is at {now_at}")?;
                }
                match id {
                    Some(id) => write!(f, "; name it by its id (id:{id}), or read it again"),
                    None => f.write_str("; read it again, and give the number that it has now"),
                }
            }
        }
    }
}

impl std::error::Error for EditRefusal {}

impl EditRefusal {
    /// The same for a number that means a place among the cells. A place has no id.
    pub(crate) fn of_place(self) -> Self {
        match self {
            Self::CellMoved { index, now_at, id: _ } => Self::CellMoved { index, now_at, id: None },
            other => other,
        }
    }

    /// Whether others changed the file since the caller read it.
    pub fn is_change(&self) -> bool {
        match self {
            Self::Stale { .. } | Self::CellMoved { .. } => true,
            Self::NeverRead | Self::PartlyRead { .. } => false,
        }
    }
}

impl fmt::Display for CellConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.theirs {
            Some(version) => write!(f, "[in the file now]\n{version}")?,
            None => write!(f, "[cell {} is no longer in the file]", self.cell)?,
        }
        match &self.mine {
            Some(version) => write!(f, "\n[your version]\n{version}"),
            None => write!(f, "\n[you would delete it]"),
        }
    }
}

impl fmt::Display for CellVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = text::print_one(self.index, self.kind, &self.source);
        let text = text.trim_end_matches('\n');
        if text.len() <= VERSION_SHOWN {
            return f.write_str(text);
        }
        let shown = &text[..text.floor_char_boundary(VERSION_SHOWN)];
        write!(f, "{shown}\n[… {} of {} bytes shown]", shown.len(), text.len())
    }
}
