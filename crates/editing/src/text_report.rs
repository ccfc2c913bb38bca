//! What was done to a text file: one text and one JSON for every door.

use std::fmt;

use cellwright_notebook::file::SaveMethod;
use cellwright_notebook::{ChangeNote, Fingerprint};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

/// Lines that a report lists.
const LISTED: usize = 10;

/// What was done to a text file. Prints as text for people and models, serializes as JSON for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextReport {
    /// What the caller calls the file.
    pub path: String,
    /// What was done.
    pub change: TextChange,
    /// The file after it.
    pub fingerprint: Fingerprint,
    /// How it got into its file.
    pub saved: SaveMethod,
}

/// What was done to a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextChange {
    /// Strings were replaced.
    Replaced {
        /// The line that each replaced text started on.
        lines: Vec<usize>,
    },
    /// All of it was written.
    Written {
        /// Whether there was no such file.
        is_new: bool,
        /// How many lines it has.
        lines: usize,
        /// How many bytes it has.
        bytes: usize,
    },
}

impl fmt::Display for TextReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, change, .. } = self;
        let noun =
            |count: usize, noun: &'static str| if count == 1 { noun.to_owned() } else { format!("{noun}s") };
        match change {
            TextChange::Replaced { lines } => {
                let count = lines.len();
                let matches = if count == 1 { "match" } else { "matches" };
                let shown = lines.iter().take(LISTED).map(usize::to_string).collect::<Vec<_>>().join(", ");
                let more = if count > LISTED { " and more" } else { "" };
                write!(f, "replaced {count} {matches} in {path}, {} {shown}{more}", noun(count, "line"))?;
            }
            TextChange::Written { is_new: true, lines, .. } => {
                write!(f, "created {path}, {lines} {}", noun(*lines, "line"))?;
            }
            TextChange::Written { is_new: false, lines, .. } => {
                write!(f, "replaced {path}, now {lines} {}", noun(*lines, "line"))?;
            }
        }
        match self.saved {
            SaveMethod::Renamed => Ok(()),
            SaveMethod::InPlace => write!(f, "\nnote: {}", ChangeNote::InPlace),
        }
    }
}

impl Serialize for TextReport {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("path", &self.path)?;
        match &self.change {
            TextChange::Replaced { lines } => {
                map.serialize_entry("replaced", &lines.len())?;
                map.serialize_entry("lines", lines)?;
            }
            TextChange::Written { is_new, lines, bytes } => {
                map.serialize_entry("created", is_new)?;
                map.serialize_entry("lines", lines)?;
                map.serialize_entry("bytes", bytes)?;
            }
        }
        map.serialize_entry("in_place", &(self.saved == SaveMethod::InPlace))?;
        map.serialize_entry("fingerprint", &self.fingerprint.to_string())?;
        map.end()
    }
}
