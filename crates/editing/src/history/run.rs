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
    CellChange, CellResults, ChangeNote, ChangeReport, EditedNotebook, Notebook, NotebookCell, RawCell,
    TouchedCell, index_ranges,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::key::{CellFinder, CellKey, sources_print};
use super::{ChangeFile, ChangeReach, HistoryStore, StoredChange, StoredContent, UndoError, UndoSteps};
use crate::document::key_of;

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

/// What was stored before a run replaces something.
#[derive(Debug, Default)]
pub struct RunEntry(Option<ChangeFile>);

impl RunEntry {
    /// Removes it again: nothing was replaced.
    pub fn withdraw(self) {
        if let Some(recorded) = self.0 {
            drop(fs::remove_file(outputs_beside(recorded.path()))); // the next run sweeps it
            recorded.withdraw();
        }
    }
}

/// Outputs that a run replaces and undo cannot bring back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnkeptOutputs {
    /// Their cells.
    pub cells: Vec<usize>,
    /// Why they could not be kept.
    pub reason: String,
}

/// Keeps what a run takes away from one notebook, so that it can be undone. Blocks on files.
#[derive(Debug)]
pub struct RunHistory {
    /// `None` where nothing is kept of any change.
    store: Option<HistoryStore>,
    file: PathBuf,
}

impl RunHistory {
    /// For runs whose results go to this file.
    pub fn new(store: Option<HistoryStore>, path: &Path) -> Self {
        Self { store, file: key_of(path) }
    }

    /// Keeps a notebook that a run with the copy `after` of another one replaces. The run may then add outputs to that.
    pub fn keep_notebook(&self, before: &Notebook, after: &Notebook) -> io::Result<RunEntry> {
        self.keep_file(before.text().as_bytes(), after)
    }

    /// The same of a file that need not be a notebook.
    pub fn keep_file(&self, before: &[u8], after: &Notebook) -> io::Result<RunEntry> {
        let content = StoredContent::of(before);
        self.keep(&StoredChange {
            sources_after: Some(sources_print(after)),
            ..StoredChange::of_run(
                "replaced by a run of another notebook".to_owned(),
                after,
                UndoSteps::Whole { content },
            )
        })
    }

    /// Keeps what putting parameters into a notebook changes.
    pub fn keep_parameters(&self, before: &Notebook, edited: &EditedNotebook) -> io::Result<RunEntry> {
        match &edited.notebook {
            Some(after) => {
                let change = StoredChange::of(before, after, edited, ChangeReach::Cells);
                let summary = format!("parameters of a run: {}", change.summary);
                self.keep(&StoredChange { action: "run".to_owned(), summary, ..change })
            }
            None => Ok(RunEntry::default()),
        }
    }

    fn keep(&self, change: &StoredChange) -> io::Result<RunEntry> {
        let Some(store) = &self.store else { return Ok(RunEntry::default()) };
        match store.record(&self.file, change) {
            Ok(recorded) => {
                recorded.prune_older();
                Ok(RunEntry(Some(recorded)))
            }
            Err(error) if change.undo.takes_away() => Err(store.unwritable(&error)),
            // New cells are not lost.
            Err(_) => Ok(RunEntry::default()),
        }
    }

    /// Keeps what these cells of `now` have of earlier runs. `ran` says what replaces it. Nothing is stored if they have
    /// nothing.
    pub fn keep_outputs(&self, now: &Notebook, cells: &[usize], ran: &str) -> (RunEntry, Vec<UnkeptOutputs>) {
        let Some(store) = &self.store else { return Default::default() };
        let finder = CellFinder::of(now);
        let (mut old, mut kept, mut size, mut too_large) = (Vec::new(), Vec::new(), 0, Vec::new());
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
            kept.push(cell.index());
        }
        let mut unkept = Vec::new();
        let mut left_out = String::new();
        if !too_large.is_empty() {
            let list = index_ranges(&too_large);
            left_out = format!("; the old outputs of {list} were too large to keep");
            let reason = format!("undo keeps at most {} MB of outputs of one notebook", BYTES >> 20);
            unkept.push(UnkeptOutputs { cells: too_large, reason });
        }
        if old.is_empty() {
            return (RunEntry::default(), unkept);
        }
        let noun = if cells.len() == 1 { "cell" } else { "cells" };
        let summary = format!("{ran} {noun} {}{left_out}", index_ranges(cells));
        let undo = UndoSteps::Results { cells: Vec::new() };
        match store.record_run(&self.file, &StoredChange::of_run(summary, now, undo), &old) {
            Ok(recorded) => (RunEntry(Some(recorded)), unkept),
            // The run goes on: its cells are what the caller asked for.
            Err(error) => {
                unkept.push(UnkeptOutputs { cells: kept, reason: store.unwritable(&error).to_string() });
                (RunEntry::default(), unkept)
            }
        }
    }
}

/// Whether two cells have the same outputs and count, however their JSON is laid out. One without any has what every other
/// one without any has.
pub fn has_same_results(one: &NotebookCell<'_>, other: &NotebookCell<'_>) -> bool {
    let results = |cell: &NotebookCell<'_>| {
        cell.results().map(|results| (results.outputs.to_owned(), results.execution_count.to_owned()))
    };
    match (results(one), results(other)) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            one == other || one.1 == other.1 && joined_lines(&one.0) == joined_lines(&other.0)
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// The value of a JSON text, with texts that are stored as lists of lines as one.
fn joined_lines(json: &str) -> Option<Value> {
    fn join(value: &mut Value) {
        match value {
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
                *value = items.iter().filter_map(Value::as_str).collect::<String>().into();
            }
            Value::Array(items) => items.iter_mut().for_each(join),
            Value::Object(members) => members.values_mut().for_each(join),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut value = serde_json::from_str(json).ok()?;
    join(&mut value);
    Some(value)
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
        recorded.prune_older();
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
) -> Result<EditedNotebook, UndoError> {
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
    let touched: Vec<_> =
        altered.map(|index| TouchedCell::of(&after.cell(index), CellChange::Altered)).collect();
    let notes =
        if changed.is_empty() { Vec::new() } else { vec![ChangeNote::OutputsNotRestored { cells: changed }] };
    let is_changed = !touched.is_empty();
    let report = ChangeReport { action: "undo", cells: touched, total: after.len(), notes };
    let origins = (0..now.len()).map(Some).collect();
    Ok(EditedNotebook { notebook: is_changed.then_some(after), report, origins })
}
