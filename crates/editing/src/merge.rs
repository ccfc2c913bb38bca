//! A text of a caller's, put into a notebook that others may have changed since the caller read it.
//!
//! Each cell of the text continues one that the caller knows. That one is looked for in the notebook as it is now: by
//! id, or else by what it says. A cell that only one side changed takes that side's version, a cell that both changed is a
//! conflict, and cells that others added stay where they added them.

use cellwright_notebook::text::TextCell;
use cellwright_notebook::{CellKind, ChangeNote, Fingerprint, NewCell, Notebook, NotebookCell, index_ranges};

use crate::knowledge::{KnownCell, NotebookKnowledge, NumberOrigin, SeenSources, SinceBase, source_print};
use crate::matching::places;
use crate::refusal::{CellConflict, CellVersion, EditRefusal, UnseenParts};

/// A text whose numbers are those of the notebook as it is now.
#[derive(Debug)]
pub(crate) struct MergedText {
    pub(crate) cells: Vec<MergedCell>,
    pub(crate) notes: Vec<ChangeNote>,
}

/// A cell of the notebook to be.
#[derive(Debug, Clone)]
pub(crate) struct MergedCell {
    pub(crate) cell: TextCell,
    /// Whether the caller knows what it says.
    pub(crate) is_known: bool,
}

/// Puts `text`, which names cells by the numbers that the caller knows, into `now`.
pub(crate) fn merge(
    text: &[TextCell],
    knowledge: &NotebookKnowledge,
    now: &Notebook,
) -> Result<MergedText, EditRefusal> {
    let numbers = knowledge.text_numbers();
    let is_ambiguous = |cell: &TextCell| cell.origin.is_some_and(|number| knowledge.is_ambiguous(number));
    let is_shifted = |known: &KnownCell| known.number == NumberOrigin::Shifted;
    if numbers.iter().flatten().any(is_shifted) || text.iter().any(is_ambiguous) {
        let changes = "cells have other numbers than when you read them".to_owned();
        return Err(EditRefusal::Stale { changes, conflicts: Vec::new() });
    }
    let places = places(numbers, now);
    let mut merge = TextMerge {
        numbers,
        seen: knowledge.seen_sources(),
        now,
        latest: latest_cells(knowledge, now),
        placed: vec![false; now.len()],
        conflicts: Vec::new(),
        unseen: Vec::new(),
        notes: Vec::new(),
        changes: TheirChanges::default(),
        own: Vec::new(),
    };
    let mut named = vec![false; numbers.len()];
    let cells: Vec<_> = text.iter().filter_map(|cell| merge.text_cell(cell, &places, &mut named)).collect();
    for number in (0..named.len()).filter(|number| !named[*number]) {
        merge.left_out(number, places[number]);
    }
    merge.finish(cells, text, &places)
}

struct TextMerge<'a> {
    numbers: &'a [Option<KnownCell>],
    seen: SeenSources,
    now: &'a Notebook,
    /// The latest version that the caller knows of each cell of `now`.
    latest: Vec<Option<&'a KnownCell>>,
    /// Cells of `now` that the text continues or deletes. The others are others' additions.
    placed: Vec<bool>,
    conflicts: Vec<CellConflict>,
    unseen: Vec<usize>,
    notes: Vec<ChangeNote>,
    changes: TheirChanges,
    /// Cells that the caller itself changed since it read all of them.
    own: Vec<usize>,
}

/// What others did since the caller read the notebook.
#[derive(Default)]
struct TheirChanges {
    edited: Vec<usize>,
    added: usize,
    removed: usize,
    moved: bool,
}

impl TextMerge<'_> {
    /// A cell of the text with the number it has now. `None` for a cell that others deleted and the caller left alone.
    fn text_cell(
        &mut self,
        cell: &TextCell,
        places: &[Option<usize>],
        named: &mut [bool],
    ) -> Option<MergedCell> {
        let new = MergedCell { cell: TextCell { origin: None, ..cell.clone() }, is_known: true };
        let Some(number) = cell.origin else { return Some(new) };
        match named.get_mut(number) {
            None => {
                self.notes.push(ChangeNote::UnknownOrigin { line: cell.line, cell: number });
                return Some(new);
            }
            Some(true) => {
                self.notes.push(ChangeNote::RepeatedOrigin { line: cell.line, cell: number });
                return Some(new);
            }
            Some(named) => *named = true,
        }
        let Some(known) = &self.numbers[number] else {
            self.unseen.push(number);
            return None;
        };
        let is_mine =
            (known.kind, known.source) != (cell.cell.kind, Fingerprint::of(cell.cell.source.as_bytes()));
        let mine = || Some(version(number, &cell.cell));
        let Some(place) = places[number] else {
            if is_mine {
                self.conflicts.push(CellConflict { cell: number, theirs: None, mine: mine() });
            } else {
                self.changes.removed += 1;
            }
            return None;
        };
        self.placed[place] = true;
        let theirs = self.now.cell(place);
        let is_changed = !known.says_what(&theirs);
        let agree = theirs.kind() == cell.cell.kind && theirs.source() == cell.cell.source;
        if !is_mine || agree {
            if is_changed {
                self.note_change(place);
            }
            return Some(MergedCell { cell: kept(&theirs, cell.line), is_known: agree || !is_changed });
        }
        if !self.is_known_version(known, place, Some(cell.cell.kind)) {
            self.note_change(place);
            let theirs = Some(version_of(&theirs));
            self.conflicts.push(CellConflict { cell: number, theirs, mine: mine() });
        } else if !self.seen.has(&theirs) {
            self.unseen.push(number);
        }
        Some(MergedCell { cell: TextCell { origin: Some(place), ..cell.clone() }, is_known: true })
    }

    /// Whether the cell at `place` is in the version that a text is based on, or in the latest that the caller saw. Its
    /// type may be another if the caller wants that one, too.
    fn is_known_version(&self, base: &KnownCell, place: usize, wanted: Option<CellKind>) -> bool {
        let theirs = self.now.cell(place);
        [Some(base), self.latest[place]].into_iter().flatten().any(|known| {
            known.says_what(&theirs)
                || (known.source == source_print(&theirs) && wanted == Some(theirs.kind()))
        })
    }

    /// Notes that a cell is not as in the base of the text, and which side changed it, as far as the caller knows.
    fn note_change(&mut self, place: usize) {
        let theirs = self.now.cell(place);
        let is_own = self.latest[place]
            .is_some_and(|latest| latest.says_what(&theirs) && latest.since_base == SinceBase::OnlyCaller);
        if is_own { self.own.push(place) } else { self.changes.edited.push(place) }
    }

    /// A cell that the text does not name: the caller deletes it, if it knows what it deletes.
    fn left_out(&mut self, number: usize, place: Option<usize>) {
        let Some(known) = &self.numbers[number] else {
            self.unseen.push(number);
            return;
        };
        let Some(place) = place else { return }; // others deleted it as well
        if known.number == NumberOrigin::Appended {
            return; // the caller added it after it read the text
        }
        self.placed[place] = true;
        let theirs = self.now.cell(place);
        if self.is_known_version(known, place, None) {
            if !self.seen.has(&theirs) {
                self.unseen.push(number);
            }
        } else {
            self.note_change(place);
            self.conflicts.push(CellConflict { cell: number, theirs: Some(version_of(&theirs)), mine: None });
        }
    }

    fn finish(
        mut self,
        cells: Vec<MergedCell>,
        text: &[TextCell],
        places: &[Option<usize>],
    ) -> Result<MergedText, EditRefusal> {
        let is_in_order = |numbers: &mut dyn Iterator<Item = usize>| numbers.is_sorted();
        let mine_moved = !is_in_order(&mut text.iter().filter_map(|cell| cell.origin));
        self.changes.moved = !is_in_order(&mut places.iter().flatten().copied());
        let added: Vec<_> = (0..self.now.len()).filter(|place| !self.placed[*place]).collect();
        let is_own = |place: usize| {
            let known =
                places.iter().position(|at| *at == Some(place)).and_then(|at| self.numbers[at].as_ref());
            known.is_some_and(|known| known.number == NumberOrigin::Appended)
        };
        self.changes.added = added.iter().filter(|place| !is_own(**place)).count();
        if !self.conflicts.is_empty() || (mine_moved && self.changes.moved) {
            return Err(EditRefusal::Stale { changes: self.changes.to_string(), conflicts: self.conflicts });
        }
        if !self.unseen.is_empty() {
            self.unseen.sort_unstable();
            return Err(EditRefusal::PartlyRead { unseen: UnseenParts::Cells(self.unseen) });
        }
        let theirs: Vec<_> = added
            .iter()
            .map(|place| MergedCell {
                cell: kept(&self.now.cell(*place), 0),
                is_known: self.seen.has(&self.now.cell(*place)),
            })
            .collect();
        let cells =
            if self.changes.moved { in_their_order(cells, &theirs) } else { with_added(cells, theirs) };
        if !self.own.is_empty() {
            self.own.sort_unstable();
            self.notes.push(ChangeNote::KeptOwn { cells: self.own });
        }
        if self.changes.is_any() {
            self.notes.push(ChangeNote::Merged { changes: self.changes.to_string() });
        }
        Ok(MergedText { cells, notes: self.notes })
    }
}

impl TheirChanges {
    fn is_any(&self) -> bool {
        !self.edited.is_empty() || self.added > 0 || self.removed > 0 || self.moved
    }
}

impl std::fmt::Display for TheirChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |number: usize, what: &str| match number {
            0 => None,
            1 => Some(format!("1 cell was {what}")),
            _ => Some(format!("{number} cells were {what}")),
        };
        let mut edited = self.edited.clone();
        edited.sort_unstable();
        let edited = (!edited.is_empty()).then(|| {
            let noun = if edited.len() == 1 { "cell" } else { "cells" };
            format!("{noun} {} edited", index_ranges(&edited))
        });
        let moved = self.moved.then(|| "cells were moved".to_owned());
        let parts = [edited, count(self.added, "added"), count(self.removed, "removed"), moved];
        let mut separator = "";
        for part in parts.into_iter().flatten() {
            write!(f, "{separator}{part}")?;
            separator = "; ";
        }
        if separator.is_empty() { f.write_str("a cell was edited") } else { Ok(()) }
    }
}

/// The cells in the order of the text. Each cell of others follows the cell that precedes it in the file.
fn with_added(mut cells: Vec<MergedCell>, added: Vec<MergedCell>) -> Vec<MergedCell> {
    for cell in added {
        let place = cell.cell.origin.expect("it is in the file");
        let at = |origin: usize| cells.iter().position(|cell| cell.cell.origin == Some(origin));
        let before = (0..place).rev().find_map(at);
        cells.insert(before.map_or(0, |at| at + 1), cell);
    }
    cells
}

/// The cells of the file in its order, and each new one of the text after the one that it follows there.
fn in_their_order(cells: Vec<MergedCell>, added: &[MergedCell]) -> Vec<MergedCell> {
    let old = cells.iter().chain(added).filter(|cell| cell.cell.origin.is_some());
    let mut ordered: Vec<_> = old.cloned().collect();
    ordered.sort_by_key(|cell| cell.cell.origin);
    let (mut before, mut new) = (None, 0);
    for cell in cells {
        if cell.cell.origin.is_some() {
            (before, new) = (cell.cell.origin, 0);
            continue;
        }
        let at = before.and_then(|_| ordered.iter().position(|cell| cell.cell.origin == before));
        ordered.insert(at.map_or(0, |at| at + 1) + new, cell);
        new += 1;
    }
    ordered
}

fn latest_cells<'a>(knowledge: &'a NotebookKnowledge, now: &Notebook) -> Vec<Option<&'a KnownCell>> {
    let mut latest = vec![None; now.len()];
    for (number, place) in places(&knowledge.numbers, now).into_iter().enumerate() {
        if let Some(place) = place {
            latest[place] = knowledge.numbered(number);
        }
    }
    latest
}

fn kept(cell: &NotebookCell<'_>, line: usize) -> TextCell {
    let new = NewCell::new(cell.kind(), cell.source().into_owned());
    TextCell { cell: new, origin: Some(cell.index()), line }
}

pub(crate) fn version_of(cell: &NotebookCell<'_>) -> CellVersion {
    CellVersion { index: cell.index(), kind: cell.kind(), source: cell.source().into_owned() }
}

pub(crate) fn version(index: usize, cell: &NewCell) -> CellVersion {
    CellVersion { index, kind: cell.kind, source: cell.source.clone() }
}
