//! What changes took away, kept for a while: any change can be undone, also after others changed other cells.
//!
//! A change is stored as the JSON of the cells that it replaced or removed, and the names of those it added or moved. What
//! it left alone is not stored: it is still in the notebook. Undoing is a change like any other and is stored, too.
//!
//! Undoing takes back what the change did, and nothing that others did since. So it is stored what the change left, as
//! fingerprints.

mod key;
mod run;
mod store;
mod undo;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_notebook::{EditedNotebook, Fingerprint, Notebook, out_of_order};
use serde::{Deserialize, Serialize};

use self::key::{CellFinder, CellKey, MemberPrints, sources_print};
pub(crate) use run::with_old_results;
pub use run::{RunEntry, RunHistory, UnkeptOutputs, has_same_results};
pub(crate) use store::ChangeFile;
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
    /// The sources of its cells after it, if outputs that come later are a part of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sources_after: Option<String>,
    pub(crate) undo: UndoSteps,
}

/// How a change is undone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum UndoSteps {
    /// Cell by cell.
    Cells(Vec<UndoStep>),
    /// By putting the file back as it was.
    Whole { content: StoredContent },
    /// By putting back what cells had of earlier runs. It is stored beside the entry.
    Results {
        #[serde(skip)]
        cells: Vec<run::OldResults>,
    },
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
            Self::Whole { .. } | Self::Results { .. } => true,
            Self::Cells(steps) => steps.iter().any(|step| match step {
                UndoStep::Restore { .. } | UndoStep::Insert { .. } => true,
                UndoStep::Remove { .. } | UndoStep::Move { .. } => false,
            }),
        }
    }
}

/// One step of undoing a change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum UndoStep {
    /// The cell had this JSON, and the change left it with those members.
    Restore { cell: CellKey, json: String, left: MemberPrints },
    /// The cell was not there, and the change left it with these members.
    Remove { cell: CellKey, left: MemberPrints },
    /// A cell with this JSON stood there. The change left `twins` cells that say the same, and have the same id if it has
    /// one.
    Insert { place: OldPlace, json: String, twins: usize },
    /// The cell stood there.
    Move { cell: CellKey, place: OldPlace },
}

/// Where a cell stood: behind which one, or at the beginning; before which one, or at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OldPlace {
    behind: Option<CellKey>,
    before: Option<CellKey>,
    index: usize,
}

impl StoredChange {
    /// The change from `before` to what `edited` has.
    pub(crate) fn of(
        before: &Notebook,
        after: &Notebook,
        edited: &EditedNotebook,
        reach: ChangeReach,
    ) -> Self {
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
            sources_after: None,
            undo,
        }
    }

    /// What a run does to a file, which is `after` before the first results come.
    fn of_run(summary: String, after: &Notebook, undo: UndoSteps) -> Self {
        Self {
            action: "run".to_owned(),
            summary,
            undoes: None,
            after: Fingerprint::of_file(after).to_string(),
            sources_after: None,
            undo,
        }
    }

    /// Whether a file is as the change left it.
    pub(crate) fn left(&self, now: &[u8], notebook: Option<&Notebook>) -> bool {
        let has_sources = || {
            let sources = self.sources_after.as_deref();
            sources.is_some_and(|left| notebook.is_some_and(|now| sources_print(now) == left))
        };
        Fingerprint::of(now).to_string() == self.after || has_sources()
    }
}

fn steps(before: &Notebook, after: &Notebook, origins: &[Option<usize>]) -> Vec<UndoStep> {
    let found = CellFinder::of(after);
    let mut steps = Vec::new();
    let mut now_at = vec![None; before.len()];
    for (at, origin) in origins.iter().enumerate() {
        let (cell, key) = (after.cell(at), || found.key(at));
        let Some(origin) = origin else {
            steps.push(UndoStep::Remove { cell: key(), left: MemberPrints::of(&cell) });
            continue;
        };
        now_at[*origin] = Some(at);
        let was = before.cell(*origin);
        if was.raw() != cell.raw() {
            let (json, left) = (was.raw().to_owned(), MemberPrints::of(&cell));
            steps.push(UndoStep::Restore { cell: key(), json, left });
        }
    }
    let kept: Vec<_> = (0..before.len()).filter_map(|index| Some((index, now_at[index]?))).collect();
    let order: Vec<_> = kept.iter().map(|(_, now)| *now).collect();
    let moved = out_of_order(&order);
    let place = |index: usize| {
        let behind = kept.iter().rev().find(|(old, _)| *old < index);
        // Cells come back one after the other: those that moved are in their places only up to this one.
        let stays = |at: &usize| kept[*at].0 > index && moved.binary_search(at).is_err();
        let before = (0..kept.len()).find(stays).map(|at| kept[at]);
        let key = |(_, now): (usize, usize)| found.key(now);
        OldPlace { behind: behind.copied().map(key), before: before.map(key), index }
    };
    for at in &moved {
        let (old, now) = kept[*at];
        steps.push(UndoStep::Move { cell: found.key(now), place: place(old) });
    }
    for cell in before.cells().filter(|cell| now_at[cell.index()].is_none()) {
        let (place, json) = (place(cell.index()), cell.raw().to_owned());
        steps.push(UndoStep::Insert { place, json, twins: found.copies(&cell).len() });
    }
    steps
}
