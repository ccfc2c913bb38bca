//! The displays of a turn: which pieces each one holds, and which must be sent.
//!
//! A piece has a display of its own, which can be changed but not removed. Notebooks fold the
//! outputs of a cell beyond 50, so the pieces of a long turn share displays.

use std::collections::BTreeSet;
use std::ops::Range;

/// From this display on, neighbours share displays.
const CROWDED: usize = 30;

/// The most pieces in a display, and the length at which no more are added. A display is sent whole
/// whenever one of its pieces changes.
const MOST_TOGETHER: usize = 20;
const LONG_ENOUGH: usize = 24 * 1024;

/// Displays of a turn, by number.
#[derive(Debug, Default)]
pub(super) struct TurnDisplays {
    /// The display of each piece.
    homes: Vec<usize>,
    /// The displays that the notebook has.
    sent: BTreeSet<usize>,
    /// The displays that must be sent.
    changed: BTreeSet<usize>,
    /// The one that was rendered last, and its length.
    weight: (usize, usize),
    /// Something else follows the last display in the cell.
    is_sealed: bool,
}

/// Whether a new piece may share its display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisplaySharing {
    Welcome,
    /// The piece changes often. Each update would fold what the reader has unfolded beside it.
    Unwanted,
}

impl TurnDisplays {
    /// The last display, if it has room for another piece.
    pub(super) fn open(&self) -> Option<usize> {
        let last = *self.homes.last()?;
        if self.is_sealed {
            return None;
        }
        let short = self.weight.0 != last || self.weight.1 < LONG_ENOUGH;
        (last >= CROWDED && short && self.pieces(last).len() < MOST_TOGETHER).then_some(last)
    }

    /// No more pieces join the last display.
    pub(super) fn seal(&mut self) {
        self.is_sealed = true;
    }

    /// Adds a piece to a display, or to a new one.
    pub(super) fn add(&mut self, to: Option<usize>) {
        self.is_sealed = false;
        let next = self.homes.last().map_or(0, |last| last + 1);
        let home = to.unwrap_or(next);
        self.homes.push(home);
        self.changed.insert(home);
    }

    /// Forgets the pieces from this one on.
    pub(super) fn truncate(&mut self, at: usize) {
        self.homes.truncate(at);
    }

    pub(super) fn touch(&mut self, at: usize) {
        self.changed.insert(self.homes[at]);
    }

    /// Whether a piece has changed since its display was sent.
    pub(super) fn is_changed(&self, at: usize) -> bool {
        self.changed.contains(&self.homes[at])
    }

    /// The pieces in a display.
    pub(super) fn pieces(&self, display: usize) -> Range<usize> {
        let start = self.homes.partition_point(|home| *home < display);
        start..self.homes.partition_point(|home| *home <= display)
    }

    /// Whether other pieces may join a piece in its display.
    pub(super) fn is_crowded(&self, at: usize) -> bool {
        self.homes[at] >= CROWDED
    }

    /// Notes the rendered length of a display.
    pub(super) fn weighs(&mut self, display: usize, length: usize) {
        self.weight = (display, length);
    }

    /// Whether nothing is left to be sent.
    pub(super) fn is_settled(&self) -> bool {
        self.changed.is_empty()
    }

    /// The next display to be sent.
    pub(super) fn next(&mut self) -> Option<usize> {
        self.changed.pop_first()
    }

    /// Notes that a display is sent. True the first time.
    pub(super) fn send(&mut self, display: usize) -> bool {
        self.sent.insert(display)
    }

    /// Whether the notebook has it.
    pub(super) fn is_sent(&self, display: usize) -> bool {
        self.sent.contains(&display)
    }

    /// Forgets all changes.
    pub(super) fn settle(&mut self) {
        self.changed.clear();
    }
}
