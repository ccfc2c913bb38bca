//! What a read showed: whole cells, lines of cells, lines of a text.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::knowledge::Extent;
use crate::view::CellLines;

/// What a read showed of a notebook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    cells: Vec<ShownCell>,
}

/// What a read showed of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownCell {
    pub(crate) index: usize,
    /// How many lines it has in a view, the marker not counted.
    pub(crate) lines: usize,
    /// Those that were shown, counting the marker as line 0.
    shown: LineSet,
}

impl Coverage {
    /// Of a view of which these lines were shown to their ends.
    pub fn of(cells: &[CellLines], shown: &LineSet) -> Self {
        let cells = cells.iter().filter_map(|cell| {
            let (first, last) = (*cell.lines.start(), *cell.lines.end());
            let shown = shown.within(first..=last).shifted_down(first);
            (!shown.is_empty()).then_some(ShownCell { index: cell.index, lines: last - first, shown })
        });
        Self { cells: cells.collect() }
    }

    /// Of cells that were shown whole.
    pub fn whole_cells(cells: impl IntoIterator<Item = usize>) -> Self {
        let shown = |index| ShownCell { index, lines: 0, shown: LineSet::from(0..=0) };
        Self { cells: cells.into_iter().map(shown).collect() }
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = &ShownCell> {
        self.cells.iter()
    }

    /// Whether every cell of a notebook of `total` cells was shown whole.
    pub fn is_whole(&self, total: usize) -> bool {
        let mut whole = vec![false; total];
        for cell in self.cells.iter().filter(|cell| cell.index < total && cell.extent() == Extent::Whole) {
            whole[cell.index] = true;
        }
        whole.iter().all(|whole| *whole)
    }
}

impl ShownCell {
    pub(crate) fn extent(&self) -> Extent {
        if self.shown.covers(0..=self.lines) { Extent::Whole } else { Extent::Lines(self.shown.clone()) }
    }
}

/// Some lines of a text, as ranges in order that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineSet(Vec<(usize, usize)>);

impl LineSet {
    /// Whether there is no line in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds lines.
    pub fn add(&mut self, lines: RangeInclusive<usize>) {
        if lines.is_empty() {
            return;
        }
        let (mut first, mut last) = lines.into_inner();
        self.0.retain(|(from, to)| {
            let is_apart = *to + 1 < first || last + 1 < *from;
            if !is_apart {
                (first, last) = (first.min(*from), last.max(*to));
            }
            is_apart
        });
        let at = self.0.partition_point(|(from, _)| *from < first);
        self.0.insert(at, (first, last));
    }

    /// Adds the lines of another set.
    pub fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|(from, to)| self.add(*from..=*to));
    }

    /// Whether all of these lines are in it.
    pub fn covers(&self, lines: RangeInclusive<usize>) -> bool {
        lines.is_empty() || self.0.iter().any(|(from, to)| from <= lines.start() && lines.end() <= to)
    }

    /// The lines of it that are in `lines`.
    #[must_use]
    pub fn within(&self, lines: RangeInclusive<usize>) -> Self {
        let cut = self.0.iter().map(|(from, to)| (*from.max(lines.start()), *to.min(lines.end())));
        Self(cut.filter(|(from, to)| from <= to).collect())
    }

    fn shifted_down(mut self, by: usize) -> Self {
        self.0.iter_mut().for_each(|(from, to)| (*from, *to) = (*from - by, *to - by));
        self
    }
}

impl From<RangeInclusive<usize>> for LineSet {
    fn from(lines: RangeInclusive<usize>) -> Self {
        let mut set = Self::default();
        set.add(lines);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut lines = LineSet::default();
        for range in [5..=7, 1..=2, 3..=3, 9..=9, 8..=8] {
            lines.add(range);
        }
        assert_eq!(lines, LineSet(vec![(1, 3), (5, 9)]));
        assert!(lines.covers(6..=9) && !lines.covers(3..=5));
        assert_eq!(lines.within(2..=5), LineSet(vec![(2, 3), (5, 5)]));
        lines.add(4..=4);
        assert_eq!(lines, LineSet(vec![(1, 9)]));
    }

    #[test]
    fn a_cell_that_was_cut_was_not_shown_whole() {
        let cells = [CellLines { index: 0, lines: 1..=2 }, CellLines { index: 1, lines: 3..=6 }];
        let coverage = |lines: RangeInclusive<usize>| Coverage::of(&cells, &LineSet::from(lines));
        assert!(coverage(1..=6).is_whole(2));
        assert!(!coverage(1..=5).is_whole(2));
        let cut = coverage(2..=5);
        let extents: Vec<_> = cut.cells().map(|cell| (cell.index, cell.extent())).collect();
        assert_eq!(
            extents,
            [(0, Extent::Lines(LineSet::from(1..=1))), (1, Extent::Lines(LineSet::from(0..=2)))]
        );
    }
}
