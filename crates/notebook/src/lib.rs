//! Jupyter notebooks as text, without losing a byte.
//!
//! A `.ipynb` file is parsed into cells *and their positions in the file*. An edit splices the text, so every byte that was
//! not edited stays: key order, indentation, escapes, `1.0`, `NaN`, duplicate keys, line ends, byte order mark.
//!
//! ```
//! use cellwright_notebook::{Notebook, OutputsAfterEdit, text};
//!
//! let json = r#"{ "nbformat": 4, "nbformat_minor": 4, "metadata": {"scale": 1.0}, "cells": [
//!     {"cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [], "source": "x = 1"}
//! ]}"#;
//! let notebook = Notebook::parse(json.as_bytes().to_vec())?;
//! assert_eq!(notebook.to_marked_text(), "# %% [code] cell:0\nx = 1\n");
//!
//! let cells = text::parse("# %% [code] cell:0\nx = 2\n")?;
//! let edited = notebook.write(&cells, OutputsAfterEdit::Clear)?.notebook.expect("the source changed");
//! assert_eq!(edited.text(), json.replace("x = 1", "x = 2"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Notebook::parse`], [`Notebook::to_marked_text`], [`text::parse`]: between JSON and cell-marked text;
//! - [`Notebook::write`], [`Notebook::act`], [`replace::replace`]: edits, each with a [`ChangeReport`];
//! - [`Notebook::check`], [`Notebook::repaired`]: what nbformat would refuse;
//! - [`file::read`], [`file::update`]: files, locked and replaced atomically;
//! - [`recording::Recording`], [`Notebook::with_results`]: what cells do while they run, as outputs;
//! - [`Target`], [`Selector`], [`NotebookOutput`]: parts of a notebook, and outputs, for reading.
//!
//! It knows nothing about kernels or running cells. File operations block.

mod action;
mod both;
mod cell;
mod cell_json;
pub mod file;
mod format;
mod json;
mod line_diff;
mod marker;
mod notebook;
mod output;
mod pieces;
mod plan;
mod print;
pub mod recording;
pub mod replace;
mod report;
mod results;
pub mod select;
mod snapshot;
mod source;
mod splice;
pub mod text;

pub use action::{Action, EditError, EditedNotebook, OutputsAfterEdit, ReplaceTextError};
pub use cell::{CellKind, CellRef, NewCell, NotACellKind, NotebookCell};
pub use cell_json::CellJson;
pub use format::{FormatProblem, Repair};
pub use line_diff::{LineRun, line_hunks, line_runs};
pub use notebook::{NoSuchCell, Notebook, ParseError};
pub use output::{EncodedImage, NotBase64, NotebookOutput, OutputKind};
pub use plan::{NotACell, RawCell};
pub use report::{CellChange, ChangeNote, ChangeReport, TouchedCell, index_ranges, out_of_order};
pub use results::CellResults;
pub use select::{Selector, Target};
pub use snapshot::{Fingerprint, NotAFingerprint};
