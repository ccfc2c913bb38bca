//! What a run replaced, for the caller to know.

use std::fmt;
use std::path::PathBuf;

use cellwright_editing::UnkeptOutputs;
use cellwright_notebook::index_ranges;

/// Something that a run replaced, and whether undo brings it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunNote {
    /// There was something else in the file for the outputs.
    ReplacedFile {
        /// The file.
        path: PathBuf,
        /// Why it could not be kept, if it could not.
        unkept: Option<String>,
    },
    /// A cell that holds parameters was replaced and could not be kept.
    UnkeptParameters {
        /// Why not.
        reason: String,
    },
    /// Others saved outputs into these cells while the run was on its way to them, or after it had been there.
    ReplacedOutputs {
        /// The cells.
        cells: Vec<usize>,
    },
    /// Undo cannot bring back old outputs.
    UnkeptOutputs(UnkeptOutputs),
}

impl RunNote {
    /// Whether something is lost.
    pub fn is_loss(&self) -> bool {
        match self {
            Self::ReplacedFile { unkept, .. } => unkept.is_some(),
            Self::ReplacedOutputs { .. } => false,
            Self::UnkeptParameters { .. } | Self::UnkeptOutputs(_) => true,
        }
    }
}

impl fmt::Display for RunNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplacedFile { path, unkept: None } => {
                write!(f, "{} was replaced; undo brings back what it was", path.display())
            }
            Self::ReplacedFile { path, unkept: Some(reason) } => {
                write!(f, "{} was replaced; undo cannot bring back what it was: {reason}", path.display())
            }
            Self::UnkeptParameters { reason } => {
                write!(f, "undo cannot bring back the earlier parameters: {reason}")
            }
            Self::ReplacedOutputs { cells } => write!(
                f,
                "others saved outputs into {} during the run; the outputs of the run replaced them, and undo brings \
                 them back",
                named(cells)
            ),
            Self::UnkeptOutputs(UnkeptOutputs { cells, reason }) => {
                write!(f, "undo cannot bring back the earlier outputs of {}: {reason}", named(cells))
            }
        }
    }
}

fn named(cells: &[usize]) -> String {
    let noun = if cells.len() == 1 { "cell" } else { "cells" };
    format!("{noun} {}", index_ranges(cells))
}
