//! What cells show after their end, until a call takes it along.

use std::sync::Arc;

use cellwright_cell::{Output, OutputChange};

use crate::call::LateOutput;
use crate::collect::{CollectedOutput, Collector};
use crate::settings::OutputSettings;

/// How much of what threads print between two calls is kept. A kernel that prints more is held up until the next
/// call, as by a full pipe: nobody would notice it filling the disk.
const ROOM: usize = 64 << 20;

/// How much of it is kept change by change, for programs. If there is more, they get what a report holds.
const EXACT: usize = 1 << 20;

/// What a change takes beside its content: one that clears has none, and comes as often as any.
const CHANGE: usize = 256;

/// What came since the last call.
pub(super) struct LateCollector {
    collector: Collector,
    /// All of it, while that is not much.
    changes: Option<Vec<OutputChange>>,
    /// What `changes` take.
    kept: usize,
    weight: usize,
}

impl LateCollector {
    pub(super) fn new(settings: &OutputSettings) -> Self {
        Self { collector: Collector::new(settings), changes: Some(Vec::new()), kept: 0, weight: 0 }
    }

    pub(super) fn has_room(&self) -> bool {
        self.weight < ROOM
    }

    pub(super) fn take(&mut self, change: &OutputChange) {
        self.collector.apply(change);
        let weight = change.weight();
        self.weight += weight;
        let Some(changes) = &mut self.changes else { return };
        self.kept += weight;
        match (changes.last_mut(), change) {
            (
                Some(OutputChange::Added(Output::Text { stream: last, text })),
                OutputChange::Added(Output::Text { stream, text: more }),
            ) if last == stream => text.push_str(more),
            _ => {
                self.kept += CHANGE;
                changes.push(change.clone());
            }
        }
        if self.kept > EXACT {
            self.changes = None;
        }
    }

    /// What there is when a call begins. What comes from here on is reported as it comes.
    pub(super) fn before(&mut self) -> Arc<LateOutput> {
        Arc::new(LateOutput { collected: self.collector.snapshot(), changes: self.changes.take() })
    }

    pub(super) fn finish(self) -> CollectedOutput {
        self.collector.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_weighs_nothing_is_not_kept_for_ever() {
        let mut late = LateCollector::new(&OutputSettings::default());
        for _ in 0..=EXACT / CHANGE {
            late.take(&OutputChange::Cleared { wait: true });
        }
        assert!(late.changes.is_none() && late.has_room());
    }
}
