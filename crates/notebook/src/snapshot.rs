//! Remembers what a notebook was, to notice and report what changed.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use crate::both::{LARGE, both};
use crate::cell::NotebookCell;
use crate::notebook::Notebook;

/// The identity of a file's bytes. Equal for equal bytes; not a protection against forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }

    /// The fingerprint of the file that `notebook` is.
    pub fn of_file(notebook: &Notebook) -> Self {
        let mut hashing = FingerprintHasher::default();
        notebook.pieces().for_each(|piece| hashing.add(piece.as_bytes()));
        hashing.done()
    }
}

/// A fingerprint of bytes that come one after the other.
#[derive(Default)]
pub(crate) struct FingerprintHasher(Xxh3Default);

impl FingerprintHasher {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn done(&self) -> Fingerprint {
        Fingerprint(self.0.digest128())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A text that is not a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a fingerprint, which has 32 hexadecimal digits")]
pub struct NotAFingerprint(String);

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or_else(|| NotAFingerprint(text.to_owned()))
    }
}

/// What a notebook was: enough to say which cells have changed since.
pub(crate) struct Snapshot {
    fingerprint: Fingerprint,
    cells: Vec<CellPrint>,
}

struct CellPrint {
    id: Option<String>,
    source: u128,
    whole: u128,
}

impl Snapshot {
    /// The snapshot of `notebook`.
    pub(crate) fn of(notebook: &Notebook) -> Self {
        let fingerprint = || Fingerprint::of_file(notebook);
        let cells = || notebook.cells().map(|cell| CellPrint::of(&cell)).collect();
        if notebook.size() < LARGE {
            return Self { fingerprint: fingerprint(), cells: cells() };
        }
        let (fingerprint, cells) = both(fingerprint, cells);
        Self { fingerprint, cells }
    }

    /// What is different in `now`, in words: `cell 3 was edited; 2 cells were added`. Empty when nothing is.
    pub(crate) fn changes_to(&self, now: &Notebook) -> String {
        const LISTED: usize = 5;
        let now = Snapshot::of(now);
        if now.fingerprint == self.fingerprint {
            return String::new();
        }
        let by_id: HashMap<_, _> =
            self.cells.iter().filter_map(|cell| Some((cell.id.as_deref()?, cell))).collect();
        let (mut changes, mut added, mut met) = (Vec::new(), 0, 0);
        for (index, cell) in now.cells.iter().enumerate() {
            let before = match &cell.id {
                Some(id) => by_id.get(id.as_str()).copied(),
                None => self.cells.get(index),
            };
            let Some(before) = before else {
                added += 1;
                continue;
            };
            met += 1;
            if before.source != cell.source {
                changes.push(format!("cell {index} was edited"));
            } else if before.whole != cell.whole {
                changes.push(format!("cell {index} has other outputs or metadata"));
            }
        }
        let count = |number: usize, what: &str| match number {
            0 => None,
            1 => Some(format!("1 cell was {what}")),
            _ => Some(format!("{number} cells were {what}")),
        };
        if changes.len() > LISTED {
            let rest = changes.len() - LISTED;
            changes.truncate(LISTED);
            changes.push(format!("{rest} more cells changed"));
        }
        changes.extend(count(added, "added"));
        changes.extend(count(self.cells.len().saturating_sub(met), "removed"));
        if changes.is_empty() {
            changes.push("the order of cells, the notebook's metadata or its layout changed".to_owned());
        }
        changes.join("; ")
    }
}

impl CellPrint {
    fn of(cell: &NotebookCell<'_>) -> Self {
        Self {
            id: cell.id().map(std::borrow::Cow::into_owned),
            source: xxh3_128(cell.source().as_bytes()),
            whole: xxh3_128(cell.raw().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_id_and_by_place() {
        let notebook = |source: &str| {
            let cells = format!(
                r#"{{"cell_type":"raw","id":"a\n b","source":"{source}"}},{{"cell_type":"raw","source":""}}"#
            );
            Notebook::parse(format!(r#"{{"cells":[{cells}],"nbformat":4}}"#).into_bytes()).unwrap()
        };
        let before = Snapshot::of(&notebook("x"));
        assert_eq!(before.changes_to(&notebook("x")), "");
        assert_eq!(before.changes_to(&notebook("y")), "cell 0 was edited");
    }
}
