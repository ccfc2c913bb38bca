//! What can be wrong with the name of a cell, an output or lines.

/// Why a text selects nothing. It names what is wrong, and not what would be right: that depends on the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A cell is missing.
    #[error("a cell is missing")]
    NoCell,
    /// Neither a number, nor a range, nor an id.
    #[error("`{0}` is not a cell")]
    NotACell(String),
    /// An empty name of a cell.
    #[error("a cell is named by its index or its id")]
    EmptyCell,
    /// `id:` alone.
    #[error("`id:` needs the cell's id after it")]
    EmptyId,
    /// `""`.
    #[error("the heading is empty")]
    EmptyHeading,
    /// A heading whose quotes do not close.
    #[error("`{0}` has no closing quote")]
    OpenQuote(String),
    /// Something other than a comma after a heading.
    #[error("`{0}` cannot follow a heading")]
    AfterHeading(String),
    /// Something after the end.
    #[error("`{0}` cannot follow")]
    AfterEnd(String),
    /// Not a number after the dot.
    #[error("`{0}` is not the number of an output")]
    NotAnOutput(String),
    /// Not a number after the second dot.
    #[error("`{0}` is not the number of an image")]
    NotAnImage(String),
    /// An output of several cells.
    #[error("an output is of one cell, as in `#7.0`")]
    OutputOfSeveral,
    /// An output beside cells or other outputs.
    #[error("an output is named alone, as in `#7.0`")]
    OutputNotAlone,
    /// Not lines.
    #[error("`{0}` is not a range of lines")]
    NotLines(String),
    /// Line 0.
    #[error("`{0}` counts from 0, but lines count from 1")]
    LineZero(String),
    /// A range from its end to its beginning.
    #[error("`{range}` ends before it begins; `{last}-{first}` would be a range")]
    Backwards {
        /// The range.
        range: String,
        /// Where it begins.
        first: usize,
        /// Where it ends.
        last: usize,
    },
}
