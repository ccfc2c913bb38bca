//! Outputs that others save into cells of a run: they are kept for undo before the run replaces them.

use std::collections::{BTreeMap, BTreeSet};

use cellwright_editing::{RunEntry, RunHistory, UnkeptOutputs, has_same_results};
use cellwright_notebook::Notebook;

use crate::meanwhile::FoundCell;
use crate::note::RunNote;
use crate::plan::PlannedCell;

/// Outputs of others in cells of a run. Cells are numbered by their place in the run.
pub(crate) struct ReplacedOutputs {
    history: RunHistory,
    /// The notebook as the run found it. What it has is kept already.
    first: Notebook,
    /// Cells whose outputs in the file are others' and are not kept.
    theirs: BTreeSet<usize>,
    pending: PendingOutputs,
}

/// What the save that is under way replaces.
#[derive(Default)]
struct PendingOutputs {
    entry: RunEntry,
    cells: BTreeSet<usize>,
    unkept: Vec<UnkeptOutputs>,
}

impl ReplacedOutputs {
    /// Nothing yet.
    pub(crate) fn new(history: RunHistory, first: Notebook) -> Self {
        Self { history, first, theirs: BTreeSet::new(), pending: PendingOutputs::default() }
    }

    /// Finds what others saved: `left` is the notebook as we left it, `now` as they did.
    pub(crate) fn compare(&mut self, cells: &[PlannedCell], left: &Notebook, now: &Notebook) {
        for (at, cell) in cells.iter().enumerate() {
            let Some(place) = place_in(cell, now) else { continue };
            let now = now.cell(place);
            let is_as_in = |notebook: &Notebook| {
                place_in(cell, notebook).is_some_and(|place| has_same_results(&notebook.cell(place), &now))
            };
            if now.results().is_some() && !is_as_in(left) && !is_as_in(&self.first) {
                self.theirs.insert(at);
            }
        }
    }

    /// Keeps what a save is about to replace: results of these cells of the run, at these places.
    pub(crate) fn keep(&mut self, now: &Notebook, saved: impl Iterator<Item = (usize, usize)>) {
        let places: BTreeMap<_, _> = saved.filter(|(at, _)| self.theirs.contains(at)).collect();
        if places.is_empty() {
            return;
        }
        let mut indices: Vec<_> = places.values().copied().collect();
        indices.sort_unstable();
        let why = "a run replaced outputs that others had saved meanwhile into code";
        let (entry, unkept) = self.history.keep_outputs(now, &indices, why);
        self.pending = PendingOutputs { entry, cells: places.into_keys().collect(), unkept };
    }

    /// The save did not come about.
    pub(crate) fn withdraw(&mut self) {
        std::mem::take(&mut self.pending).entry.withdraw();
    }

    /// The save is done; what the caller should know of it.
    pub(crate) fn settle(&mut self, cells: &[PlannedCell]) -> Vec<RunNote> {
        let PendingOutputs { cells: replaced, unkept, .. } = std::mem::take(&mut self.pending);
        self.theirs.retain(|at| !replaced.contains(at));
        let is_lost = |index: usize| unkept.iter().any(|unkept| unkept.cells.contains(&index));
        let kept: Vec<_> = replaced.iter().map(|at| cells[*at].index).filter(|it| !is_lost(*it)).collect();
        let note = (!kept.is_empty()).then_some(RunNote::ReplacedOutputs { cells: kept });
        note.into_iter().chain(unkept.into_iter().map(RunNote::UnkeptOutputs)).collect()
    }
}

fn place_in(cell: &PlannedCell, notebook: &Notebook) -> Option<usize> {
    match FoundCell::of(cell, notebook) {
        FoundCell::Same(place) | FoundCell::Edited(place) => Some(place),
        FoundCell::Gone => None,
    }
}
