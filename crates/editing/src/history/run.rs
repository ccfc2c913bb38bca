//! Runs of notebooks in the history: what the outputs were before.
//!
//! A run is kept apart from other changes, in a file beside its entry. Outputs are large, and runs are many: they must
//! not push the text of cells out of the history.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use cellwright_notebook::{
    CellResults, Change, Edited, Note, Notebook, RawCell, Report, TouchedCell, index_ranges,
};
use serde::{Deserialize, Serialize};

use super::key::{CellFinder, CellKey};
use super::{ChangeFile, HistoryStore, StoredChange, UndoError, UndoSteps};
use crate::editor::{FileEditor, FileName};

/// Bytes of outputs that are kept of the runs of one notebook.
const BYTES: u64 = 64 * 1024 * 1024;

/// Runs of one notebook that are kept.
const RUNS: usize = 20;

/// What a cell had of an earlier run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OldResults {
    cell: CellKey,
    outputs: String,
    execution_count: String,
    execution: Option<String>,
}

impl OldResults {
    fn results(&self) -> CellResults<'_> {
        CellResults {
            outputs: &self.outputs,
            execution_count: &self.execution_count,
            execution: self.execution.as_deref(),
        }
    }

    fn size(&self) -> u64 {
        let execution = self.execution.as_deref().unwrap_or_default();
        (self.outputs.len() + self.execution_count.len() + execution.len()) as u64
    }
}

/// A run that was stored before its first save.
#[derive(Debug, Default)]
pub struct RecordedRun(Option<ChangeFile>);

impl RecordedRun {
    /// Removes it again: no cell ran.
    pub fn withdraw(self) {
        if let Some(recorded) = self.0 {
            drop(fs::remove_file(outputs_beside(recorded.path()))); // the next run sweeps it
            recorded.withdraw();
        }
    }
}

impl FileEditor<'_> {
    /// Keeps what a run of these cells of `now` will replace, so that it can be undone. A run that replaces nothing is not
    /// kept. Blocks on files.
    pub fn record_run(&self, file: &FileName, now: &Notebook, cells: &[usize]) -> RecordedRun {
        let Some(history) = self.history_store() else { return RecordedRun::default() };
        let finder = CellFinder::of(now);
        let (mut old, mut size, mut too_large) = (Vec::new(), 0, Vec::new());
        for cell in cells.iter().map(|index| now.cell(*index)) {
            let Some(CellResults { outputs, execution_count, execution }) = cell.results() else { continue };
            let results = OldResults {
                cell: finder.key(cell.index()),
                outputs: outputs.to_owned(),
                execution_count: execution_count.to_owned(),
                execution: execution.map(str::to_owned),
            };
            if size + results.size() > BYTES {
                too_large.push(cell.index());
                continue;
            }
            size += results.size();
            old.push(results);
        }
        if old.is_empty() {
            return RecordedRun::default();
        }
        let noun = if cells.len() == 1 { "cell" } else { "cells" };
        let left_out = match &too_large[..] {
            [] => String::new(),
            cells => format!("; the old outputs of {} were too large to keep", index_ranges(cells)),
        };
        let summary = format!("ran code {noun} {}{left_out}", index_ranges(cells));
        let change = StoredChange {
            action: "run".to_owned(),
            summary,
            undoes: None,
            after: String::new(),
            undo: UndoSteps::Results { cells: Vec::new() },
        };
        let key = self.document(file).key();
        // Without a history the run goes on: its cells are what the caller asked for.
        RecordedRun(history.record_run(&key, &change, &old).ok())
    }
}

impl HistoryStore {
    fn record_run(&self, file: &Path, change: &StoredChange, old: &[OldResults]) -> io::Result<ChangeFile> {
        let recorded = self.record(file, change)?;
        let path = outputs_beside(recorded.path());
        let written = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        let written = written.and_then(|file| {
            let mut out = BufWriter::new(file);
            serde_json::to_writer(&mut out, old)?;
            out.flush()
        });
        if let Err(error) = written {
            drop(fs::remove_file(path)); // the next run sweeps it
            recorded.withdraw();
            return Err(error);
        }
        prune_runs(&self.folder_of(file));
        Ok(recorded)
    }

    /// The results that a run replaced.
    pub(super) fn old_results(&self, file: &Path, number: u64) -> Result<Vec<OldResults>, UndoError> {
        let path = outputs_beside(&self.folder_of(file).join(format!("{number:08}.json")));
        let stored = fs::read(path).ok().and_then(|stored| serde_json::from_slice(&stored).ok());
        stored.ok_or(UndoError::Unusable { number })
    }
}

fn outputs_beside(entry: &Path) -> PathBuf {
    entry.with_extension("outputs")
}

/// Removes the oldest runs until the rest is small enough, and outputs whose entry is gone.
fn prune_runs(folder: &Path) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "outputs")).collect();
    runs.sort_unstable();
    let (mut kept, mut count) = (0, 0);
    for outputs in runs.into_iter().rev() {
        let entry = outputs.with_extension("json");
        let size = fs::metadata(&outputs).map_or(0, |metadata| metadata.len());
        let is_first = count == 0;
        if entry.exists() && (is_first || (count < RUNS && kept + size <= BYTES)) {
            (kept, count) = (kept + size, count + 1);
            continue;
        }
        drop(fs::remove_file(entry)); // the next time, then
        drop(fs::remove_file(outputs)); // the same
    }
}

/// The notebook `now` with the results that cells had before a run. Cells that say something else by now are left alone:
/// the old outputs are not theirs.
pub(crate) fn with_old_results(
    old: &[OldResults],
    now: &Notebook,
    number: u64,
    force: bool,
) -> Result<Edited, UndoError> {
    let finder = CellFinder::of(now);
    let unusable = |_| UndoError::Unusable { number };
    let (mut replaced, mut changed) = (HashMap::new(), Vec::new());
    for results in old {
        let Some(place) = finder.place(&results.cell) else { continue };
        if !force && !results.cell.says_what(&now.cell(place)) {
            changed.push(place);
            continue;
        }
        replaced.insert(place, now.cell_with_results(place, &results.results()).map_err(unusable)?);
    }
    if let (true, Some(cell)) = (replaced.is_empty(), changed.first()) {
        return Err(UndoError::ChangedSince { cell: *cell, number });
    }
    let cells: Vec<_> = (0..now.len())
        .map(|index| match replaced.get(&index) {
            Some(json) => RawCell::Replaced(index, json),
            None => RawCell::Kept(index),
        })
        .collect();
    let after = now.with_raw_cells(&cells).map_err(unusable)?;
    let is_other = |index: &usize| now.cell(*index).raw() != after.cell(*index).raw();
    let altered = (0..now.len()).filter(|index| replaced.contains_key(index)).filter(is_other);
    let touched: Vec<_> = altered.map(|index| TouchedCell::of(&after.cell(index), Change::Altered)).collect();
    let notes =
        if changed.is_empty() { Vec::new() } else { vec![Note::OutputsNotRestored { cells: changed }] };
    let is_changed = !touched.is_empty();
    let report = Report { action: "undo", cells: touched, total: after.len(), notes };
    let origins = (0..now.len()).map(Some).collect();
    Ok(Edited { notebook: is_changed.then_some(after), report, origins })
}
