//! What a client was shown of calls that go on in the background, so that it is not shown that again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cellwright_output::{Artifacts, CapturedText};
use cellwright_session::{CallReport, CellReport, JobId};

/// How many calls are remembered. Sessions keep as many.
const MOST: usize = 64;

/// Most bytes of news that are shown as such. For more, the beginning and the end of everything say more.
const NEWS: usize = 256 * 1024;

/// By call, how much of each cell a client has seen.
#[derive(Debug, Default)]
pub(crate) struct ShownJobs(Mutex<BTreeMap<JobId, Vec<SeenOutput>>>);

/// How much of a cell's output a client has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SeenOutput {
    /// Whole lines.
    lines: u64,
    /// Displays.
    displays: usize,
}

/// A report without what its reader has seen.
pub(crate) struct ReportNews {
    pub(crate) report: CallReport,
    /// Whether something was left out.
    pub(crate) has_earlier: bool,
}

impl ShownJobs {
    /// What is new in a report. Its reader has seen all of it then.
    pub(crate) fn news(&self, job: JobId, report: &CallReport, artifacts: &Artifacts) -> ReportNews {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = jobs.insert(job, report.cells.iter().map(|cell| SeenOutput::all(cell)).collect());
        while jobs.len() > MOST {
            jobs.pop_first();
        }
        drop(jobs);
        let mut news = ReportNews { report: report.clone(), has_earlier: false };
        for (cell, seen) in news.report.cells.iter_mut().zip(seen.unwrap_or_default()) {
            if let Some(text) = seen.rest(cell, artifacts) {
                news.has_earlier |= seen != SeenOutput::default();
                let cell = Arc::make_mut(cell);
                cell.output.text = text;
                cell.output.shown.drain(..seen.displays);
            }
        }
        news
    }

    /// The end of a call was reported. A caller that asks once more wants all of it.
    pub(crate) fn forget(&self, job: JobId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
    }
}

impl SeenOutput {
    fn all(cell: &CellReport) -> Self {
        let CapturedText { text, truncation } = &cell.output.text;
        let lines = match truncation {
            // The last line may still grow.
            Some(truncation) => truncation.total.lines.saturating_sub(u64::from(!text.ends_with('\n'))),
            None => text.bytes().filter(|byte| *byte == b'\n').count() as u64,
        };
        Self { lines, displays: cell.output.shown.len() }
    }

    /// What came after this. `None` if the output does not go on from it, or is too long.
    fn rest(self, cell: &CellReport, artifacts: &Artifacts) -> Option<CapturedText> {
        let now = Self::all(cell);
        if now.lines < self.lines || now.displays < self.displays {
            return None; // it was cleared
        }
        let CapturedText { text, truncation } = &cell.output.text;
        let rest = match truncation {
            None => {
                let skipped = text.split_inclusive('\n').take(usize::try_from(self.lines).ok()?);
                text[skipped.map(str::len).sum()..].to_owned()
            }
            Some(truncation) => {
                let artifact = artifacts.open(truncation.full.artifact()?).ok()?;
                let page = artifact.lines(self.lines + 1..=u64::MAX, NEWS).ok()?;
                if page.next.is_some() {
                    return None;
                }
                page.text
            }
        };
        Some(CapturedText { text: rest, truncation: None })
    }
}
