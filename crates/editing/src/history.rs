//! What changes took away, kept for a while: any change can be undone, also after others changed other cells.
//!
//! A change is stored as the JSON of the cells that it replaced or removed, and the names of those it added. What it
//! left alone is not stored: it is still in the notebook. Undoing is a change like any other and is stored, too.

mod store;
mod undo;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_notebook::{Cell, Edited, Fingerprint, Notebook};
use serde::{Deserialize, Serialize};

pub(crate) use store::Recorded;
pub use store::{HistoryStore, PastChange};
pub use undo::UndoError;
pub(crate) use undo::undone;

/// A change as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredChange {
    pub(crate) action: String,
    /// What was reported of it.
    pub(crate) summary: String,
    /// The number of the change that this one undid.
    pub(crate) undoes: Option<u64>,
    /// The file after it.
    pub(crate) after: String,
    pub(crate) undo: UndoSteps,
}

/// How a change is undone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum UndoSteps {
    /// Cell by cell.
    Cells(Vec<UndoStep>),
    /// By putting the file back as it was.
    Whole { content: StoredContent },
}

/// The content of a file, to the byte.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum StoredContent {
    Text(String),
    /// What is not UTF-8.
    Base64(String),
}

impl StoredContent {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(BASE64_STANDARD.encode(bytes)),
        }
    }

    /// The bytes, unless the store was damaged.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Base64(text) => BASE64_STANDARD.decode(text).ok(),
        }
    }
}

/// How much of a file a change may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeReach {
    /// Cells, and nothing around them.
    Cells,
    /// The metadata of the notebook, too.
    File,
}

impl UndoSteps {
    /// Whether the change took away anything that only the history holds afterwards. New cells and moves do not.
    pub(crate) fn takes_away(&self) -> bool {
        match self {
            Self::Whole { .. } => true,
            Self::Cells(steps) => steps.iter().any(|step| match step {
                UndoStep::Restore { .. } | UndoStep::Insert { .. } => true,
                UndoStep::Remove { .. } | UndoStep::Order { .. } => false,
            }),
        }
    }
}

/// One step of undoing a change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum UndoStep {
    /// The cell had this JSON.
    Restore { cell: CellKey, json: String },
    /// The cell was not there.
    Remove { cell: CellKey },
    /// A cell with this JSON stood behind that one, or at the beginning.
    Insert { behind: Option<CellKey>, json: String },
    /// The cells had this order.
    Order { cells: Vec<CellKey> },
}

/// What a cell is found by: its id, else what it says and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CellKey {
    id: Option<String>,
    source: String,
    index: usize,
}

impl CellKey {
    fn of(cell: &Cell<'_>) -> Self {
        Self {
            id: cell.id().map(std::borrow::Cow::into_owned),
            source: Fingerprint::of(cell.source().as_bytes()).to_string(),
            index: cell.index(),
        }
    }

    fn says_what(&self, cell: &Cell<'_>) -> bool {
        Fingerprint::of(cell.source().as_bytes()).to_string() == self.source
    }

    /// Where the cell is in `now`.
    fn place_in(&self, now: &Notebook) -> Option<usize> {
        let by_id = |id: &String| now.cells().position(|cell| cell.id().as_deref() == Some(id));
        let says = |index: usize| index < now.len() && self.says_what(&now.cell(index));
        match &self.id {
            Some(id) => by_id(id),
            None if says(self.index) => Some(self.index),
            None => {
                (0..now.len()).filter(|index| says(*index)).min_by_key(|index| index.abs_diff(self.index))
            }
        }
    }
}

impl StoredChange {
    /// The change from `before` to what `edited` has.
    pub(crate) fn of(before: &Notebook, after: &Notebook, edited: &Edited, reach: ChangeReach) -> Self {
        let undo = match reach {
            ChangeReach::File => UndoSteps::Whole { content: StoredContent::Text(before.text().to_owned()) },
            ChangeReach::Cells => UndoSteps::Cells(steps(before, after, &edited.origins)),
        };
        let summary = edited.report.to_string();
        Self {
            action: edited.report.action.to_owned(),
            summary: summary.lines().next().unwrap_or_default().to_owned(),
            undoes: None,
            after: Fingerprint::of_file(after).to_string(),
            undo,
        }
    }
}

fn steps(before: &Notebook, after: &Notebook, origins: &[Option<usize>]) -> Vec<UndoStep> {
    let mut steps = Vec::new();
    let mut now_at = vec![None; before.len()];
    for (at, origin) in origins.iter().enumerate() {
        let cell = after.cell(at);
        let Some(origin) = origin else {
            steps.push(UndoStep::Remove { cell: CellKey::of(&cell) });
            continue;
        };
        now_at[*origin] = Some(at);
        let was = before.cell(*origin);
        if was.raw() != cell.raw() {
            steps.push(UndoStep::Restore { cell: CellKey::of(&cell), json: was.raw().to_owned() });
        }
    }
    let mut behind = None;
    for (cell, now_at) in before.cells().zip(&now_at) {
        match now_at {
            Some(at) => behind = Some(CellKey::of(&after.cell(*at))),
            None => steps.push(UndoStep::Insert { behind: behind.clone(), json: cell.raw().to_owned() }),
        }
    }
    let order: Vec<_> = now_at.into_iter().flatten().collect();
    if !order.is_sorted() {
        let cells = order.into_iter().map(|at| CellKey::of(&after.cell(at))).collect();
        steps.push(UndoStep::Order { cells });
    }
    steps
}
