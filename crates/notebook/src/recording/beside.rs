//! The outputs of one cell twice: as a notebook keeps them, and as another holder does, a report say. One reducer decides
//! for both, so the two cannot differ in what continues what, what is cleared and which display changes.

use std::sync::Arc;

use cellwright_cell::{MimeBundle, Output, Stream};

use super::cell::CellRecord;
use super::{CellLimit, CellOutputs, Joint, Stability};

#[derive(Debug)]
pub(super) struct RecordedCell<R> {
    pub(super) record: CellRecord,
    pub(super) report: R,
    /// Where each display that has a name is: in the record, and in the report.
    places: Vec<(Option<usize>, Option<usize>)>,
}

impl<R: CellOutputs> CellOutputs for RecordedCell<R> {
    type Settings = (CellLimit, R::Settings);

    fn new((limit, report): &Self::Settings, cell: usize) -> Self {
        Self { record: CellRecord::new(limit, cell), report: R::new(report, cell), places: Vec::new() }
    }

    fn print(&mut self, (limit, report): &Self::Settings, stream: Stream, text: &str, joint: Joint) {
        self.record.print(limit, stream, text, joint);
        self.report.print(report, stream, text, joint);
    }

    fn add(
        &mut self,
        (limit, report): &Self::Settings,
        output: Output,
        stability: Stability,
    ) -> Option<usize> {
        let kept = self.record.add(limit, output.clone(), stability);
        let shown = self.report.add(report, output, stability);
        if stability == Stability::Final {
            return None;
        }
        self.places.push((kept, shown));
        Some(self.places.len() - 1)
    }

    fn update(&mut self, (limit, report): &Self::Settings, place: usize, content: &Arc<MimeBundle>) -> bool {
        let Some((kept, shown)) = self.places.get(place).copied() else { return false };
        let is_kept = kept.is_some_and(|place| self.record.update(limit, place, content));
        let is_shown = shown.is_some_and(|place| self.report.update(report, place, content));
        if !is_shown {
            // The report cannot change it any more, so it shows what the display is now.
            let again = Output::Display { content: Arc::clone(content), display_id: None };
            self.report.add(report, again, Stability::Final);
        }
        is_kept || is_shown
    }

    fn can_update(&self, place: usize) -> bool {
        self.places.get(place).is_some_and(|(kept, shown)| {
            kept.is_some_and(|place| self.record.can_update(place))
                || shown.is_some_and(|place| self.report.can_update(place))
        })
    }

    fn clear(&mut self, (limit, report): &Self::Settings) {
        self.record.clear(limit);
        self.report.clear(report);
        self.places.clear();
    }
}

impl<R> RecordedCell<R> {
    /// Which of the notebook's outputs a display is. `None` if there was no room for it.
    pub(super) fn place_in_notebook(&self, place: usize) -> Option<usize> {
        self.places.get(place)?.0
    }
}

/// A holder of nothing, for a recording without a report.
impl CellOutputs for () {
    type Settings = ();

    fn new((): &(), _: usize) -> Self {}

    fn print(&mut self, (): &(), _: Stream, _: &str, _: Joint) {}

    fn add(&mut self, (): &(), _: Output, _: Stability) -> Option<usize> {
        None
    }

    fn update(&mut self, (): &(), _: usize, _: &Arc<MimeBundle>) -> bool {
        false
    }

    fn can_update(&self, _: usize) -> bool {
        false
    }

    fn clear(&mut self, (): &()) {}
}
