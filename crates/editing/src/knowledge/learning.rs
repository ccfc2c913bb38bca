//! How knowledge grows: by reads, and by the caller's own changes.

use std::collections::HashSet;

use cellwright_notebook::{Fingerprint, Notebook, NotebookCell};

use super::{
    FileVersion, KnownCell, LineSource, NotebookKnowledge, NumberOrigin, SeenExtent, SinceBase, source_print,
    version_print,
};
use crate::coverage::{ReadCoverage, ShownCell};
use crate::matching::{places, repeated_ids};
use crate::view::ViewForm;

/// How many sources are remembered that have no number any more, such as earlier versions of a cell.
const EARLIER_SOURCES: usize = 20_000;

/// How many earlier files are remembered.
const EARLIER_FILES: usize = 50;

/// A change that a caller made.
pub(crate) struct OwnChange<'a> {
    pub(crate) before: &'a Notebook,
    pub(crate) after: &'a Notebook,
    /// For each cell of `after` which of `before` it was.
    pub(crate) origins: &'a [Option<usize>],
    /// For each cell of `after` whether the caller knows all of its source.
    pub(crate) given: &'a [bool],
    pub(crate) new_lines: LineSource,
}

impl NotebookKnowledge {
    /// Learns what was shown of the notebook as it is now, which is the file with this fingerprint.
    pub(crate) fn saw(&mut self, now: &Notebook, file: Fingerprint, coverage: &ReadCoverage) {
        let is_same_file = self.latest == Some(file);
        self.set_latest(file);
        if coverage.is_whole(now.len()) {
            self.retire_all();
            self.numbers = now
                .cells()
                .map(|cell| Some(KnownCell::of(&cell, SeenExtent::Whole, NumberOrigin::Read)))
                .collect();
            return;
        }
        let is_later = self.numbers.len() != now.len()
            || coverage.cells().any(|shown| {
                self.numbered(shown.index).is_some_and(|known| !known.says_what(&now.cell(shown.index)))
            });
        if is_later {
            self.start_base();
        }
        if !is_same_file {
            self.numbers.iter_mut().flatten().for_each(|known| known.file = FileVersion::Earlier);
        }
        let repeated = repeated_ids(now);
        let sources: HashSet<_> = now.cells().map(|cell| source_print(&cell)).collect();
        let is_other = |known: &KnownCell, cell: &NotebookCell<'_>| match (&known.id, cell.id()) {
            (Some(known), Some(id)) => *known != id,
            // Without ids: a cell whose old source is gone was probably edited in place.
            _ => !known.says_what(cell) && sources.contains(&known.source),
        };
        let is_renumbered = |knowledge: &Self, shown: &ShownCell| {
            knowledge.numbered(shown.index).is_some_and(|known| is_other(known, &now.cell(shown.index)))
        };
        // JSON shows no numbers, and a part of it may not even show which cell it is.
        let names_cell = |knowledge: &Self, shown: &ShownCell| {
            let is_part = shown.form == ViewForm::Raw && SeenExtent::of(shown) != SeenExtent::Whole;
            !(is_part && is_renumbered(knowledge, shown))
        };
        let shown = coverage.cells().filter(|shown| shown.index < now.len());
        let (cells, unnamed): (Vec<_>, Vec<_>) = shown.partition(|shown| names_cell(self, shown));
        for shown in unnamed {
            let cell = now.cell(shown.index);
            self.retire(Some(KnownCell::of(&cell, SeenExtent::of(shown), NumberOrigin::Shifted)));
        }
        if cells.iter().any(|shown| is_renumbered(self, shown)) {
            self.numbers.iter_mut().flatten().for_each(|known| known.number = NumberOrigin::Shifted);
        }
        while self.numbers.len() > now.len() {
            let last = self.numbers.pop().flatten();
            self.past_the_end.extend(last.clone().map(|last| (self.numbers.len(), last)));
            self.retire(last);
        }
        self.numbers.resize(now.len(), None);
        for shown in cells {
            let cell = now.cell(shown.index);
            let before = self.numbers[shown.index].take();
            let extent = SeenExtent::of(shown);
            let mut known = KnownCell::of(&cell, extent.clone(), NumberOrigin::Read);
            if let Some(before) = &before {
                known.since_base = SinceBase::Others;
                if before.says_what(&cell) {
                    known.extent = extent.clone().with(&before.extent, shown, is_same_file);
                    known.since_base = before.since_base;
                }
                if extent != SeenExtent::Whole {
                    known.file = before.file;
                }
            }
            if known.extent == SeenExtent::Whole {
                self.shown_since.insert(shown.index);
            }
            if let Some(id) = known.id.as_ref().filter(|id| !repeated.contains(*id)) {
                // By the number that it had before, it is not known in an older version.
                for at in 0..self.numbers.len() {
                    let newer = |other: &KnownCell| KnownCell { number: other.number, ..known.clone() };
                    if let Some(newer) =
                        self.numbers[at].as_ref().filter(|other| other.id.as_ref() == Some(id)).map(newer)
                    {
                        let older = self.numbers[at].replace(newer);
                        self.retire(older);
                    }
                }
            }
            self.numbers[shown.index] = Some(known);
            self.past_the_end.remove(&shown.index);
            self.retire(before);
        }
        let is_now = |(known, cell): (&Option<KnownCell>, NotebookCell<'_>)| {
            known.as_ref().is_some_and(|known| known.is(&cell) && known.says_what(&cell))
        };
        let shown_all = (0..now.len()).all(|index| self.shown_since.contains(&index));
        if self.base.is_some() && shown_all && self.numbers.iter().zip(now.cells()).all(is_now) {
            self.retire_base();
        }
    }

    /// Keeps in mind what a text of all cells is based on, before parts of a later version are known, too.
    fn start_base(&mut self) {
        if self.base.is_none() && self.knows_all() && !self.numbers.is_empty() {
            self.numbers.iter_mut().flatten().for_each(|known| known.since_base = SinceBase::OnlyCaller);
            self.base = Some(self.numbers.clone());
            self.shown_since.clear();
        }
    }

    /// Learns from a change of some cells by the caller. A text that was read before is still based on what was read.
    pub(crate) fn changed_cells(&mut self, change: &OwnChange<'_>) {
        self.start_base();
        if let Some(was) = &self.base {
            // Without an id, a cell is known by what it says.
            let is_new = |at: usize| {
                change.is_given(at) && (change.origins[at].is_none() || change.after.cell(at).id().is_none())
            };
            self.base = Some(change.renumbered(was, is_new));
        }
        // What moved has another number than it was shown with.
        self.shown_since.retain(|index| change.origins.get(*index) == Some(&Some(*index)));
        self.renumber(change);
    }

    /// Learns from a text of all cells by the caller. The next text is based on this one, which may lack what others, or
    /// the caller itself, changed in cells that it left alone.
    pub(crate) fn wrote_text(&mut self, change: &OwnChange<'_>) {
        let Some(before) = self.base.take() else {
            self.renumber(change);
            return;
        };
        let base = change.updated(&before);
        self.base = Some(before);
        self.retire_base();
        self.shown_since.retain(|index| change.origins.get(*index) == Some(&Some(*index)));
        self.renumber(change);
        let version = |known: &Option<KnownCell>| {
            known.as_ref().map(|known| (known.id.clone(), known.kind, known.source, known.extent.clone()))
        };
        if !base.iter().map(version).eq(self.numbers.iter().map(version)) {
            self.base = Some(base);
            return;
        }
        for (known, base) in self.numbers.iter_mut().flatten().zip(base.iter().flatten()) {
            known.number = base.number;
        }
    }

    fn renumber(&mut self, change: &OwnChange<'_>) {
        let was = std::mem::take(&mut self.numbers);
        if !change.keeps_places() && !change.keeps_numbers(&was) {
            self.past_the_end.clear();
        }
        self.numbers = change.updated(&was);
        self.left_file(change);
        for known in was {
            self.retire(known);
        }
        for cell in change.after.cells().filter(|cell| change.is_given(cell.index())) {
            self.retire(Some(KnownCell::of(&cell, SeenExtent::Whole, NumberOrigin::Shifted)));
        }
    }

    /// Learns that the caller wrote a text of all cells that means the notebook as it was at that moment.
    pub(crate) fn replaced_cells(&mut self, change: &OwnChange<'_>) {
        self.retire_all();
        self.numbers = change.renumbered(&vec![None; change.before.len()], |_| true);
        self.left_file(change);
    }

    fn set_latest(&mut self, file: Fingerprint) {
        let Some(before) = self.latest.replace(file).filter(|before| *before != file) else { return };
        self.earlier_files.retain(|earlier| *earlier != before);
        self.earlier_files.push(before);
        if self.earlier_files.len() > EARLIER_FILES {
            self.earlier_files.remove(0);
        }
    }

    /// Learns which file the caller's change left.
    fn left_file(&mut self, change: &OwnChange<'_>) {
        let (before, after) = (Fingerprint::of_file(change.before), Fingerprint::of_file(change.after));
        let is_new_file = self.latest.is_none() && before == Fingerprint::of_file(&Notebook::empty());
        if self.latest != Some(before) && !is_new_file {
            self.numbers.iter_mut().flatten().for_each(|known| known.file = FileVersion::Earlier);
        }
        self.set_latest(after);
    }

    /// Learns that the caller wrote all of the notebook, by no numbers that it had.
    pub(crate) fn wrote_all(&mut self, after: &Notebook) {
        self.set_latest(Fingerprint::of_file(after));
        self.retire_all();
        self.numbers = after
            .cells()
            .map(|cell| Some(KnownCell::of(&cell, SeenExtent::Whole, NumberOrigin::Shifted)))
            .collect();
    }

    fn retire_all(&mut self) {
        self.retire_base();
        self.past_the_end.clear();
        for known in std::mem::take(&mut self.numbers) {
            self.retire(known);
        }
    }

    /// Forgets the base, except for the sources that were seen. Later versions of its cells may be known.
    fn retire_base(&mut self) {
        for known in self.base.take().into_iter().flatten() {
            let later = known.as_ref().and_then(|known| known.id.as_ref());
            let later = later.and_then(|id| Some((id.clone(), *self.earlier_cells.get(id)?)));
            self.retire(known);
            self.earlier_cells.extend(later);
        }
    }

    /// Keeps in mind that a source was seen which no number may stand for any more.
    fn retire(&mut self, known: Option<KnownCell>) {
        let Some(KnownCell { id, kind, source, extent, .. }) = known else { return };
        if self.earlier_cells.len() < EARLIER_SOURCES {
            self.earlier_cells.extend(id.map(|id| (id, version_print(kind, source))));
        }
        if extent != SeenExtent::Whole {
            return;
        }
        if self.earlier.last() != Some(&source) {
            self.earlier.push(source);
        }
        if self.earlier.len() > 2 * EARLIER_SOURCES {
            let mut met = HashSet::new();
            let mut kept: Vec<_> =
                self.earlier.drain(..).rev().filter(|source| met.insert(*source)).collect();
            kept.truncate(EARLIER_SOURCES);
            kept.reverse();
            self.earlier = kept;
        }
    }

    /// Forgets sources that are remembered twice. To be called before the knowledge is stored.
    pub(crate) fn compact(&mut self) {
        let numbered = self.numbers.iter().flatten().filter(|cell| cell.extent == SeenExtent::Whole);
        let mut met: HashSet<_> = numbered.map(|cell| cell.source).collect();
        let mut kept: Vec<_> = self.earlier.drain(..).rev().filter(|source| met.insert(*source)).collect();
        kept.truncate(EARLIER_SOURCES);
        kept.reverse();
        self.earlier = kept;
        for id in self.numbers.iter().flatten().filter_map(|cell| cell.id.as_ref()) {
            self.earlier_cells.remove(id);
        }
    }
}

impl OwnChange<'_> {
    fn is_given(&self, at: usize) -> bool {
        self.given.get(at).copied().unwrap_or(false)
    }

    /// The latest versions that the caller knows after it.
    fn updated(&self, was: &[Option<KnownCell>]) -> Vec<Option<KnownCell>> {
        let is_given = |at: usize| self.is_given(at);
        let mut numbers = self.renumbered(was, is_given);
        if !self.keeps_numbers(was) {
            for (at, origin) in self.origins.iter().enumerate() {
                if let (Some(origin), Some(known)) = (origin, &mut numbers[at]) {
                    self.update(known, *origin, at);
                }
            }
            return numbers;
        }
        let mut moved_to = vec![None; self.before.len()];
        for (at, origin) in self.origins.iter().enumerate() {
            if let Some(origin) = origin {
                moved_to[*origin] = Some(at);
            }
        }
        for (known, place) in numbers.iter_mut().zip(places(was, self.before)) {
            let at = place.and_then(|place| moved_to[place]);
            if let (Some(known), Some(place), Some(at)) = (known, place, at) {
                self.update(known, place, at);
            }
        }
        numbers
    }

    /// Updates what the caller knows of a cell that it changed.
    fn update(&self, known: &mut KnownCell, origin: usize, at: usize) {
        let (before, after) = (self.before.cell(origin), self.after.cell(at));
        let extent = if self.is_given(at) {
            SeenExtent::Whole
        } else if known.says_what(&before) && !known.says_what(&after) {
            known.extent.after_change(&before, &after, self.new_lines)
        } else {
            // Not changed, or by others, too: what they wrote the caller has not seen, so its version stays.
            return;
        };
        let (file, since_base) = (known.file, known.since_base);
        *known = KnownCell { file, since_base, ..KnownCell::of(&after, extent, known.number) };
    }

    /// Whether every cell is where it was.
    fn keeps_places(&self) -> bool {
        let is_there = |(at, origin): (usize, &Option<usize>)| *origin == Some(at);
        self.before.len() == self.after.len() && self.origins.iter().enumerate().all(is_there)
    }

    /// Whether the numbers were right before the change.
    fn is_current(&self, was: &[Option<KnownCell>]) -> bool {
        was.iter().enumerate().all(|(at, known)| match known {
            Some(known) => at < self.before.len() && known.is(&self.before.cell(at)),
            None => true,
        })
    }

    /// Whether numbers stay as the caller knows them. Numbers that were already wrong must be noticed.
    fn keeps_numbers(&self, was: &[Option<KnownCell>]) -> bool {
        !self.is_current(was)
    }

    /// The numbers that cells have after it, as far as the caller can know.
    fn renumbered(
        &self,
        was: &[Option<KnownCell>],
        is_known: impl Fn(usize) -> bool,
    ) -> Vec<Option<KnownCell>> {
        let Self { before, after, origins, .. } = self;
        if self.keeps_numbers(was) {
            return was.to_vec();
        }
        let mut numbers = vec![None; after.len()];
        for (at, origin) in origins.iter().enumerate() {
            let known = origin.and_then(|origin| was.get(origin).cloned().flatten());
            let number = match (origin, &known) {
                (Some(origin), Some(known)) if *origin == at => known.number,
                (Some(origin), None) if *origin == at => NumberOrigin::Read,
                (None, _) if at >= before.len() => NumberOrigin::Appended,
                _ => NumberOrigin::Shifted,
            };
            if is_known(at) {
                let (file, since_base) = known
                    .map_or((FileVersion::Latest, SinceBase::OnlyCaller), |known| {
                        (known.file, known.since_base)
                    });
                let given = KnownCell::of(&after.cell(at), SeenExtent::Whole, number);
                numbers[at] = Some(KnownCell { file, since_base, ..given });
            } else if let Some(known) = known {
                // As the caller knows it: others may have changed what it says.
                numbers[at] = Some(KnownCell { number, ..known });
            }
        }
        numbers
    }
}
