//! Which cells have run in which kernel, to know which are out of date.

use std::collections::HashMap;

use cellwright_kernel::AboutKernel;
use cellwright_notebook::{Fingerprint, Notebook, NotebookCell};
use cellwright_session::SessionKey;

use crate::displays::EarlierDisplay;
use crate::plan::is_run;
use crate::running::FinishedRun;

/// Displays that are remembered of a session.
const MOST: usize = 1000;

/// What ran where. A cell is out of date when its source is not the one that ran in the kernel there is now, or when a cell
/// before it has run since.
#[derive(Debug, Default)]
pub struct RunRecord {
    sessions: HashMap<SessionKey, RanCell>,
}

#[derive(Debug, Default)]
struct RanCell {
    kernel: Option<AboutKernel>,
    /// Each cell's source, and how many had run before it.
    cells: HashMap<String, (Fingerprint, usize)>,
    count: usize,
    displays: Vec<EarlierDisplay>,
}

impl RunRecord {
    /// Notes the result of a run.
    pub fn note(&mut self, FinishedRun { report, cells, displays, .. }: &FinishedRun) {
        let ran = self.sessions.entry(report.key.clone()).or_default();
        if ran.kernel != report.kernel.about {
            *ran = RanCell { kernel: report.kernel.about.clone(), ..RanCell::default() };
        }
        for (cell, planned) in report.cells.iter().zip(cells) {
            let key = key(planned.id.as_deref(), planned.index);
            if cell.succeeded() {
                ran.count += 1;
                ran.cells.insert(key, (Fingerprint::of(planned.source.as_bytes()), ran.count));
            } else {
                ran.cells.remove(&key);
            }
        }
        // What a cell showed before it ran again is gone.
        ran.displays.retain(|display| cells.iter().all(|cell| cell.index != display.cell.index));
        ran.displays.extend(displays.iter().cloned());
        ran.displays.drain(..ran.displays.len().saturating_sub(MOST));
    }

    /// What the session's runs have shown and later ones may update.
    pub fn displays(&self, session: &SessionKey) -> Vec<EarlierDisplay> {
        self.sessions.get(session).map(|ran| ran.displays.clone()).unwrap_or_default()
    }

    /// The first cell that is out of date in the session, which now has this kernel. `None` if all are current.
    pub fn first_stale(
        &self,
        session: &SessionKey,
        kernel: Option<&AboutKernel>,
        notebook: &Notebook,
    ) -> Option<usize> {
        let ran = self.sessions.get(session).filter(|ran| kernel.is_some() && ran.kernel.as_ref() == kernel);
        let mut latest = 0;
        let is_stale = |cell: &NotebookCell<'_>| {
            let Some((source, at)) =
                ran.and_then(|ran| ran.cells.get(&key(cell.id().as_deref(), cell.index())))
            else {
                return true;
            };
            let is_old = *at < latest;
            latest = latest.max(*at);
            is_old || *source != Fingerprint::of(cell.source().as_bytes())
        };
        let mut is_stale = is_stale;
        notebook.cells().filter(is_run).find(|cell| is_stale(cell)).map(|cell| cell.index())
    }
}

fn key(id: Option<&str>, index: usize) -> String {
    id.map_or_else(|| format!("#{index}"), str::to_owned)
}
