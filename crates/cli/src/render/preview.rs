//! How much of an output is shown, and where the rest is.

use std::cell::OnceCell;

use cellwright_output::{ArtifactKind, Artifacts, Counted, FullText, OutputLimits, Thousands};

use crate::draw::look::LookArguments;
use crate::draw::style::{TextPen, TextStyle, painted, wrapped};
use crate::draw::terminal::ImageProtocol;
use crate::draw::tree::TreeExtent;
use crate::draw::wrap::{clipped, columns, wrapped_line};

/// Columns of a line that are shown: a longer one would fill the screen.
const MOST_COLUMNS: usize = 4_000;

/// Lines of a preview of what runs by itself.
const RUN_LINES: usize = 10;

/// Lines of a preview while a person types.
const INTERACTIVE_LINES: usize = 20;

/// Lines of a traceback.
const TRACEBACK_LINES: usize = 60;

/// How much of an output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewLines {
    /// So many lines.
    Collapsed(usize),
    All,
}

impl PreviewLines {
    pub(crate) const RUN: Self = Self::Collapsed(RUN_LINES);
    pub(crate) const INTERACTIVE: Self = Self::Collapsed(INTERACTIVE_LINES);

    /// How much of code is shown: twice as much.
    pub(crate) fn of_code(self) -> Self {
        match self {
            Self::Collapsed(lines) => Self::Collapsed(2 * lines),
            Self::All => Self::All,
        }
    }

    pub(super) fn of_traceback(self) -> Self {
        match self {
            Self::Collapsed(lines) => Self::Collapsed(lines.max(TRACEBACK_LINES)),
            Self::All => Self::All,
        }
    }

    pub(super) fn tree(self) -> TreeExtent {
        match self {
            Self::Collapsed(_) => TreeExtent::COLLAPSED,
            Self::All => TreeExtent::EXPANDED,
        }
    }
}

/// Where outputs are in full that a preview shows a part of.
#[derive(Debug, Clone)]
pub(crate) enum FullOutputs {
    /// What is not shown is stored here.
    Artifacts(Artifacts),
    /// They are in this notebook. Cells of a call are cells with these indices.
    Notebook { path: String, cells: Vec<usize> },
    /// All is shown, or nothing is stored of what is not.
    Nowhere,
}

/// How cells are shown.
#[derive(Debug)]
pub(crate) struct CellLook {
    pub(crate) pen: TextPen,
    pub(crate) preview: PreviewLines,
    pub(crate) full: FullOutputs,
    /// The language of the cells, by the name of its kernel or as notebooks have it.
    pub(crate) language: String,
    /// How images are drawn; found out when there is one.
    images: OnceCell<Option<ImageProtocol>>,
    arguments: LookArguments,
}

impl CellLook {
    pub(crate) fn new(arguments: LookArguments, preview: PreviewLines, full: FullOutputs) -> Self {
        Self {
            pen: arguments.pen(),
            preview,
            full,
            language: "python".to_owned(),
            images: OnceCell::new(),
            arguments,
        }
    }

    /// With images drawn this way, whatever the terminal would say if it were asked.
    pub(crate) fn drawing(self, images: Option<ImageProtocol>) -> Self {
        Self { images: OnceCell::from(images), ..self }
    }

    /// A preview that shows everything, for tests.
    #[cfg(test)]
    pub(crate) fn fixed(pen: TextPen, preview: PreviewLines, images: Option<ImageProtocol>) -> Self {
        Self {
            pen,
            images: OnceCell::from(images),
            ..Self::new(LookArguments::default(), preview, FullOutputs::Nowhere)
        }
    }

    pub(super) fn images(&self) -> Option<ImageProtocol> {
        *self.images.get_or_init(|| self.arguments.images(self.pen))
    }

    /// Limits of a sink whose end is shown.
    pub(super) fn limits() -> OutputLimits {
        OutputLimits { head: 0, tail: 192 << 10, line: 4 * MOST_COLUMNS + 64 }
    }

    /// A remark of ours.
    pub(crate) fn note(&self, text: &str) -> String {
        self.pen.paint(TextStyle::DIM, text).into_owned()
    }

    /// A remark of ours in as many rows as it needs, broken between words.
    pub(super) fn note_rows(&self, text: &str, room: usize) -> Vec<String> {
        let lines = wrapped(&vec![(TextStyle::DIM, text.to_owned())], room);
        lines.iter().map(|line| painted(line, self.pen)).collect()
    }

    /// How all of a text can be seen of which a preview shows a part. Stores it if it is nowhere else.
    pub(super) fn way_to(&self, cell: Option<usize>, text: &str, kind: ArtifactKind) -> String {
        match &self.full {
            FullOutputs::Artifacts(artifacts) => match artifacts.save(kind, text.as_bytes()) {
                Ok(id) => artifact_way(&FullText::Artifact(id)),
                Err(error) => format!("it could not be stored: {error}"),
            },
            FullOutputs::Notebook { path, cells } => {
                notebook_way(path, cell.and_then(|cell| cells.get(cell)))
            }
            FullOutputs::Nowhere => "--expand shows all".to_owned(),
        }
    }

    /// The same for a text that a sink has stored.
    pub(super) fn way_to_stored(&self, cell: Option<usize>, full: &FullText) -> String {
        match &self.full {
            FullOutputs::Notebook { path, cells } => {
                notebook_way(path, cell.and_then(|cell| cells.get(cell)))
            }
            FullOutputs::Artifacts(_) | FullOutputs::Nowhere => artifact_way(full),
        }
    }
}

fn notebook_way(path: &str, cell: Option<&usize>) -> String {
    match cell {
        Some(index) => format!("cellwright show --full '{path}#{index}'"),
        None => format!("cellwright show --full '{path}'"),
    }
}

fn artifact_way(full: &FullText) -> String {
    match full {
        FullText::Artifact(id) => format!("cellwright read {id}"),
        FullText::NotKept => "--expand shows all".to_owned(),
        FullText::Incomplete { .. } | FullText::Partial { .. } | FullText::Lost { .. } => full.to_string(),
    }
}

/// A line within the most columns, in as many rows as it needs.
pub(super) fn clamped(line: &str, room: usize, pen: TextPen) -> Vec<String> {
    if line.len() <= MOST_COLUMNS || columns(line) <= MOST_COLUMNS {
        return wrapped_line(line, room);
    }
    let mut parts = wrapped_line(&clipped(line, MOST_COLUMNS), room);
    let note = format!(" cut at {} columns", Thousands(MOST_COLUMNS as u64));
    parts.extend(wrapped_line(&pen.paint(TextStyle::DIM, note.trim_start()), room));
    parts
}

/// The first and the last of many rows, with a note between them; the note has how many are hidden. `None` if all are shown.
pub(super) fn ends_of(
    rows: &[String],
    lines: usize,
    note: impl FnOnce(usize) -> String,
) -> Option<Vec<String>> {
    // A note in place of one row saves nothing.
    if rows.len() <= lines + 1 {
        return None;
    }
    let tail = lines / 3;
    let head = lines - tail;
    let hidden = rows.len() - head - tail;
    let mut shown = rows[..head].to_vec();
    shown.push(note(hidden));
    shown.extend_from_slice(&rows[rows.len() - tail..]);
    Some(shown)
}

/// What is hidden, in words.
pub(super) fn hidden(count: u64, where_: &str, way: &str) -> String {
    format!("… {}{where_} hidden · {way}", Counted(count, "line"))
}
