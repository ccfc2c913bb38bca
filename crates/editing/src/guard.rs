//! Whether a caller knows the notebook well enough for what it wants to do to it.

use std::collections::HashSet;

use cellwright_notebook::{Action, CellRef, EditedNotebook, Fingerprint, NewCell, Notebook, NotebookCell};

use crate::knowledge::{KnownCell, NotebookKnowledge, SeenExtent, SeenSources};
use crate::matching::{places, repeated_ids};
use crate::merge::{version, version_of};
use crate::refusal::{CellConflict, EditRefusal, UnseenParts};

/// What a caller knows, to be compared with the notebook as it is now.
pub(crate) struct ChangeGuard<'a> {
    knowledge: Option<&'a NotebookKnowledge>,
    seen: SeenSources,
    now: &'a Notebook,
    /// The ids that several cells have.
    repeated: HashSet<String>,
    /// What the caller knows each cell of the notebook as, and by which number.
    known: Vec<Option<(usize, &'a KnownCell)>>,
}

impl<'a> ChangeGuard<'a> {
    pub(crate) fn new(knowledge: Option<&'a NotebookKnowledge>, now: &'a Notebook) -> Self {
        let known = knowledge.map_or_else(|| vec![None; now.len()], |knowledge| known_cells(knowledge, now));
        Self { knowledge, seen: SeenSources::of(knowledge), now, repeated: repeated_ids(now), known }
    }

    /// Whether an action does what the caller means: the cells it names by number are the ones the caller knows by it,
    /// and no text goes that the caller knows in another version. A caller that never saw a cell may still name it.
    pub(crate) fn check_action(&self, action: &Action) -> Result<(), EditRefusal> {
        self.check_numbers(action.named_cells())?;
        match action {
            Action::Edit { cell, source } => {
                let mine = |cell: &NotebookCell<'_>| NewCell::new(cell.kind(), source.clone());
                self.check_replaced(std::slice::from_ref(cell), mine)
            }
            Action::Delete { cells } => self.check_deleted(cells),
            Action::Insert { at: Some(at), .. } if *at > 0 => self.check_place(*at),
            Action::Move { to, .. } => self.check_place(*to),
            Action::Retype { cells, .. } => self.check_unchanged(cells),
            Action::Insert { .. } | Action::Clear { .. } => Ok(()),
        }
    }

    /// Whether cells are those that the caller knows by these numbers, and say what it knows.
    pub(crate) fn check_unchanged(&self, cells: &[CellRef]) -> Result<(), EditRefusal> {
        self.check_numbers(cells)?;
        let places = cells.iter().filter_map(|cell| self.now.locate(cell).ok());
        let is_changed =
            |place: &usize| matches!(self.standing(&self.now.cell(*place)), CellKnowledge::Changed { .. });
        let changed: Vec<_> = places.filter(is_changed).collect();
        if changed.is_empty() {
            return Ok(());
        }
        Err(EditRefusal::Stale { changes: edited(&changed), conflicts: Vec::new() })
    }

    /// Whether cells that are named by number are those that the caller knows by it.
    fn check_numbers(&self, cells: &[CellRef]) -> Result<(), EditRefusal> {
        cells.iter().try_for_each(|cell| match cell {
            CellRef::Index(index) => self.check_number(*index),
            CellRef::Id(_) => Ok(()),
        })
    }

    fn check_number(&self, index: usize) -> Result<(), EditRefusal> {
        let Some((knowledge, known)) =
            self.knowledge.and_then(|knowledge| Some((knowledge, knowledge.last_numbered(index)?)))
        else {
            return Ok(());
        };
        if index >= self.now.len() || self.is_cell(known, index) {
            return Ok(());
        }
        let by_id = || {
            let id = known.id.clone().filter(|id| !self.repeated.contains(id))?;
            self.now.locate(&CellRef::Id(id)).ok()
        };
        let now_at = places(&knowledge.numbers, self.now).get(index).copied().unwrap_or_else(by_id);
        // Without ids, a cell that was edited in place is still the same cell.
        if now_at == Some(index) {
            return Ok(());
        }
        let id = now_at.and_then(|now_at| self.now.cell(now_at).id()).map(std::borrow::Cow::into_owned);
        let id = id.filter(|id| !self.repeated.contains(id));
        Err(EditRefusal::CellMoved { index, now_at, id })
    }

    /// Whether the cell at `index` is the known one, as far as that can be said without its neighbours.
    fn is_cell(&self, known: &KnownCell, index: usize) -> bool {
        let is_named = known.id.as_ref().is_some_and(|id| !self.repeated.contains(id));
        // If several have the same id or the same text, the neighbours decide.
        (is_named || self.repeated.is_empty()) && known.is(&self.now.cell(index))
    }

    /// Whether a place for cells is the one that the caller knows: before the cell that it was shown with this number, or
    /// after the last one.
    fn check_place(&self, at: usize) -> Result<(), EditRefusal> {
        let is_end = self.knowledge.is_some_and(|knowledge| at > 0 && at == knowledge.numbers.len());
        if is_end && at < self.now.len() {
            return Err(EditRefusal::CellMoved { index: at, now_at: None, id: None });
        }
        self.check_number(at).map_err(EditRefusal::of_place)
    }

    fn check_replaced(
        &self,
        cells: &[CellRef],
        mine: impl Fn(&NotebookCell<'_>) -> NewCell,
    ) -> Result<(), EditRefusal> {
        self.check_known(cells, |cell, number| Some(version(number, &mine(cell))))
    }

    fn check_deleted(&self, cells: &[CellRef]) -> Result<(), EditRefusal> {
        self.check_known(cells, |_, _| None)
    }

    fn check_known(
        &self,
        cells: &[CellRef],
        mine: impl Fn(&NotebookCell<'_>, usize) -> Option<crate::refusal::CellVersion>,
    ) -> Result<(), EditRefusal> {
        let (mut conflicts, mut unseen) = (Vec::new(), Vec::new());
        // A cell that is not there is for the action itself to report.
        for index in cells.iter().filter_map(|cell| self.now.locate(cell).ok()) {
            let cell = self.now.cell(index);
            match self.standing(&cell) {
                CellKnowledge::Seen | CellKnowledge::Unknown => {}
                CellKnowledge::Changed { number, .. } => {
                    let (theirs, mine) = (Some(version_of(&cell)), mine(&cell, number));
                    conflicts.push(CellConflict { cell: number, theirs, mine });
                }
                CellKnowledge::SeenInPart => unseen.push(index),
            }
        }
        refused(conflicts, unseen)
    }

    /// Whether the numbers in markers that a replacement shows mean the cells that the caller knows by them.
    pub(crate) fn check_named(&self, cells: &[usize]) -> Result<(), EditRefusal> {
        cells.iter().try_for_each(|index| self.check_number(*index))
    }

    /// Whether an exact replacement changed no cell that the caller knows in another version.
    pub(crate) fn check_edited(&self, edited: &EditedNotebook) -> Result<(), EditRefusal> {
        let mut conflicts = Vec::new();
        for (cell, after) in self.taken_away(edited) {
            if let CellKnowledge::Changed { number, .. } = self.standing(&cell) {
                let mine = after.as_ref().map(version_of);
                conflicts.push(CellConflict { cell: number, theirs: Some(version_of(&cell)), mine });
            }
        }
        refused(conflicts, Vec::new())
    }

    /// Whether a whole text takes away no cell that the caller was not shown, although the file is the `expected` one.
    /// A caller that knows nothing of the file has the fingerprint from elsewhere, and what it saw there, too.
    pub(crate) fn check_taken_away(
        &self,
        edited: &EditedNotebook,
        expected: Fingerprint,
    ) -> Result<(), EditRefusal> {
        let Some(knowledge) = self.knowledge else { return Ok(()) };
        // A caller that was shown a part of this very file has the fingerprint from that.
        let was_shown_part = knowledge.was_given(expected);
        let is_unseen = |cell: &NotebookCell<'_>| match self.standing(cell) {
            CellKnowledge::Seen => false,
            CellKnowledge::SeenInPart | CellKnowledge::Unknown => true,
            CellKnowledge::Changed { was_whole, .. } => was_shown_part || !was_whole,
        };
        let unseen = self.taken_away(edited).filter(|(cell, _)| is_unseen(cell));
        refused(Vec::new(), unseen.map(|(cell, _)| cell.index()).collect())
    }

    /// The cells that a change takes away or gives another source or type, each with what becomes of it.
    fn taken_away<'e>(
        &'e self,
        edited: &'e EditedNotebook,
    ) -> impl Iterator<Item = (NotebookCell<'e>, Option<NotebookCell<'e>>)> {
        let mut kept = vec![None; self.now.len()];
        for (at, origin) in edited.origins.iter().enumerate() {
            if let Some(origin) = origin {
                kept[*origin] = Some(at);
            }
        }
        let after = edited.notebook.as_ref().unwrap_or(self.now);
        self.now.cells().zip(kept).filter_map(|(cell, at)| {
            let after = at.map(|at| after.cell(at));
            let is_same =
                |after: &NotebookCell<'_>| after.source() == cell.source() && after.kind() == cell.kind();
            (!after.as_ref().is_some_and(is_same)).then_some((cell, after))
        })
    }

    /// Whether the caller has seen the whole file as it is now, and so may put another one in its place: the sources of
    /// all cells, and nothing else changed since.
    pub(crate) fn check_file_seen(&self) -> Result<(), EditRefusal> {
        self.check_all_seen()?;
        let Some(knowledge) = self.knowledge else { return Ok(()) };
        if knowledge.has_seen_file(Fingerprint::of_file(self.now)) {
            return Ok(());
        }
        let changes = "outputs, metadata or the order of cells are not as you last saw them".to_owned();
        Err(EditRefusal::Stale { changes, conflicts: Vec::new() })
    }

    /// Whether the caller has seen every cell as it is now, and so may put something else in the place of all.
    pub(crate) fn check_all_seen(&self) -> Result<(), EditRefusal> {
        if self.now.is_empty() {
            return Ok(());
        }
        let Some(knowledge) = self.knowledge else { return Err(EditRefusal::NeverRead) };
        let (mut others, mut unseen) = (Vec::new(), Vec::new());
        let knew_all = knowledge.numbers.iter().all(Option::is_some);
        for cell in self.now.cells() {
            match self.standing(&cell) {
                CellKnowledge::Seen => {}
                CellKnowledge::Changed { .. } => others.push(cell.index()),
                // It came after the caller had seen everything.
                CellKnowledge::Unknown if knew_all => others.push(cell.index()),
                CellKnowledge::Unknown | CellKnowledge::SeenInPart => unseen.push(cell.index()),
            }
        }
        if !others.is_empty() {
            let noun = if others.len() == 1 { "cell" } else { "cells" };
            let changes = format!("{noun} {} edited or added", cellwright_notebook::index_ranges(&others));
            return Err(EditRefusal::Stale { changes, conflicts: Vec::new() });
        }
        refused(Vec::new(), unseen)
    }

    /// Whether the caller has seen all that a cell says now.
    pub(crate) fn has_seen(&self, cell: &NotebookCell<'_>) -> bool {
        self.seen.has(cell)
    }

    fn standing(&self, cell: &NotebookCell<'_>) -> CellKnowledge {
        let is_as_once_seen = || self.knowledge.and_then(|knowledge| knowledge.is_as_once_seen(cell));
        match self.known[cell.index()] {
            // The latest version it knows counts, also if this is an earlier one.
            Some((_, known)) if known.says_what(cell) => match known.extent {
                SeenExtent::Whole => CellKnowledge::Seen,
                SeenExtent::Lines { .. } if self.seen.has(cell) => CellKnowledge::Seen,
                SeenExtent::Lines { .. } => CellKnowledge::SeenInPart,
            },
            Some((number, known)) => {
                CellKnowledge::Changed { number, was_whole: known.extent == SeenExtent::Whole }
            }
            None if is_as_once_seen() == Some(false) => {
                CellKnowledge::Changed { number: cell.index(), was_whole: true }
            }
            None if self.seen.has(cell) => CellKnowledge::Seen,
            None if is_as_once_seen() == Some(true) => CellKnowledge::SeenInPart,
            None => CellKnowledge::Unknown,
        }
    }
}

/// The cell that the caller knows for each cell of `now`: by id, or else by content and neighbours, or else by place.
fn known_cells<'a>(knowledge: &'a NotebookKnowledge, now: &Notebook) -> Vec<Option<(usize, &'a KnownCell)>> {
    let mut known = vec![None; now.len()];
    let places = places(&knowledge.numbers, now);
    for (number, place) in places.iter().enumerate() {
        if let (Some(place), Some(cell)) = (place, knowledge.numbered(number)) {
            known[*place] = Some((number, cell));
        }
    }
    for cell in now.cells().filter(|cell| cell.id().is_none()) {
        let (number, known) = (cell.index(), &mut known[cell.index()]);
        let is_lost = places.get(number).is_some_and(Option::is_none);
        *known = known.or_else(|| knowledge.numbered(number).filter(|_| is_lost).map(|it| (number, it)));
    }
    known
}

/// What a caller knows of a cell as it is now.
enum CellKnowledge {
    /// It has seen what the cell says.
    Seen,
    /// It has seen some lines of it.
    SeenInPart,
    /// It knows another version, whole or in part.
    Changed { number: usize, was_whole: bool },
    /// It has never seen it.
    Unknown,
}

fn refused(conflicts: Vec<CellConflict>, unseen: Vec<usize>) -> Result<(), EditRefusal> {
    if !conflicts.is_empty() {
        let cells: Vec<_> = conflicts.iter().map(|conflict| conflict.cell).collect();
        return Err(EditRefusal::Stale { changes: edited(&cells), conflicts });
    }
    if !unseen.is_empty() {
        return Err(EditRefusal::PartlyRead { unseen: UnseenParts::Cells(unseen) });
    }
    Ok(())
}

fn edited(cells: &[usize]) -> String {
    let noun = if cells.len() == 1 { "cell" } else { "cells" };
    format!("{noun} {} edited", cellwright_notebook::index_ranges(cells))
}
