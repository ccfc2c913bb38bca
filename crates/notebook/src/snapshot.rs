//! Remembers what a notebook was, to notice and report what changed.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use crate::both::{LARGE, both};
use crate::cell::{CellKind, NotebookCell};
use crate::notebook::Notebook;

/// The identity of a file's bytes. Equal for equal bytes; not a protection against forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }

    /// Of the file `notebook` is.
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

/// What a notebook was: enough to say which cells have changed since, and small enough to keep.
#[derive(Debug, Clone)]
pub struct Snapshot {
    fingerprint: Fingerprint,
    cells: Vec<CellPrint>,
}

#[derive(Debug, Clone)]
pub(crate) struct CellPrint {
    kind: CellKind,
    id: Option<String>,
    source: u128,
    whole: u128,
}

impl Snapshot {
    /// Of `notebook` as it is.
    pub fn of(notebook: &Notebook) -> Self {
        let fingerprint = || Fingerprint::of_file(notebook);
        let cells = || notebook.cells().map(|cell| CellPrint::of(&cell)).collect();
        if notebook.size() < LARGE {
            return Self { fingerprint: fingerprint(), cells: cells() };
        }
        let (fingerprint, cells) = both(fingerprint, cells);
        Self { fingerprint, cells }
    }

    pub(crate) fn made_of(fingerprint: Fingerprint, cells: Vec<CellPrint>) -> Self {
        Self { fingerprint, cells }
    }

    /// Of the whole file.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether `now` has the same cells in the same places: their types, ids and sources. Outputs may be others.
    pub fn has_cells_of(&self, now: &Notebook) -> bool {
        let same = |(before, now): (&CellPrint, NotebookCell<'_>)| {
            let now = CellPrint::of(&now);
            (before.kind, &before.id, before.source) == (now.kind, &now.id, now.source)
        };
        self.cells.len() == now.len() && self.cells.iter().zip(now.cells()).all(same)
    }

    /// What is different in `now`, in words: `cell 3 was edited; 2 cells were added`. Empty when nothing is.
    pub fn changes_to(&self, now: &Notebook) -> String {
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

/// For keeping: a line for the file, then one for each cell.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.fingerprint)?;
        self.cells.iter().try_for_each(|CellPrint { kind, id, source, whole }| {
            let (source, whole) = (Fingerprint(*source), Fingerprint(*whole));
            writeln!(f, "{kind} {source} {whole} {}", serde_json::json!(id)) // JSON, for an id may hold anything
        })
    }
}

/// A text that is not a snapshot as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a line of a snapshot")]
pub struct NotASnapshot(String);

impl FromStr for Snapshot {
    type Err = NotASnapshot;

    fn from_str(text: &str) -> Result<Self, NotASnapshot> {
        let cell = |line: &str| {
            let mut parts = line.splitn(4, ' ');
            let kind = parts.next()?.parse().ok()?;
            let mut print = || Some(parts.next()?.parse::<Fingerprint>().ok()?.0);
            let (source, whole) = (print()?, print()?);
            Some(CellPrint { kind, id: serde_json::from_str(parts.next()?).ok()?, source, whole })
        };
        let refused = |line: &str| NotASnapshot(line.to_owned());
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let fingerprint = first.parse().map_err(|_| refused(first))?;
        let cells = lines.map(|line| cell(line).ok_or_else(|| refused(line)));
        Ok(Self { fingerprint, cells: cells.collect::<Result<_, _>>()? })
    }
}

impl CellPrint {
    pub(crate) fn of(cell: &NotebookCell<'_>) -> Self {
        Self {
            kind: cell.kind(),
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
    fn a_stored_snapshot_finds_the_same_changes() {
        let notebook = |source: &str| {
            let cells = format!(
                r#"{{"cell_type":"raw","id":"a\n b","source":"{source}"}},{{"cell_type":"raw","source":""}}"#
            );
            Notebook::parse(format!(r#"{{"cells":[{cells}],"nbformat":4}}"#).into_bytes()).unwrap()
        };
        let kept: Snapshot = Snapshot::of(&notebook("x")).to_string().parse().unwrap();
        assert_eq!(kept.changes_to(&notebook("x")), "");
        assert_eq!(kept.changes_to(&notebook("y")), "cell 0 was edited");
        for other in ["", "x", "0123456789abcdef0123456789abcdef\nw x y z"] {
            assert!(other.parse::<Snapshot>().is_err(), "{other}");
        }
    }
}
