//! Where in a notebook an image is.

use std::fmt;
use std::str::FromStr;

use super::cells::{in_quotes, is_plain_name};
use super::{NotebookPart, Selector, SelectorError};
use crate::cell::CellRef;

/// Where in a notebook an image is. Reads and prints as a selector does, without its `#`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageAddress {
    /// `3.0`, and `3.0.1` for the second of several in one output.
    Output {
        /// The cell.
        cell: CellRef,
        /// Which of its outputs, counting from 0.
        output: usize,
        /// Which of the output's images, counting from 0: PNG before JPEG before others.
        image: usize,
    },
    /// `3:plot.png`: what is attached to a cell.
    Attachment {
        /// The cell.
        cell: CellRef,
        /// What the cell's text calls it.
        name: String,
    },
}

impl ImageAddress {
    /// The cell that has it.
    pub fn cell(&self) -> &CellRef {
        match self {
            Self::Output { cell, .. } | Self::Attachment { cell, .. } => cell,
        }
    }

    /// What to read to see it. The first image of an output is shown with the output.
    pub fn part(&self) -> NotebookPart {
        match self.clone() {
            Self::Output { cell, output, image: 0 } => NotebookPart::Output { cell, output },
            address => NotebookPart::Image(address),
        }
    }
}

/// How images are named.
const NAMED: &str = "an image is named CELL.OUTPUT, as in 3.0, or CELL:NAME if it is attached";

/// Why a text names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnImageAddress {
    /// It names nothing.
    #[error("{0}; {NAMED}")]
    Selector(SelectorError),
    /// It names lines.
    #[error("{NAMED}; a name that reads as lines is put in quotes, as in 3:\"12\"")]
    Lines,
    /// It names something else.
    #[error("{NAMED}")]
    Other,
}

impl FromStr for ImageAddress {
    type Err = NotAnImageAddress;

    fn from_str(text: &str) -> Result<Self, NotAnImageAddress> {
        let text = text.strip_prefix('#').unwrap_or(text);
        let Selector { part, raw, lines } =
            Selector::parse(&format!("#{text}")).map_err(NotAnImageAddress::Selector)?;
        match part {
            NotebookPart::Output { cell, output } if !raw && lines.is_empty() => {
                Ok(Self::Output { cell, output, image: 0 })
            }
            NotebookPart::Image(address) if !raw && lines.is_empty() => Ok(address),
            NotebookPart::Cells(_) if !lines.is_empty() => Err(NotAnImageAddress::Lines),
            NotebookPart::Whole
            | NotebookPart::Cells(_)
            | NotebookPart::Output { .. }
            | NotebookPart::Image(_) => Err(NotAnImageAddress::Other),
        }
    }
}

impl fmt::Display for ImageAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output { cell, output, image: 0 } => write!(f, "{cell}.{output}"),
            Self::Output { cell, output, image } => write!(f, "{cell}.{output}.{image}"),
            Self::Attachment { cell, name } if is_plain_name(name) => write!(f, "{cell}:{name}"),
            Self::Attachment { cell, name } => write!(f, "{cell}:{}", in_quotes(name)),
        }
    }
}
