//! Whether a caller knows the notebook well enough for what it wants to do to it.

use cellwright_notebook::{Action, Cell, CellRef, Edited, NewCell, Notebook};

use crate::knowledge::{Extent, NotebookKnowledge, SeenSources};
use crate::matching::places;
use crate::merge::{version, version_of};
use crate::refusal::{Conflict, Refusal, Unseen};

/// What a caller knows, to be compared with the notebook as it is now.
pub(crate) struct Guard<'a> {
    knowledge: Option<&'a NotebookKnowledge>,
    seen: SeenSources,
    now: &'a Notebook,
}

impl<'a> Guard<'a> {
    pub(crate) fn new(knowledge: Option<&'a NotebookKnowledge>, now: &'a Notebook) -> Self {
        Self { knowledge, seen: SeenSources::of(knowledge), now }
    }

    /// Whether an action does what the caller means: the cells it names by number are the ones the caller knows by it,
    /// and no text goes that the caller knows in another version. A caller who never saw a cell may still name it.
    pub(crate) fn check_action(&self, action: &Action) -> Result<(), Refusal> {
        self.check_numbers(action.named_cells())?;
        match action {
            Action::Edit { cell, source } => {
                let mine = |cell: &Cell<'_>| NewCell::new(cell.kind(), source.clone());
                self.check_replaced(std::slice::from_ref(cell), mine)
            }
            Action::Delete { cells } => self.check_deleted(cells),
            Action::Insert { at: Some(at), .. } if *at > 0 => self.check_number(*at),
            Action::Move { to, .. } => self.check_number(*to),
            Action::Insert { .. } | Action::Retype { .. } | Action::Clear { .. } => Ok(()),
        }
    }

    /// Whether cells that are to be run are those that the caller knows by these numbers, and say what it knows.
    pub(crate) fn check_run(&self, cells: &[CellRef]) -> Result<(), Refusal> {
        self.check_numbers(cells)?;
        let places = cells.iter().filter_map(|cell| self.now.locate(cell).ok());
        let changed: Vec<_> = places
            .filter(|place| {
                let cell = self.now.cell(*place);
                let known = self.knowledge.and_then(|knowledge| knowledge.known_as(&cell));
                known.is_some_and(|(_, known)| !known.says_what(&cell))
            })
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        Err(Refusal::Stale { changes: edited(&changed), conflicts: Vec::new() })
    }

    /// Whether cells that are named by number are those that the caller knows by it.
    fn check_numbers(&self, cells: &[CellRef]) -> Result<(), Refusal> {
        cells.iter().try_for_each(|cell| match cell {
            CellRef::Index(index) => self.check_number(*index),
            CellRef::Id(_) => Ok(()),
        })
    }

    fn check_number(&self, index: usize) -> Result<(), Refusal> {
        let Some((knowledge, known)) =
            self.knowledge.and_then(|knowledge| Some((knowledge, knowledge.numbered(index)?)))
        else {
            return Ok(());
        };
        if index >= self.now.len() || known.is(&self.now.cell(index)) {
            return Ok(());
        }
        let now_at = places(&knowledge.numbers, self.now)[index];
        // Without ids, a cell that was edited where it stands is not another one.
        if now_at == Some(index) {
            return Ok(());
        }
        let id = now_at.and_then(|now_at| self.now.cell(now_at).id()).map(std::borrow::Cow::into_owned);
        Err(Refusal::CellMoved { index, now_at, id })
    }

    fn check_replaced(&self, cells: &[CellRef], mine: impl Fn(&Cell<'_>) -> NewCell) -> Result<(), Refusal> {
        self.check_known(cells, |cell, number| Some(version(number, &mine(cell))))
    }

    fn check_deleted(&self, cells: &[CellRef]) -> Result<(), Refusal> {
        self.check_known(cells, |_, _| None)
    }

    fn check_known(
        &self,
        cells: &[CellRef],
        mine: impl Fn(&Cell<'_>, usize) -> Option<crate::refusal::CellVersion>,
    ) -> Result<(), Refusal> {
        let (mut conflicts, mut unseen) = (Vec::new(), Vec::new());
        // A cell that is not there is for the action itself to report.
        for index in cells.iter().filter_map(|cell| self.now.locate(cell).ok()) {
            let cell = self.now.cell(index);
            match self.standing(&cell) {
                Standing::Seen | Standing::Unknown => {}
                Standing::Changed { number } => {
                    let (theirs, mine) = (Some(version_of(&cell)), mine(&cell, number));
                    conflicts.push(Conflict { cell: number, theirs, mine });
                }
                Standing::SeenInPart => unseen.push(index),
            }
        }
        refused(conflicts, unseen)
    }

    /// Whether an exact replacement changed no cell that the caller knows in another version.
    pub(crate) fn check_edited(&self, edited: &Edited) -> Result<(), Refusal> {
        let mut kept = vec![None; self.now.len()];
        for (at, origin) in edited.origins.iter().enumerate() {
            if let Some(origin) = origin {
                kept[*origin] = Some(at);
            }
        }
        let after = edited.notebook.as_ref().unwrap_or(self.now);
        let mut conflicts = Vec::new();
        for (cell, at) in self.now.cells().zip(kept) {
            let now = at.map(|at| after.cell(at));
            if now.as_ref().is_some_and(|now| now.source() == cell.source() && now.kind() == cell.kind()) {
                continue;
            }
            if let Standing::Changed { number } = self.standing(&cell) {
                let mine = now.as_ref().map(version_of);
                conflicts.push(Conflict { cell: number, theirs: Some(version_of(&cell)), mine });
            }
        }
        refused(conflicts, Vec::new())
    }

    /// Whether the caller has seen every cell as it is now, and so may put something else in the place of all.
    pub(crate) fn check_all_seen(&self) -> Result<(), Refusal> {
        if self.now.is_empty() {
            return Ok(());
        }
        let Some(knowledge) = self.knowledge else { return Err(Refusal::NeverRead) };
        let (mut others, mut unseen) = (Vec::new(), Vec::new());
        let knew_all = knowledge.numbers.iter().all(Option::is_some);
        for cell in self.now.cells() {
            match self.standing(&cell) {
                Standing::Seen => {}
                Standing::Changed { .. } => others.push(cell.index()),
                // It came after the caller had seen everything.
                Standing::Unknown if knew_all => others.push(cell.index()),
                Standing::Unknown | Standing::SeenInPart => unseen.push(cell.index()),
            }
        }
        if !others.is_empty() {
            let noun = if others.len() == 1 { "cell" } else { "cells" };
            let changes = format!("{noun} {} edited or added", cellwright_notebook::index_ranges(&others));
            return Err(Refusal::Stale { changes, conflicts: Vec::new() });
        }
        refused(Vec::new(), unseen)
    }

    /// Whether the caller has seen all that a cell says now.
    pub(crate) fn has_seen(&self, cell: &Cell<'_>) -> bool {
        self.seen.has(cell)
    }

    fn standing(&self, cell: &Cell<'_>) -> Standing {
        if self.seen.has(cell) {
            return Standing::Seen;
        }
        match self.knowledge.and_then(|knowledge| knowledge.known_as(cell)) {
            None if self.knowledge.is_some_and(|knowledge| knowledge.once_saw(cell)) => {
                Standing::Changed { number: cell.index() }
            }
            None => Standing::Unknown,
            Some((number, known)) if !known.says_what(cell) => Standing::Changed { number },
            Some((_, known)) => {
                debug_assert_ne!(known.extent, Extent::Whole, "its source would have been seen");
                Standing::SeenInPart
            }
        }
    }
}

/// What a caller knows of a cell as it is now.
enum Standing {
    /// It has seen what the cell says.
    Seen,
    /// It has seen some lines of it.
    SeenInPart,
    /// It knows another version.
    Changed { number: usize },
    /// It has never seen it.
    Unknown,
}

fn refused(conflicts: Vec<Conflict>, unseen: Vec<usize>) -> Result<(), Refusal> {
    if !conflicts.is_empty() {
        let cells: Vec<_> = conflicts.iter().map(|conflict| conflict.cell).collect();
        return Err(Refusal::Stale { changes: edited(&cells), conflicts });
    }
    if !unseen.is_empty() {
        return Err(Refusal::PartlyRead { unseen: Unseen::Cells(unseen) });
    }
    Ok(())
}

fn edited(cells: &[usize]) -> String {
    let noun = if cells.len() == 1 { "cell" } else { "cells" };
    format!("{noun} {} edited", cellwright_notebook::index_ranges(cells))
}
