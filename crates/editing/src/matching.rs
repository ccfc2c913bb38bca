//! Which cell of the notebook as it is now is the one that a caller knows.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use cellwright_notebook::{CellKind, Fingerprint, Notebook};

use crate::knowledge::{KnownCell, source_print};

/// Where the known cells are now: first by id, then by what they say, then, for cells without ids, by the cells around
/// them. `None` for a cell that is gone, or that was never shown.
pub(crate) fn places(known: &[Option<KnownCell>], now: &Notebook) -> Vec<Option<usize>> {
    let mut matching = CellMatching {
        known,
        now,
        repeated: repeated_ids(now),
        places: vec![None; known.len()],
        taken: vec![false; now.len()],
    };
    matching.by_id();
    matching.by_content();
    matching.by_neighbours();
    matching.places
}

/// The ids that several cells have. They name none of them.
pub(crate) fn repeated_ids(now: &Notebook) -> HashSet<String> {
    let mut met = HashSet::new();
    let repeated = now.cells().filter_map(|cell| cell.id()).filter_map(|id| met.replace(id));
    repeated.map(Cow::into_owned).collect()
}

struct CellMatching<'a> {
    known: &'a [Option<KnownCell>],
    now: &'a Notebook,
    repeated: HashSet<String>,
    places: Vec<Option<usize>>,
    taken: Vec<bool>,
}

impl CellMatching<'_> {
    fn set(&mut self, known: usize, place: usize) {
        self.places[known] = Some(place);
        self.taken[place] = true;
    }

    /// The id of a known cell, unless several cells have it.
    fn known_id(&self, at: usize) -> Option<&str> {
        let id = self.known[at].as_ref().and_then(|known| known.id.as_deref());
        id.filter(|id| !self.repeated.contains(*id))
    }

    /// The same for a cell of the notebook as it is now.
    fn id_now(&self, place: usize) -> Option<String> {
        let id = self.now.cell(place).id().map(Cow::into_owned);
        id.filter(|id| !self.repeated.contains(id))
    }

    fn by_id(&mut self) {
        let ids: HashMap<_, _> =
            (0..self.now.len()).filter_map(|place| Some((self.id_now(place)?, place))).collect();
        for at in 0..self.known.len() {
            // A cell that the caller was shown with two numbers is the one with the first.
            if let Some(place) = self.known_id(at).and_then(|id| ids.get(id).copied())
                && !self.taken[place]
            {
                self.set(at, place);
            }
        }
    }

    fn by_content(&mut self) {
        let known_ids: HashSet<_> = (0..self.known.len()).filter_map(|at| self.known_id(at)).collect();
        let mut free: HashMap<(CellKind, Fingerprint), VecDeque<usize>> = HashMap::new();
        for cell in self.now.cells().filter(|cell| !self.taken[cell.index()]) {
            // A cell with an id that the caller knows is that one and no other.
            if self.id_now(cell.index()).is_none_or(|id| !known_ids.contains(&*id)) {
                free.entry((cell.kind(), source_print(&cell))).or_default().push_back(cell.index());
            }
        }
        let open: Vec<_> =
            self.known.iter().enumerate().filter(|(at, _)| self.places[*at].is_none()).collect();
        // If several have the same text, the one at the old position is meant.
        for at_same_place in [true, false] {
            for (at, known) in &open {
                let Some(known) = known.as_ref().filter(|_| self.places[*at].is_none()) else { continue };
                let Some(places) = free.get_mut(&(known.kind, known.source)) else { continue };
                let found = if at_same_place { places.iter().position(|place| place == at) } else { Some(0) };
                if let Some(place) = found.and_then(|found| places.remove(found)) {
                    self.set(*at, place);
                }
            }
        }
    }

    /// Cells without ids that were edited where they stand: between two that were found, as many known ones are missing
    /// as there are cells that nobody knows.
    fn by_neighbours(&mut self) {
        let mut from = 0;
        while from < self.known.len() {
            let to =
                (from..self.known.len()).find(|at| self.places[*at].is_some()).unwrap_or(self.known.len());
            let first =
                from.checked_sub(1).and_then(|before| self.places[before]).map_or(0, |place| place + 1);
            let end = self.places.get(to).copied().flatten().unwrap_or(self.now.len());
            let free: Vec<_> = (first..end).filter(|place| !self.taken[*place]).collect();
            let lacks_ids =
                |at: usize, place: usize| self.known_id(at).is_none() && self.id_now(place).is_none();
            if free.len() == to - from && (from..to).zip(&free).all(|(at, place)| lacks_ids(at, *place)) {
                for (at, place) in (from..to).zip(free).filter(|(at, _)| self.known[*at].is_some()) {
                    self.set(at, place);
                }
            }
            from = to + 1;
        }
    }
}
