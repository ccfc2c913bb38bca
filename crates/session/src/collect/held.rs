//! The outputs of a cell while it runs, for its report.
//!
//! What cannot change any more goes to the page, where most of it is soon forgotten. A display that has a name may be updated,
//! so it waits, and what comes after it waits behind it. When too much waits, the first of it is final after all.

use std::collections::VecDeque;
use std::sync::Arc;

use cellwright_cell::{MimeBundle, Output, Stream};
use cellwright_notebook::recording::{CellOutputs, Joint, Stability};

use super::CollectedOutput;
use super::page::ReportPage;
use crate::settings::{OutputSettings, StoredOutputs};

/// Bytes that may wait; one output may be larger.
const MOST_WAITING: usize = 4 << 20;

/// Displays that may wait: one that is shown again under its name is updated in all its places.
const MOST_DISPLAYS: usize = 256;

/// What an output costs beside its content.
const OUTPUT: usize = 256;

/// What a report holds of a cell's outputs.
#[derive(Debug)]
pub struct ReportOutputs {
    page: ReportPage,
    /// What is not on the page yet. The first is a display that may change.
    waiting: VecDeque<WaitingOutput>,
    /// How many have left `waiting`.
    gone: usize,
    /// Bytes that wait.
    weight: usize,
    /// How many displays wait that may change.
    displays: usize,
}

#[derive(Debug)]
struct WaitingOutput {
    output: Output,
    stability: Stability,
}

impl CellOutputs for ReportOutputs {
    type Settings = OutputSettings;

    fn new(settings: &OutputSettings, cell: usize) -> Self {
        let page = ReportPage::new(settings, cell);
        Self { page, waiting: VecDeque::new(), gone: 0, weight: 0, displays: 0 }
    }

    fn print(&mut self, settings: &OutputSettings, stream: Stream, text: &str, joint: Joint) {
        if self.waiting.is_empty() {
            if joint == Joint::Begins {
                self.page.start_output();
            }
            return self.page.print(stream, text);
        }
        match (joint, self.waiting.back_mut()) {
            (Joint::GoesOn, Some(WaitingOutput { output: Output::Text { text: before, .. }, .. })) => {
                before.push_str(text);
                self.weight += text.len();
            }
            _ => self.wait(WaitingOutput { output: Output::text(stream, text), stability: Stability::Final }),
        }
        self.settle(settings);
    }

    fn add(&mut self, settings: &OutputSettings, output: Output, stability: Stability) -> Option<usize> {
        if self.waiting.is_empty() && stability == Stability::Final {
            self.page.show(settings, &output);
            return None;
        }
        let place = self.gone + self.waiting.len();
        self.wait(WaitingOutput { output, stability });
        self.settle(settings);
        Some(place)
    }

    fn update(&mut self, settings: &OutputSettings, place: usize, content: &Arc<MimeBundle>) -> bool {
        let waiting = place.checked_sub(self.gone).and_then(|at| self.waiting.get_mut(at));
        let Some(WaitingOutput { output: Output::Display { content: shown, .. }, .. }) = waiting else {
            return false;
        };
        self.weight = self.weight - shown.weight() + content.weight();
        *shown = Arc::clone(content);
        self.settle(settings);
        true
    }

    fn can_update(&self, place: usize) -> bool {
        place >= self.gone
    }

    fn clear(&mut self, _: &OutputSettings) {
        self.page.clear();
        self.gone += self.waiting.len();
        self.waiting.clear();
        (self.weight, self.displays) = (0, 0);
    }
}

impl ReportOutputs {
    /// What would be shown if nothing more came.
    pub fn snapshot(&mut self, settings: &OutputSettings) -> CollectedOutput {
        if !self.waiting.is_empty() {
            let nowhere = OutputSettings { stored: StoredOutputs::Nothing, ..settings.clone() };
            let mut page = self.page.copy();
            for waiting in &self.waiting {
                page.show(&nowhere, &waiting.output);
            }
            let lacks_store = page.lacks_store();
            let collected = page.finish();
            if collected.text.truncation.is_none() && !lacks_store {
                return collected;
            }
            // What is reported as left out must be found where the report says, so it is final.
            while self.show_first(settings) {}
        }
        self.page.snapshot()
    }

    pub(super) fn finish(mut self, settings: &OutputSettings) -> CollectedOutput {
        while self.show_first(settings) {}
        self.page.finish()
    }

    fn wait(&mut self, waiting: WaitingOutput) {
        self.weight += waiting.weight();
        self.displays += usize::from(waiting.may_change());
        self.waiting.push_back(waiting);
    }

    /// Lets go of what need not wait, or cannot.
    fn settle(&mut self, settings: &OutputSettings) {
        while let Some(first) = self.waiting.front() {
            let is_too_much = self.weight > MOST_WAITING || self.displays > MOST_DISPLAYS;
            if first.may_change() && !(is_too_much && self.waiting.len() > 1) {
                return;
            }
            self.show_first(settings);
        }
    }

    fn show_first(&mut self, settings: &OutputSettings) -> bool {
        let Some(first) = self.waiting.pop_front() else { return false };
        self.gone += 1;
        self.weight -= first.weight();
        self.displays -= usize::from(first.may_change());
        self.page.show(settings, &first.output);
        true
    }
}

impl WaitingOutput {
    fn may_change(&self) -> bool {
        self.stability == Stability::MayChange
    }

    fn weight(&self) -> usize {
        OUTPUT + self.output.weight()
    }
}
