//! A parsed notebook: the file's text, and where its cells are.

mod diagnose;
mod index;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cell::{CellRef, CellSpans, NotebookCell};
use crate::json::{Json, SyntaxError, TextSpan};
use crate::pieces::Pieces;
use crate::select::NoSuchHeading;

/// A notebook of nbformat 4, byte for byte as it was read.
#[derive(Clone)]
pub struct Notebook {
    pub(crate) pieces: Pieces,
    pub(crate) root: TextSpan,
    pub(crate) cells_array: TextSpan,
    pub(crate) cells: Vec<PlacedCell>,
    pub(crate) minor: i64,
}

/// A cell, its position in the notebook's text, and the text that its own spans refer to.
#[derive(Clone)]
pub(crate) struct PlacedCell {
    pub(crate) at: usize,
    pub(crate) text: Arc<String>,
    pub(crate) spans: CellSpans,
}

/// Why a file is not a notebook we can edit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not JSON, or not of a notebook's shape.
    #[error("line {line}, column {column}: {reason}")]
    Malformed {
        /// Counting from 1.
        line: usize,
        /// In characters, counting from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The start of a notebook.
    #[error(
        "line {line}, column {column}: {reason}; the rest of the file is missing: restore it from version \
         control, a backup or Jupyter's checkpoint"
    )]
    CutOff {
        /// Counting from 1.
        line: usize,
        /// In characters, counting from 1.
        column: usize,
        /// What is missing there.
        reason: String,
    },
    /// Nothing, or nothing but white space.
    #[error(
        "it is empty, as after a save that did not finish: restore it from version control, a backup or \
         Jupyter's checkpoint, or write a whole new notebook over it"
    )]
    Empty,
    /// Text in another encoding.
    #[error(
        "it is in {encoding}, and notebooks are UTF-8 files; convert it, as by: \
         iconv -f {encoding} -t UTF-8 FILE > NEW.ipynb"
    )]
    OtherEncoding {
        /// As iconv calls it.
        encoding: &'static str,
    },
    /// What Git LFS leaves in the place of a file that was not downloaded.
    #[error("it is a Git LFS pointer: the notebook itself{} was not downloaded; get it with: git lfs pull", of_size(*size))]
    LfsPointer {
        /// Bytes of the notebook itself.
        size: Option<u64>,
    },
    /// A merge that nobody has resolved.
    #[error(
        "line {line}: it has the conflict markers of a merge (`{marker}`); resolve the merge first, with \
         git checkout --ours FILE, git checkout --theirs FILE, or nbdime"
    )]
    Conflict {
        /// Where the first conflict begins, counting from 1.
        line: usize,
        /// That line.
        marker: String,
    },
    /// nbformat 1 to 3.
    #[error(
        "it has nbformat {major}; convert it first: \
         jupyter nbconvert --to notebook --nbformat 4 --inplace {}",
        file.as_ref().map_or("FILE".into(), |file| shell_words::quote(&file.to_string_lossy()).into_owned())
    )]
    OldFormat {
        /// The file's major version.
        major: i64,
        /// Where it is, if that is known.
        file: Option<PathBuf>,
    },
    /// nbformat 5 or later.
    #[error(
        "it has nbformat {major}, newer than this program knows; update cellwright, or save the notebook as nbformat 4"
    )]
    NewFormat {
        /// The file's major version.
        major: i64,
    },
}

/// A cell that is not there, or not there once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchCell {
    /// Past the end.
    #[error("there is no cell {index}; {}", cells_there(*total))]
    Index {
        /// The index asked for.
        index: usize,
        /// How many cells there are.
        total: usize,
    },
    /// No cell has this id.
    #[error("no cell has the id `{id}`")]
    Id {
        /// The id asked for.
        id: String,
    },
    /// The file is invalid: ids must be unique.
    #[error("{} cells have the id `{id}` (cells {}); name one by its index", at.len(), list(at))]
    Ambiguous {
        /// The id asked for.
        id: String,
        /// The cells that have it.
        at: Vec<usize>,
    },
    /// No section, or not one.
    #[error(transparent)]
    Heading(#[from] NoSuchHeading),
}

impl Notebook {
    /// Reads a notebook. The text is kept as it is, byte order mark and all.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ParseError> {
        let text = String::from_utf8(bytes).map_err(|error| {
            if let Some(other) = diagnose::other_encoding(error.as_bytes()) {
                return other;
            }
            let at = error.utf8_error().valid_up_to();
            let is_cut = error.utf8_error().error_len().is_none();
            let readable = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
            let reason = "not UTF-8 from here on; notebooks are UTF-8 files".to_owned();
            let error = SyntaxError { at, reason, is_cut };
            if is_cut { diagnose::fault(&readable, error) } else { diagnose::fault_in_text(&readable, error) }
        })?;
        match index::index(&text) {
            Ok(index) => index.into_notebook(text),
            Err(error) => {
                Err(diagnose::other_encoding(text.as_bytes())
                    .unwrap_or_else(|| diagnose::fault(&text, error)))
            }
        }
    }

    /// A notebook without cells, as Jupyter writes one.
    pub fn empty() -> Self {
        let text = "{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";
        Self::parse(text.into()).expect("this is a notebook")
    }

    /// The file's text. After an edit it is put together when first asked for, and kept.
    pub fn text(&self) -> &str {
        self.pieces.whole()
    }

    /// The file's text, bit by bit.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter()
    }

    /// How many bytes the file has.
    pub fn size(&self) -> usize {
        self.pieces.len()
    }

    /// How many cells it has.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether it has no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Its cells in order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = NotebookCell<'_>> {
        (0..self.len()).map(|index| self.cell(index))
    }

    /// The cell at `index`, which must exist.
    pub fn cell(&self, index: usize) -> NotebookCell<'_> {
        let PlacedCell { at: _, text, spans } = &self.cells[index];
        NotebookCell { text, spans, index }
    }

    /// Which bytes of the file's text the cell at `index` is.
    pub fn position(&self, index: usize) -> Range<usize> {
        let PlacedCell { at, text: _, spans } = &self.cells[index];
        *at..*at + spans.whole.len()
    }

    /// The index `cell` points at.
    pub fn locate(&self, cell: &CellRef) -> Result<usize, NoSuchCell> {
        match cell {
            CellRef::Index(index) if *index < self.len() => Ok(*index),
            CellRef::Index(index) => Err(NoSuchCell::Index { index: *index, total: self.len() }),
            CellRef::Id(id) => {
                let at: Vec<_> = self
                    .cells()
                    .filter(|cell| cell.id().as_deref() == Some(id))
                    .map(|cell| cell.index)
                    .collect();
                match at[..] {
                    [] => Err(NoSuchCell::Id { id: id.clone() }),
                    [index] => Ok(index),
                    _ => Err(NoSuchCell::Ambiguous { id: id.clone(), at }),
                }
            }
        }
    }

    /// Whether the file's version has cell ids (nbformat 4.5).
    pub fn has_ids(&self) -> bool {
        self.minor >= 5
    }

    /// The language its metadata names.
    pub fn language(&self) -> Option<String> {
        let metadata = self.root().get("metadata")?;
        let name = |object: &str, key: &str| metadata.get(object)?.get(key)?.string().map(Cow::into_owned);
        name("kernelspec", "language").or_else(|| name("language_info", "name"))
    }

    /// What the notebook has saved of a widget, by its model's id: its model's name and its state.
    pub fn widget_state(&self, model: &str) -> Option<serde_json::Value> {
        let widgets = self.root().get("metadata")?.get("widgets")?;
        let saved = widgets.get("application/vnd.jupyter.widget-state+json")?.get("state")?.get(model)?;
        serde_json::from_str(saved.raw()).ok()
    }

    /// The kernel its metadata names.
    pub fn kernel_name(&self) -> Option<String> {
        Some(self.root().get("metadata")?.get("kernelspec")?.get("name")?.string()?.into_owned())
    }

    pub(crate) fn root(&self) -> Json<'_> {
        Json { text: self.text(), span: self.root.clone() }
    }

    /// The notebook in one piece, with all its cells there.
    pub(crate) fn flat(&self) -> Cow<'_, Self> {
        if self.pieces.is_one() {
            return Cow::Borrowed(self);
        }
        let text = self.pieces.whole();
        let cells = self.cells.iter().map(|PlacedCell { at, text: _, spans }| PlacedCell {
            at: *at,
            text: Arc::clone(text),
            spans: spans.moved_to(*at),
        });
        let cells = cells.collect();
        Cow::Owned(Self {
            pieces: Pieces::one(Arc::clone(text)),
            root: self.root.clone(),
            cells_array: self.cells_array.clone(),
            cells,
            minor: self.minor,
        })
    }
}

impl fmt::Debug for Notebook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notebook({} cells, {} bytes)", self.len(), self.size())
    }
}

fn of_size(size: Option<u64>) -> String {
    size.map_or_else(String::new, |size| format!(" ({size} bytes)"))
}

fn cells_there(total: usize) -> String {
    match total {
        0 => "the notebook has no cells".to_owned(),
        1 => "the notebook has one cell, 0".to_owned(),
        _ => format!("the notebook has cells 0 to {}", total - 1),
    }
}

pub(crate) fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}
