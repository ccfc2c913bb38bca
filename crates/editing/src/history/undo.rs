//! Undoing a change in the notebook as it is now.

use std::path::Path;

use cellwright_notebook::{Change, Edited, Notebook, RawCell, Report, TouchedCell};

use super::{CellKey, HistoryStore, StoredChange, UndoStep};

/// Why a change cannot be undone. The file is then as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// There is no change to undo.
    #[error("no change of it is kept that could be undone")]
    Nothing,
    /// There is no such change.
    #[error("no change {number} of it is kept; `history` lists those there are")]
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
    #[error("cell {cell} was changed since change {number}; use force to undo it all the same")]
    ChangedSince {
        /// The cell.
        cell: usize,
        /// The change's number.
        number: u64,
    },
    /// The whole file was replaced, and others changed it since.
    #[error(
        "the notebook was changed since change {number}, which replaced all of it; use force to undo it all the same"
    )]
    ReplacedSince {
        /// The change's number.
        number: u64,
    },
    /// What was there before cannot be put back.
    #[error("what change {number} took away cannot be put back: the stored change is damaged")]
    Unusable {
        /// The change's number.
        number: u64,
    },
}

impl HistoryStore {
    /// The change to undo: the one asked for, else the latest that was not undone and is no undo itself.
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
        let change = self.load(file, number).ok_or(UndoError::NoSuchChange { number })?;
        Ok((number, change))
    }
}

/// The notebook `now` with the change undone that has this number and these steps.
pub(crate) fn undone(
    steps: &[UndoStep],
    now: &Notebook,
    number: u64,
    force: bool,
) -> Result<Edited, UndoError> {
    Undoing::of(now, number, force).run(steps)
}

/// A cell of the notebook to be.
#[derive(Clone)]
struct UndoSlot<'a> {
    origin: Option<usize>,
    json: Option<&'a str>,
}

struct Undoing<'a> {
    now: &'a Notebook,
    number: u64,
    force: bool,
    slots: Vec<UndoSlot<'a>>,
    moved: Vec<usize>,
}

impl<'a> Undoing<'a> {
    fn of(now: &'a Notebook, number: u64, force: bool) -> Self {
        let slots = (0..now.len()).map(|index| UndoSlot { origin: Some(index), json: None }).collect();
        Self { now, number, force, slots, moved: Vec::new() }
    }

    fn run(mut self, steps: &'a [UndoStep]) -> Result<Edited, UndoError> {
        let mut inserted_behind: Option<(Option<usize>, usize)> = None;
        for step in steps {
            match step {
                UndoStep::Restore { cell, json } => match self.unchanged(cell)? {
                    Some(place) => {
                        let slot = self.slots.iter_mut().find(|slot| slot.origin == Some(place));
                        slot.expect("it is there").json = Some(json);
                    }
                    None if self.force => self.slots.push(UndoSlot { origin: None, json: Some(json) }),
                    None => return Err(self.changed_since(cell.index)),
                },
                UndoStep::Remove { cell } => {
                    let place = self.unchanged(cell)?;
                    self.slots.retain(|slot| slot.origin.is_none() || slot.origin != place);
                }
                UndoStep::Insert { behind, json } => {
                    let anchor = behind.as_ref().and_then(|cell| cell.place_in(self.now));
                    let before = match inserted_behind {
                        Some((same, count)) if same == anchor => count,
                        _ => 0,
                    };
                    let at = match (behind, anchor) {
                        (None, _) => 0,
                        (Some(_), Some(place)) => self
                            .slots
                            .iter()
                            .position(|slot| slot.origin == Some(place))
                            .map_or(0, |at| at + 1),
                        (Some(cell), None) => (cell.index + 1).min(self.slots.len() - before),
                    };
                    self.slots.insert(at + before, UndoSlot { origin: None, json: Some(json) });
                    inserted_behind = Some((anchor, before + 1));
                }
                UndoStep::Order { cells } => self.order(cells),
            }
        }
        self.finish()
    }

    /// Where a cell is that says what it said after the change; an error if it says something else by now.
    fn unchanged(&self, cell: &CellKey) -> Result<Option<usize>, UndoError> {
        match cell.place_in(self.now) {
            Some(place) if !self.force && !cell.says_what(&self.now.cell(place)) => {
                Err(self.changed_since(place))
            }
            place => Ok(place),
        }
    }

    fn changed_since(&self, cell: usize) -> UndoError {
        UndoError::ChangedSince { cell, number: self.number }
    }

    /// Puts cells into this order, in the places that they have among the others.
    fn order(&mut self, cells: &[CellKey]) {
        let wanted: Vec<_> = cells.iter().filter_map(|cell| cell.place_in(self.now)).collect();
        let places: Vec<_> = (0..self.slots.len())
            .filter(|at| self.slots[*at].origin.is_some_and(|origin| wanted.contains(&origin)))
            .collect();
        let before = self.slots.clone();
        let there =
            wanted.iter().filter_map(|origin| before.iter().find(|slot| slot.origin == Some(*origin)));
        for (at, slot) in places.into_iter().zip(there) {
            if self.slots[at].origin != slot.origin {
                self.moved.push(at);
            }
            self.slots[at] = slot.clone();
        }
    }

    fn finish(self) -> Result<Edited, UndoError> {
        let cells: Vec<_> = self
            .slots
            .iter()
            .map(|slot| match (slot.origin, slot.json) {
                (Some(index), None) => RawCell::Kept(index),
                (Some(index), Some(json)) => RawCell::Replaced(index, json),
                (None, json) => RawCell::New(json.unwrap_or_default()),
            })
            .collect();
        let unusable = |_| UndoError::Unusable { number: self.number };
        let after = self.now.with_raw_cells(&cells).map_err(unusable)?;
        let origins: Vec<_> = self.slots.iter().map(|slot| slot.origin).collect();
        let mut touched = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let change = match (slot.origin, slot.json) {
                (None, _) => Change::Inserted,
                (Some(origin), Some(_)) if self.now.cell(origin).source() != after.cell(at).source() => {
                    Change::Edited
                }
                (Some(_), Some(_)) => Change::Altered,
                (Some(_), None) if self.moved.contains(&at) => Change::Moved,
                (Some(_), None) => continue,
            };
            touched.push(TouchedCell::of(&after.cell(at), change));
        }
        let gone = self.now.cells().filter(|cell| !origins.contains(&Some(cell.index())));
        touched.extend(gone.map(|cell| TouchedCell::of(&cell, Change::Deleted)));
        touched.sort_by_key(|cell| cell.change);
        let report = Report { action: "undo", cells: touched, total: after.len(), notes: Vec::new() };
        let changed = after.text() != self.now.text();
        Ok(Edited { notebook: changed.then_some(after), report, origins })
    }
}
