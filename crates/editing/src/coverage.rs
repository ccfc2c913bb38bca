//! What a read showed: whole cells, lines of cells, lines of a text, bytes of lines.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use serde::{Deserialize, Serialize};

use crate::knowledge::SeenExtent;
use crate::view::{CellLines, NotebookView, ViewForm};

/// What a read showed of a notebook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadCoverage {
    cells: Vec<ShownCell>,
}

/// What a read showed of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownCell {
    pub(crate) index: usize,
    pub(crate) form: ViewForm,
    /// The last line the cell has in that form, counting from 0; in marked text, line 0 is the marker.
    pub(crate) last_line: usize,
    /// Those that were shown, counting in the same way.
    pub(crate) lines_seen: SeenLines,
}

impl ReadCoverage {
    /// These lines of a view were shown.
    pub fn of(view: &NotebookView, shown: &SeenLines) -> Self {
        Self::of_lines(view.form, &view.cells, shown)
    }

    fn of_lines(form: ViewForm, cells: &[CellLines], shown: &SeenLines) -> Self {
        let cells = cells.iter().filter_map(|cell| {
            let (first, last) = (*cell.lines.start(), *cell.lines.end());
            let lines_seen = shown.moved(first..last + 1, 0);
            let shown = ShownCell { index: cell.index, form, last_line: last - first, lines_seen };
            (!shown.lines_seen.is_empty()).then_some(shown)
        });
        Self { cells: cells.collect() }
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = &ShownCell> {
        self.cells.iter()
    }

    /// Whether every cell of a notebook of `total` cells was shown whole.
    pub fn is_whole(&self, total: usize) -> bool {
        let mut whole = vec![false; total];
        for cell in
            self.cells.iter().filter(|cell| cell.index < total && SeenExtent::of(cell) == SeenExtent::Whole)
        {
            whole[cell.index] = true;
        }
        whole.iter().all(|whole| *whole)
    }
}

/// Lines of a text that were shown: whole ones, and parts of those that are longer than a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenLines {
    whole: NumberSet,
    parts: BTreeMap<usize, SeenPart>,
}

/// What was shown of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SeenPart {
    /// How many bytes the line has.
    length: usize,
    /// Those that were shown, counting from 1.
    bytes: NumberSet,
}

impl SeenLines {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.parts.is_empty()
    }

    /// Adds lines that were shown to their ends.
    pub fn add(&mut self, lines: RangeInclusive<usize>) {
        self.parts.retain(|line, _| !lines.contains(line));
        self.whole.add(lines);
    }

    /// Adds bytes of a line that has `length`, counting from 1. Parts that join up are the line.
    pub fn add_part(&mut self, line: usize, bytes: RangeInclusive<usize>, length: usize) {
        if self.whole.covers(line..=line) {
            return;
        }
        let part = self.parts.entry(line).or_insert_with(|| SeenPart { length, bytes: NumberSet::default() });
        part.bytes.add(bytes);
        if part.bytes.covers(1..=length) {
            self.add(line..=line);
        }
    }

    /// Adds the lines of another set.
    pub fn extend(&mut self, other: &Self) {
        other.whole.0.iter().for_each(|(from, to)| self.add(*from..=*to));
        for (line, part) in &other.parts {
            part.bytes.0.iter().for_each(|(from, to)| self.add_part(*line, *from..=*to, part.length));
        }
    }

    /// Whether all of these lines were shown to their ends.
    pub fn covers(&self, lines: RangeInclusive<usize>) -> bool {
        self.whole.covers(lines)
    }

    pub(crate) fn covers_range(&self, lines: &Range<usize>) -> bool {
        lines.is_empty() || self.covers(lines.start..=lines.end - 1)
    }

    pub(crate) fn add_range(&mut self, lines: Range<usize>) {
        if !lines.is_empty() {
            self.add(lines.start..=lines.end - 1);
        }
    }

    /// What is known of `lines`, as if the first of them were line `to`.
    pub(crate) fn moved(&self, lines: Range<usize>, to: usize) -> Self {
        let mut moved = Self::default();
        if lines.is_empty() {
            return moved;
        }
        let at = |line: usize| line - lines.start + to;
        let within = self.whole.within(lines.start..=lines.end - 1);
        within.0.iter().for_each(|(from, to)| moved.add(at(*from)..=at(*to)));
        let parts = self.parts.range(lines.clone());
        moved.parts.extend(parts.map(|(line, part)| (at(*line), part.clone())));
        moved
    }
}

impl From<RangeInclusive<usize>> for SeenLines {
    fn from(lines: RangeInclusive<usize>) -> Self {
        let mut seen = Self::default();
        seen.add(lines);
        seen
    }
}

/// Some numbers, as ranges in order that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct NumberSet(Vec<(usize, usize)>);

impl NumberSet {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, numbers: RangeInclusive<usize>) {
        if numbers.is_empty() {
            return;
        }
        let (mut first, mut last) = numbers.into_inner();
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

    fn covers(&self, numbers: RangeInclusive<usize>) -> bool {
        numbers.is_empty() || self.0.iter().any(|(from, to)| from <= numbers.start() && numbers.end() <= to)
    }

    /// Those that are in `numbers`, too.
    fn within(&self, numbers: RangeInclusive<usize>) -> Self {
        let cut = self.0.iter().map(|(from, to)| (*from.max(numbers.start()), *to.min(numbers.end())));
        Self(cut.filter(|(from, to)| from <= to).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut lines = NumberSet::default();
        for range in [5..=7, 1..=2, 3..=3, 9..=9, 8..=8] {
            lines.add(range);
        }
        assert_eq!(lines, NumberSet(vec![(1, 3), (5, 9)]));
        assert!(lines.covers(6..=9) && !lines.covers(3..=5));
        assert_eq!(lines.within(2..=5), NumberSet(vec![(2, 3), (5, 5)]));
        lines.add(4..=4);
        assert_eq!(lines, NumberSet(vec![(1, 9)]));
    }

    #[test]
    fn parts_of_a_line_that_join_up_are_the_line() {
        let mut lines = SeenLines::from(1..=1);
        lines.add_part(2, 1..=10, 25);
        let mut later = SeenLines::default();
        later.add_part(2, 11..=20, 25);
        lines.extend(&later);
        assert!(!lines.covers(1..=2));
        let mut moved = lines.moved(2..3, 0);
        moved.add_part(0, 21..=25, 25);
        assert_eq!(moved, SeenLines::from(0..=0));
        lines.add_part(2, 21..=25, 25);
        assert_eq!(lines, SeenLines::from(1..=2));
    }

    #[test]
    fn a_cell_that_was_cut_was_not_shown_whole() {
        let cells = [CellLines { index: 0, lines: 1..=2 }, CellLines { index: 1, lines: 3..=6 }];
        let coverage = |lines: RangeInclusive<usize>| {
            ReadCoverage::of_lines(ViewForm::Marked, &cells, &SeenLines::from(lines))
        };
        assert!(coverage(1..=6).is_whole(2));
        assert!(!coverage(1..=5).is_whole(2));
        let cut = coverage(2..=5);
        let seen: Vec<_> = cut.cells().map(|cell| (cell.index, cell.lines_seen.clone())).collect();
        assert_eq!(seen, [(0, SeenLines::from(1..=1)), (1, SeenLines::from(0..=2))]);
    }
}
