//! Which display each piece of a turn is in, and which displays are to be sent.
//!
//! A piece has a display of its own, which can be changed but not taken back. Notebooks fold what is beyond 50 outputs of a cell,
//! so in a long turn pieces share displays.

use std::collections::BTreeSet;
use std::ops::Range;

/// From the display of this number on, neighbours share one.
const CROWDED: usize = 30;

/// So many pieces share a display at most, and none is added to one that is longer than this: it is sent whole each time
/// that one of them changes.
const MOST_TOGETHER: usize = 20;
const LONG_ENOUGH: usize = 24 * 1024;

/// Displays of a turn, by number.
#[derive(Debug, Default)]
pub(super) struct TurnDisplays {
    /// Of each piece.
    homes: Vec<usize>,
    /// Those the notebook has.
    sent: BTreeSet<usize>,
    /// Those to be sent.
    changed: BTreeSet<usize>,
    /// The one that was rendered last, and its length.
    weight: (usize, usize),
}

/// Whether a new piece may share its display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisplaySharing {
    Welcome,
    /// It changes often: what its neighbours' reader unfolded would fold each time.
    Unwanted,
}

impl TurnDisplays {
    /// The last display, when one more piece may be added to it.
    pub(super) fn open(&self) -> Option<usize> {
        let last = *self.homes.last()?;
        let short = self.weight.0 != last || self.weight.1 < LONG_ENOUGH;
        (last >= CROWDED && short && self.pieces(last).len() < MOST_TOGETHER).then_some(last)
    }

    /// Adds a piece to a display, or to a new one.
    pub(super) fn add(&mut self, to: Option<usize>) {
        let next = self.homes.last().map_or(0, |last| last + 1);
        let home = to.unwrap_or(next);
        self.homes.push(home);
        self.changed.insert(home);
    }

    /// Forgets the pieces from this one on.
    pub(super) fn truncate(&mut self, at: usize) {
        self.homes.truncate(at);
    }

    /// A piece has changed.
    pub(super) fn touch(&mut self, at: usize) {
        self.changed.insert(self.homes[at]);
    }

    /// The pieces in a display.
    pub(super) fn pieces(&self, display: usize) -> Range<usize> {
        let start = self.homes.partition_point(|home| *home < display);
        start..self.homes.partition_point(|home| *home <= display)
    }

    /// Whether others may join a piece in its display later.
    pub(super) fn is_crowded(&self, at: usize) -> bool {
        self.homes[at] >= CROWDED
    }

    /// A display was rendered, so long.
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

    /// Nothing is to be sent.
    pub(super) fn settle(&mut self) {
        self.changed.clear();
    }
}
