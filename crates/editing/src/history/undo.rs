//! Undoing a change in the notebook as it is now.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use cellwright_notebook::{
    CellChange, CellJson, ChangeNote, ChangeReport, EditedNotebook, Notebook, NotebookCell, RawCell,
    TouchedCell,
};

use super::key::{CellFinder, CellKey, MemberPrints};
use super::{HistoryStore, OldPlace, StoredChange, UndoStep, UndoSteps};

/// Why a change cannot be undone. The file is then as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// There is no change to undo.
    #[error("it has no change that can be undone")]
    Nothing,
    /// There is no such change.
    #[error("it has no change {number}; `history` lists the changes that can be undone")]
    NoSuchChange {
        /// The number asked for.
        number: u64,
    },
    /// It was undone before.
    #[error("change {number} was undone already")]
    Undone {
        /// Its number.
        number: u64,
    },
    /// Others changed a cell since, which undoing would take away.
    #[error("cell {cell} was changed since change {number}; use force to undo it anyway")]
    ChangedSince {
        /// The cell.
        cell: usize,
        /// The change's number.
        number: u64,
    },
    /// The whole file was replaced, and others changed it since.
    #[error(
        "the notebook was changed since change {number}, which replaced all of it; use force to undo it anyway"
    )]
    ReplacedSince {
        /// The change's number.
        number: u64,
    },
    /// What was there before cannot be put back.
    #[error("what change {number} removed cannot be restored: the stored change is damaged")]
    Unusable {
        /// The change's number.
        number: u64,
    },
}

impl HistoryStore {
    /// The change to undo: the requested one, or else the latest that was not undone and is not an undo itself.
    pub(crate) fn to_undo(&self, file: &Path, asked: Option<u64>) -> Result<(u64, StoredChange), UndoError> {
        let changes = self.changes(file);
        let number = match asked {
            None => changes
                .iter()
                .find(|past| !past.undone && past.undoes.is_none())
                .map(|past| past.number)
                .ok_or(UndoError::Nothing)?,
            Some(number) => match changes.iter().find(|past| past.number == number) {
                None => return Err(UndoError::NoSuchChange { number }),
                Some(past) if past.undone => return Err(UndoError::Undone { number }),
                Some(_) => number,
            },
        };
        let mut change = self.load(file, number).ok_or(UndoError::NoSuchChange { number })?;
        if let UndoSteps::Results { cells } = &mut change.undo {
            *cells = self.old_results(file, number)?;
        }
        Ok((number, change))
    }
}

/// The notebook `now` with the change undone that has this number and these steps.
pub(crate) fn undone(
    steps: &[UndoStep],
    now: &Notebook,
    number: u64,
    force: bool,
) -> Result<EditedNotebook, UndoError> {
    UndoPlan::of(now, number, force).run(steps)
}

/// A cell of the notebook to be.
struct UndoSlot<'a> {
    origin: Option<usize>,
    json: Option<Cow<'a, str>>,
}

struct UndoPlan<'a> {
    now: &'a Notebook,
    finder: CellFinder,
    number: u64,
    force: bool,
    slots: Vec<UndoSlot<'a>>,
    moved: Vec<usize>,
    notes: Vec<ChangeNote>,
}

impl<'a> UndoPlan<'a> {
    fn of(now: &'a Notebook, number: u64, force: bool) -> Self {
        let slots = (0..now.len()).map(|index| UndoSlot { origin: Some(index), json: None }).collect();
        let finder = CellFinder::of(now);
        Self { now, finder, number, force, slots, moved: Vec::new(), notes: Vec::new() }
    }

    fn run(mut self, steps: &'a [UndoStep]) -> Result<EditedNotebook, UndoError> {
        let mut inserted = LastInserted::default();
        let moves: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                UndoStep::Move { cell, place } => Some((cell, place)),
                UndoStep::Restore { .. } | UndoStep::Remove { .. } | UndoStep::Insert { .. } => None,
            })
            .collect();
        self.move_back(&moves);
        for step in steps {
            match step {
                UndoStep::Restore { cell, json, left } => self.restore(cell, json, left)?,
                UndoStep::Remove { cell, left } => self.remove(cell, left)?,
                UndoStep::Insert { place, json, twins } => self.insert(place, json, *twins, &mut inserted)?,
                UndoStep::Move { .. } => {}
            }
        }
        self.finish()
    }

    fn restore(&mut self, key: &CellKey, json: &'a str, left: &MemberPrints) -> Result<(), UndoError> {
        let before = self.parsed(json)?;
        let before = before.cell();
        if let Some(place) = self.already_restored(key, &before) {
            return self.found_again(place, &before);
        }
        let Some(place) = self.unchanged(key)? else {
            if !self.force {
                return Err(self.changed_since(key.index));
            }
            self.slots.push(UndoSlot { origin: None, json: Some(Cow::Borrowed(json)) });
            return Ok(());
        };
        let json = self.restored(place, json, left)?;
        let at = self.slot_of(place).expect("no step removes what another restores");
        self.slots[at].json = Some(json);
        Ok(())
    }

    /// Where a cell is that says again what it said before the change: others went back, or the change was stored and we
    /// were killed before it was made.
    fn already_restored(&self, key: &CellKey, before: &NotebookCell<'_>) -> Option<usize> {
        // Without ids, it is the cell at this position.
        let place = if key.has_id() { self.finder.place(key) } else { Some(key.index) };
        let now = self.now.cell(place.filter(|place| *place < self.now.len())?);
        let is_back = (now.kind(), now.source()) == (before.kind(), before.source());
        (is_back && !key.says_what(&now) && now.id() == before.id()).then_some(now.index())
    }

    /// The JSON that a cell had, with what others changed in it since.
    fn restored(
        &mut self,
        place: usize,
        json: &'a str,
        left: &MemberPrints,
    ) -> Result<Cow<'a, str>, UndoError> {
        let now = self.now.cell(place);
        let before = self.parsed(json)?;
        let says_other = (before.cell().kind(), before.cell().source()) != (now.kind(), now.source());
        let members: HashMap<_, _> = self.parsed(now.raw())?.members().into_iter().collect();
        let mut restored = Cow::Borrowed(json);
        for key in MemberPrints::of(&now).changed_since(left) {
            match key {
                // The key of the cell was compared with these.
                "source" | "cell_type" => {}
                // Outputs are of one source: they come back with it.
                "outputs" | "execution_count" => {
                    if !says_other && !self.force {
                        return Err(self.changed_since(place));
                    }
                    self.note_outputs(place);
                }
                // Whatever else others changed stays.
                _ => {
                    let changed = self.parsed(&restored)?.with_member(key, members.get(key).copied());
                    restored = Cow::Owned(changed);
                }
            }
        }
        Ok(restored)
    }

    fn remove(&mut self, key: &CellKey, left: &MemberPrints) -> Result<(), UndoError> {
        match self.unchanged(key)? {
            Some(place) => {
                let prints = MemberPrints::of(&self.now.cell(place));
                if prints.changed_since(left).any(|key| key == "outputs") {
                    self.note_outputs(place);
                }
                self.slots.retain(|slot| slot.origin != Some(place));
                Ok(())
            }
            // Without an id it may be there, with another source.
            None if !key.has_id() && !self.force => Err(self.changed_since(key.index)),
            None => Ok(()),
        }
    }

    fn insert(
        &mut self,
        place: &'a OldPlace,
        json: &'a str,
        twins: usize,
        last: &mut LastInserted<'a>,
    ) -> Result<(), UndoError> {
        let cell = self.parsed(json)?;
        let cell = cell.cell();
        let copies = self.finder.copies(&cell);
        let found =
            last.found.entry((cell.id().map(Cow::into_owned), cell.source().into_owned())).or_default();
        if let Some(there) = copies.last().filter(|_| copies.len() > twins + *found) {
            *found += 1;
            return self.found_again(*there, &cell);
        }
        let behind_last = last.at.filter(|(neighbour, _)| *neighbour == place.behind.as_ref());
        let at = behind_last.map_or_else(|| self.old_position(place), |(_, at)| at + 1);
        self.slots.insert(at, UndoSlot { origin: None, json: Some(Cow::Borrowed(json)) });
        last.at = Some((place.behind.as_ref(), at));
        Ok(())
    }

    /// A cell that was to come back is there. Outputs that it lost on the way come back all the same.
    fn found_again(&mut self, there: usize, before: &NotebookCell<'_>) -> Result<(), UndoError> {
        let (now, at) = (self.now.cell(there), self.slot_of(there));
        if let (Some(results), None, Some(at)) = (before.results(), now.results(), at) {
            let unusable = |_| UndoError::Unusable { number: self.number };
            let json = self.now.cell_with_results(there, &results).map_err(unusable)?;
            self.slots[at].json = Some(Cow::Owned(json));
            self.notes.push(ChangeNote::OutputsRestored { cell: there });
        } else {
            self.notes.push(ChangeNote::AlreadyThere { cell: there });
        }
        Ok(())
    }

    /// Moves cells back, each beside its old neighbours.
    fn move_back(&mut self, moves: &[(&CellKey, &OldPlace)]) {
        let mut taken = Vec::new();
        for (key, place) in moves {
            // One that is gone stays gone.
            let found = self.finder.place(key).and_then(|origin| Some((origin, self.slot_of(origin)?)));
            if let Some((origin, at)) = found {
                taken.push((origin, *place, self.cell_before(at)));
            }
        }
        let origins: Vec<_> = taken.iter().map(|(origin, ..)| *origin).collect();
        let (mut out, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.slots)
            .into_iter()
            .partition(|slot| slot.origin.is_some_and(|origin| origins.contains(&origin)));
        self.slots = stay;
        for (origin, place, _) in &taken {
            let slot = out.iter().position(|slot| slot.origin == Some(*origin));
            let slot = out.swap_remove(slot.expect("it was taken out"));
            self.slots.insert(self.old_position(place), slot);
        }
        for (origin, _, before) in taken {
            let at = self.slot_of(origin).expect("it was put back");
            if self.cell_before(at) != before {
                self.moved.push(origin);
            }
        }
    }

    fn cell_before(&self, at: usize) -> Option<usize> {
        self.slots.get(at.checked_sub(1)?)?.origin
    }

    /// Where a cell belongs among the slots: beside those of its old neighbours that still exist.
    fn old_position(&self, place: &OldPlace) -> usize {
        let slot = |key: &Option<CellKey>| self.slot_of(self.finder.place(key.as_ref()?)?);
        match (slot(&place.behind), slot(&place.before)) {
            (Some(behind), _) => behind + 1,
            (None, Some(before)) => before,
            (None, None) => place.index.min(self.slots.len()),
        }
    }

    fn slot_of(&self, origin: usize) -> Option<usize> {
        self.slots.iter().position(|slot| slot.origin == Some(origin))
    }

    /// Where a cell is that says what it said after the change; an error if it says something else by now.
    fn unchanged(&self, key: &CellKey) -> Result<Option<usize>, UndoError> {
        match self.finder.place(key) {
            Some(place) if !self.force && !key.says_what(&self.now.cell(place)) => {
                Err(self.changed_since(place))
            }
            place => Ok(place),
        }
    }

    fn changed_since(&self, cell: usize) -> UndoError {
        UndoError::ChangedSince { cell, number: self.number }
    }

    fn parsed<'j>(&self, json: &'j str) -> Result<CellJson<'j>, UndoError> {
        CellJson::parse(json).map_err(|_| UndoError::Unusable { number: self.number })
    }

    fn note_outputs(&mut self, cell: usize) {
        let note = ChangeNote::LaterOutputs { cell };
        if !self.now.cell(cell).outputs().is_empty() && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn finish(mut self) -> Result<EditedNotebook, UndoError> {
        let cells: Vec<_> = self
            .slots
            .iter()
            .map(|slot| match (slot.origin, &slot.json) {
                (Some(index), None) => RawCell::Kept(index),
                (Some(index), Some(json)) => RawCell::Replaced(index, json),
                (None, json) => RawCell::New(json.as_deref().unwrap_or_default()),
            })
            .collect();
        let unusable = |_| UndoError::Unusable { number: self.number };
        let mut after = self.now.with_raw_cells(&cells).map_err(unusable)?;
        let is_taken = |(at, slot): (usize, &UndoSlot<'_>)| {
            (slot.origin.is_none() && self.finder.has_id_of(&after.cell(at))).then_some(at)
        };
        let taken: Vec<_> = self.slots.iter().enumerate().filter_map(is_taken).collect();
        if !taken.is_empty() {
            after = after.with_new_ids(&taken);
            self.notes.push(ChangeNote::IdsTaken { cells: taken });
        }
        let origins: Vec<_> = self.slots.iter().map(|slot| slot.origin).collect();
        let mut touched = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let change = match (slot.origin, &slot.json) {
                (None, _) => CellChange::Inserted,
                (Some(origin), Some(_)) if self.now.cell(origin).source() != after.cell(at).source() => {
                    CellChange::Edited
                }
                (Some(_), Some(_)) => CellChange::Altered,
                (Some(origin), None) if self.moved.contains(&origin) => CellChange::Moved,
                (Some(_), None) => continue,
            };
            let now = TouchedCell::of(&after.cell(at), change);
            touched.push(match slot.origin {
                Some(origin) => now.after(&self.now.cell(origin)),
                None => now,
            });
        }
        let gone = self.now.cells().filter(|cell| !origins.contains(&Some(cell.index())));
        touched.extend(gone.map(|cell| TouchedCell::of(&cell, CellChange::Deleted)));
        touched.sort_by_key(|cell| cell.change);
        let report = ChangeReport { action: "undo", cells: touched, total: after.len(), notes: self.notes };
        let changed = after.text() != self.now.text();
        Ok(EditedNotebook { notebook: changed.then_some(after), report, origins })
    }
}

/// What came back so far.
#[derive(Default)]
struct LastInserted<'a> {
    /// Behind which cell the last one was put, and where: the next one there comes behind it.
    at: Option<(Option<&'a CellKey>, usize)>,
    /// Cells that were there already, by their ids and what they say.
    found: HashMap<(Option<String>, String), usize>,
}
