//! Selectors: which part of a file a target such as `nb.ipynb#3-7:10-40` means.
//!
//! One grammar and one diagnosis for every door:
//!
//! ```text
//! nb.ipynb                    the whole file
//! nb.ipynb#3  #3-7  #2,5-7    cells, counting from 0, in the order asked for; also `#cell:3`
//! nb.ipynb#5-                 from cell 5 to the end
//! nb.ipynb#id:abcd1234        the cell with that id; also in lists
//! nb.ipynb#"Data cleaning"    the section under that heading; also in lists
//! nb.ipynb#7.0                output 0 of cell 7; also `#id:abcd1234.0`, and `#7.0.1` for its image 1
//! nb.ipynb#7:plot.png         what is attached to cell 7 by that name; also `#7:"12"`
//! …:raw                       the file's own JSON instead of marked text
//! …:10-40  :10-  :50+20  :-30 :5-16,90-97   lines, counting from 1
//! …:12@4001                   line 12 from its byte 4001 on, for very long lines
//! ```
//!
//! Cells and outputs are for notebooks. This module does not know which files are: the caller decides, and
//! [`Target::names_notebook`] says what the name suggests.

mod cells;
mod error;
mod heading;
mod image;
mod lines;
mod target;

use std::fmt;

use crate::cell::CellRef;

pub use self::cells::{CellPart, CellSelection};
pub use self::error::SelectorError;
pub use self::heading::NoSuchHeading;
pub use self::image::{ImageAddress, NotAnImageAddress};
pub use self::lines::{Excerpt, LineRange, PastTheEnd, excerpts};
pub use self::target::{BadSelector, Target};

/// A part of a notebook, or of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    /// Which cells, or which output.
    pub part: NotebookPart,
    /// `:raw`: the file's own text instead of marked text.
    pub raw: bool,
    /// `:10-40`, `:5-16,90-97`, `:50+20`, `:-30`; empty for all lines.
    pub lines: Vec<LineRange>,
}

/// What a selector means by itself, before lines are counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NotebookPart {
    /// Everything.
    #[default]
    Whole,
    /// `#3`, `#2,5-7`, `#id:abcd1234`, `#"Data cleaning"`
    Cells(CellSelection),
    /// `#7.0`: one output of one cell.
    Output {
        /// The cell.
        cell: CellRef,
        /// Which of its outputs, counting from 0.
        output: usize,
    },
    /// `#7.0.1`, `#7:plot.png`: one of the images of an output, or what is attached to a cell.
    Image(ImageAddress),
}

impl Selector {
    /// Splits `nb.ipynb#3:10-40` into path and selector. Text that is not a selector is part of the path.
    ///
    /// Knows nothing of files; [`Target::parse`] does, and explains what is wrong.
    pub fn split(target: &str) -> (&str, Self) {
        let starts = |mark| target.match_indices(mark);
        // The longest tail counts, so that `:raw:1-5` is not a file named `…:raw`.
        starts('#')
            .chain(starts(':'))
            .find_map(|(at, _)| Some((&target[..at], Self::parse(&target[at..]).ok()?)))
            .unwrap_or((target, Self::default()))
    }

    /// Reads what follows a path: `#3`, `:raw`, `#3:10-40`, or nothing. The error says what is wrong, and not
    /// what would be right.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let (part, tail) = match text.strip_prefix('#') {
            Some(cells) => cells::part(cells)?,
            None => (NotebookPart::Whole, text),
        };
        let (raw, tail) = match tail.strip_prefix(":raw") {
            Some(after) if after.is_empty() || after.starts_with(':') => (true, after),
            Some(_) | None => (false, tail),
        };
        let lines = match tail.strip_prefix(':') {
            Some(after) => match lines::ranges(after) {
                Ok(ranges) => ranges,
                Err(reason) => {
                    let part = cells::attachment(&part, after).filter(|_| !raw).ok_or(reason)?;
                    return Ok(Self { part, raw, lines: Vec::new() });
                }
            },
            None if tail.is_empty() => Vec::new(),
            None => return Err(SelectorError::AfterEnd(tail.to_owned())),
        };
        Ok(Self { part, raw, lines })
    }

    /// Whether it means all of a file as marked text.
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// The cells it is limited to. `None` for the whole file, for an output and for an image.
    pub fn cells(&self) -> Option<&CellSelection> {
        match &self.part {
            NotebookPart::Cells(cells) => Some(cells),
            NotebookPart::Whole | NotebookPart::Output { .. } | NotebookPart::Image(_) => None,
        }
    }

    /// What to call this part of the file `path` without its lines: `nb.ipynb#7.0`. Lines may be added to it.
    pub fn name_in(&self, path: &str) -> String {
        format!("{path}{}{}", self.part, if self.raw { ":raw" } else { "" })
    }
}

/// As it is written after a path.
impl fmt::Display for NotebookPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Cells(cells) => write!(f, "#{cells}"),
            Self::Output { cell, output } => write!(f, "#{cell}.{output}"),
            // The first image of an output is not the output.
            Self::Image(ImageAddress::Output { cell, output, image }) => {
                write!(f, "#{cell}.{output}.{image}")
            }
            Self::Image(address) => write!(f, "#{address}"),
        }
    }
}

/// Digits and nothing else: no sign, no space.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests;
