//! Remembering what a notebook was, to notice and to tell that it is another now.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_128;

use crate::cell::Cell;
use crate::notebook::Notebook;

/// The identity of a file's bytes. Equal for equal bytes; not a protection against forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or_else(|| {
            format!("`{text}` is not a fingerprint; it is the 32 digits that read --json prints")
        })
    }
}

/// What a notebook was: enough to tell which cells have changed since, little enough to keep.
#[derive(Debug, Clone)]
pub struct Snapshot {
    fingerprint: Fingerprint,
    cells: Vec<CellPrint>,
}

#[derive(Debug, Clone)]
struct CellPrint {
    id: Option<String>,
    source: u128,
    whole: u128,
}

impl Snapshot {
    /// Of `notebook` as it is.
    pub fn of(notebook: &Notebook) -> Self {
        let cells = notebook.cells().map(|cell| CellPrint::of(&cell)).collect();
        Self { fingerprint: Fingerprint::of(notebook.text().as_bytes()), cells }
    }

    /// Of the whole file.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// What is different in `now`, in words: `cell 3 was edited; 2 cells were added`. Empty when nothing is.
    pub fn changes_to(&self, now: &Notebook) -> String {
        const TOLD: usize = 5;
        let now = Snapshot::of(now);
        if now.fingerprint == self.fingerprint {
            return String::new();
        }
        let by_id: HashMap<_, _> =
            self.cells.iter().filter_map(|cell| Some((cell.id.as_deref()?, cell))).collect();
        let (mut told, mut added, mut met) = (Vec::new(), 0, 0);
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
                told.push(format!("cell {index} was edited"));
            } else if before.whole != cell.whole {
                told.push(format!("cell {index} has other outputs or metadata"));
            }
        }
        let count = |number: usize, what: &str| match number {
            0 => None,
            1 => Some(format!("1 cell was {what}")),
            _ => Some(format!("{number} cells were {what}")),
        };
        if told.len() > TOLD {
            let rest = told.len() - TOLD;
            told.truncate(TOLD);
            told.push(format!("{rest} more cells changed"));
        }
        told.extend(count(added, "added"));
        told.extend(count(self.cells.len().saturating_sub(met), "removed"));
        if told.is_empty() {
            told.push("the order of cells, the notebook's metadata or its layout changed".to_owned());
        }
        told.join("; ")
    }
}

impl CellPrint {
    fn of(cell: &Cell<'_>) -> Self {
        Self {
            id: cell.id().map(std::borrow::Cow::into_owned),
            source: xxh3_128(cell.source().as_bytes()),
            whole: xxh3_128(cell.raw().as_bytes()),
        }
    }
}
