//! What a run has recorded and not yet handed over to be saved.
//!
//! Saving means to sync a file, which takes its time, and quick cells come by the hundred. So results are saved at most once a
//! second, all that came within it together. Nothing waits for longer than that second: it is what a kill can cost.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use cellwright_cell::MimeBundle;
use tokio::time::Instant;

/// The least time between two saves, and the longest that results wait for one.
const BETWEEN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct UnsavedResults {
    batch: SavedBatch,
    due: Option<Instant>,
    last: Option<Instant>,
}

/// What is saved together. Cells are numbered by their place in the run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SavedBatch {
    /// Those that have other results than were saved.
    pub(crate) cells: BTreeSet<usize>,
    /// Those of them that are over.
    pub(crate) finished: Vec<usize>,
    /// What displays of earlier runs show now.
    pub(crate) updates: BTreeMap<usize, Arc<MimeBundle>>,
}

impl UnsavedResults {
    /// Something of a cell has changed that may go on changing.
    pub(crate) fn later(&mut self, cell: usize) {
        self.batch.cells.insert(cell);
        self.save_within(BETWEEN);
    }

    /// So has a display of an earlier run.
    pub(crate) fn update_later(&mut self, display: usize, content: Arc<MimeBundle>) {
        self.batch.updates.insert(display, content);
        self.save_within(BETWEEN);
    }

    /// A cell is over: saved at once, unless the last save was a moment ago.
    pub(crate) fn finished(&mut self, cell: usize) {
        self.batch.cells.insert(cell);
        self.batch.finished.push(cell);
        self.save_within(self.last.map_or(Duration::ZERO, |last| BETWEEN.saturating_sub(last.elapsed())));
    }

    fn save_within(&mut self, time: Duration) {
        let due = Instant::now() + time;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// When to save it, if there is something.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What is saved now, if there is something.
    pub(crate) fn take(&mut self) -> Option<SavedBatch> {
        self.due.take()?;
        self.last = Some(Instant::now());
        Some(take(&mut self.batch))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn milliseconds(unsaved: &UnsavedResults) -> Option<u128> {
        unsaved.due().map(|due| due.saturating_duration_since(Instant::now()).as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn results_are_saved_at_most_once_a_second_and_none_waits_for_longer() {
        let mut unsaved = UnsavedResults::default();
        assert_eq!((milliseconds(&unsaved), unsaved.take()), (None, None));
        // The first cell that ends is saved at once; those that end a moment later, together.
        unsaved.later(0);
        assert_eq!(milliseconds(&unsaved), Some(1000));
        advance(Duration::from_millis(100)).await;
        unsaved.finished(0);
        assert_eq!(milliseconds(&unsaved), Some(0));
        assert_eq!(unsaved.take().unwrap().finished, [0]);
        for cell in 1..=9 {
            advance(Duration::from_millis(100)).await;
            unsaved.later(cell);
            unsaved.finished(cell);
            assert_eq!(milliseconds(&unsaved), Some(1000 - cell as u128 * 100), "{cell}");
        }
        unsaved.later(10);
        advance(Duration::from_millis(100)).await;
        assert_eq!(milliseconds(&unsaved), Some(0));
        let batch = unsaved.take().unwrap();
        assert_eq!((batch.cells, batch.finished), ((1..=10).collect(), (1..=9).collect()));
        // What goes on is saved a second after it began to change, however often it changes.
        for _ in 0..9 {
            unsaved.later(10);
            advance(Duration::from_millis(100)).await;
        }
        assert_eq!(milliseconds(&unsaved), Some(100));
    }
}
