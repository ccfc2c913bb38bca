//! What was done to a notebook: one text and one JSON for every door.

use std::fmt;

use cellwright_notebook::{CellChange, ChangeNote, ChangeReport, Fingerprint, TouchedCell, text};
use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};

/// Bytes of deleted cells that a report shows.
const DELETED_SHOWN: usize = 8 * 1024;

/// What was done to a notebook. Prints as text for people and models, serializes as JSON for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditReport {
    /// What the caller calls the file.
    pub path: String,
    /// What was done.
    pub report: ChangeReport,
    /// The file after it.
    pub fingerprint: Fingerprint,
}

impl EditReport {
    /// Whether the notebook was created.
    pub fn is_new(&self) -> bool {
        self.report.notes.contains(&ChangeNote::Created)
    }
}

impl fmt::Display for EditReport {
    /// One line, one for each note, and the cells that were deleted as marked text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.report)?;
        let mut shown = 0;
        let deleted = || self.report.cells.iter().filter(|cell| cell.change == CellChange::Deleted);
        for (at, cell) in deleted().enumerate() {
            let text = text::print_one(cell.index, cell.kind, &cell.source);
            shown += text.len();
            if shown > DELETED_SHOWN {
                let left = deleted().count() - at;
                let can_be_undone =
                    !self.report.notes.iter().any(|note| matches!(note, ChangeNote::CannotBeUndone { .. }));
                let way = if can_be_undone { "; undo brings them back" } else { "" };
                return write!(f, "\n[{left} more deleted cells not shown{way}]");
            }
            write!(f, "\n{}", text.trim_end_matches('\n'))?;
        }
        Ok(())
    }
}

impl Serialize for EditReport {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let ChangeReport { action, cells, total, notes } = &self.report;
        let mut report = to.serialize_struct("EditReport", 6)?;
        report.serialize_field("path", &self.path)?;
        report.serialize_field("action", action)?;
        report.serialize_field("cells", &cells.iter().map(TouchedJson::of).collect::<Vec<_>>())?;
        report.serialize_field("total_cells", total)?;
        report.serialize_field("notes", &notes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        report.serialize_field("fingerprint", &self.fingerprint.to_string())?;
        report.end()
    }
}

#[derive(Serialize)]
struct TouchedJson<'a> {
    change: &'a str,
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    r#type: &'a str,
    source: &'a str,
}

impl<'a> TouchedJson<'a> {
    fn of(cell: &'a TouchedCell) -> Self {
        Self {
            change: cell.change.name(),
            index: cell.index,
            id: cell.id.as_deref(),
            r#type: cell.kind.name(),
            source: &cell.source,
        }
    }
}
